/* SPDX-License-Identifier: Apache-2.0 */
/* Which checkpoints there are, and what stands in them. Nothing here changes anything. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/try.h"
#include "lib/checkpoint/store.h"
#include "lib/primus/text.h"

DEFINE_CLEANUP(struct primus_saved *, primus_saved_free)

void step_name(uint64_t step, char ret[static STEP_NAME_MAX]) {
        snprintf(ret, STEP_NAME_MAX, "step-%012" PRIu64, step);
}

char *store_path(const struct primus_store *s, uint64_t step) {
        char name[STEP_NAME_MAX];

        step_name(step, name);
        return text_make("%s/%s", s->directory, name);
}

static bool is_step(const char *name, uint64_t *ret) {
        if (strlen(name) != 17 || strncmp(name, "step-", 5) != 0 || strspn(name + 5, "0123456789") != 12)
                return false;
        *ret = strtoull(name + 5, NULL, 10);
        return true;
}

static int latest_first(const void *a, const void *b) {
        const uint64_t *x = a, *y = b;

        return *x < *y ? 1 : *x > *y ? -1 : 0;
}

int store_steps(struct primus_store *s, uint64_t **ret, size_t *ret_n) {
        _cleanup_closedir_ DIR *d = opendir(s->directory);
        _cleanup_free_ uint64_t *steps = NULL;
        size_t n = 0, room = 0;
        struct dirent *e;

        if (!d && errno != ENOENT)
                return store_fail(s, errno, "%s: %m", s->directory);
        while (d && (e = readdir(d))) {
                if (n == room) {
                        uint64_t *more = reallocarray(steps, room = room ? 2 * room : 16, sizeof(*steps));

                        if (!more)
                                return store_fail(s, ENOMEM, "no memory");
                        steps = more;
                }
                n += is_step(e->d_name, &steps[n]);
        }
        if (n > 0)
                qsort(steps, n, sizeof(*steps), latest_first);
        *ret = TAKE_PTR(steps);
        *ret_n = n;
        return 0;
}

/* ---- one ---- */

static int other_manifests(const char *checkpoint, uint32_t world, char why[static WHY_MAX]) {
        struct manifest m;

        for (uint32_t rank = 1; rank < world; rank++) {
                TRY(manifest_read(checkpoint, rank, &m, why));
                manifest_clear(&m);
        }
        return 0;
}

/* Its own part becomes what c says; step, metrics, time and world are rank 0's. */
static int take_part(const char *checkpoint, uint32_t rank, bool verify, struct primus_saved *c,
                     char why[static WHY_MAX]) {
        struct manifest own = {};

        if (rank >= c->m.world) { /* of fewer ranks than there are now */
                free(c->m.data);
                c->m.data = NULL;
                return 0;
        }
        c->path = text_make("%s/rank-%" PRIu32, checkpoint, rank);
        if (!c->path)
                return -ENOMEM;
        if (rank == 0)
                return tree_check(c->path, c->m.files, verify, why);
        TRY(manifest_read(checkpoint, rank, &own, why));
        free(c->m.data);
        json_decref(c->m.metadata);
        c->m.data = own.data;
        c->m.data_size = own.data_size;
        c->m.metadata = json_incref(own.metadata);
        own.data = NULL;
        int r = tree_check(c->path, own.files, verify, why);
        manifest_clear(&own);
        return r;
}

static int look_at(const char *checkpoint, uint32_t rank, bool verify, struct primus_saved **ret,
                   char why[static WHY_MAX]) {
        _cleanup_(primus_saved_free_p) struct primus_saved *c = calloc(1, sizeof(*c));

        if (!c)
                return -ENOMEM;
        TRY(manifest_read(checkpoint, 0, &c->m, why));
        if (verify)
                TRY(other_manifests(checkpoint, c->m.world, why));
        TRY(take_part(checkpoint, rank, verify, c, why));
        *ret = TAKE_PTR(c);
        return 0;
}

int store_look(struct primus_store *s, uint64_t step, bool verify, struct primus_saved **ret,
               char why[static WHY_MAX]) {
        _cleanup_free_ char *path = store_path(s, step);

        return path ? look_at(path, s->rank, verify, ret, why) : -ENOMEM;
}

double store_worth(const struct primus_store *s, const struct primus_saved *c) {
        double value = s->metric ? manifest_metric(c->m.metrics, s->metric) : (double)NAN;

        return s->larger ? -value : value;
}

/* ---- for the trainer ---- */

static int find_saved(struct primus_store *s, uint32_t flags, bool best, struct primus_saved **ret) {
        _cleanup_(primus_saved_free_p) struct primus_saved *found = NULL;
        _cleanup_free_ uint64_t *steps = NULL;
        size_t n;

        TRY(store_steps(s, &steps, &n));
        for (size_t i = 0; i < n && (best || !found); i++) {
                _cleanup_(primus_saved_free_p) struct primus_saved *c = NULL;
                char why[WHY_MAX] = "no memory";
                int r = store_look(s, steps[i], flags & PRIMUS_STORE_VERIFY, &c, why);

                if (r == -ENOMEM)
                        return store_fail(s, ENOMEM, "no memory");
                if (r < 0) {
                        fprintf(stderr, "primus: step-%012" PRIu64 " is passed over: %s\n", steps[i], why);
                        continue;
                }
                if (best &&
                    (isnan(store_worth(s, c)) || (found && store_worth(s, c) >= store_worth(s, found))))
                        continue;
                primus_saved_free(found);
                found = TAKE_PTR(c);
        }
        if (!found)
                return 0;
        *ret = TAKE_PTR(found);
        return 1;
}

int primus_store_latest(struct primus_store *s, uint32_t flags, struct primus_saved **ret) {
        int r = find_saved(s, flags, false, ret);

        if (r > 0 && !s->looks)
                store_tell_saved(s, (*ret)->m.step);
        return r;
}

int primus_store_best(struct primus_store *s, uint32_t flags, struct primus_saved **ret) {
        if (!s->metric)
                return store_fail(s, EINVAL, "the best of what? primus_store_open() was given no metric");
        return find_saved(s, flags, true, ret);
}

int primus_saved_open(const char *path, struct primus_saved **ret) {
        const char *from = path ? path : getenv("PRIMUS_FROM");
        char why[WHY_MAX] = "no memory";
        int r;

        if (!from || !*from)
                return 0;
        if (strncmp(from, "s3://", 5) == 0)
                return -EPROTONOSUPPORT;
        r = look_at(from, 0, false, ret, why);
        if (r < 0)
                fprintf(stderr, "primus: %s\n", why);
        else { /* where another training's data stood is nothing to go on from */
                free((*ret)->m.data);
                (*ret)->m.data = NULL;
        }
        return r < 0 ? r : 1;
}

void primus_saved_free(struct primus_saved *c) {
        if (!c)
                return;
        manifest_clear(&c->m);
        free(c->path);
        free(c->metadata_text);
        free(c);
}

const char *primus_saved_path(const struct primus_saved *c) {
        return c->path;
}

uint64_t primus_saved_step(const struct primus_saved *c) {
        return c->m.step;
}

double primus_saved_time(const struct primus_saved *c) {
        return c->m.time;
}

uint32_t primus_saved_world(const struct primus_saved *c) {
        return c->m.world;
}

double primus_saved_metric(const struct primus_saved *c, const char *name) {
        return manifest_metric(c->m.metrics, name);
}

const char *primus_saved_metadata(struct primus_saved *c) {
        if (!c->metadata_text)
                c->metadata_text = json_dumps(c->m.metadata, JSON_COMPACT | JSON_ENCODE_ANY);
        return c->metadata_text;
}

const void *primus_saved_data(const struct primus_saved *c, size_t *ret_size) {
        *ret_size = c->m.data ? c->m.data_size : 0;
        return c->m.data;
}
