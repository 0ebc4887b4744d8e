/* SPDX-License-Identifier: Apache-2.0 */
#include "agentd/log/find.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/pattern.h"
#include "lib/base/utf8.h"

static int compile_all(char *const *patterns, size_t n, struct pattern **ret) {
        int r = 0;

        for (size_t i = 0; i < n && r >= 0; i++)
                r = pattern_new(patterns[i], ret + i);
        return r;
}

static void match_line(const char *line, size_t size, struct pattern **patterns, size_t n,
                       struct found_line *ret) {
        for (size_t i = 0; i < n; i++)
                if (!ret[i].found && pattern_match(patterns[i], line, size)) {
                        ret[i].found = true;
                        (void)utf8_clean(line, size, ret[i].text, sizeof(ret[i].text));
                }
}

int find_lines(const char *data, size_t size, char *const *patterns, size_t n, struct found_line *ret) {
        uint64_t until = now_boot() + FIND_USEC_MAX;
        struct pattern **compiled = calloc(n + 1, sizeof(*compiled));
        int r = compiled ? compile_all(patterns, n, compiled) : -ENOMEM;

        while (r >= 0 && size > 0) {
                const char *end = memchr(data, '\n', size);
                size_t line = end ? (size_t)(end - data) : size, whole = line + (end != NULL);

                if (now_boot() > until)
                        break;
                match_line(data, line, compiled, n, ret);
                data += whole;
                size -= whole;
        }
        for (size_t i = 0; compiled && i < n; i++)
                pattern_free(compiled[i]);
        free(compiled);
        return r < 0 ? r : size == 0;
}
