/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/kit/data-world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <utlist.h>

#include "masterd/data/parts.h"
#include "masterd/data/permute.h"

uint64_t world_random(struct world *w, uint64_t n) {
        w->random = permute_hash(w->random, 1);
        return w->random % n;
}

static void make_file(struct world *w, uint32_t source, size_t i, uint64_t batch) {
        static const uint64_t splits[] = { 0, 8, 16, 16, 100 };
        struct world_file *file = &w->files[source][i];
        uint64_t size = world_random(w, WORLD_SIZE + 1), split = splits[world_random(w, 5)];

        snprintf(file->path, sizeof(file->path), "/data/%u/%zu", source, i);
        file->f = (struct data_file){ .path = file->path,
                                      .size = size,
                                      .mtime_nsec = i,
                                      .inode = 1000 + i,
                                      .last = split ? size : TASK_TO_END,
                                      .batch = batch,
                                      .split = split };
        file->acked = calloc(w->config.epochs, WORLD_SIZE);
        assert_non_null(file->acked);
}

void world_new(struct world *w, uint64_t seed, const struct data_config *config, size_t n_files,
               size_t n_batches, size_t n_holders) {
        *w = (struct world){ .random = seed, .config = *config, .n_holders = n_holders, .now = 1000 };
        w->n_first = w->n_all = (uint32_t)config->n_sources;
        assert_true(n_holders <= WORLD_HOLDERS && config->n_sources <= WORLD_SOURCES);
        if (config->weights) {
                memcpy(w->weights, config->weights, config->n_sources * sizeof(uint32_t));
                w->config.weights = w->weights;
        }
        assert_int_equal(data_new(&w->config, &w->d), 0);
        for (uint32_t s = 0; s < config->n_sources; s++) {
                w->n_files[s] = n_files / 2 + world_random(w, n_files / 2 + 1);
                w->files[s] = calloc(w->n_files[s] + 1, sizeof(struct world_file));
                assert_non_null(w->files[s]);
                for (size_t i = 0; i < w->n_files[s]; i++)
                        make_file(w, s, i, n_batches > 1 ? 2026010100 + i * n_batches / w->n_files[s] : 0);
        }
}

void world_later(struct world *w, uint32_t n) {
        data_free(w->d);
        w->n_first = w->n_all - n;
        w->config.n_sources = w->n_first;
        assert_int_equal(data_new(&w->config, &w->d), 0);
}

/* The configuration is on disk at once, the step with the next flush. */
int world_append(struct world *w) {
        uint32_t n = (uint32_t)w->config.n_sources;
        int r = data_append_room(w->d, 1);

        if (r < 0)
                return r;
        data_append(w->d, w->config.weights ? w->weights[n] : 0);
        w->config.n_sources++;
        return 0;
}

/* ---- disk ---- */

static void *copy(const void *data, size_t size) {
        void *to = malloc(size ? size : 1);

        assert_non_null(to);
        memcpy(to, data, size);
        return to;
}

static void disk_done(struct disk *k) {
        free(k->state);
        for (size_t i = 0; i < k->n_blocks; i++) {
                free(k->blocks[i].state);
                free(k->blocks[i].over);
        }
        for (size_t i = 0; i < k->n_tasks; i++)
                free(k->tasks[i].error);
        free(k->tasks);
        *k = (struct disk){};
}

static void disk_copy(const struct disk *from, struct disk *to) {
        *to = *from;
        if (from->state)
                to->state = copy(from->state, from->state_size);
        for (size_t i = 0; i < from->n_blocks; i++) {
                to->blocks[i].state = copy(from->blocks[i].state, from->blocks[i].state_size);
                to->blocks[i].over = copy(from->blocks[i].over, from->blocks[i].over_size);
        }
        to->tasks = copy(from->tasks ? (void *)from->tasks : (void *)"", from->n_tasks * sizeof(struct task));
        for (size_t i = 0; i < from->n_tasks; i++)
                if (from->tasks[i].error)
                        to->tasks[i].error = strdup(from->tasks[i].error);
}

static void delete_block(void *userdata, uint64_t index) {
        struct disk *k = userdata;

        for (size_t i = 0; i < k->n_blocks; i++)
                if (k->blocks[i].index == index) {
                        free(k->blocks[i].state);
                        free(k->blocks[i].over);
                        memmove(k->blocks + i, k->blocks + i + 1, (--k->n_blocks - i) * sizeof(*k->blocks));
                        return;
                }
        fail_msg("a block that is not there was deleted");
}

static void put_block(void *userdata, uint64_t index, const void *state, size_t state_size, const void *over,
                      size_t over_size) {
        struct disk *k = userdata;

        for (size_t i = 0; i < k->n_blocks; i++)
                if (k->blocks[i].index == index) {
                        delete_block(k, index);
                        break;
                }
        assert_true(k->n_blocks < 256);
        size_t at = k->n_blocks;
        while (at > 0 && k->blocks[at - 1].index > index) {
                k->blocks[at] = k->blocks[at - 1];
                at--;
        }
        k->n_blocks++;
        k->blocks[at].index = index;
        k->blocks[at].state = copy(state, state_size);
        k->blocks[at].state_size = state_size;
        k->blocks[at].over = copy(over, over_size);
        k->blocks[at].over_size = over_size;
}

static struct task *disk_task(struct disk *k, uint64_t id) {
        for (size_t i = 0; i < k->n_tasks; i++)
                if (k->tasks[i].id == id)
                        return k->tasks + i;
        return NULL;
}

static void delete_task(void *userdata, uint64_t id) {
        struct disk *k = userdata;
        struct task *t = disk_task(k, id);

        assert_non_null(t);
        free(t->error);
        *t = k->tasks[--k->n_tasks];
}

static void put_task(void *userdata, const struct task *t) {
        struct disk *k = userdata;

        if (disk_task(k, t->id))
                delete_task(k, t->id);
        k->tasks = realloc(k->tasks, (k->n_tasks + 1) * sizeof(struct task));
        assert_non_null(k->tasks);
        struct task *to = k->tasks + k->n_tasks++;
        *to = (struct task){ .id = t->id,
                             .source = t->source,
                             .epoch = t->epoch,
                             .file = t->file,
                             .place = t->place,
                             .start = t->start,
                             .end = t->end,
                             .acked = t->acked,
                             .skip = t->skip,
                             .records = t->records,
                             .records_before = t->records_before,
                             .failures = t->failures,
                             .error = t->error ? strdup(t->error) : NULL };
}

static void put_state(void *userdata, const void *state, size_t size) {
        struct disk *k = userdata;

        free(k->state);
        k->state = copy(state, size);
        k->state_size = size;
}

void world_flush(struct world *w) {
        static const struct data_sink sink = { put_block, delete_block, put_task, delete_task, put_state };
        struct flush *f = calloc(1, sizeof(*f));

        assert_non_null(f);
        disk_copy(w->flushes ? &w->flushes->prev->after : &w->disk, &f->after);
        for (uint32_t s = 0; s < w->config.n_sources; s++) {
                f->after.rows[s] = w->listed[s];
                f->after.scanned[s] = w->listed[s] == w->n_files[s];
        }
        f->mark = data_flush(w->d, &sink, &f->after);
        assert_false(data_dirty(w->d));
        DL_APPEND(w->flushes, f);
}

void world_durable(struct world *w, size_t n) {
        for (; n > 0 && w->flushes; n--) {
                struct flush *f = w->flushes;
                DL_DELETE(w->flushes, f);
                disk_done(&w->disk);
                w->disk = f->after;
                data_durable(w->d, f->mark);
                free(f);
        }
}

/* Executors forget what is done once masterd has it on disk. */
static void forget_done(struct world *w) {
        struct held *h, *next;

        for (size_t i = 0; i < w->n_holders; i++)
                DL_FOREACH_SAFE (w->holders[i].held, h, next)
                        if (h->done) {
                                DL_DELETE(w->holders[i].held, h);
                                free(h);
                        }
}

void world_sync(struct world *w) {
        world_flush(w);
        world_durable(w, SIZE_MAX);
        forget_done(w);
}

/* What was flushed and is not durable. */
static void lose_flushes(struct world *w) {
        struct flush *f, *next;

        DL_FOREACH_SAFE (w->flushes, f, next) {
                disk_done(&f->after);
                free(f);
        }
        w->flushes = NULL;
}

void world_replace(struct world *w, struct data *d) {
        lose_flushes(w);
        for (size_t i = 0; i < w->n_holders; i++) {
                for (struct held *h = w->holders[i].held, *behind; h; h = behind) {
                        behind = h->next;
                        free(h);
                }
                w->holders[i] = (struct holder){};
        }
        disk_done(&w->disk);
        data_free(w->d);
        w->d = d;
}

void world_free(struct world *w) {
        world_replace(w, NULL);
        for (uint32_t s = 0; s < w->n_all; s++) {
                for (size_t i = 0; i < w->n_files[s]; i++)
                        free(w->files[s][i].acked);
                free(w->files[s]);
        }
        free(w->meanings);
}

/* ---- listing and making ---- */

void world_list(struct world *w, uint32_t source, size_t n) {
        if (w->listed[source] == w->n_files[source])
                return;
        for (; n > 0 && w->listed[source] < w->n_files[source]; n--)
                assert_int_equal(data_add(w->d, source, &w->files[source][w->listed[source]++].f), 0);
        if (w->listed[source] == w->n_files[source])
                data_scanned(w->d, source);
}

void world_list_all(struct world *w) {
        for (uint32_t s = 0; s < w->config.n_sources; s++)
                world_list(w, s, SIZE_MAX);
}

void world_topics(struct world *w) {
        for (uint32_t s = 0; s < w->config.n_sources; s++) {
                for (size_t i = 0; i < w->n_files[s]; i++) {
                        struct data_file *f = &w->files[s][i].f;
                        f->size = TASK_UNKNOWN;
                        f->last = TASK_TO_END;
                        f->split = 0;
                        f->batch = i == 0 ? 0 : UINT64_MAX;
                }
                world_list(w, s, 1);
                data_passed(w->d, s, UINT64_MAX);
        }
        w->topics = true;
}

void world_fill(struct world *w) {
        uint32_t source, n;
        uint64_t first;

        while (data_missing(w->d, &source, &first, &n)) {
                struct data_file rows[FILES_ROWS_MAX];
                assert_true(n <= FILES_ROWS_MAX && first + n <= w->listed[source]);
                for (uint32_t i = 0; i < n; i++)
                        rows[i] = w->files[source][first + i].f;
                assert_int_equal(data_filled(w->d, source, first, rows, n), 0);
        }
}

int world_prepare(struct world *w, uint32_t wanted) {
        int r;

        while ((r = data_prepare(w->d, wanted)) == DATA_MISSING)
                world_fill(w);
        if (data_memory(w->d) > w->most_memory)
                w->most_memory = data_memory(w->d);
        return r;
}

/* ---- executors ---- */

static struct held *find_held(struct world *w, size_t holder, uint64_t id) {
        struct held *h;

        DL_FOREACH (w->holders[holder].held, h)
                if (h->id == id)
                        return h;
        return NULL;
}

/* Twice the same number is twice the same task, whoever asks, and whatever was lost. */
static void check_meaning(struct world *w, const struct task *t) {
        struct meaning *m;

        if (t->id & TASK_SPLIT_OFF)
                return;
        while (t->id > w->n_meanings) {
                w->meanings = realloc(w->meanings, (w->n_meanings + 1) * sizeof(*m));
                assert_non_null(w->meanings);
                w->meanings[w->n_meanings++] = (struct meaning){};
        }
        m = w->meanings + t->id - 1;
        if (!m->known)
                *m = (struct meaning){ t->source, t->epoch, t->file, t->start, t->end, true };
        assert_int_equal(m->source, t->source);
        assert_int_equal(m->epoch, t->epoch);
        assert_int_equal(m->file, t->file);
        assert_int_equal(m->start, t->start);
        assert_true(t->end <= m->end);
}

struct held *world_lease(struct world *w, size_t holder) {
        struct holder *e = w->holders + holder;
        struct task *t = data_lease(w->d, e, &e->leases, w->now++);
        struct task_grant g;
        struct held *h;

        if (!t)
                return NULL;
        check_meaning(w, t);
        data_grant(t, &g);
        assert_string_equal(g.path, w->files[t->source][t->file].path);
        for (size_t i = 0; i < w->n_holders; i++) {
                h = find_held(w, i, t->id);
                assert_true(!h || h->done);
                if (h) {
                        DL_DELETE(w->holders[i].held, h);
                        free(h);
                }
        }
        h = calloc(1, sizeof(*h));
        assert_non_null(h);
        *h = (struct held){ .id = g.task,
                            .start = g.start,
                            .end = g.end == TASK_TO_END ? g.size : g.end,
                            .acked = g.offset,
                            .source = t->source,
                            .epoch = t->epoch,
                            .file = t->file };
        DL_APPEND(e->held, h);
        return h;
}

static int report(struct world *w, size_t holder, struct held *h, enum task_state state, uint64_t end) {
        struct holder *e = w->holders + holder;
        struct task *t = data_task(w->d, h->id);
        struct task_progress p = { .task = h->id,
                                   .read = h->acked,
                                   .acked = h->acked,
                                   .records = h->records,
                                   .end = end,
                                   .state = state,
                                   .error = "it is broken" };
        enum data_event event;

        assert_non_null(t);
        assert_ptr_equal(t->holder, e);
        return data_report(w->d, t, &e->leases, &p, w->now++, &event);
}

void world_progress(struct world *w, size_t holder, struct held *h, uint64_t n, enum task_state state) {
        uint8_t *acked = w->files[h->source][h->file].acked + h->epoch * WORLD_SIZE;

        n = h->end - h->acked < n || state == TASK_DONE ? h->end - h->acked : n;
        for (uint64_t i = 0; i < n; i++)
                acked[h->acked + i]++;
        h->acked += n;
        h->records += n > 0;
        w->acked += n;
        w->records += n > 0;
        assert_int_equal(report(w, holder, h, state, TASK_TO_END), state == TASK_DONE);
        if (state == TASK_DONE)
                h->done = true; /* and says so again, should masterd not know */
        else if (state != TASK_RUNNING) {
                DL_DELETE(w->holders[holder].held, h);
                free(h);
        }
}

void world_trim(struct world *w, size_t holder, struct held *h, uint64_t end) {
        if (end < h->acked)
                end = h->acked;
        h->end = end < h->end ? end : h->end;
        assert_int_equal(report(w, holder, h, TASK_RUNNING, h->end), 0);
}

void world_die(struct world *w, size_t holder) {
        struct holder *e = w->holders + holder;

        data_return_all(w->d, &e->leases);
        for (struct held *h = e->held, *next; h; h = next) {
                next = h->next;
                free(h);
        }
        e->held = NULL;
}

/* ---- masterd comes back ---- */

static void restore(struct world *w) {
        int r;

        for (uint32_t s = 0; s < w->config.n_sources; s++) {
                size_t n = w->disk.rows[s];
                bool scanned = w->disk.scanned[s];
                w->listed[s] = 0;
                if (n > 0 || scanned)
                        world_list(w, s, n);
                if (scanned && w->n_files[s] == 0)
                        data_scanned(w->d, s);
                if (w->topics)
                        data_passed(w->d, s, UINT64_MAX);
        }
        if (w->disk.state)
                assert_int_equal(data_restore_state(w->d, w->disk.state, w->disk.state_size), 0);
        for (size_t i = w->disk.n_tasks; i > 0; i--)
                assert_int_equal(data_restore_task(w->d, w->disk.tasks + i - 1), 0);
        for (size_t i = 0; i < w->disk.n_blocks; i++)
                assert_int_equal(data_restore_block(w->d, w->disk.blocks[i].index, w->disk.blocks[i].state,
                                                    w->disk.blocks[i].state_size, w->disk.blocks[i].over,
                                                    w->disk.blocks[i].over_size),
                                 0);
        while ((r = data_restored(w->d)) == DATA_MISSING)
                world_fill(w);
        assert_int_equal(r, DATA_READY);
        assert_int_equal(data_append_rest(w->d), 0);
}

void world_restart(struct world *w) {
        lose_flushes(w);
        data_free(w->d);
        assert_int_equal(data_new(&w->config, &w->d), 0);
        restore(w);
        for (size_t i = 0; i < w->n_holders; i++) {
                struct holder *e = w->holders + i;
                e->leases = NULL;
                for (struct held *h = e->held, *behind; h; h = behind) {
                        struct task *t = data_task(w->d, h->id);
                        behind = h->next;
                        if (!t) {
                                assert_true(h->done || h->id & TASK_SPLIT_OFF || w->n_skipped > 0);
                                assert_true(data_was_made(w->d, h->id));
                        } else {
                                check_meaning(w, t);
                                data_adopt(w->d, t, e, &e->leases, w->now);
                                assert_ptr_equal(t->holder, e);
                                (void)report(w, i, h, h->done ? TASK_DONE : TASK_RUNNING, h->end);
                        }
                        if (!t) { /* one that is done is said again, until it is on disk */
                                DL_DELETE(e->held, h);
                                free(h);
                        }
                }
        }
}

void world_finish(struct world *w) {
        size_t idle = 0;

        world_list_all(w);
        while (!data_over(w->d)) {
                size_t holder = world_random(w, w->n_holders);
                struct held *h = NULL, *each;
                (void)world_prepare(w, 64);
                if (data_urgent(w->d) || w->flushes)
                        world_sync(w);
                w->now += DATA_IDLE_USEC;
                DL_FOREACH (w->holders[holder].held, each)
                        if (!each->done)
                                h = each;
                if (!h)
                        h = world_lease(w, holder);
                if (h)
                        world_progress(w, holder, h, UINT64_MAX, TASK_DONE);
                idle = h ? 0 : idle + 1;
                assert_true(idle < 10000);
        }
}

/* ---- checks ---- */

void world_check_totals(struct world *w, bool exact) {
        struct data_totals sum = {}, all, of;
        uint64_t leased = 0, failed = 0;

        for (struct task *t = data_next_task(w->d, 0); t; t = data_next_task(w->d, t->id)) {
                assert_true(t->start <= t->acked && t->acked <= t->read && t->read <= t->end);
                assert_ptr_equal(data_task(w->d, t->id), t);
                assert_true(data_was_made(w->d, t->id));
                leased += t->place == TASK_LEASED;
                failed += t->place == TASK_GAVE_UP;
        }
        for (uint32_t s = 0; s < w->config.n_sources; s++) {
                data_source_totals(w->d, s, &of);
                assert_int_equal(of.tasks, of.pending + of.leased + of.done + of.failed + of.skipped);
                sum.files += of.files;
                sum.tasks += of.tasks;
                sum.bytes += of.bytes;
                sum.acked += of.acked;
                sum.pending += of.pending;
                sum.done += of.done;
        }
        data_totals(w->d, &all);
        assert_int_equal(all.files, sum.files);
        assert_int_equal(all.tasks, sum.tasks);
        assert_int_equal(all.bytes, sum.bytes);
        assert_int_equal(all.acked, sum.acked);
        assert_int_equal(all.pending, sum.pending);
        assert_int_equal(all.done, sum.done);
        assert_int_equal(all.leased, leased);
        assert_int_equal(all.failed, failed);
        assert_true(all.acked <= all.read);
        if (exact) {
                assert_int_equal(all.acked, w->acked);
                assert_int_equal(all.records, w->records);
        }
        if (data_over(w->d)) {
                assert_int_equal(all.pending, 0);
                if (all.failed == 0)
                        assert_int_equal(all.bytes, all.acked);
        }
}

/* One that was added has no part in the epochs before, and in all after that. */
static uint32_t first_epoch(const struct world *w, uint32_t source) {
        for (uint32_t epoch = 0; source >= w->n_first && epoch + 1 < w->config.epochs; epoch++)
                for (size_t i = 0; i < w->n_files[source]; i++) {
                        const struct world_file *f = w->files[source] + i;
                        for (uint64_t b = 0; b < f->f.size; b++)
                                if (f->acked[epoch * WORLD_SIZE + b] > 0)
                                        return epoch;
                }
        return source >= w->n_first ? w->config.epochs - 1 : 0;
}

void world_check_all_read(struct world *w, bool exact) {
        assert_int_equal(w->config.n_sources, w->n_all);
        for (uint32_t s = 0; s < w->config.n_sources; s++)
                for (size_t i = 0; i < w->n_files[s]; i++) {
                        const struct data_file *f = &w->files[s][i].f;
                        uint64_t key = permute_hash(permute_hash(w->config.seed, s), i), start, end;
                        struct parts p = parts_of(f, w->config.sample_ppm, key);
                        uint8_t wanted[WORLD_SIZE] = {};
                        for (uint64_t k = 0; k < p.taken; k++) {
                                parts_range(&p, f, k, &start, &end);
                                for (uint64_t b = start; b < (end == TASK_TO_END ? f->size : end); b++)
                                        wanted[b]++;
                        }
                        for (uint32_t epoch = first_epoch(w, s); epoch < w->config.epochs; epoch++)
                                for (uint64_t b = 0; b < f->size; b++) {
                                        uint8_t n = w->files[s][i].acked[epoch * WORLD_SIZE + b];
                                        assert_true(wanted[b] <= 1);
                                        assert_true(exact || !wanted[b] ? n == wanted[b] : n >= 1);
                                }
                }
}
