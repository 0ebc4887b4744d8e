/* SPDX-License-Identifier: Apache-2.0 */
/* What is S3's own: addresses of objects, and the XML of its answers. Pure but for the environment
 * (AWS_REGION, AWS_DEFAULT_REGION). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/wire/input.h"

#define S3_KEY_MAX 1024u

const char *s3_region(const struct input_source *source);

/* "s3://bucket/key" at the source's endpoint, path style, the key percent-encoded. query: encoded, sorted by
 * name (the signature wants that), or NULL. -EINVAL: no bucket; -ENOMEM. */
int s3_url(const struct input_source *source, const char *path, const char *query, char **ret);

/* Percent-encodes what is not a letter, a digit or one of -_.~ (and / where slash says so). Allocated. */
char *s3_encode(const char *text, bool slash);

/* One object of a listing. */
struct s3_object {
        char key[S3_KEY_MAX * 3 + 1]; /* decoded */
        char tag[128];
        uint64_t size;
};
/* Reads a page of ListObjectsV2 (asked for with encoding-type=url), calling on_object for each; what that
 * answers below 0 ends it. *ret_token: where the next page begins ("": this is the last one). -EBADMSG: it is
 * none; or on_object's. */
typedef int (*s3_on_object)(void *userdata, const struct s3_object *o);
int s3_list_read(const char *xml, size_t size, s3_on_object on_object, void *userdata, char *ret_token,
                 size_t token_size);

/* The <Code> of an error's body, cleaned; "" when there is none. */
void s3_error_code(const char *xml, char *buf, size_t size);
