/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/unit/output.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/base/cleanup.h"

int output_expand(const char *pattern, const struct executor_id *id, const char *node, const char *directory,
                  char **ret) {
        _cleanup_free_ char *text = NULL;
        bool bad = false;
        size_t size;
        FILE *f = open_memstream(&text, &size);

        if (!f)
                return -ENOMEM;
        if (directory && *pattern != '/')
                fprintf(f, "%s/", directory);
        for (const char *p = pattern; *p && !bad; p++) {
                if (*p != '%') {
                        fputc(*p, f);
                        continue;
                }
                switch (*++p) {
                case 'j':
                        fprintf(f, "%u", id->job);
                        break;
                case 'r':
                        fputs(id->role, f);
                        break;
                case 'i':
                        fprintf(f, "%u", id->index);
                        break;
                case 'a':
                        fprintf(f, "%u", id->attempt);
                        break;
                case 'n':
                        fputs(node, f);
                        break;
                case '%':
                        fputc('%', f);
                        break;
                default:
                        bad = true;
                }
                p -= *p == 0;
        }
        if (fclose(f) != 0)
                return -ENOMEM;
        if (bad)
                return -EINVAL;
        *ret = TAKE_PTR(text);
        return 0;
}
