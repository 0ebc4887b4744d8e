/* SPDX-License-Identifier: Apache-2.0 */
/* The files of logs --output. */
#include "tools/primusctl/bus/logfile.h"

#include <inttypes.h>
#include <string.h>

#include "lib/base/cleanup.h"

FILE *logfile_open(const struct cli *c, const char *pattern, const struct watch *w,
                   const struct executor *e) {
        _cleanup_free_ char *path = NULL;
        size_t size;
        FILE *f = open_memstream(&path, &size);

        if (!f)
                return NULL;
        for (const char *p = pattern; *p; p++) {
                if (*p != '%' || !p[1]) {
                        putc(*p, f);
                        continue;
                }
                switch (*++p) {
                case 'j':
                        fprintf(f, "%" PRIu32, watch_job(w)->number);
                        break;
                case 'x':
                        for (const char *name = watch_properties(w)->name; name && *name; name++)
                                putc(*name == '/' ? '_' : *name, f);
                        break;
                case 'r':
                        fputs(e->role, f);
                        break;
                case 'i':
                        fprintf(f, "%" PRIu32, e->index);
                        break;
                case 'a':
                        fprintf(f, "%" PRIu32, e->attempt);
                        break;
                case 'n':
                        fprintf(f, "%" PRIu32, e->rank);
                        break;
                case '%':
                        putc('%', f);
                        break;
                default:
                        fprintf(f, "%%%c", *p);
                }
        }
        if (fclose(f) == EOF)
                return NULL;
        f = fopen(path, "we");
        if (!f)
                cli_fail(c, "%s: %s", path, strerror(errno));
        return f;
}
