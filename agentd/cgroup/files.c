/* SPDX-License-Identifier: Apache-2.0 */
/* The text of cgroup files. Invariant: text of any shape is read to its end and not beyond, and only whole
 * numbers are taken. */
#include "agentd/cgroup/files.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* A decimal number; true when it ends at a blank, a line's end or the text's. */
static bool read_number(const char **text, uint64_t *ret) {
        const char *s = *text;
        uint64_t n = 0;

        if (*s < '0' || *s > '9')
                return false;
        for (; *s >= '0' && *s <= '9'; s++)
                if (__builtin_mul_overflow(n, 10u, &n) || __builtin_add_overflow(n, (uint64_t)(*s - '0'), &n))
                        return false;
        *text = s;
        if (*s && *s != ' ' && *s != '\n')
                return false;
        *ret = n;
        return true;
}

static const char *after(const char *s, const char *prefix) {
        size_t n = strlen(prefix);

        return strncmp(s, prefix, n) == 0 ? s + n : NULL;
}

static const char *next_line(const char *s) {
        s += strcspn(s, "\n");
        return *s ? s + 1 : s;
}

void cgroup_parse_number(const char *text, uint64_t *ret) {
        const char *rest = after(text, "max");

        if (rest && (!*rest || *rest == '\n' || *rest == ' '))
                *ret = UINT64_MAX;
        else
                (void)read_number(&text, ret);
}

void cgroup_parse_keys(const char *text, const struct cgroup_key *keys) {
        for (const char *line = text; *line; line = next_line(line))
                for (const struct cgroup_key *k = keys; k->name; k++) {
                        const char *value = after(line, k->name);
                        if (value && *value == ' ') {
                                value++;
                                (void)read_number(&value, k->ret);
                                break;
                        }
                }
}

void cgroup_parse_cpu_max(const char *text, uint64_t *ret) {
        uint64_t quota, period;

        if (after(text, "max")) {
                *ret = UINT64_MAX;
                return;
        }
        if (!read_number(&text, &quota) || *text++ != ' ' || !read_number(&text, &period) || period == 0)
                return;
        *ret = (uint64_t)((double)quota * 1e6 / (double)period);
}

void cgroup_parse_pressure(const char *text, uint64_t *ret_some, uint64_t *ret_full) {
        for (const char *line = text; *line; line = next_line(line)) {
                uint64_t *target = after(line, "some ") ? ret_some : after(line, "full ") ? ret_full : NULL;
                size_t n = strcspn(line, "\n");
                const char *total = target ? memmem(line, n, " total=", 7) : NULL;

                if (total) {
                        total += 7;
                        (void)read_number(&total, target);
                }
        }
}

void cgroup_parse_io(const char *text, uint64_t *ret_read, uint64_t *ret_written) {
        uint64_t sum[2] = {};

        for (const char *line = text; *line; line = next_line(line)) {
                static const char *const names[] = { " rbytes=", " wbytes=" };
                size_t n = strcspn(line, "\n");

                for (size_t i = 0; i < 2; i++) {
                        const char *value = memmem(line, n, names[i], 8);
                        uint64_t bytes;

                        if (value && (value += 8, read_number(&value, &bytes)))
                                sum[i] += bytes;
                }
        }
        *ret_read = sum[0];
        *ret_written = sum[1];
}
