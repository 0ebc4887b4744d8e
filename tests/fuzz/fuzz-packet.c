/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as the body of a packet of feed.sock, and what is in it as grants, progress and entries of a
 * scan: refused, or within the rules of lib/wire/tasks.h; what was read is written as the same bytes mean.
 * The first byte chooses which. How to run it: README.md. */
#include <errno.h>
#include <stdlib.h>

#include "agentd/feed/packet.h"
#include "tests/fuzz/fuzz.h"

static void grants(const uint8_t *p, size_t size) {
        uint8_t out[2 * TASK_PATH_MAX];
        struct task_grant g, same;
        int r;

        while ((r = task_grant_next(&p, &size, &g)) > 0) {
                const uint8_t *q = out;
                size_t used = 0;

                MUST(g.task != 0 && g.offset >= g.start && g.end >= g.start &&
                     strlen(g.path) <= TASK_PATH_MAX);
                MUST(task_grant_write(&g, out, sizeof(out), &used) == 0);
                MUST(task_grant_next(&q, &used, &same) == 1 && used == 0);
                MUST(same.task == g.task && same.end == g.end && same.skip == g.skip &&
                     strcmp(same.path, g.path) == 0);
        }
        MUST(r == 0 ? size == 0 : r == -EBADMSG);
}

static void progress(const uint8_t *p, size_t size) {
        uint8_t out[2 * TASK_PATH_MAX];
        struct task_progress g, same;
        int r;

        while ((r = task_progress_next(&p, &size, &g)) > 0) {
                const uint8_t *q = out;
                size_t used = 0;

                MUST(g.task != 0 && g.state < _TASK_STATE_MAX && strlen(g.error) <= TASK_TEXT_MAX);
                MUST(task_progress_write(&g, out, sizeof(out), &used) == 0);
                MUST(task_progress_next(&q, &used, &same) == 1 && used == 0);
                MUST(same.task == g.task && same.acked == g.acked && same.state == g.state);
                MUST(g.state != TASK_FAILED || strcmp(same.error, g.error) == 0);
        }
        MUST(r == 0 ? size == 0 : r == -EBADMSG);
}

static void entries(const uint8_t *p, size_t size) {
        uint8_t out[2 * TASK_PATH_MAX];
        struct scan_entry g, same;
        int r;

        while ((r = scan_entry_next(&p, &size, &g)) > 0) {
                const uint8_t *q = out;
                size_t used = 0;

                MUST(strlen(g.path) <= TASK_PATH_MAX && g.last >= g.first);
                MUST(scan_entry_write(&g, out, sizeof(out), &used) == 0);
                MUST(scan_entry_next(&q, &used, &same) == 1 && used == 0);
                MUST(same.size == g.size && same.last == g.last && same.batch == g.batch &&
                     strcmp(same.path, g.path) == 0);
        }
        MUST(r == 0 ? size == 0 : r == -EBADMSG);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        struct feed_report f;
        struct scan_batch b;
        struct feed_bye bye;
        char *text = NULL;
        uint8_t *exact;
        int r;

        if (size < 1)
                return 0;
        exact = malloc(size); /* so that the sanitizer sees one byte too many */
        MUST(exact);
        memcpy(exact, data + 1, size - 1);
        switch (data[0] % 6) {
        case 0:
                r = packet_read_progress(exact, size - 1, &f);
                MUST(r == 0 || r == -EBADMSG);
                if (r == 0)
                        progress(f.progress, f.size);
                break;
        case 1:
                r = packet_read_entries(exact, size - 1, &b);
                MUST(r == 0 || r == -EBADMSG);
                if (r == 0)
                        entries(b.entries, b.size);
                break;
        case 2:
                r = packet_read_bye(exact, size - 1, &bye, &text);
                MUST(r == 0 ? text && strlen(text) <= PACKET_ERROR_MAX : r == -EBADMSG && !text);
                free(text);
                break;
        case 3:
                grants(exact, size - 1);
                break;
        case 4:
                progress(exact, size - 1);
                break;
        default:
                entries(exact, size - 1);
        }
        free(exact);
        return 0;
}
