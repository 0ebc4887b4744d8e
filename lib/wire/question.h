/* SPDX-License-Identifier: Apache-2.0 */
/* Questions of executors to masterd (FEED_ASK, AskSearch), and answers: JSON objects, whose "op" says which
 * other keys there may be. */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#define QUESTION_WHY_MAX 300u

struct question_op {
        const char *name;    /* NULL ends the table */
        const char *keys[9]; /* beside op; up to the first NULL */
};

/* *ret: the object; *ret_op: its place in the table. -EBADMSG: it is no object, or has more bytes than max;
 * -ENOENT: the table has no such op; -EINVAL with a sentence in why: it has a key that its op has not. */
int question_read(const char *text, size_t max, const struct question_op *ops, json_t **ret, unsigned *ret_op,
                  char why[static QUESTION_WHY_MAX]);
/* An integer of 0 to max, or -EINVAL with a sentence. */
int question_number(const json_t *j, const char *key, uint64_t max, uint64_t *ret,
                    char why[static QUESTION_WHY_MAX]);
/* That sentence; -EINVAL. */
int question_refuse(char why[static QUESTION_WHY_MAX], const char *text);
/* Takes j, NULL too: out of memory then. *ret is allocated; -ENOMEM. */
int question_answer(json_t *j, char **ret);

static inline void question_unref(json_t **j) {
        json_decref(*j);
}
