/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of CPUs. */
#include "lib/base/cpulist.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "lib/base/cleanup.h"

static int parse_number(const char **p, size_t limit, size_t *ret) {
        size_t n = 0;

        if (**p < '0' || **p > '9')
                return -EINVAL;
        for (; **p >= '0' && **p <= '9'; (*p)++) {
                n = n * 10 + (size_t)(**p - '0');
                if (n >= limit)
                        return -EINVAL;
        }
        *ret = n;
        return 0;
}

/* One pass checks, the next sets. */
static int walk_ranges(const char *p, uint64_t *bits, size_t n_words) {
        size_t first, last, begin = 0;

        while (*p && *p != '\n') {
                if (parse_number(&p, n_words * 64, &first) < 0)
                        return -EINVAL;
                last = first;
                if (*p == '-') {
                        p++;
                        if (parse_number(&p, n_words * 64, &last) < 0)
                                return -EINVAL;
                }
                if (last < first || first < begin)
                        return -EINVAL;
                begin = last + 1;
                for (size_t i = first; bits && i <= last; i++)
                        bits[i / 64] |= UINT64_C(1) << (i % 64);
                if (*p == ',')
                        p++;
                else if (*p && *p != '\n')
                        return -EINVAL;
        }
        return *p && p[1] ? -EINVAL : 0;
}

int cpulist_parse(const char *text, uint64_t *bits, size_t n_words) {
        int r = walk_ranges(text, NULL, n_words);

        if (r < 0)
                return r;
        memset(bits, 0, n_words * sizeof(*bits));
        return walk_ranges(text, bits, n_words);
}

static bool is_set(const uint64_t *bits, size_t n_words, size_t i) {
        return i < n_words * 64 && (bits[i / 64] >> (i % 64) & 1);
}

char *cpulist_format(const uint64_t *bits, size_t n_words) {
        char *text = NULL;
        size_t size;
        FILE *f = open_memstream(&text, &size);
        const char *comma = "";

        if (!f)
                return NULL;
        for (size_t i = 0; i < n_words * 64; i++) {
                size_t last = i;
                if (!is_set(bits, n_words, i))
                        continue;
                while (is_set(bits, n_words, last + 1))
                        last++;
                fprintf(f, "%s%zu", comma, i);
                if (last > i)
                        fprintf(f, "-%zu", last);
                comma = ",";
                i = last;
        }
        if (fclose(f) == 0)
                return text;
        free(text);
        return NULL;
}
