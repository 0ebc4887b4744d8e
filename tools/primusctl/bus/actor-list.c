/* SPDX-License-Identifier: Apache-2.0 */
/* Asks primus.actors.listing in sessions of the executors, some at a time. What is killed is killed there, by
 * who has seen that the process is still it. */
#include "tools/primusctl/bus/actor-list.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/json/get.h"
#include "tools/primusctl/bus/stream.h"
#include "tools/primusctl/bus/watch.h"

#define AT_A_TIME 16u
/* Of one executor: some tens of thousands of actors. */
#define ANSWER_MAX (8u << 20)

struct asking {
        struct cli *cli;
        const char *kill;
        sd_event *event;
        struct actor_list *list;
        struct asked *asked; /* one for each target */
        size_t next, under_way;
};

struct asked {
        struct asking *asking;
        struct actor_answer *answer;
        struct stream_target target;
        struct stream *stream;
        char *text;
        size_t size;
};

static void set_error(struct asked *a, const char *text) {
        if (!a->answer->error)
                a->answer->error = strdup(text);
}

static void ask_more(struct asking *s);

static void on_data(struct stream *stream, enum stream_kind kind, const void *data, size_t size,
                    void *userdata) {
        struct asked *a = userdata;
        char *larger;

        if (kind != STREAM_OUTPUT || size == 0)
                return;
        larger = a->size + size <= ANSWER_MAX ? realloc(a->text, a->size + size) : NULL;
        if (!larger) {
                set_error(a, "its answer is too long");
                return;
        }
        memcpy(larger + a->size, data, size);
        a->text = larger;
        a->size += size;
}

static void on_ended(struct stream *stream, int status, const char *why, void *userdata) {
        struct asked *a = userdata;

        if (*why)
                set_error(a, why);
        else if (status != 0)
                set_error(a, "there is no python3 with the module primus.actors, of this version");
        if (!a->answer->error)
                a->answer->actors = json_loadb(a->text ?: "", a->size, 0, NULL);
        if (!json_is_array(a->answer->actors)) {
                json_decref(a->answer->actors);
                a->answer->actors = NULL;
                set_error(a, "its answer is none");
        }
        a->asking->under_way--;
        ask_more(a->asking);
}

/* It reads nothing. */
static void on_opened(struct stream *stream, void *userdata) {
        (void)stream_write(stream, NULL, 0, true);
}

static void on_room(struct stream *stream, void *userdata) {
}

static int open_session(struct asked *a) {
        static const struct stream_handlers handlers = {
                .opened = on_opened, .data = on_data, .room = on_room, .ended = on_ended
        };
        char *kill = (char *)a->asking->kill;
        char *arguments[] = { (char *)"python3",
                              (char *)"-m",
                              (char *)"primus.actors.listing",
                              kill ? (char *)"--kill" : NULL,
                              kill,
                              NULL };
        const struct stream_options o = { .arguments = arguments };

        return stream_new(a->asking->cli, &a->target, &o, &handlers, a, &a->stream);
}

static void ask_more(struct asking *s) {
        while (s->next < s->list->targets.n && s->under_way < AT_A_TIME) {
                struct asked *a = s->asked + s->next++;
                int r = open_session(a);

                if (r < 0)
                        set_error(a, strerror(-r));
                else
                        s->under_way++;
        }
        if (s->under_way == 0)
                (void)sd_event_exit(s->event, 0);
}

static int ask_all(struct asking *s) {
        int r = watch_loop_new(s->cli, &s->event);

        if (r)
                return r;
        ask_more(s);
        r = sd_event_loop(s->event);
        for (size_t i = 0; i < s->list->targets.n; i++) {
                stream_free(s->asked[i].stream);
                s->asked[i].stream = NULL;
        }
        (void)sd_bus_detach_event(s->cli->bus);
        sd_event_unref(s->event);
        return r < 0 ? cli_fail(s->cli, "%s", strerror(-r)) : 0;
}

static void asking_done(struct asking *s) {
        for (size_t i = 0; i < s->list->targets.n && s->asked; i++)
                free(s->asked[i].text);
        free(s->asked);
}

int actor_list_ask(struct cli *c, const char *job, char **ranks, size_t n, const char *kill,
                   struct actor_list *ret) {
        struct asking s = { .cli = c, .kill = kill, .list = ret };
        int r;

        *ret = (struct actor_list){};
        r = targets_find(c, job, ranks, n, &ret->targets);
        if (r)
                return r;
        ret->answers = calloc(ret->targets.n, sizeof(*ret->answers));
        s.asked = calloc(ret->targets.n, sizeof(*s.asked));
        if (!ret->answers || !s.asked)
                r = cli_oom(c);
        for (size_t i = 0; r == 0 && i < ret->targets.n; i++)
                s.asked[i] = (struct asked){ .asking = &s,
                                             .answer = ret->answers + i,
                                             .target = { .job = ret->targets.job,
                                                         .role = ret->targets.list[i].role,
                                                         .index = ret->targets.list[i].index } };
        r = r ?: ask_all(&s);
        asking_done(&s);
        return r;
}

void actor_list_done(struct actor_list *l) {
        for (size_t i = 0; i < l->targets.n && l->answers; i++) {
                json_decref(l->answers[i].actors);
                free(l->answers[i].error);
        }
        free(l->answers);
        targets_done(&l->targets);
        *l = (struct actor_list){};
}

/* ---- one of them ---- */

bool is_actor_name(const char *text) {
        const char *space = strrchr(text, ' ');

        return space && space > text && space[1] && strspn(space + 1, "0123456789") == strlen(space + 1);
}

static int take_place(struct cli *c, const struct target *t, uint64_t pid, struct actor_place *ret) {
        if (asprintf(&ret->rank, "%s/%" PRIu32, t->role, t->index) < 0) {
                ret->rank = NULL;
                return cli_oom(c);
        }
        ret->pid = (uint32_t)pid;
        return 0;
}

int actor_find(struct cli *c, const char *job, const char *name, struct actor_place *ret) {
        _cleanup_(actor_list_done) struct actor_list l = {};
        const json_t *actor;
        size_t k, found = 0;
        int r = actor_list_ask(c, job, NULL, 0, NULL, &l);

        *ret = (struct actor_place){};
        /* The end of the loop was that of its bus; what comes next makes another. */
        c->bus = sd_bus_close_unref(c->bus);
        c->loop = NULL;
        for (size_t i = 0; r == 0 && i < l.targets.n; i++)
                json_array_foreach (l.answers[i].actors, k, actor)
                        if (strcmp(json_get_text(actor, "actor"), name) == 0 && found++ == 0)
                                r = take_place(c, l.targets.list + i, json_get_number(actor, "pid"), ret);
        if (r == 0 && found == 0)
                r = cli_fail(c,
                             "no executor of job %" PRIu32
                             " has the actor %s (any more); primusctl actors %" PRIu32,
                             l.targets.job.number, name, l.targets.job.number);
        else if (r == 0 && found > 1) /* of several pools */
                r = cli_fail(c,
                             "%zu actors of job %" PRIu32 " are called %s; primusctl actors %" PRIu32
                             " says where each is",
                             found, l.targets.job.number, name, l.targets.job.number);
        if (r)
                actor_place_done(ret);
        return r;
}

void actor_place_done(struct actor_place *p) {
        free(p->rank);
        *p = (struct actor_place){};
}
