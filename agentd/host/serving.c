/* SPDX-License-Identifier: Apache-2.0 */
/* Asking the user database whom this host serves. Invariant: everybody who asked is answered once; a user
 * whom it cannot tell about is not served, unless it told within the last hour that he is. */
#include "agentd/host/serving.h"

#include <string.h>
#include <utlist.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/worker.h"

#define FRESH_USEC (60 * USEC_PER_SEC)
#define STALE_USEC (3600 * USEC_PER_SEC) /* good enough while the database is away */
#define WAIT_USEC (10 * USEC_PER_SEC)
#define SETTLE_USEC (2 * USEC_PER_SEC)
#define KNOWN_MAX 1024u /* users remembered */
#define ASKING_MAX 256u /* users asked about at a time: each is one piece of work for the thread */

struct asker {
        serve_handler handler;
        void *userdata;
        struct asker *next;
};

struct user {
        struct serving *serving;
        struct serve_person person;
        uint64_t asked_boot, told_boot; /* told: 0, never */
        struct question *question;      /* that is under way */
        struct asker *askers;
        sd_event_source *timer;
        struct user *prev, *next; /* most recently used first */
};

struct question {
        struct serving *serving;
        struct user *user; /* NULL: nobody wants to know any more */
        struct desk *desk;
        struct question *prev, *next;
        uint32_t uid;
        int r;
        struct serve_person person;
        char *unknown;
        bool describe; /* the lists as numbers */
        struct serves_info info;
};

/* What the thread works with. It may never come back from the user database, and then has this to itself. */
struct desk {
        struct serve_policy policy;
        struct question *questions;
};

struct serving {
        sd_event *event;
        struct worker *worker;
        struct desk *desk;
        const struct serve_policy *policy;
        const char *node;
        void (*changed)(void *userdata);
        void *userdata;
        struct user *users;
        unsigned n_users, n_asking;
        struct serves_info info;
        bool needs, settled, said_unknown;
        sd_event_source *settle;
};

static void info_done(struct serves_info *i) {
        free(i->allow);
        free(i->deny);
        *i = (struct serves_info){};
}

static void question_free(struct question *q) {
        DL_DELETE(q->desk->questions, q);
        free(q->unknown);
        info_done(&q->info);
        free(q);
}

static void desk_free(void *data) {
        struct desk *d = data;

        while (d->questions)
                question_free(d->questions);
        serve_policy_done(&d->policy);
        free(d);
}

static struct question *question_new(struct serving *s) {
        struct question *q = calloc(1, sizeof(*q));

        if (!q)
                return NULL;
        q->serving = s;
        q->desk = s->desk;
        DL_APPEND(s->desk->questions, q);
        return q;
}

/* ---- in the thread */

static int look_up_list(char *const *names, uint32_t **ret, size_t *ret_n) {
        *ret = calloc(LINK_SERVES_MAX, sizeof(**ret));
        return *ret ? serve_lookup_uids(names, *ret, LINK_SERVES_MAX, ret_n) : -ENOMEM;
}

static void run_question(void *data) {
        struct question *q = data;

        if (!q->describe) {
                q->r = serve_lookup(&q->desk->policy, q->uid, &q->person, &q->unknown);
                return;
        }
        q->r = look_up_list(q->desk->policy.allow_users, &q->info.allow, &q->info.n_allow);
        if (q->r >= 0)
                q->r = look_up_list(q->desk->policy.deny_users, &q->info.deny, &q->info.n_deny);
}

/* ---- users */

static void answer_order(struct user *u, const char *why) {
        struct asker *a;

        u->timer = sd_event_source_disable_unref(u->timer);
        while ((a = u->askers)) {
                u->askers = a->next;
                a->handler(why, a->userdata);
                free(a);
        }
}

static const char *decide_user(struct user *u, char buf[static SERVE_WHY_MAX]) {
        return serve_decide(u->serving->policy, &u->person, u->serving->node, buf);
}

/* It was not told in time, or not at all. */
static void answer_unknown(struct user *u, const char *what) {
        char buf[SERVE_WHY_MAX];

        if (u->told_boot > 0 && now_boot() - u->told_boot <= STALE_USEC) {
                answer_order(u, decide_user(u, buf));
                return;
        }
        snprintf(buf, sizeof(buf),
                 "host %.64s runs nothing as uid %u for now: its user database %s, and AllowUsers=, "
                 "AllowGroups= "
                 "or DenyUsers= in its agentd.conf want to know",
                 u->serving->node, u->person.uid, what);
        answer_order(u, buf);
}

static void user_free(struct user *u) {
        answer_unknown(u, "was not asked");
        if (u->question)
                u->question->user = NULL;
        DL_DELETE(u->serving->users, u);
        u->serving->n_users--;
        free(u);
}

static int on_late(sd_event_source *s, uint64_t usec, void *userdata) {
        answer_unknown(userdata, "did not answer within 10 s");
        return 0;
}

static void say_unknown(struct serving *s, const char *names) {
        if (!names || s->said_unknown)
                return;
        s->said_unknown = true;
        log_warning(
                "agentd.conf: AllowUsers=, AllowGroups= or DenyUsers= name somebody whom this host does not "
                "know:%.400s. Whoever is meant to be refused is served; whoever is meant to be served is "
                "not",
                names);
}

static void on_answer(void *data) {
        struct question *q = data;
        struct serving *s = q->serving;
        struct user *u = q->user;
        char buf[SERVE_WHY_MAX];

        s->n_asking--;
        if (q->r >= 0)
                say_unknown(s, q->unknown);
        if (u) {
                u->question = NULL;
                if (q->r >= 0) {
                        u->person = q->person;
                        u->told_boot = now_boot();
                        answer_order(u, decide_user(u, buf));
                } else
                        answer_unknown(u, q->r == -E2BIG ? "says more of it than can be" : "cannot tell");
        }
        question_free(q);
}

static int ask_lookup(struct user *u) {
        struct serving *s = u->serving;
        struct question *q;
        int r;

        if (u->question)
                return 0;
        if (s->n_asking >= ASKING_MAX)
                return -EBUSY;
        q = question_new(s);
        if (!q)
                return -ENOMEM;
        q->user = u;
        q->uid = u->person.uid;
        r = worker_submit(s->worker, run_question, on_answer, q);
        if (r < 0) {
                question_free(q);
                return r;
        }
        u->question = q;
        s->n_asking++;
        return 0;
}

static struct user *user_find(struct serving *s, uint32_t uid) {
        struct user *u;

        DL_FOREACH (s->users, u)
                if (u->person.uid == uid)
                        return u;
        return NULL;
}

static struct user *user_get(struct serving *s, uint32_t uid) {
        struct user *u = user_find(s, uid);

        if (u)
                DL_DELETE(s->users, u);
        else {
                u = calloc(1, sizeof(*u));
                if (!u)
                        return NULL;
                u->serving = s;
                u->person.uid = uid;
                s->n_users++;
        }
        DL_PREPEND(s->users, u);
        /* The one that was not asked about for longest goes; who waits is not forgotten. */
        for (struct user *old = s->users->prev; s->n_users > KNOWN_MAX && old != u; old = s->users->prev) {
                if (old->askers || old->question)
                        break;
                user_free(old);
        }
        return u;
}

void serving_ask(struct serving *s, uint32_t uid, serve_handler handler, void *userdata) {
        char buf[SERVE_WHY_MAX];
        struct asker *a;
        struct user *u;
        const char *why;
        bool sure;
        int r;

        why = serve_decide_number(s->policy, uid, s->node, buf, &sure);
        if (why || sure) {
                handler(why, userdata);
                return;
        }
        u = user_get(s, uid);
        if (u && u->told_boot > 0 && now_boot() - u->told_boot <= FRESH_USEC) {
                handler(decide_user(u, buf), userdata);
                return;
        }
        a = u ? calloc(1, sizeof(*a)) : NULL;
        if (!a) {
                handler("out of memory", userdata);
                return;
        }
        *a = (struct asker){ .handler = handler, .userdata = userdata, .next = u->askers };
        u->askers = a;
        r = ask_lookup(u);
        if (r >= 0 && !u->timer)
                r = sd_event_add_time_relative(s->event, &u->timer, CLOCK_BOOTTIME, WAIT_USEC, 0, on_late, u);
        if (r < 0)
                answer_unknown(u, "has too many questions to answer");
}

const char *serving_known(struct serving *s, uint32_t uid, char buf[static SERVE_WHY_MAX]) {
        const char *why = serve_decide_number(s->policy, uid, s->node, buf, NULL);
        struct user *u = why ? NULL : user_find(s, uid);

        return u && u->told_boot > 0 && s->needs ? decide_user(u, buf) : why;
}

/* ---- what masterd is told */

static void tell_changed(struct serving *s) {
        s->settled = true;
        s->settle = sd_event_source_disable_unref(s->settle);
        s->changed(s->userdata);
}

static void take_info(struct serving *s, struct question *q) {
        info_done(&s->info);
        s->info = q->info;
        q->info = (struct serves_info){};
        s->info.known = true;
        s->info.min_uid = s->policy->min_uid;
        s->info.listed = s->policy->allow_users || s->policy->allow_groups;
        s->info.groups = s->policy->allow_groups;
}

static void on_described(void *data) {
        struct question *q = data;
        struct serving *s = q->serving;

        if (q->r >= 0)
                take_info(s, q);
        else
                log_warning_errno(q->r,
                                  "Cannot look up AllowUsers= and DenyUsers= of agentd.conf; masterd is "
                                  "not told whom this host serves, and hears it when it asks");
        question_free(q);
        tell_changed(s);
}

static int on_settle(sd_event_source *source, uint64_t usec, void *userdata) {
        tell_changed(userdata);
        return 0;
}

static int describe_policy(struct serving *s) {
        struct question *q = question_new(s);
        int r;

        if (!q)
                return -ENOMEM;
        q->describe = true;
        if (!s->needs) { /* numbers */
                run_question(q);
                r = q->r;
                if (r >= 0)
                        take_info(s, q);
                question_free(q);
                s->settled = true;
                return r;
        }
        r = worker_submit(s->worker, run_question, on_described, q);
        if (r < 0)
                question_free(q);
        return r < 0 ? r
                     : sd_event_add_time_relative(s->event, &s->settle, CLOCK_BOOTTIME, SETTLE_USEC, 0,
                                                  on_settle, s);
}

static int copy_uids(const uint32_t *uids, size_t n, uint32_t **ret) {
        *ret = malloc(n * sizeof(*uids) + 1);
        if (*ret && n > 0)
                memcpy(*ret, uids, n * sizeof(*uids));
        return *ret ? 0 : -ENOMEM;
}

int serving_describe(struct serving *s, struct serves_info *ret) {
        struct serves_info copy = s->info;

        copy.allow = copy.deny = NULL;
        if (copy_uids(s->info.allow, s->info.n_allow, &copy.allow) < 0 ||
            copy_uids(s->info.deny, s->info.n_deny, &copy.deny) < 0) {
                info_done(&copy);
                return -ENOMEM;
        }
        info_done(ret);
        *ret = copy;
        return 0;
}

bool serving_settled(const struct serving *s) {
        return s->settled;
}

int serving_new(sd_event *event, const struct serve_policy *policy, const char *node,
                void (*changed)(void *userdata), void *userdata, struct serving **ret) {
        _cleanup_(serving_free_p) struct serving *s = calloc(1, sizeof(*s));
        int r;

        if (!s)
                return -ENOMEM;
        s->event = sd_event_ref(event);
        s->policy = policy;
        s->node = node;
        s->changed = changed;
        s->userdata = userdata;
        s->needs = serve_needs_lookup(policy);
        s->desk = calloc(1, sizeof(*s->desk));
        if (!s->desk)
                return -ENOMEM;
        r = serve_policy_copy(&s->desk->policy, policy);
        if (r < 0)
                return r;
        /* Modules of the user database are code of the site's, which may want a stack. */
        if (s->needs && (r = worker_new_deep(event, &s->worker)) < 0)
                return r;
        r = describe_policy(s);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(s);
        return 0;
}

void serving_free(struct serving *s) {
        struct user *u, *next;

        if (!s)
                return;
        sd_event_source_disable_unref(s->settle);
        DL_FOREACH_SAFE (s->users, u, next)
                user_free(u);
        if (s->worker && s->desk->questions)
                worker_abandon(s->worker, desk_free, s->desk);
        else {
                worker_free(s->worker);
                if (s->desk)
                        desk_free(s->desk);
        }
        info_done(&s->info);
        sd_event_unref(s->event);
        free(s);
}
