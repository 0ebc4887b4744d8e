/* SPDX-License-Identifier: Apache-2.0 */
/* Which of some regular expressions the last lines of an executor's log match (Link1.FindInLog): question and
 * answer. Conventions of messages.h. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-bus.h>

#include "lib/base/pattern.h"

#define FIND_PATTERNS_MAX 160u /* of one question */
#define FIND_LINE_MAX 256u     /* bytes of a line that was found; the rest is cut off */

/* as, a{sv} */
struct find_question {
        char **patterns; /* NULL-ended; not compiled yet by who reads it */
        size_t n;
};
int find_question_append(sd_bus_message *m, const struct find_question *q);
int find_question_read(sd_bus_message *m, struct find_question *ret);
void find_question_done(struct find_question *q);

/* For each pattern, in their order. */
struct found_line {
        bool found;
        char text[FIND_LINE_MAX + 1]; /* the first line that matches */
};

/* a(us) number of the pattern and line, a{sv}. lines: n of them. Reading: what is said of patterns beyond n
 * is passed over. */
int found_lines_append(sd_bus_message *m, const struct found_line *lines, size_t n);
int found_lines_read(sd_bus_message *m, struct found_line *lines, size_t n);
