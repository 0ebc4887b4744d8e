/* SPDX-License-Identifier: Apache-2.0 */
/* The partitions of a topic, as tasks without an end. New ones are looked for for ever; they begin with their
 * first message, since what was written to them before they were noticed is new too. */
#include <string.h>

#include "executor/read/kafka.h"
#include "executor/scan/scan-parts.h"

/* Behind the partitions that there are there is nothing that another source would have to wait for. */
#define PASSED UINT64_MAX

static int emit_partition(struct scan *s, int32_t number, bool earliest) {
        _cleanup_free_ char *path = NULL;
        struct scan_entry e = { .size = TASK_UNKNOWN, .last = TASK_TO_END };
        char error[READ_ERROR_MAX];
        int r = kafka_first(s->source, number, earliest, &e.first, error);

        if (r < 0)
                return scan_fail(s, r, "%s", error);
        if (asprintf(&path, "%s/%d", s->source->topic, number) < 0) {
                path = NULL;
                return -ENOMEM;
        }
        e.path = path;
        return scan_emit(s, &e);
}

int scan_kafka(struct scan *s) {
        const char *after = s->request->after;
        bool first = !after;
        int32_t known = 0;
        int r;

        if (after && kafka_path_partition(after, &known) >= 0)
                known++;
        for (;; first = false) {
                char error[READ_ERROR_MAX];
                int32_t n = 0;

                r = kafka_partitions(s->source, &n, error);
                /* Later, a broker that is away for a while is no reason to end the job. */
                if (r < 0 && first)
                        return scan_fail(s, r, "%s", error);
                if (!first)
                        s->batch = PASSED;
                for (; r >= 0 && known < n; known++) {
                        r = emit_partition(s, known, !first);
                        if (r < 0 && (first || !s->error))
                                return r;
                        if (r < 0)
                                break;
                }
                r = s->sink->passed(s->sink, PASSED);
                if (r >= 0)
                        r = s->sink->wait(s->sink, "", s->request->poll_usec);
                if (r < 0)
                        return r;
        }
}
