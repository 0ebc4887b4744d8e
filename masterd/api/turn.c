/* SPDX-License-Identifier: Apache-2.0 */
/* Invariant: what a call takes is charged to its user, also what is taken later: the store's answers by the
 * store, what was written when it is on disk. */
#include "masterd/api/turn.h"

#include <stdlib.h>

#include "lib/base/clock.h"
#include "lib/wire/errors.h"
#include "masterd/api/api-parts.h"
#include "masterd/api/api.h"
#include "masterd/caller/quota.h"
#include "masterd/core/manager.h"
#include "masterd/core/notices.h"
#include "masterd/core/space.h"

/* Messages that the bus has not taken yet. It takes them at once, unless it keeps too many for somebody. */
#define UNSENT_MAX 1024u

struct turn {
        struct manager *manager;
        caller_handler work;
};

/* ---- what waits for the disk ---- */

struct written {
        uint32_t uid;
        size_t bytes;
};

static void run_written(struct manager *m, void *data) {
        struct written *w = data;

        if (m->api->quota)
                quota_waited(m->api->quota, w->uid, w->bytes);
        free(w);
}

static void wait_for_disk(struct manager *m, uint32_t uid, size_t bytes) {
        struct written *w = malloc(sizeof(*w));

        if (!w)
                return; /* not counted */
        *w = (struct written){ uid, bytes };
        quota_wait(m->api->quota, uid, bytes, now_boot());
        (void)manager_effect(m, run_written, w);
}

/* ---- refusals ---- */

static int refuse(enum quota_verdict v, uint64_t usec, sd_bus_error *error) {
        switch (v) {
        case QUOTA_CALLS_WAIT:
                return sd_bus_error_setf(error, ERROR_BUSY,
                                         "%u calls of yours, or %zu MiB of what they change, are not on disk "
                                         "yet: as much as one user may have under way; try again in a moment",
                                         QUOTA_CALLS, QUOTA_BYTES >> 20);
        case QUOTA_TIME_USED:
                return sd_bus_error_setf(error, ERROR_BUSY,
                                         "Your calls take more than %u%% of the master's time; try again in "
                                         "%.1f s, and ask less often",
                                         QUOTA_USEC_RATE / 10000, (double)usec / USEC_PER_SEC);
        case QUOTA_ANSWERS_BIG:
                return sd_bus_error_setf(error, ERROR_BUSY,
                                         "You are sent more than %u MiB a second; try again in %.1f s",
                                         QUOTA_ANSWER_RATE >> 20, (double)usec / USEC_PER_SEC);
        case QUOTA_FREE:
                break;
        }
        return 0;
}

static int refuse_unsent(struct manager *m, sd_bus_error *error) {
        uint64_t n;

        if (sd_bus_get_n_queued_write(m->bus, &n) < 0 || n < UNSENT_MAX)
                return 0;
        return sd_bus_error_set(error, ERROR_BUSY,
                                "The message bus does not take what the master sends; try again in a moment");
}

/* What makes room when memory is short. */
static bool frees(sd_bus_message *call) {
        return sd_bus_message_is_method_call(call, MASTER_JOB, "Kill") > 0 ||
               sd_bus_message_is_method_call(call, MASTER_JOB, "KillWith") > 0;
}

/* ---- the turn ---- */

struct turn *turn_new(struct manager *m, caller_handler work) {
        struct turn *t = malloc(sizeof(*t));

        if (t)
                *t = (struct turn){ m, work };
        return t;
}

int turn_take(sd_bus_message *call, uint32_t uid, void *turn, sd_bus_error *error) {
        struct turn *t = turn;
        struct manager *m = t->manager;
        size_t before, after;
        enum quota_verdict verdict;
        uint64_t began, usec;
        int r;

        if (uid == 0)
                return t->work(call, uid, m, error);
        verdict = quota_admit(m->api->quota, uid, now_boot(), &usec);
        r = refuse(verdict, usec, error);
        if (r >= 0)
                r = refuse_unsent(m, error);
        if (r >= 0 && !frees(call))
                r = space_admit_memory(m, error);
        if (r < 0)
                return r;
        before = store_open_bytes(m->store);
        began = clock_usec(CLOCK_THREAD_CPUTIME_ID);
        store_ask_for(m->store, uid);
        r = t->work(call, uid, m, error);
        store_ask_for(m->store, STORE_NOBODY);
        quota_charge(m->api->quota, uid, clock_usec(CLOCK_THREAD_CPUTIME_ID) - began, 0, now_boot());
        after = store_open_bytes(m->store);
        if (after > before)
                wait_for_disk(m, uid, after - before);
        if (r == -EBUSY && !sd_bus_error_is_set(error))
                r = sd_bus_error_set(error, ERROR_BUSY,
                                     "The store still looks up what you asked before; try again in a moment");
        return r;
}

void turn_answered(struct manager *m, uint32_t uid, size_t bytes) {
        if (m->api->quota)
                quota_charge(m->api->quota, uid, 0, bytes, now_boot());
}

static void on_stored_answer(void *userdata, uint32_t uid, uint64_t usec, size_t bytes) {
        struct manager *m = userdata;

        if (m->api->quota)
                quota_charge(m->api->quota, uid, usec, bytes, now_boot());
}

int turns_start(struct manager *m) {
        int r = quota_new(&m->api->quota);

        if (r >= 0)
                store_on_answer(m->store, on_stored_answer, m);
        return r;
}

void turns_stop(struct manager *m) {
        m->api->quota = quota_free(m->api->quota);
}
