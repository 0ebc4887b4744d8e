/* SPDX-License-Identifier: Apache-2.0 */
/* One look. Invariant: what was found is written before the next thing, which may hang, is looked at, so that
 * whoever reads has it. */
#include "starter/observe/look.h"

#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "lib/base/cleanup.h"
#include "lib/base/file.h"
#include "lib/observe/describe.h"
#include "lib/observe/stream.h"
#include "starter/observe/place.h"
#include "starter/observe/program.h"
#include "starter/observe/tell.h"
#include "starter/observe/threads.h"
#include "starter/observe/tracing.h"

#define STACKS_TEXT_MAX (512u << 10)

struct look {
        const struct look_capture *q;
        const pid_t *pids;
        size_t n_pids;
        int out;
        unsigned found; /* threads */
        bool gone;      /* nobody reads any more */
};

/* false: nobody reads any more. */
static bool put_item(int out, const struct stream_item *item, const char *text) {
        uint8_t record[STREAM_RECORD_MAX];

        return write_all(out, record, stream_write(item, text, record)) >= 0;
}

/* ---- threads ---- */

/* false: there is no room, or nobody reads any more. */
static bool look_at_thread(struct look *l, pid_t pid, pid_t tid) {
        struct stream_item item = { .type = STREAM_THREAD };
        _cleanup_free_ char *stack = NULL;

        if (thread_read(l->q->proc, pid, tid, &item.thread, &stack) < 0)
                return true;
        l->gone = l->gone || !put_item(l->out, &item, stack);
        return ++l->found < CAPTURE_THREADS_MAX && !l->gone;
}

/* The first threads of all processes, then the others: none is left out for another's many. */
static void look_at_threads(struct look *l) {
        for (size_t i = 0; i < l->n_pids; i++) {
                const struct stream_item total = { .type = STREAM_TOTAL,
                                                   .number = threads_count(l->q->proc, l->pids[i]) };

                l->gone = !put_item(l->out, &total, NULL);
                if (l->gone)
                        return;
                if (l->found < CAPTURE_THREADS_MAX)
                        (void)look_at_thread(l, l->pids[i], l->pids[i]);
        }
        for (size_t i = 0; i < l->n_pids && l->found < CAPTURE_THREADS_MAX && !l->gone; i++) {
                DIR *list = threads_open(l->q->proc, l->pids[i]);
                bool wanted = true;
                pid_t tid;

                while (list && wanted && (tid = threads_next(list)) > 0)
                        if (tid != l->pids[i])
                                wanted = look_at_thread(l, l->pids[i], tid);
                if (list)
                        (void)closedir(list);
        }
}

/* ---- kernel stacks: better than /proc's, which has all of it for the mightiest only ---- */

static char *read_stacks(int fd) {
        _cleanup_free_ char *text = malloc(STACKS_TEXT_MAX + 1);
        size_t n = 0;

        while (text && n < STACKS_TEXT_MAX) {
                ssize_t l = read(fd, text + n, STACKS_TEXT_MAX - n);

                if (l < 0 && (errno == EAGAIN || errno == EINTR))
                        continue;
                if (l <= 0)
                        break;
                n += (size_t)l;
        }
        if (!text || n == 0)
                return NULL;
        text[n] = 0;
        return TAKE_PTR(text);
}

/* "TID function function ..." */
static void take_stack(struct look *l, char *line) {
        struct stream_item item = { .type = STREAM_STACK };
        _cleanup_free_ char *described = NULL;
        char *names;

        item.number = (uint32_t)strtoul(line, &names, 10);
        if (*names != ' ')
                return;
        for (char *p = names; *p; p++)
                if (*p == ' ')
                        *p = '\n';
        described = describe_stack(names + 1);
        if (described)
                (void)put_item(l->out, &item, described);
}

static void take_stacks(struct look *l) {
        _cleanup_close_ int fd = tracing_stacks(l->q->slice, l->q->cgroup_id);
        _cleanup_free_ char *text = fd < 0 ? NULL : read_stacks(fd);
        char *save;

        for (char *line = text ? strtok_r(text, "\n", &save) : NULL; line; line = strtok_r(NULL, "\n", &save))
                take_stack(l, line);
}

/* ---- what programs say of themselves ---- */

/* Asked for all at once, and waited for once. */
static void ask_programs(struct look *l) {
        pid_t asked[CAPTURE_PYTHONS_MAX];
        struct program p[CAPTURE_PYTHONS_MAX];
        size_t n = 0;

        for (size_t i = 0; i < l->n_pids && n < CAPTURE_PYTHONS_MAX; i++) {
                if (program_open(l->q->directory, l->pids[i], l->q->uid, p + n) < 0)
                        continue; /* it writes elsewhere, if at all */
                if (signal_process(l->q->proc, l->pids[i], l->q->unit, l->q->signal))
                        asked[n++] = l->pids[i];
                else
                        program_close(p + n);
        }
        programs_wait(p, n);
        for (size_t i = 0; i < n; i++) {
                const struct stream_item item = { .type = STREAM_PYTHON, .number = (uint32_t)asked[i] };
                _cleanup_free_ char *text = program_read(p + i);

                if (text)
                        (void)put_item(l->out, &item, text);
                program_close(p + i);
        }
}

void look_capture(void *job, int in, int out) {
        const struct look_capture *q = job;
        pid_t pids[PLACE_PROCESSES_MAX];
        struct look l = { .q = q, .pids = q->pids, .n_pids = q->n_pids, .out = out };

        if (!q->pids) {
                l.pids = pids;
                l.n_pids = place_processes(in, pids);
        }
        look_at_threads(&l);
        if (!l.gone && q->slice > 0 && q->cgroup_id > 0)
                take_stacks(&l);
        if (!l.gone && q->signal > 0 && q->directory)
                ask_programs(&l);
        (void)put_item(out, &(struct stream_item){ .type = STREAM_END }, NULL);
}

/* ---- what processes have read and written ---- */

static uint64_t number_behind(const char *text, const char *key) {
        const char *p = strstr(text, key);

        return p ? strtoull(p + strlen(key), NULL, 10) : 0;
}

static bool add_process(const char *proc, pid_t pid, struct stream_usage *u) {
        _cleanup_free_ char *text = NULL;
        char path[128];

        snprintf(path, sizeof(path), "%s/%d/io", proc, (int)pid);
        if (read_file(path, 4096, &text, NULL) < 0)
                return false;
        u->read_bytes += number_behind(text, "rchar: ");
        u->write_bytes += number_behind(text, "wchar: ");
        u->block_read_bytes += number_behind(text, "\nread_bytes: ");
        u->block_write_bytes += number_behind(text, "\nwrite_bytes: ");
        return true;
}

void look_usage(void *job, int in, int out) {
        const struct look_usage *q = job;

        for (size_t i = 0; i < q->n; i++) {
                struct stream_item item = { .type = STREAM_USAGE, .usage = { .index = (uint32_t)i } };
                _cleanup_close_ int group = place_unit(in, q->units[i]);
                pid_t pids[PLACE_PROCESSES_MAX];
                size_t n = group < 0 ? 0 : place_processes(group, pids);
                bool any = false;

                for (size_t k = 0; k < n; k++)
                        any |= add_process(q->proc, pids[k], &item.usage);
                if (any && !put_item(out, &item, NULL))
                        return;
        }
        (void)put_item(out, &(struct stream_item){ .type = STREAM_END }, NULL);
}
