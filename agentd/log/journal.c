/* SPDX-License-Identifier: Apache-2.0 */
/* The journal, as both readers use it. Invariant: an entry's text ends in a newline exactly where the line
 * that was printed did, or where its printer stopped. */
#include "agentd/log/journal.h"

#include <stdio.h>
#include <string.h>
#include <systemd/sd-bus.h>

#include "lib/base/cleanup.h"
#include "lib/base/try.h"
#include "lib/wire/starter.h"

#define LINE_MAX_SMALLEST                                                                                    \
        79u /* journald.conf's LineMax= is at least this: shorter entries were not cut by it */

int log_buffer_append(struct log_buffer *b, const void *data, size_t size) {
        if (b->size + size > b->allocated) {
                size_t bigger = MAX(b->allocated * 2, b->size + size);
                char *p = realloc(b->data, bigger);

                if (!p)
                        return -ENOMEM;
                b->data = p;
                b->allocated = bigger;
        }
        memcpy(b->data + b->size, data, size);
        b->size += size;
        return 0;
}

void log_buffer_done(struct log_buffer *b) {
        free(b->data);
        *b = (struct log_buffer){ 0 };
}

int journal_open(const char *directory, sd_journal **ret) {
        sd_journal *j;
        int r;

        r = directory ? sd_journal_open_directory(&j, directory, 0)
                      : sd_journal_open(&j, SD_JOURNAL_LOCAL_ONLY);
        if (r < 0)
                return r;
        (void)sd_journal_set_data_threshold(j, 0);
        *ret = j;
        return 0;
}

static bool cut_by_journald(sd_journal *j) {
        const char *data;
        size_t size;

        return sd_journal_get_data(j, "_LINE_BREAK", (const void **)&data, &size) >= 0 &&
               size == strlen("_LINE_BREAK=line-max") && memcmp(data, "_LINE_BREAK=line-max", size) == 0;
}

int journal_append_entry(sd_journal *j, struct log_buffer *b, size_t max) {
        static const size_t name = sizeof("MESSAGE=") - 1;
        const char *data;
        size_t size;
        bool cut;
        int r;

        r = sd_journal_get_data(j, "MESSAGE", (const void **)&data, &size);
        if (r == -ENOENT)
                return 0;
        if (r < 0)
                return r;
        if (size < name)
                return 0;
        size = MIN(size - name, max - 1);
        r = log_buffer_append(b, data + name, size);
        if (r < 0)
                return r;
        cut = size >= LINE_MAX_SMALLEST && cut_by_journald(j);
        if (!cut && (r = log_buffer_append(b, "\n", 1)) < 0) {
                b->size -= size;
                return r;
        }
        return (int)size + !cut;
}

const void *journal_mark(sd_journal *j) {
        const void *data;
        size_t size;

        return sd_journal_get_data(j, "_SYSTEMD_UNIT", &data, &size) >= 0 ? data : NULL;
}

bool journal_repeated(const char *cursor_a, const void *mark_a, const char *cursor_b, const void *mark_b) {
        const char *a = cursor_a ? strstr(cursor_a, ";b=") : NULL,
                   *b = cursor_b ? strstr(cursor_b, ";b=") : NULL;

        return a && b && strcmp(a, b) == 0 && (!mark_a || mark_a != mark_b);
}

int journal_sync(const char *starter_socket, uint64_t timeout_usec) {
        _cleanup_(sd_bus_close_unrefp) sd_bus *bus = NULL;
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *call = NULL;
        _cleanup_free_ char *address = NULL;
        int r;

        if (asprintf(&address, "unix:path=%s", starter_socket ? starter_socket : STARTER_SOCKET) < 0) {
                address = NULL;
                return -ENOMEM;
        }
        TRY(sd_bus_new(&bus));
        TRY(sd_bus_set_address(bus, address));
        TRY(sd_bus_start(bus));
        TRY(sd_bus_message_new_method_call(bus, &call, NULL, STARTER_PATH, STARTER_JOURNAL, "Synchronize"));
        r = sd_bus_call(bus, call, timeout_usec, NULL, NULL);
        return MIN(r, 0);
}
