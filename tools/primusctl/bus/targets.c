/* SPDX-License-Identifier: Apache-2.0 */
/* Executors of a job as the command line names them, and calls of all of them. Invariant: no more than WINDOW
 * calls wait for their answer: the bus refuses a connection's 129th. */
#include "tools/primusctl/bus/targets.h"

#include <inttypes.h>
#include <string.h>

#include "lib/base/names.h"
#include "lib/base/parse.h"
#include "tools/primusctl/bus/ask.h"
#include "tools/primusctl/bus/job.h"

#define WINDOW 32u

void targets_done(struct targets *t) {
        for (size_t i = 0; i < t->n; i++) {
                free(t->list[i].role);
                free(t->list[i].node);
        }
        free(t->list);
        *t = (struct targets){ 0 };
}

/* ---- which ---- */

static bool runs(const struct executor *e) {
        return strcmp(e->state, "RUNNING") == 0 || strcmp(e->state, "STOPPING") == 0;
}

/* 1: it is meant, 0: it is not, < 0: an exit status, negated. */
static int meant(struct cli *c, const struct executor *e, const char *text) {
        _cleanup_free_ char *role = NULL;
        bool has_index = false;
        uint32_t rank, index = 0;
        int r;

        if (parse_u32(text, 0, UINT32_MAX, &rank) >= 0)
                return e->rank == rank;
        r = role_parse(c, text, &role, &index, &has_index);
        if (r)
                return -r;
        return strcmp(role, e->role) == 0 && (!has_index || index == e->index);
}

static int take(struct targets *t, struct executor *e) {
        struct target *more = realloc(t->list, (t->n + 1) * sizeof(*more));

        if (!more)
                return -ENOMEM;
        t->list = more;
        more[t->n++] = (struct target){
                .role = TAKE_PTR(e->role), .node = TAKE_PTR(e->node), .index = e->index, .rank = e->rank
        };
        return 0;
}

/* found: for each text whether somebody was meant. */
static int choose(struct cli *c, struct targets *t, struct executor *list, size_t n, char **texts,
                  size_t n_texts, bool *found) {
        for (size_t i = 0; i < n; i++) {
                bool wanted = n_texts == 0;

                for (size_t k = 0; k < n_texts; k++) {
                        int r = meant(c, list + i, texts[k]);

                        if (r < 0)
                                return -r;
                        found[k] |= r > 0;
                        wanted |= r > 0;
                }
                if (wanted && runs(list + i) && take(t, list + i) < 0)
                        return cli_oom(c);
        }
        for (size_t k = 0; k < n_texts; k++)
                if (!found[k])
                        return cli_fail(c, "job %" PRIu32 " has no executor %s", t->job.number, texts[k]);
        if (t->n == 0)
                return cli_fail(c, "no executor of job %" PRIu32 "%s runs at the moment", t->job.number,
                                n_texts > 0 ? " that was named" : "");
        return 0;
}

int targets_find(struct cli *c, const char *job, char **texts, size_t n, struct targets *ret) {
        _cleanup_free_ bool *found = calloc(n + 1, sizeof(*found));
        struct targets t = { 0 };
        struct executor *list = NULL;
        size_t n_list = 0;
        int r;

        if (!found)
                return cli_oom(c);
        if ((r = cli_job(c, job, &t.job)) || (r = ask_no_array(c, &t.job)) ||
            (r = ask_executors(c, &t.job, false, &list, &n_list)))
                return r;
        r = choose(c, &t, list, n_list, texts, n, found);
        executors_free(list, n_list);
        if (r)
                targets_done(&t);
        else
                *ret = t;
        return r;
}

/* ---- calls ---- */

struct round;

struct slot {
        struct round *round;
        size_t target;
        sd_bus_slot *slot;
};

struct round {
        const struct target_call *call;
        void *userdata;
        struct slot slots[WINDOW];
        unsigned waiting;
};

static int on_reply(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        struct slot *s = userdata;
        const sd_bus_error *e = sd_bus_message_get_error(reply);

        s->slot = sd_bus_slot_unref(s->slot);
        s->round->waiting--;
        s->round->call->answered(s->target, e ? NULL : reply, e, s->round->userdata);
        return 0;
}

static struct slot *free_slot(struct round *r) {
        for (size_t i = 0; i < WINDOW; i++)
                if (!r->slots[i].slot)
                        return r->slots + i;
        return NULL;
}

static int ask(struct cli *c, const struct targets *t, struct round *round, size_t i) {
        _cleanup_(sd_bus_message_unref_p) sd_bus_message *m = NULL;
        struct slot *s = free_slot(round);
        int r = cli_job_call(c, &t->job, round->call->method, &m);

        if (r)
                return r;
        if ((r = sd_bus_message_append(m, "su", t->list[i].role, t->list[i].index)) < 0 ||
            (r = round->call->append(m, i, round->userdata)) < 0)
                return cli_oom(c);
        if (r > 0)
                return 0;
        s->round = round;
        s->target = i;
        r = sd_bus_call_async(c->bus, &s->slot, m, on_reply, s, round->call->timeout_usec);
        if (r < 0)
                return cli_call_failed(c, NULL, r, NULL, &t->job);
        round->waiting++;
        return 0;
}

int targets_call(struct cli *c, const struct targets *t, const struct target_call *call, void *userdata) {
        struct round round = { .call = call, .userdata = userdata };
        size_t next = 0;
        int r = 0;

        while (r == 0 && (next < t->n || round.waiting > 0) && !(call->stop && *call->stop)) {
                if (next < t->n && round.waiting < WINDOW) {
                        r = ask(c, t, &round, next++);
                        continue;
                }
                r = sd_bus_process(c->bus, NULL);
                if (r == 0)
                        r = sd_bus_wait(c->bus, UINT64_MAX);
                r = r < 0 && r != -EINTR ? cli_call_failed(c, NULL, r, NULL, &t->job) : 0;
        }
        for (size_t i = 0; i < WINDOW; i++)
                sd_bus_slot_unref(round.slots[i].slot);
        return r;
}

int role_parse(const struct cli *c, const char *text, char **ret_role, uint32_t *ret_index,
               bool *ret_has_index) {
        size_t n = strcspn(text, "/");
        _cleanup_free_ char *role = strndup(text, n);
        uint32_t index = 0;

        if (!role)
                return cli_oom(c);
        if (!role_name_valid(role))
                return n > 0 && n == strspn(text, "0123456789")
                               ? cli_usage(c,
                                           "an executor is ROLE/INDEX, as a word behind its job's number: "
                                           "not %s",
                                           text)
                               : cli_usage(c, "not a role: %s", text);
        if (text[n] && parse_u32(text + n + 1, 0, UINT32_MAX, &index) < 0)
                return cli_usage(c, "not an index of role %s: %s", role, text + n + 1);
        *ret_role = TAKE_PTR(role);
        *ret_index = index;
        *ret_has_index = text[n] != 0;
        return 0;
}
