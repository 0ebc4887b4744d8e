/* SPDX-License-Identifier: Apache-2.0 */
/* What is looked for in a log, and what was found, on the wire. */
#include "lib/wire/find.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/strv.h"
#include "lib/base/try.h"
#include "lib/wire/messages-parts.h"

void find_question_done(struct find_question *q) {
        strings_free_p(&q->patterns);
        *q = (struct find_question){};
}

int find_question_append(sd_bus_message *m, const struct find_question *q) {
        if (q->n > FIND_PATTERNS_MAX)
                return -E2BIG;
        TRY(sd_bus_message_append_strv(m, q->patterns));
        return sd_bus_message_append(m, "a{sv}", 0);
}

int find_question_read(sd_bus_message *m, struct find_question *ret) {
        _cleanup_(find_question_done) struct find_question q = {};
        const char *pattern;
        int r = sd_bus_message_enter_container(m, 'a', "s");

        if (r <= 0)
                return link_bad(r);
        q.patterns = calloc(FIND_PATTERNS_MAX + 1, sizeof(*q.patterns));
        if (!q.patterns)
                return -ENOMEM;
        while ((r = sd_bus_message_read_basic(m, 's', &pattern)) > 0) {
                if (q.n == FIND_PATTERNS_MAX || !*pattern || strlen(pattern) > PATTERN_MAX)
                        return -EBADMSG;
                q.patterns[q.n] = strdup(pattern);
                if (!q.patterns[q.n++])
                        return -ENOMEM;
        }
        if (r < 0 || (r = sd_bus_message_exit_container(m)) < 0)
                return link_bad(r);
        *ret = q;
        q = (struct find_question){};
        return 1;
}

int found_lines_append(sd_bus_message *m, const struct found_line *lines, size_t n) {
        TRY(sd_bus_message_open_container(m, 'a', "(us)"));
        for (size_t i = 0; i < n; i++) {
                if (!lines[i].found)
                        continue;
                TRY(sd_bus_message_open_container(m, 'r', "us"));
                TRY(sd_bus_message_append(m, "u", (uint32_t)i));
                TRY(link_append_text(m, lines[i].text, FIND_LINE_MAX));
                TRY(sd_bus_message_close_container(m));
        }
        TRY(sd_bus_message_close_container(m));
        return sd_bus_message_append(m, "a{sv}", 0);
}

int found_lines_read(sd_bus_message *m, struct found_line *lines, size_t n) {
        uint32_t which;
        int r = sd_bus_message_enter_container(m, 'a', "(us)");

        if (r <= 0)
                return link_bad(r);
        while ((r = sd_bus_message_enter_container(m, 'r', "us")) > 0) {
                char text[FIND_LINE_MAX + 1];

                if ((r = sd_bus_message_read_basic(m, 'u', &which)) <= 0 ||
                    (r = link_read_text_into(m, text, sizeof(text))) <= 0 ||
                    (r = sd_bus_message_exit_container(m)) < 0)
                        return link_bad(r);
                if (which >= n)
                        continue;
                lines[which].found = true;
                strcpy(lines[which].text, text);
        }
        if (r < 0 || (r = sd_bus_message_exit_container(m)) < 0)
                return link_bad(r);
        return 1;
}
