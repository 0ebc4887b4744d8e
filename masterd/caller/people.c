/* SPDX-License-Identifier: Apache-2.0 */
/* Invariants: the thread has the first question alone, until it has come back, and only then is it freed;
 * nobody is in two questions of which nobody has been told. Each asker is told exactly once, at the answer or
 * after PEOPLE_WAIT_USEC, and of those who wait for the same people, who came first comes first. */
#include "masterd/caller/people.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utlist.h>

#include "lib/base/utf8.h"
#include "lib/base/worker.h"

#define ENTRY_MAX (1u << 20)
#define GROUPS_MAX 65536 /* of a user, as the kernel has it */

struct asker {
        uint32_t uid;
        people_done done;
        void (*destroy)(void *userdata);
        void *userdata;
        struct asker *next, *prev;
};

/* lookup, persons and n are the thread's once it has begun. */
struct question {
        struct people *people;
        people_lookup lookup;
        uint64_t number; /* later ones have higher ones */
        bool begun, told;
        struct asker *askers;
        sd_event_source *timer;
        struct question *next, *prev;
        size_t n;
        struct person persons[PEOPLE_ASKED_MAX];
};

struct people {
        sd_event *event;
        people_lookup lookup;
        struct person *by_uid; /* the one looked up last is last */
        struct worker *worker;
        struct question *questions; /* the thread has the first one */
        size_t n_questions, n_askers;
        uint64_t last_number;
        bool away; /* the database has not answered one of them in time */
};

/* ---- the database ---- */

static int find_groups(const struct passwd *pw, struct person *ret) {
        _cleanup_free_ gid_t *groups = NULL;
        int n = 0;

        for (int room = 32;; room = MIN(4 * room, GROUPS_MAX)) {
                gid_t *bigger = reallocarray(groups, (size_t)room, sizeof(*groups));

                if (!bigger)
                        return -ENOMEM;
                groups = bigger;
                n = room;
                if (getgrouplist(pw->pw_name, pw->pw_gid, groups, &n) >= 0)
                        break;
                if (room == GROUPS_MAX)
                        return -E2BIG;
        }
        ret->groups = calloc((size_t)MAX(n, 1), sizeof(*ret->groups));
        if (!ret->groups)
                return -ENOMEM;
        for (int i = 0; i < n; i++)
                ret->groups[i] = groups[i];
        ret->n_groups = (size_t)MAX(n, 0);
        return 0;
}

int people_lookup_host(struct person *ret) {
        _cleanup_free_ char *buf = NULL;
        struct passwd pw, *found = NULL;
        size_t size = 4096;
        int r;

        do {
                char *bigger = (size *= 4) <= ENTRY_MAX ? realloc(buf, size) : NULL;
                if (!bigger)
                        return size <= ENTRY_MAX ? -ENOMEM : -E2BIG;
                buf = bigger;
                r = getpwuid_r(ret->uid, &pw, buf, size, &found);
        } while (r == ERANGE);
        if (r != 0)
                return -r;
        if (!found)
                return 0;
        ret->found = true;
        ret->gid = found->pw_gid;
        if (strlen(found->pw_name) < sizeof(ret->name))
                memcpy(ret->name, found->pw_name, strlen(found->pw_name) + 1);
        return find_groups(found, ret);
}

/* ---- what is kept ---- */

static void forget(struct people *p, struct person *e) {
        HASH_DEL(p->by_uid, e);
        free(e->groups);
        free(e);
}

static int compare(const void *a, const void *b) {
        uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

        return x < y ? -1 : x > y;
}

static bool is_printable(const char *s) {
        for (const char *c = s; *c; c++)
                if ((unsigned char)*c < 0x20 || *c == 0x7f)
                        return false;
        return utf8_valid(s, strlen(s));
}

/* Takes the groups over. */
static void keep(struct people *p, struct person *from) {
        struct person *e;

        HASH_FIND(hh, p->by_uid, &from->uid, sizeof(from->uid), e);
        if (e)
                forget(p, e);
        if (HASH_COUNT(p->by_uid) >= PEOPLE_MAX)
                forget(p, p->by_uid);
        e = malloc(sizeof(*e));
        if (!e)
                return; /* not known */
        *e = *from;
        from->groups = NULL;
        if (!is_printable(e->name))
                e->name[0] = 0;
        if (e->n_groups > 0)
                qsort(e->groups, e->n_groups, sizeof(*e->groups), compare);
        HASH_ADD(hh, p->by_uid, uid, sizeof(e->uid), e);
}

const struct person *people_find(const struct people *p, uint32_t uid) {
        struct person *e;

        HASH_FIND(hh, p->by_uid, &uid, sizeof(uid), e);
        return e && now_boot() - e->at_boot < PEOPLE_KEPT_USEC ? e : NULL;
}

bool person_in(const struct person *p, uint32_t gid) {
        return p && p->n_groups > 0 && bsearch(&gid, p->groups, p->n_groups, sizeof(gid), compare);
}

/* ---- questions ---- */

static void question_free(struct question *q) {
        for (size_t i = 0; i < q->n; i++)
                free(q->persons[i].groups);
        free(q);
}

/* In the thread. */
static void run(void *data) {
        struct question *q = data;

        for (size_t i = 0; i < q->n; i++) {
                struct person *e = q->persons + i;
                if (q->lookup(e) < 0) {
                        free(e->groups);
                        e->groups = NULL;
                        e->n_groups = 0;
                        e->at_boot = UINT64_MAX; /* its uid is read by the other one meanwhile */
                }
        }
}

static void tell(struct question *q) {
        struct asker *a;

        q->told = true;
        q->timer = sd_event_source_disable_unref(q->timer);
        while ((a = q->askers)) {
                DL_DELETE(q->askers, a);
                q->people->n_askers--;
                a->done(a->userdata);
                free(a);
        }
}

static void on_answer(void *data);

/* Hands the first question to the thread. */
static int begin(struct people *p) {
        struct question *q = p->questions;
        int r = p->worker ? 0 : worker_new_deep(p->event, &p->worker);

        if (r >= 0)
                r = worker_submit(p->worker, run, on_answer, q);
        if (r >= 0)
                q->begun = true;
        return r;
}

static void take_out(struct question *q) {
        DL_DELETE(q->people->questions, q);
        q->people->n_questions--;
}

static void on_answer(void *data) {
        struct question *q = data;
        struct people *p = q->people;

        p->away = false;
        take_out(q);
        for (size_t i = 0; i < q->n; i++) {
                struct person *e = q->persons + i;
                if (e->at_boot == UINT64_MAX)
                        continue; /* no answer is not "is nobody" */
                e->at_boot = now_boot();
                keep(p, e);
        }
        tell(q);
        question_free(q);
        while ((q = p->questions) && !q->begun && begin(p) < 0) {
                take_out(q);
                tell(q);
                question_free(q);
        }
}

/* Whoever waits behind this one would not hear in time either. */
static int on_late(sd_event_source *s, uint64_t usec, void *userdata) {
        struct people *p = ((struct question *)userdata)->people;
        struct question *q;

        p->away = true;
        DL_FOREACH (p->questions, q)
                tell(q);
        return 0;
}

int people_new(sd_event *event, people_lookup lookup, struct people **ret) {
        struct people *p = calloc(1, sizeof(*p));

        if (!p)
                return -ENOMEM;
        p->event = sd_event_ref(event);
        p->lookup = lookup;
        *ret = p;
        return 0;
}

/* In the thread, or in its place when it has nothing. */
static void release(void *data) {
        struct question *list = data, *q, *next;

        DL_FOREACH_SAFE (list, q, next)
                question_free(q);
}

struct people *people_free(struct people *p) {
        struct person *e, *next;
        struct question *q;
        struct asker *a;

        if (!p)
                return NULL;
        DL_FOREACH (p->questions, q) {
                q->timer = sd_event_source_disable_unref(q->timer);
                while ((a = q->askers)) {
                        DL_DELETE(q->askers, a);
                        if (a->destroy)
                                a->destroy(a->userdata);
                        free(a);
                }
        }
        if (p->questions)
                worker_abandon(p->worker, release, p->questions);
        else
                worker_free(p->worker);
        HASH_ITER (hh, p->by_uid, e, next)
                forget(p, e);
        sd_event_unref(p->event);
        free(p);
        return NULL;
}

/* NULL: nobody who waits has asked about this one. */
static struct question *question_about(const struct people *p, uint32_t uid) {
        struct question *q;

        DL_FOREACH (p->questions, q)
                for (size_t i = 0; !q->told && i < q->n; i++)
                        if (q->persons[i].uid == uid)
                                return q;
        return NULL;
}

static bool is_full(const struct people *p, uint32_t uid) {
        struct question *q;
        struct asker *a;
        size_t own = 0;

        DL_FOREACH (p->questions, q)
                DL_FOREACH (q->askers, a)
                        own += a->uid == uid;
        return own >= PEOPLE_WAITING_PER_USER || p->n_askers >= PEOPLE_WAITING_MAX;
}

/* The last one, while the thread has not got it, or another one behind that. -EBUSY: there are enough. */
static int question_for(struct people *p, size_t n, struct question **ret) {
        struct question *q = p->questions ? p->questions->prev : NULL;
        int r;

        if (q && !q->begun && !q->told && q->n + n <= ELEMENTSOF(q->persons)) {
                *ret = q;
                return 0;
        }
        if (p->n_questions >= PEOPLE_ASKING_MAX)
                return -EBUSY;
        q = calloc(1, sizeof(*q));
        if (!q)
                return -ENOMEM;
        r = sd_event_add_time_relative(p->event, &q->timer, CLOCK_BOOTTIME, PEOPLE_WAIT_USEC, 0, on_late, q);
        if (r < 0) {
                question_free(q);
                return r;
        }
        q->people = p;
        q->lookup = p->lookup;
        q->number = ++p->last_number;
        DL_APPEND(p->questions, q);
        p->n_questions++;
        *ret = q;
        return 0;
}

static int place(struct people *p, const uint32_t *uids, size_t n, struct question **ret) {
        struct question *q;
        int r = question_for(p, n, &q);

        if (r < 0)
                return r;
        for (size_t i = 0; i < n; i++)
                q->persons[q->n++].uid = uids[i];
        if (!p->questions->begun)
                r = begin(p);
        if (r < 0) { /* it was the first, and of this asker alone */
                q->timer = sd_event_source_disable_unref(q->timer);
                take_out(q);
                question_free(q);
                return r;
        }
        *ret = q;
        return 0;
}

/* The question after whose answer all is known of these; NULL: there is nothing to wait for. */
static int find_question(struct people *p, const uint32_t *uids, size_t n, struct question **ret) {
        uint32_t missing[PEOPLE_ASKED_MAX];
        struct question *last = NULL;
        size_t n_missing = 0;

        for (size_t i = 0; i < MIN(n, ELEMENTSOF(missing)); i++) {
                struct question *q = people_find(p, uids[i]) ? NULL : question_about(p, uids[i]);
                bool known = q || people_find(p, uids[i]);

                for (size_t k = 0; !known && k < n_missing; k++)
                        known = missing[k] == uids[i];
                if (!known)
                        missing[n_missing++] = uids[i];
                if (q && (!last || q->number > last->number))
                        last = q;
        }
        *ret = last;
        return n_missing > 0 && !p->away ? place(p, missing, n_missing, ret) : 0;
}

int people_ask(struct people *p, uint32_t uid, const uint32_t *uids, size_t n, people_done done,
               void (*destroy)(void *userdata), void *userdata) {
        struct question *q = NULL;
        struct asker *a = malloc(sizeof(*a));
        int r;

        if (!a)
                return -ENOMEM;
        *a = (struct asker){ uid, done, destroy, userdata };
        r = is_full(p, uid) ? -EBUSY : find_question(p, uids, n, &q);
        if (r < 0 || !q) {
                free(a);
                if (r < 0 && r != -EBUSY)
                        return r;
                done(userdata);
                return 0;
        }
        DL_APPEND(q->askers, a);
        p->n_askers++;
        return 1;
}
