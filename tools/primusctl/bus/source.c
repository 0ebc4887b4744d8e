/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a configuration file. Invariant: of a file that is too large, never more than the limit is read. */
#include "tools/primusctl/bus/source.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/file.h"
#include "tools/primusctl/bus/job-yaml.h"

/* In place of the YAML, the JSON that says the same. */
static int read_yaml(const struct cli *c, const char *path, char **text, size_t *size) {
        struct yaml_error error;
        char *json;
        int r = yaml_to_json(*text, *size, &json, size, &error);

        if (r == -ENOMEM)
                return cli_oom(c);
        if (r < 0 && error.line > 0)
                return cli_complain("%s:%zu:%zu: %s", path, error.line, error.column, error.text);
        if (r < 0)
                return cli_complain("%s: %s", path, error.text);
        free(*text);
        *text = json;
        return 0;
}

int source_read(const struct cli *c, const char *path, char **ret, size_t *ret_size) {
        _cleanup_free_ char *text = NULL;
        bool standard_input = strcmp(path, "-") == 0;
        struct stat st;
        size_t size;
        int r;

        /* /dev/stdin would be opened anew, which a pipe of another user refuses. */
        if ((standard_input ? fstat(STDIN_FILENO, &st) : stat(path, &st)) < 0)
                return cli_complain("%s: %s", path, strerror(errno));
        if (S_ISDIR(st.st_mode))
                return cli_complain("%s: is a directory", path);
        if (S_ISREG(st.st_mode) && st.st_size > CONFIG_MAX)
                r = -EFBIG; /* without reading a byte of it */
        else if (standard_input)
                r = read_fd(STDIN_FILENO, CONFIG_MAX, &text, &size);
        else
                r = read_file(path, CONFIG_MAX, &text, &size);
        if (r == -EFBIG)
                return cli_complain("%s: larger than %u MiB, which no configuration may be", path,
                                    CONFIG_MAX >> 20);
        if (r < 0)
                return cli_complain("%s: %s", path, strerror(-r));
        r = yaml_is(path) ? read_yaml(c, path, &text, &size) : 0;
        if (r)
                return r;
        *ret = TAKE_PTR(text);
        *ret_size = size;
        return 0;
}

char *source_directory(const char *path) {
        const char *slash = strcmp(path, "-") == 0 ? NULL : strrchr(path, '/');

        if (!slash)
                return strdup(".");
        return slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
}

/* FILE:LINE:COLUMN: error: PATH: MESSAGE */
static void print_diagnostic(const char *file, const struct diagnostic *d) {
        char place[32] = "";

        if (d->line > 0)
                snprintf(place, sizeof(place), "%u:%u:", d->line, d->column);
        if (d->severity == DIAGNOSTIC_ERROR)
                cli_complain("%s:%s error: %s%s%s", file, place, d->path ? d->path : "",
                             d->path && *d->path ? ": " : "", d->message);
        else
                cli_warn("%s:%s warning: %s%s%s", file, place, d->path ? d->path : "",
                         d->path && *d->path ? ": " : "", d->message);
}

void source_diagnostics(const char *file, const struct diagnostics *d) {
        for (size_t i = 0; i < d->n; i++)
                print_diagnostic(file, &d->items[i]);
        if (d->n_errors + d->n_warnings > d->n)
                cli_complain("%s: and %zu more", file, d->n_errors + d->n_warnings - d->n);
}

void source_warning(const char *path, const char *warning) {
        size_t digits = strspn(warning, "0123456789:");

        if (digits > 2 && warning[digits - 1] == ':' && warning[digits] == ' ')
                cli_warn("%s:%.*s warning:%s", path, (int)digits, warning, warning + digits);
        else
                cli_warn("%s: warning: %s", path, warning);
}
