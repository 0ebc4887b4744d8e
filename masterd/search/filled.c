/* SPDX-License-Identifier: Apache-2.0 */
#include "masterd/search/filled.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/strv.h"
#include "lib/base/try.h"

static const char opening[] = "{hp.";

/* How long the place is that a text begins with; 0: it is none. */
static size_t read_place(const char *text, char ret_name[static SPACE_NAME_MAX + 1]) {
        const char *name = text + strlen(opening);
        size_t n = strcspn(name, "{}");

        if (name[n] != '}' || n == 0 || n > SPACE_NAME_MAX)
                return 0;
        memcpy(ret_name, name, n);
        ret_name[n] = 0;
        return strlen(opening) + n + 1;
}

bool filled_next(const char **at, char ret_name[static SPACE_NAME_MAX + 1]) {
        for (const char *p = *at; (p = strstr(p, opening)); p++) {
                size_t n = read_place(p, ret_name);

                if (n > 0) {
                        *at = p + n;
                        return true;
                }
        }
        return false;
}

bool filled_any(char *const *argv) {
        char name[SPACE_NAME_MAX + 1];

        for (; argv && *argv; argv++) {
                const char *at = *argv;

                if (filled_next(&at, name))
                        return true;
        }
        return false;
}

const json_t *filled_value(const json_t *given, const char *name) {
        const char *dot;

        while ((dot = strchr(name, '.'))) {
                char part[SPACE_NAME_MAX + 1];

                if ((size_t)(dot - name) >= sizeof(part))
                        return NULL;
                memcpy(part, name, (size_t)(dot - name));
                part[dot - name] = 0;
                given = json_object_get(given, part);
                name = dot + 1;
        }
        return json_object_get(given, name);
}

static int put_value(FILE *f, const json_t *value) {
        _cleanup_free_ char *text =
                json_is_string(value) ? NULL : json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
        const char *said = json_is_string(value) ? json_string_value(value) : text;

        if (!said)
                return -ENOMEM;
        if ((size_t)ftell(f) + strlen(said) >= FILLED_MAX)
                return -E2BIG;
        return fputs(said, f) < 0 ? -ENOMEM : 0;
}

/* 1, or 0: it is left out. */
static int put_argument(FILE *f, const char *text, const json_t *given) {
        const char *place, *end = text;
        char name[SPACE_NAME_MAX + 1];

        while (filled_next(&end, name)) {
                const json_t *value = filled_value(given, name);

                if (!value)
                        return 0;
                place = end - strlen(opening) - strlen(name) - 1;
                if (fwrite(text, 1, (size_t)(place - text), f) != (size_t)(place - text))
                        return -ENOMEM;
                TRY(put_value(f, value));
                text = end;
        }
        if ((size_t)ftell(f) + strlen(text) >= FILLED_MAX)
                return -E2BIG;
        return fputs(text, f) < 0 ? -ENOMEM : 1;
}

static int fill_argument(const char *text, const json_t *given, char **ret) {
        _cleanup_free_ char *filled = NULL;
        size_t size;
        FILE *f = open_memstream(&filled, &size);
        int r = f ? put_argument(f, text, given) : -ENOMEM;

        if (f && fclose(f) != 0)
                r = -ENOMEM;
        if (r > 0)
                *ret = TAKE_PTR(filled);
        return r;
}

int filled_argv(char *const *argv, const json_t *given, char ***ret) {
        _cleanup_(strings_free_p) char **all = calloc(strings_count(argv) + 1, sizeof(*all));
        size_t n = 0;

        if (!all)
                return -ENOMEM;
        for (; *argv; argv++) {
                int r = fill_argument(*argv, given, all + n);

                if (r < 0)
                        return r;
                n += (size_t)r;
        }
        *ret = TAKE_PTR(all);
        return 0;
}
