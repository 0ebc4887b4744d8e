/* SPDX-License-Identifier: Apache-2.0 */
/* Invariant: what is in memory is in the store, or in the open batch. */
#include "masterd/watch/checkpoints.h"

#include <endian.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/bits.h"
#include "lib/base/cleanup.h"
#include "lib/base/element.h"
#include "lib/base/grow.h"
#include "lib/base/try.h"
#include "lib/base/utf8.h"
#include "lib/wire/errors.h"
#include "masterd/checkpoint/talk.h"
#include "masterd/core/manager.h"
#include "masterd/life/arrays.h"
#include "masterd/watch/watch-parts.h"

/* The next id, which none that was given has had. */
#define KEY "checkpoints"

/* ---- the store ---- */

static void put_record(struct manager *m, const struct checkpoint *x) {
        const struct checkpoint_facts *f = &x->facts;

        store_put_checkpoint(m->store, &(struct checkpoint_record){
                                               .id = x->id,
                                               .owner = f->owner,
                                               .job = f->job,
                                               .run = f->run,
                                               .trial = f->trial,
                                               .step = f->step,
                                               .saved_real = f->saved_real,
                                               .bytes = f->bytes,
                                               .files = f->files,
                                               .path = f->path,
                                               .host = f->host,
                                               .metrics = f->metrics,
                                               .metric = f->metric,
                                               .value = double_bits(f->value),
                                               .smaller = f->smaller,
                                               .pinned = x->pinned,
                                               .marked = x->marked,
                                       });
        manager_touch(m);
}

static int load_record(void *userdata, const struct checkpoint_record *r) {
        struct checkpoints *c = userdata;
        const struct checkpoint_facts f = {
                .path = r->path,
                .host = r->host,
                .metrics = r->metrics,
                .metric = r->metric,
                .owner = r->owner,
                .job = r->job,
                .value = bits_double(r->value),
                .smaller = r->smaller,
                .run = r->run,
                .trial = r->trial,
                .step = r->step,
                .saved_real = r->saved_real,
                .bytes = r->bytes,
                .files = r->files,
        };
        struct checkpoint *x;
        int k = checkpoints_put(c, r->id, &f, &x);

        if (k != 0)
                return k == -ENOMEM ? k : -EUCLEAN;
        x->pinned = r->pinned;
        x->marked = r->marked;
        return 0;
}

int checkpoints_load(struct manager *m) {
        _cleanup_free_ void *next = NULL;
        size_t size;
        uint64_t n;
        int r;

        TRY(store_load_checkpoints(m->store, load_record, m->watch->checkpoints));
        r = store_load_meta(m->store, KEY, &next, &size);
        if (r < 0)
                return r == -ENOENT ? 0 : r;
        if (size != sizeof(n))
                return -EUCLEAN;
        memcpy(&n, next, sizeof(n));
        checkpoints_begin(m->watch->checkpoints, le64toh(n));
        return 0;
}

const struct checkpoints *checkpoints_of(const struct manager *m) {
        return m->watch->checkpoints;
}

/* ---- what executors say ---- */

static int answer_later(struct manager *m, sd_bus_message *call, const char *text) {
        return manager_answer_later(m, call, "sa{sv}", text, 0);
}

/* Whose it is, and by what it is judged: the trial of a search by the search's metric, where it has that. */
static void place_facts(struct manager *m, const struct executor *x, struct checkpoint_facts *f) {
        uint32_t position;
        const struct job *array = arrays_of(m, x->job, &position);
        const char *metric = array && array->array->trials ? array->spec->search.metric : NULL;
        const double value = metric ? checkpoint_value(f->metrics, metric) : NAN;

        f->owner = x->job->owner;
        f->run = x->job->number;
        f->job = x->job->element.array > 0 ? x->job->element.array : f->run;
        f->trial = x->job->element.array > 0 && x->job->element.index != ELEMENT_SEARCHER
                           ? x->job->element.index
                           : CHECKPOINT_NO_TRIAL;
        f->host = x->node->name;
        if (isnan(value))
                return;
        f->metric = metric;
        f->smaller = array->spec->search.smaller;
        f->value = value;
}

static int take_saved(struct manager *m, const struct executor *e, sd_bus_message *call,
                      struct checkpoint_talk *t, sd_bus_error *error) {
        _cleanup_free_ char *text = NULL;
        struct checkpoint *x;
        int r;

        place_facts(m, e, &t->facts);
        r = checkpoints_put(m->watch->checkpoints, 0, &t->facts, &x);
        if (r == -EDQUOT || r == -ENOSPC)
                return sd_bus_error_setf(
                        error, LINK_ERROR_REFUSED,
                        "%s %u checkpoints are known, and no more are taken: 'primusctl "
                        "checkpoints gc' removes some, 'primusctl checkpoints forget' forgets",
                        r == -EDQUOT ? "of this user" : "of all users",
                        r == -EDQUOT ? CHECKPOINTS_PER_USER_MAX : CHECKPOINTS_MAX);
        if (r < 0)
                return r;
        put_record(m, x);
        if (r == 0) {
                uint64_t next = htole64(checkpoints_next_id(m->watch->checkpoints));

                store_set_meta(m->store, KEY, &next, sizeof(next));
        }
        TRY(checkpoint_talk_id(x->id, &text));
        return answer_later(m, call, text);
}

static int take_gone(struct manager *m, const struct executor *e, sd_bus_message *call, const char *path) {
        struct checkpoint *x = checkpoints_find(m->watch->checkpoints, e->job->owner, path);

        if (x)
                checkpoint_forget(m, x);
        return answer_later(m, call, "{}");
}

static int list_marked(struct manager *m, const struct executor *e, sd_bus_message *call, uint64_t after) {
        _cleanup_free_ char *text = NULL;

        TRY(checkpoint_talk_marked(m->watch->checkpoints, e->job->owner, after, &text));
        return answer_later(m, call, text);
}

static int take_talk(struct manager *m, const struct executor *e, sd_bus_message *call,
                     struct checkpoint_talk *t, sd_bus_error *error) {
        switch (t->op) {
        case CHECKPOINT_SAVED:
                return take_saved(m, e, call, t, error);
        case CHECKPOINT_GONE:
                return take_gone(m, e, call, t->path);
        case CHECKPOINT_MARKED:
                return list_marked(m, e, call, t->after);
        case _CHECKPOINT_OP_MAX:
                break;
        }
        return -EINVAL;
}

int checkpoints_asked(struct manager *m, const struct node *node, sd_bus_message *call,
                      const struct search_question *q, sd_bus_error *error) {
        char why[CHECKPOINT_WHY_MAX], clean[CHECKPOINT_WHY_MAX];
        _cleanup_(checkpoint_talk_done) struct checkpoint_talk t = {};
        struct executor *x;
        int r = checkpoint_talk_read(q->text, &t, why);

        if (r == -ENOENT)
                return r;
        TRY(manager_attempt_of(m, node, &q->id, &x, error));
        if (r == -EINVAL)
                return sd_bus_error_setf(error, LINK_ERROR_REFUSED, "%s",
                                         utf8_clean(why, strlen(why), clean, sizeof(clean)));
        TRY(r);
        TRY(take_talk(m, x, call, &t, error));
        return 1;
}

/* ---- what their owner says ---- */

int checkpoint_pin(struct manager *m, struct checkpoint *x, bool pin) {
        if (pin && x->marked)
                return -EBUSY;
        x->pinned = pin;
        put_record(m, x);
        return 0;
}

void checkpoint_forget(struct manager *m, struct checkpoint *x) {
        store_delete_checkpoint(m->store, x->id);
        manager_touch(m);
        checkpoints_remove(m->watch->checkpoints, x);
}

static bool run_goes_on(struct manager *m, const struct checkpoint *x) {
        const struct job *j = manager_job(m, x->facts.run);

        return j && !job_state_ended(j->state);
}

/* Of those of the job that are not marked yet; NULL where there are none. */
static int choices_of(struct manager *m, uint32_t owner, uint32_t job, struct checkpoint_choice **ret,
                      size_t *n) {
        const struct checkpoints *c = m->watch->checkpoints;

        *n = 0;
        for (struct checkpoint *x = checkpoints_after(c, owner, 0); x;
             x = checkpoints_after(c, owner, x->id)) {
                if (!checkpoint_is_of(x, job) || x->marked)
                        continue;
                TRY(ARRAY_DOUBLE(*ret, *n));
                (*ret)[(*n)++] = (struct checkpoint_choice){ .checkpoint = x };
        }
        return 0;
}

int checkpoints_collect(struct manager *m, uint32_t owner, uint32_t job, const struct checkpoint_policy *p,
                        bool dry, uint64_t **ret_ids, size_t *ret_n) {
        size_t n, n_ids = 0;
        _cleanup_free_ struct checkpoint_choice *list = NULL;
        uint64_t *ids;

        TRY(choices_of(m, owner, job, &list, &n));
        ids = calloc(n + 1, sizeof(*ids));
        if (!ids)
                return -ENOMEM;
        checkpoint_policy_choose(p, list, n);
        for (size_t i = 0; i < n; i++) {
                struct checkpoint *x = list[i].checkpoint;

                if (list[i].stays || run_goes_on(m, x))
                        continue;
                ids[n_ids++] = x->id;
                if (dry)
                        continue;
                x->marked = true;
                put_record(m, x);
        }
        *ret_ids = ids;
        *ret_n = n_ids;
        return 0;
}
