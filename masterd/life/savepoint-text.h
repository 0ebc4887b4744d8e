/* SPDX-License-Identifier: Apache-2.0 */
/* A savepoint as text: its name, its manifest, and whether a configuration is of the same data. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-id128.h>

#define SAVEPOINT_NAME_MAX 63u
#define SAVEPOINT_KEPT_PREFIX "kept-" /* of those of masterd/life/kept-progress.h; no other's begins so */
#define SAVEPOINT_MANIFEST_MAX (32u << 20) /* bytes */

/* A letter or digit, then letters, digits, '.', '_' and '-'. */
bool savepoint_name_valid(const char *s);

struct savepoint_header {
        const char *name;
        uint32_t job;
        sd_id128_t job_uid;
        const char *job_name;
        uint32_t owner; /* uid */
        uint64_t created_real;
        bool complete; /* every feeder has told its latest acknowledgements */
        const char *const *sources;
        size_t n_sources;
};

/* The manifest: the header's fields, and under "data" what data_save() wrote. Allocated. -EBADMSG: data is no
 * JSON; -E2BIG: larger than a manifest may be; -ENOMEM. */
int savepoint_manifest(const struct savepoint_header *h, const char *data, char **ret);

/* What data_load() takes out of a manifest, allocated. -EBADMSG: it is none of this version; -ENOMEM. */
int savepoint_manifest_data(const void *manifest, size_t size, char **ret);

/* Whether two effective configurations cut the same data into the same tasks in the same order. 0: they do;
 * 1, and *ret_difference (allocated, a clause): they do not; -EBADMSG: one is no configuration; -ENOMEM. */
int savepoint_same_data(const char *then, const char *now, char **ret_difference);
