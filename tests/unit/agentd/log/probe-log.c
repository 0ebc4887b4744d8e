/* SPDX-License-Identifier: Apache-2.0 */
/* Both readers of the journal as a program, for tests on hosts that have one:
 *
 *     probe-log read UNIT              the unit's lines on standard output until it has ended
 *     probe-log tail JOB ROLE STATE SIZE  the tail of JOB's executor ROLE/0, attempt 1, until SIZE bytes
 *                                      of its log were there and it has ended; "offset size" of each
 * chunk on standard error
 *
 * The unit is said to have ended when standard input ends. */
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>

#include "agentd/log/read.h"
#include "agentd/log/tail.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "lib/base/parse.h"

struct probe {
        sd_event *event;
        struct log_reader *reader;
        struct tail *tail;
        struct executor_id id;
        const char *unit;
        char cursor[LOG_CURSOR_MAX + 1];
        uint64_t ended;
        bool refuse; /* the next delivery */
        uint64_t size, reached;
};

static void ask(struct probe *p);

static void on_page(void *userdata, const struct log_page *page) {
        struct probe *p = userdata;

        if (page->error < 0) {
                fprintf(stderr, "error %d\n", page->error);
                sd_event_exit(p->event, 1);
                return;
        }
        (void)write_all(STDOUT_FILENO, page->data, page->size);
        snprintf(p->cursor, sizeof(p->cursor), "%s", page->cursor);
        if (page->end)
                sd_event_exit(p->event, 0);
        else
                ask(p);
}

static void ask(struct probe *p) {
        struct log_request q = {
                .unit = p->unit,
                .cursor = p->cursor,
                .cursor_size = strlen(p->cursor),
                .max = LINK_CHUNK_MAX,
                .wait_usec = 2 * USEC_PER_SEC,
                .ended = p->ended,
        };

        if (log_read(p->reader, &q, on_page, p, NULL) < 0)
                sd_event_exit(p->event, 1);
}

static int on_resume(sd_event_source *source, uint64_t usec, void *userdata) {
        struct probe *p = userdata;

        tail_resume(p->tail);
        sd_event_source_unref(source);
        return 0;
}

static int on_over(sd_event_source *source, uint64_t usec, void *userdata) {
        struct probe *p = userdata;

        return sd_event_exit(p->event, 0);
}

/* No starter has journald synchronised here, so the end is told when everything has come; and a moment more,
 * for what would be too much. */
static void end_if_all(struct probe *p) {
        if (!p->ended || p->reached < p->size)
                return;
        (void)tail_ended(p->tail, &p->id);
        (void)sd_event_add_time_relative(p->event, NULL, CLOCK_BOOTTIME, USEC_PER_SEC, 0, on_over, p);
}

static int on_chunks(void *userdata, const struct tail_chunk *chunks, size_t n) {
        struct probe *p = userdata;
        sd_event_source *source;

        p->refuse = !p->refuse;
        if (p->refuse) {
                (void)sd_event_add_time_relative(p->event, &source, CLOCK_BOOTTIME, 100 * USEC_PER_MSEC, 0,
                                                 on_resume, p);
                return -EAGAIN;
        }
        for (size_t i = 0; i < n; i++) {
                fprintf(stderr, "%" PRIu64 " %zu\n", chunks[i].offset, chunks[i].size);
                (void)write_all(STDOUT_FILENO, chunks[i].data, chunks[i].size);
                p->reached = chunks[i].offset + chunks[i].size;
        }
        end_if_all(p);
        return 0;
}

static int on_stdin(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        struct probe *p = userdata;
        char buf[256];

        if (read(fd, buf, sizeof(buf)) > 0)
                return 0;
        (void)sd_event_source_set_enabled(source, SD_EVENT_OFF);
        p->ended = now_boot();
        if (p->reader)
                log_reader_ended(p->reader, p->unit);
        else
                end_if_all(p);
        return 0;
}

int main(int argc, char *argv[]) {
        struct probe p = { 0 };
        int r;

        if (argc < 3 || sd_event_new(&p.event) < 0 ||
            sd_event_add_io(p.event, NULL, STDIN_FILENO, POLLIN, on_stdin, &p) < 0)
                return 2;
        if (strcmp(argv[1], "read") == 0) {
                p.unit = argv[2];
                if (log_reader_new(p.event, NULL, &p.reader) < 0)
                        return 2;
                ask(&p);
        } else {
                struct tail_options options = { 0 };

                if (argc != 6 || parse_u32(argv[2], 1, UINT32_MAX, &p.id.job) < 0 ||
                    parse_u64(argv[5], 0, UINT64_MAX, &p.size) < 0)
                        return 2;
                options.state = argv[4];
                snprintf(p.id.role, sizeof(p.id.role), "%s", argv[3]);
                p.id.attempt = 1;
                if (tail_new(p.event, &options, on_chunks, &p, &p.tail) < 0 || tail_add(p.tail, &p.id) < 0 ||
                    tail_start(p.tail) < 0)
                        return 2;
                fprintf(stderr, "ready\n");
        }
        r = sd_event_loop(p.event);
        log_reader_free(p.reader);
        tail_free(p.tail);
        sd_event_unref(p.event);
        return r < 0 ? 2 : r;
}
