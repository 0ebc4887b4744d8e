/* SPDX-License-Identifier: Apache-2.0 */
/* Invariant: of a line that is not exactly as faulthandler writes it, nothing is taken. */
#include "masterd/health/frames.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/cleanup.h"

#define PLACES_MAX 4u /* that frames_text() names */
#define FILE_SHOWN 40 /* bytes of a file's name */
#define NAME_SHOWN 40 /* ... and of a function's */

static const char *line_behind(const char *line) {
        const char *end = strchr(line, '\n');

        return end && end[1] ? end + 1 : NULL;
}

static size_t line_size(const char *line) {
        return strcspn(line, "\n");
}

/* Printable ASCII, anything else a question mark: it goes into events and terminals. */
static void copy_printable(char *to, size_t size, const char *from, size_t n) {
        n = MIN(n, size - 1);
        for (size_t i = 0; i < n; i++)
                to[i] = from[i] >= ' ' && from[i] <= '~' ? from[i] : '?';
        to[n] = 0;
}

/*   File "/srv/bug.py", line 7 in save_checkpoint */
static bool read_frame(const char *line, char ret[static FRAME_MAX]) {
        static const char begin[] = "  File \"", middle[] = "\", line ";
        const char *end = line + line_size(line), *file = line + sizeof(begin) - 1, *at = NULL, *name;
        char shown_file[FILE_SHOWN + 1], shown_name[NAME_SHOWN + 1];
        unsigned long number;
        int used = 0;

        if ((size_t)(end - line) < sizeof(begin) - 1 || strncmp(line, begin, sizeof(begin) - 1) != 0)
                return false;
        for (const char *p = file; p + sizeof(middle) - 1 <= end; p++)
                if (strncmp(p, middle, sizeof(middle) - 1) == 0)
                        at = p; /* the last: a file's name may hold anything */
        if (!at || sscanf(at + sizeof(middle) - 1, "%9lu in %n", &number, &used) != 1 || used == 0)
                return false;
        name = at + sizeof(middle) - 1 + used;
        if (name >= end)
                return false;
        for (const char *p = file; p < at; p++)
                if (*p == '/')
                        file = p + 1;
        copy_printable(shown_file, sizeof(shown_file), file, (size_t)(at - file));
        copy_printable(shown_name, sizeof(shown_name), name, (size_t)(end - name));
        (void)snprintf(ret, FRAME_MAX, "%s (%s:%lu)", shown_name, shown_file, number);
        return true;
}

_Bool frame_innermost(const char *text, char ret[static FRAME_MAX]) {
        static const char current[] = "Current thread ", stack[] = "Stack (";

        for (const char *line = text; line; line = line_behind(line))
                if (strncmp(line, current, sizeof(current) - 1) == 0 ||
                    strncmp(line, stack, sizeof(stack) - 1) == 0) {
                        line = line_behind(line);
                        return line && read_frame(line, ret);
                }
        return false;
}

static size_t count_of(const char *const *frames, size_t n, size_t which) {
        size_t count = 0;

        for (size_t i = 0; i < n; i++)
                count += frames[i] && strcmp(frames[i], frames[which]) == 0;
        return count;
}

int frames_odd_one(const char *const *frames, size_t n, size_t *ret_usual) {
        size_t usual, odd;

        if (n < 3)
                return -1; /* of two, either may be the one */
        for (size_t i = 0; i < n; i++)
                if (!frames[i])
                        return -1;
        /* Two of the first three are in the place of all but one. */
        usual = strcmp(frames[0], frames[1]) == 0 || strcmp(frames[0], frames[2]) == 0 ? 0 : 1;
        if (count_of(frames, n, usual) != n - 1)
                return -1;
        for (odd = 0; strcmp(frames[odd], frames[usual]) == 0;)
                odd++;
        *ret_usual = usual;
        return (int)odd;
}

const char *frames_text(const char *const *frames, size_t n, char *buf, size_t size) {
        size_t named[PLACES_MAX], n_named = 0, used = 0, left = 0;

        buf[0] = 0;
        for (size_t i = 0; i < n; i++)
                left += frames[i] != NULL;
        while (n_named < PLACES_MAX) {
                size_t most = 0, where = 0;

                for (size_t i = 0; i < n; i++) {
                        bool done = !frames[i];

                        for (size_t k = 0; k < n_named && !done; k++)
                                done = strcmp(frames[i], frames[named[k]]) == 0;
                        if (!done && count_of(frames, n, i) > most) {
                                most = count_of(frames, n, i);
                                where = i;
                        }
                }
                if (most == 0)
                        break;
                named[n_named++] = where;
                left -= most;
                if (used < size)
                        used += (size_t)snprintf(buf + used, size - used, "%s%zu in %s", used ? ", " : "",
                                                 most, frames[where]);
        }
        if (left > 0 && used < size)
                (void)snprintf(buf + used, size - used, ", %zu elsewhere", left);
        return buf;
}
