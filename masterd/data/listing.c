/* SPDX-License-Identifier: Apache-2.0 */
/* Of each group of files: how many tasks came before it. Of some groups: their rows. */
#include "masterd/data/listing.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>
#include <utlist.h>

#include "lib/base/cleanup.h"
#include "lib/base/memory.h"
#include "masterd/data/parts.h"
#include "masterd/data/permute.h"

enum row_state {
        ROWS_WANTED, /* to be asked for */
        ROWS_ASKED,
        ROWS_HERE,
};

struct group_key {
        uint64_t group;
        uint64_t source;
};

struct row_group {
        struct group_key key;
        enum row_state state;
        uint32_t n; /* rows that are here, from the group's first on */
        size_t memory;
        struct data_file rows[FILES_GROUP];
        uint64_t until[FILES_GROUP]; /* tasks of the group up to and with each row */
        UT_hash_handle hh;
        struct row_group *use_prev, *use_next;
        struct row_group *prev, *next; /* wanted */
};

int listing_init(struct listing *l, size_t n_sources, uint64_t seed, uint32_t sample_ppm) {
        *l = (struct listing){ .n_sources = n_sources, .seed = seed, .sample_ppm = sample_ppm };
        l->sources = calloc(n_sources ? n_sources : 1, sizeof(*l->sources));
        return l->sources ? 0 : -ENOMEM;
}

static void forget_rows(struct listing *l, struct row_group *g) {
        for (uint32_t i = 0; i < g->n; i++)
                free((char *)g->rows[i].path);
        g->n = 0;
        l->rows_memory -= g->memory;
        g->memory = 0;
}

static void group_free(struct listing *l, struct row_group *g) {
        forget_rows(l, g);
        if (g->state == ROWS_WANTED)
                DL_DELETE(l->wanted, g);
        DL_DELETE2(l->oldest, g, use_prev, use_next);
        HASH_DEL(l->groups, g);
        l->n_groups--;
        free(g);
}

void listing_done(struct listing *l) {
        struct row_group *g, *next;

        HASH_ITER (hh, l->groups, g, next)
                group_free(l, g);
        for (size_t i = 0; l->sources && i < l->n_sources; i++) {
                free(l->sources[i].before);
                free(l->sources[i].runs);
        }
        free(l->sources);
        *l = (struct listing){};
}

/* ---- rows in memory ---- */

static struct row_group *find_group(struct listing *l, uint32_t source, uint64_t group) {
        struct group_key key = { .group = group, .source = source };
        struct row_group *g;

        HASH_FIND(hh, l->groups, &key, sizeof(key), g);
        return g;
}

static void used(struct listing *l, struct row_group *g) {
        DL_DELETE2(l->oldest, g, use_prev, use_next);
        DL_APPEND2(l->oldest, g, use_prev, use_next);
}

/* Makes room: what is asked for stays, because an answer to it is on the way. */
static void evict(struct listing *l) {
        struct row_group *g, *next;

        DL_FOREACH_SAFE2 (l->oldest, g, next, use_next) {
                if (l->n_groups < ROW_GROUPS_MAX)
                        return;
                if (g->state != ROWS_ASKED)
                        group_free(l, g);
        }
}

static struct row_group *add_group(struct listing *l, uint32_t source, uint64_t group, enum row_state state) {
        struct row_group *g;

        evict(l);
        g = calloc(1, sizeof(*g));
        if (!g)
                return NULL;
        g->key = (struct group_key){ .group = group, .source = source };
        g->state = state;
        HASH_ADD(hh, l->groups, key, sizeof(g->key), g);
        if (!g->hh.tbl) {
                free(g);
                return NULL;
        }
        DL_APPEND2(l->oldest, g, use_prev, use_next);
        if (state == ROWS_WANTED)
                DL_APPEND(l->wanted, g);
        l->n_groups++;
        return g;
}

static int add_row(struct listing *l, struct row_group *g, const struct data_file *f, uint64_t n_tasks) {
        char *path = strdup(f->path);

        if (!path)
                return -ENOMEM;
        g->until[g->n] = (g->n ? g->until[g->n - 1] : 0) + n_tasks;
        g->rows[g->n] = *f;
        g->rows[g->n++].path = path;
        g->memory += strlen(path) + 17; /* with what malloc() adds */
        l->rows_memory += strlen(path) + 17;
        return 0;
}

/* A row that has just been listed need not be read back soon, while there is room. */
static void keep_row(struct listing *l, uint32_t source, uint64_t file, const struct data_file *f,
                     uint64_t n_tasks) {
        struct row_group *g = find_group(l, source, file / FILES_GROUP);

        if (!g && file % FILES_GROUP == 0 && l->n_groups < ROW_GROUPS_MAX / 2)
                g = add_group(l, source, file / FILES_GROUP, ROWS_HERE);
        if (g && g->state == ROWS_HERE && g->n == file % FILES_GROUP)
                (void)add_row(l, g, f, n_tasks);
}

/* Wants a group with at least n rows. 1: here; 0: not yet; -ENOMEM. */
static int want(struct listing *l, uint32_t source, uint64_t group, uint32_t n, struct row_group **ret) {
        struct row_group *g = find_group(l, source, group);

        if (g && g->state == ROWS_HERE && g->n < n) {
                forget_rows(l, g);
                g->state = ROWS_WANTED;
                DL_APPEND(l->wanted, g);
        }
        if (!g) {
                g = add_group(l, source, group, ROWS_WANTED);
                if (!g)
                        return -ENOMEM;
        } else
                used(l, g);
        *ret = g;
        return g->state == ROWS_HERE;
}

/* ---- listing ---- */

static struct parts file_parts(const struct listing *l, uint32_t source, uint64_t file,
                               const struct data_file *f) {
        return parts_of(f, l->sample_ppm, permute_hash(permute_hash(l->seed, source), file));
}

static uint64_t digest_row(uint64_t digest, const struct data_file *f) {
        const uint64_t words[] = { f->size, f->mtime_nsec, f->inode, f->first, f->last, f->batch, f->split };
        size_t length = strlen(f->path);

        for (size_t i = 0; i < ELEMENTSOF(words); i++)
                digest = permute_hash(digest, words[i]);
        digest = permute_hash(digest, length);
        for (size_t i = 0; i < length; i += 8) {
                uint64_t word = 0;
                memcpy(&word, f->path + i, MIN(length - i, (size_t)8));
                digest = permute_hash(digest, word);
        }
        return digest;
}

static bool file_valid(const struct data_file *f) {
        return f->path && strnlen(f->path, TASK_PATH_MAX + 1) <= TASK_PATH_MAX && f->first <= f->last;
}

static int reserve(void **array, size_t *allocated, size_t n, size_t element) {
        size_t want_n = *allocated ? *allocated + *allocated / 2 : 8;
        void *bigger;

        if (n <= *allocated)
                return 0;
        want_n = MAX(want_n, n);
        bigger = reallocarray(*array, want_n, element);
        if (!bigger)
                return -ENOMEM;
        *array = bigger;
        *allocated = want_n;
        return 0;
}

int listing_add(struct listing *l, uint32_t source, const struct data_file *f) {
        struct listed_source *s;
        struct parts p;
        uint64_t file, bytes;

        if (source >= l->n_sources || !file_valid(f))
                return -EINVAL;
        s = l->sources + source;
        if (s->scanned || f->batch < s->passed)
                return -EINVAL;
        file = s->n_files;
        if (reserve((void **)&s->before, &s->groups_allocated, file / FILES_GROUP + 1, sizeof(*s->before)) <
                    0 ||
            reserve((void **)&s->runs, &s->runs_allocated, s->n_runs + 1, sizeof(*s->runs)) < 0)
                return -ENOMEM;
        p = file_parts(l, source, file, f);
        bytes = parts_bytes(&p, f);
        if (file % FILES_GROUP == 0)
                s->before[file / FILES_GROUP] = s->n_tasks;
        if (s->n_runs == 0 || s->runs[s->n_runs - 1].batch < f->batch) {
                if (s->n_runs > 0 && s->runs[s->n_runs - 1].task == s->n_tasks)
                        s->n_runs--; /* none of its files had a task */
                s->runs[s->n_runs++] = (struct batch_run){ s->n_tasks, f->batch };
        }
        s->passed = f->batch;
        s->digest = digest_row(s->digest, f);
        s->n_files++;
        s->n_tasks += p.taken;
        s->bytes += bytes;
        l->n_files++;
        l->n_tasks += p.taken;
        l->bytes += bytes;
        keep_row(l, source, file, f, p.taken);
        return 0;
}

void listing_scanned(struct listing *l, uint32_t source) {
        l->n_scanned += !l->sources[source].scanned;
        l->sources[source].scanned = true;
}

void listing_passed(struct listing *l, uint32_t source, uint64_t batch) {
        l->sources[source].passed = MAX(l->sources[source].passed, batch);
}

uint64_t listing_batch(const struct listing *l, uint32_t source, uint64_t number, size_t *hint) {
        const struct listed_source *s = l->sources + source;
        size_t low = 0, high = s->n_runs;

        if (*hint < s->n_runs && s->runs[*hint].task <= number) {
                low = *hint;
                if (low + 1 == s->n_runs || s->runs[low + 1].task > number)
                        high = low + 1;
                else if (low + 2 == s->n_runs || s->runs[low + 2].task > number)
                        high = ++low + 1;
        }
        while (high - low > 1) {
                size_t middle = low + (high - low) / 2;
                if (s->runs[middle].task <= number)
                        low = middle;
                else
                        high = middle;
        }
        *hint = low;
        return s->runs[low].batch;
}

/* ---- tasks and rows ---- */

static size_t n_groups_of(const struct listed_source *s) {
        return (size_t)((s->n_files + FILES_GROUP - 1) / FILES_GROUP);
}

static uint64_t tasks_until(const struct listed_source *s, size_t group) {
        return group + 1 < n_groups_of(s) ? s->before[group + 1] : s->n_tasks;
}

/* The last group that has tasks before it, up to number: groups without tasks are passed over. */
static size_t group_of(struct listed_source *s, uint64_t number) {
        size_t low = 0, high = n_groups_of(s);

        for (size_t g = s->hint; g < high && g < s->hint + 2; g++)
                if (s->before[g] <= number && number < tasks_until(s, g))
                        return s->hint = g;
        while (high - low > 1) {
                size_t middle = low + (high - low) / 2;
                if (s->before[middle] <= number)
                        low = middle;
                else
                        high = middle;
        }
        return s->hint = low;
}

static uint32_t rows_of(const struct listed_source *s, uint64_t group) {
        return (uint32_t)MIN(s->n_files - group * FILES_GROUP, (uint64_t)FILES_GROUP);
}

int listing_task(struct listing *l, uint32_t source, uint64_t number, const struct data_file **ret,
                 uint64_t *ret_file, uint64_t *ret_start, uint64_t *ret_end) {
        struct listed_source *s = l->sources + source;
        size_t group = group_of(s, number);
        uint64_t rest = number - s->before[group];
        struct row_group *g = find_group(l, source, group);
        int r;

        /* The rows that are here may be fewer than there are by now, and enough. */
        for (uint32_t i = 0; g && g->state == ROWS_HERE && i < g->n; i++)
                if (rest < g->until[i]) {
                        uint64_t file = group * FILES_GROUP + i;
                        struct parts p = file_parts(l, source, file, g->rows + i);
                        used(l, g);
                        *ret = g->rows + i;
                        *ret_file = file;
                        parts_range(&p, g->rows + i, rest - (i ? g->until[i - 1] : 0), ret_start, ret_end);
                        return 1;
                }
        r = want(l, source, group, rows_of(s, group), &g);
        return r > 0 ? -EUCLEAN : r; /* all of its rows are here */
}

int listing_soon(struct listing *l, uint32_t source, uint64_t number) {
        struct listed_source *s = l->sources + source;
        size_t hint = s->hint, group = group_of(s, number);
        struct row_group *g;

        s->hint = hint;
        return want(l, source, group, rows_of(s, group), &g);
}

int listing_row(struct listing *l, uint32_t source, uint64_t file, const struct data_file **ret) {
        uint32_t i = file % FILES_GROUP;
        struct row_group *g;
        int r = want(l, source, file / FILES_GROUP, i + 1, &g);

        if (r > 0)
                *ret = g->rows + i;
        return r;
}

bool listing_missing(struct listing *l, unsigned ahead, uint32_t *ret_source, uint64_t *ret_first,
                     uint32_t *ret_n) {
        struct row_group *g = l->wanted;
        const struct listed_source *s;
        uint64_t first;
        uint32_t source, n = 0;

        if (!g)
                return false;
        source = (uint32_t)g->key.source;
        first = g->key.group;
        s = l->sources + source;
        ahead = MIN(ahead, FILES_ROWS_MAX / FILES_GROUP - 1);
        for (uint64_t i = 0; i <= ahead && first + i < n_groups_of(s); i++) {
                g = find_group(l, source, first + i);
                if (g && g->state != ROWS_WANTED)
                        break;
                if (!g && !(g = add_group(l, source, first + i, ROWS_WANTED)))
                        break;
                DL_DELETE(l->wanted, g);
                g->state = ROWS_ASKED;
                n += rows_of(s, first + i);
        }
        *ret_source = source;
        *ret_first = first * FILES_GROUP;
        *ret_n = n;
        return true;
}

static void ask_again(struct listing *l, struct row_group *g) {
        forget_rows(l, g);
        g->state = ROWS_WANTED;
        DL_APPEND(l->wanted, g);
}

int listing_filled(struct listing *l, uint32_t source, uint64_t first, const struct data_file *files,
                   size_t n) {
        struct listed_source *s;
        int r = 0;

        if (source >= l->n_sources || first % FILES_GROUP != 0)
                return -EINVAL;
        s = l->sources + source;
        if (n == 0 || n > s->n_files || first > s->n_files - n)
                return -EUCLEAN;
        for (size_t i = 0; i < n && r >= 0; i += FILES_GROUP) {
                uint64_t group = (first + i) / FILES_GROUP, tasks = 0, taken[FILES_GROUP];
                struct row_group *g = find_group(l, source, group);
                uint32_t rows = (uint32_t)MIN(n - i, (size_t)FILES_GROUP);
                if (!g || g->state != ROWS_ASKED)
                        continue;
                for (uint32_t k = 0; k < rows; k++) {
                        if (!file_valid(files + i + k))
                                return -EUCLEAN;
                        taken[k] = file_parts(l, source, first + i + k, files + i + k).taken;
                        tasks += taken[k];
                }
                uint64_t listed = tasks_until(s, group) - s->before[group];
                if (rows == rows_of(s, group) ? tasks != listed : tasks > listed)
                        return -EUCLEAN;
                g->state = ROWS_HERE;
                for (uint32_t k = 0; k < rows && r >= 0; k++)
                        r = add_row(l, g, files + i + k, taken[k]);
                if (r < 0)
                        ask_again(l, g);
        }
        return r;
}

size_t listing_memory(const struct listing *l) {
        size_t sum = l->n_groups * sizeof(struct row_group) + l->rows_memory +
                     l->n_sources * sizeof(struct listed_source);

        for (size_t i = 0; i < l->n_sources; i++)
                sum += l->sources[i].groups_allocated * sizeof(uint64_t) +
                       l->sources[i].runs_allocated * sizeof(struct batch_run);
        return sum;
}
