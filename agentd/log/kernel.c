/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's lines. Invariant: the journal and what is behind "in the thread" are the thread's while a look
 * is under way, and nobody's otherwise. */
#include "agentd/log/kernel.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agentd/log/journal.h"
#include "lib/base/clock.h"

#define LINES_MAX 64u     /* handed over by one look; a kernel that says more says the same */
#define ENTRIES_MAX 4096u /* gone over by one look */

struct kernel_log {
        struct worker *worker;
        struct kernel_log_options options;
        kernel_line_handler handler;
        void *userdata;
        sd_event_source *timer;
        bool busy;
        /* in the thread */
        sd_journal *journal;
        uint64_t from_real;
        unsigned entries;
        struct {
                char text[KERNEL_LINE_MAX + 1];
                uint64_t real;
        } lines[LINES_MAX];
        unsigned n_lines;
};

static void close_journal(struct kernel_log *k) {
        sd_journal_close(k->journal);
        k->journal = NULL;
        k->entries = 0;
}

static int open_journal(struct kernel_log *k) {
        char boot[SD_ID128_STRING_MAX], match[sizeof("_BOOT_ID=") + SD_ID128_STRING_MAX];
        sd_id128_t id;
        int r = journal_open(k->options.directory, &k->journal);

        if (r < 0)
                return r;
        r = sd_journal_add_match(k->journal, "_TRANSPORT=kernel", 0);
        /* What a program writes to /dev/kmsg has another facility, whatever it asks for. */
        if (r >= 0)
                r = sd_journal_add_match(k->journal, "SYSLOG_FACILITY=0", 0);
        if (r >= 0 && !k->options.directory && sd_id128_get_boot(&id) >= 0) {
                snprintf(match, sizeof(match), "_BOOT_ID=%s", sd_id128_to_string(id, boot));
                r = sd_journal_add_match(k->journal, match, 0);
        }
        if (r >= 0)
                r = sd_journal_seek_realtime_usec(k->journal, k->from_real);
        if (r < 0)
                close_journal(k);
        return r;
}

static void take_lines(struct kernel_log *k) {
        const void *data;
        size_t size, l;

        if (sd_journal_get_realtime_usec(k->journal, &k->lines[k->n_lines].real) < 0 ||
            sd_journal_get_data(k->journal, "MESSAGE", &data, &size) < 0 || size <= strlen("MESSAGE="))
                return;
        k->from_real = k->lines[k->n_lines].real;
        l = MIN(size - strlen("MESSAGE="), (size_t)KERNEL_LINE_MAX);
        memcpy(k->lines[k->n_lines].text, (const char *)data + strlen("MESSAGE="), l);
        k->lines[k->n_lines].text[l] = 0;
        if (k->options.wanted(k->lines[k->n_lines].text))
                k->n_lines++;
}

static void run_look(void *data) {
        struct kernel_log *k = data;

        k->n_lines = 0;
        /* sd-journal keeps what it has read mapped. From where the last one was, not twice. */
        if (k->entries > JOURNAL_ENTRIES_MAX) {
                close_journal(k);
                k->from_real++;
        }
        if (!k->journal && open_journal(k) < 0)
                return;
        (void)sd_journal_process(k->journal);
        for (unsigned i = 0; i < ENTRIES_MAX && k->n_lines < LINES_MAX && sd_journal_next(k->journal) > 0;
             i++, k->entries++)
                take_lines(k);
}

static void on_looked(void *data) {
        struct kernel_log *k = data;
        uint64_t now = now_real();

        k->busy = false;
        for (unsigned i = 0; i < k->n_lines; i++)
                k->handler(k->lines[i].text, usec_sub(now, k->lines[i].real), k->userdata);
}

static int on_time(sd_event_source *s, uint64_t usec, void *userdata) {
        struct kernel_log *k = userdata;

        (void)sd_event_source_set_time_relative(s, k->options.every_usec);
        (void)sd_event_source_set_enabled(s, SD_EVENT_ONESHOT);
        if (!k->busy && worker_submit(k->worker, run_look, on_looked, k) >= 0)
                k->busy = true;
        return 0;
}

int kernel_log_new(sd_event *event, struct worker *worker, const struct kernel_log_options *options,
                   kernel_line_handler handler, void *userdata, struct kernel_log **ret) {
        _cleanup_(kernel_log_free_p) struct kernel_log *k = calloc(1, sizeof(*k));
        int r;

        if (!k)
                return -ENOMEM;
        k->worker = worker;
        k->options = *options;
        k->handler = handler;
        k->userdata = userdata;
        k->from_real = usec_sub(now_real(), options->back_usec);
        r = sd_event_add_time_relative(event, &k->timer, CLOCK_BOOTTIME, 0, USEC_PER_SEC, on_time, k);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(k);
        return 0;
}

void kernel_log_free(struct kernel_log *k) {
        if (!k)
                return;
        sd_event_source_disable_unref(k->timer);
        sd_journal_close(k->journal);
        free(k);
}
