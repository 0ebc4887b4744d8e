/* SPDX-License-Identifier: Apache-2.0 */
/* The small languages of after and array. Pure. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define AFTER_MAX 64u /* entries of after: a bit of a word for each */
#define ARRAY_ELEMENTS_MAX 100000u
#define ARRAY_INDEX_MAX 999999999u
#define ARRAY_TEXT_MAX 65536u

/* How the job that is waited for has to end. */
enum after_condition {
        AFTER_OK,   /* SUCCEEDED */
        AFTER_FAIL, /* FAILED or KILLED */
        AFTER_ANY,
        _AFTER_CONDITION_MAX,
};
const char *after_condition_to_string(enum after_condition c);

#define AFTER_WHOLE UINT32_MAX /* not an element: the job, or all of the array */

struct after_entry {
        uint32_t job;
        uint32_t index; /* this element of that array, or AFTER_WHOLE */
        enum after_condition condition;
};

/* "417" or "417[3]", into buf. Returns buf. */
#define AFTER_NAME_MAX 24
char *after_name(const struct after_entry *e, char buf[static AFTER_NAME_MAX]);

/* "417", "417:ok", "417:fail", "417:any", "417[3]", "417[3]:any". -EINVAL. */
int after_parse(const char *text, struct after_entry *ret);

struct array_range {
        uint32_t *indices; /* ascending, each once */
        uint32_t n;
        uint32_t limit; /* so many at a time; 0: not given */
};

/* "0-99", "0-99%8", "1,3,7-9", "0-99:10". -EINVAL with *ret_why (static: a clause "must ..."), -ENOMEM. */
int array_range_parse(const char *text, struct array_range *ret, const char **ret_why);
void array_range_done(struct array_range *a);
