/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of a session. Invariant: reads are asked for one after the other and answered in that order, so
 * several under way keep the bytes in order. */
#include "tools/primusctl/bus/stream.h"

#include <inttypes.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/parse.h"
#include "tools/primusctl/bus/ask.h"
#include "tools/primusctl/bus/job.h"
#include "tools/primusctl/bus/targets.h"

#define READ_WAIT_USEC (20 * USEC_PER_SEC)
/* Longer than all reads that may stand before one. */
#define READ_TIMEOUT_USEC ((STREAM_READS + 1) * READ_WAIT_USEC + 30 * USEC_PER_SEC)
#define OPEN_TIMEOUT_USEC (30 * USEC_PER_SEC)

struct stream {
        struct cli *cli;
        struct job_ref job;
        struct stream_handlers handlers;
        void *userdata;
        uint32_t number; /* 0: not open yet */
        bool over, held;
        unsigned n_writes;
        sd_bus_slot *opening, *reads[STREAM_READS], *writes[STREAM_WRITES];
};

void stream_target_done(struct stream_target *t) {
        free(t->role);
}

static int find_rank(struct cli *c, struct stream_target *t, uint32_t rank) {
        struct executor *list = NULL;
        size_t n = 0;
        int r = ask_executors(c, &t->job, false, &list, &n);

        if (r)
                return r;
        for (size_t i = 0; i < n && !t->role; i++)
                if (list[i].rank == rank) {
                        t->role = strdup(list[i].role);
                        t->index = list[i].index;
                }
        executors_free(list, n);
        return t->role ? 0
                       : cli_fail(c, "job %" PRIu32 " has no executor of rank %" PRIu32, t->job.number, rank);
}

int stream_target_find(struct cli *c, const char *job, const char *text, struct stream_target *ret) {
        struct stream_target t = { 0 };
        bool has_index;
        uint32_t rank;
        int r = *text == '-'
                        ? cli_usage(c, "which executor? It stands behind the job: ROLE[/INDEX] or a rank")
                        : cli_job(c, job, &t.job);

        if (!r)
                r = ask_no_array(c, &t.job);
        if (!r)
                r = parse_u32(text, 0, UINT32_MAX, &rank) >= 0
                            ? find_rank(c, &t, rank)
                            : role_parse(c, text, &t.role, &t.index, &has_index);
        if (r) {
                stream_target_done(&t);
                return r;
        }
        *ret = t;
        return 0;
}

/* ---- the end ---- */

static void drop_calls(struct stream *s) {
        s->opening = sd_bus_slot_unref(s->opening);
        for (unsigned i = 0; i < STREAM_READS; i++)
                s->reads[i] = sd_bus_slot_unref(s->reads[i]);
        for (unsigned i = 0; i < STREAM_WRITES; i++)
                s->writes[i] = sd_bus_slot_unref(s->writes[i]);
}

static void over(struct stream *s, int status, const char *why) {
        if (s->over)
                return;
        s->over = true;
        drop_calls(s);
        s->handlers.ended(s, status, why, s->userdata);
}

static void over_error(struct stream *s, const sd_bus_error *e) {
        if (cli_error_unreachable(e, 0))
                over(s, STREAM_BROKEN,
                     "masterd, through which this session goes, was stopped or started again; what ran in "
                     "the session has "
                     "ended, the executor runs on");
        else
                over(s, STREAM_BROKEN, e->message ? e->message : e->name);
}

/* ---- reading ---- */

static void ask(struct stream *s);

static int on_read(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        const sd_bus_error *e = sd_bus_message_get_error(reply);
        struct stream *s = userdata;
        sd_bus_slot *slot = sd_bus_get_current_slot(sd_bus_message_get_bus(reply));
        const char *why = "";
        int r, end = 0, status = 0;

        for (unsigned i = 0; i < STREAM_READS; i++)
                if (s->reads[i] == slot)
                        s->reads[i] = sd_bus_slot_unref(s->reads[i]);
        if (e) {
                over_error(s, e);
                return 0;
        }
        r = sd_bus_message_enter_container(reply, 'a', "(yay)");
        while (r >= 0 && (r = sd_bus_message_enter_container(reply, 'r', "yay")) > 0) {
                const void *data;
                size_t size;
                uint8_t kind;
                if ((r = sd_bus_message_read_basic(reply, 'y', &kind)) >= 0 &&
                    (r = sd_bus_message_read_array(reply, 'y', &data, &size)) >= 0) {
                        s->handlers.data(s, kind, data, size, s->userdata);
                        r = sd_bus_message_exit_container(reply);
                }
        }
        if (r >= 0)
                r = sd_bus_message_exit_container(reply);
        if (r >= 0)
                r = sd_bus_message_read(reply, "bis", &end, &status, &why);
        if (r < 0)
                over(s, STREAM_BROKEN, "masterd's answer is not understood");
        else if (end)
                over(s, status, why);
        else
                ask(s);
        return 0;
}

static void ask(struct stream *s) {
        int r = 0;

        for (unsigned i = 0; i < STREAM_READS && r >= 0 && !s->held && !s->over; i++) {
                _cleanup_(sd_bus_message_unref_p) sd_bus_message *m = NULL;

                if (s->reads[i])
                        continue;
                r = sd_bus_message_new_method_call(s->cli->bus, &m, MASTER_NAME, s->job.path, MASTER_JOB,
                                                   "ReadSession");
                if (r >= 0)
                        r = sd_bus_message_append(m, "ut", s->number, READ_WAIT_USEC);
                if (r >= 0)
                        r = sd_bus_call_async(s->cli->bus, s->reads + i, m, on_read, s, READ_TIMEOUT_USEC);
        }
        if (r < 0)
                over(s, STREAM_BROKEN, strerror(-r));
}

void stream_hold(struct stream *s, bool hold) {
        s->held = hold;
        if (!hold && s->number)
                ask(s);
}

/* ---- writing ---- */

bool stream_has_room(const struct stream *s) {
        return s->number && !s->over && s->n_writes < STREAM_WRITES;
}

static int on_written(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        const sd_bus_error *e = sd_bus_message_get_error(reply);
        struct stream *s = userdata;
        sd_bus_slot *slot = sd_bus_get_current_slot(sd_bus_message_get_bus(reply));

        for (unsigned i = 0; i < STREAM_WRITES; i++)
                if (s->writes[i] == slot)
                        s->writes[i] = sd_bus_slot_unref(s->writes[i]);
        s->n_writes--;
        /* That it has ended is told to who reads. */
        if (e && !sd_bus_error_has_name(e, MASTER_ERROR_NOT_FOUND))
                over_error(s, e);
        else if (!s->over)
                s->handlers.room(s, s->userdata);
        return 0;
}

int stream_write(struct stream *s, const void *data, size_t size, bool end) {
        _cleanup_(sd_bus_message_unref_p) sd_bus_message *m = NULL;
        unsigned i = 0;
        int r;

        if (!stream_has_room(s) || size > STREAM_PIECE_MAX)
                return -EBUSY;
        while (s->writes[i])
                i++;
        r = sd_bus_message_new_method_call(s->cli->bus, &m, MASTER_NAME, s->job.path, MASTER_JOB,
                                           "WriteSession");
        if (r >= 0)
                r = sd_bus_message_append(m, "u", s->number);
        if (r >= 0)
                r = sd_bus_message_append_array(m, 'y', data, size);
        if (r >= 0)
                r = sd_bus_message_append(m, "b", (int)end);
        if (r >= 0)
                r = sd_bus_call_async(s->cli->bus, s->writes + i, m, on_written, s, UINT64_MAX);
        if (r >= 0)
                s->n_writes++;
        return r;
}

void stream_resize(struct stream *s, uint16_t rows, uint16_t columns) {
        if (s->number && !s->over)
                (void)sd_bus_call_method_async(s->cli->bus, NULL, MASTER_NAME, s->job.path, MASTER_JOB,
                                               "ResizeSession", NULL, NULL, "uqq", s->number, rows, columns);
}

/* ---- opening ---- */

static int on_opened(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        const sd_bus_error *e = sd_bus_message_get_error(reply);
        struct stream *s = userdata;

        s->opening = sd_bus_slot_unref(s->opening);
        if (e && (sd_bus_error_has_name(e, MASTER_ERROR_NO_SUCH_JOB) ||
                  sd_bus_error_has_name(e, SD_BUS_ERROR_UNKNOWN_OBJECT)))
                over(s, STREAM_BROKEN, "there is no such job; 'primusctl list -a' shows the jobs");
        else if (e)
                over_error(s, e);
        else if (sd_bus_message_read_basic(reply, 'u', &s->number) < 0)
                over(s, STREAM_BROKEN, "masterd's answer is not understood");
        else {
                ask(s);
                if (!s->over)
                        s->handlers.opened(s, s->userdata);
        }
        return 0;
}

static int append_bytes(sd_bus_message *m, char *const *strings) {
        int r = sd_bus_message_open_container(m, 'a', "ay");

        for (char *const *p = strings; r >= 0 && p && *p; p++)
                r = sd_bus_message_append_array(m, 'y', *p, strlen(*p));
        return r < 0 ? r : sd_bus_message_close_container(m);
}

static int append_options(sd_bus_message *m, const struct stream_options *o) {
        int r = sd_bus_message_open_container(m, 'a', "{sv}");

        if (r >= 0 && o->pty)
                r = sd_bus_message_append(m, "{sv}{sv}{sv}", "pty", "b", 1, "rows", "q", o->rows, "columns",
                                          "q", o->columns);
        if (r >= 0 && o->port)
                r = sd_bus_message_append(m, "{sv}", "port", "q", o->port);
        if (r >= 0 && o->environment && *o->environment) {
                if ((r = sd_bus_message_open_container(m, 'e', "sv")) >= 0 &&
                    (r = sd_bus_message_append(m, "s", "env")) >= 0 &&
                    (r = sd_bus_message_open_container(m, 'v', "aay")) >= 0 &&
                    (r = append_bytes(m, o->environment)) >= 0 &&
                    (r = sd_bus_message_close_container(m)) >= 0)
                        r = sd_bus_message_close_container(m);
        }
        return r < 0 ? r : sd_bus_message_close_container(m);
}

int stream_new(struct cli *c, const struct stream_target *t, const struct stream_options *o,
               const struct stream_handlers *handlers, void *userdata, struct stream **ret) {
        _cleanup_(sd_bus_message_unref_p) sd_bus_message *m = NULL;
        struct stream *s = calloc(1, sizeof(*s));
        int r;

        if (!s)
                return -ENOMEM;
        *s = (struct stream){ .cli = c, .job = t->job, .handlers = *handlers, .userdata = userdata };
        r = sd_bus_message_new_method_call(c->bus, &m, MASTER_NAME, t->job.path, MASTER_JOB,
                                           t->node ? "OpenArtifacts" : "OpenSession");
        if (r >= 0)
                r = t->node ? sd_bus_message_append(m, "s", t->node)
                            : sd_bus_message_append(m, "su", t->role, t->index);
        if (r >= 0)
                r = append_bytes(m, o->arguments);
        if (r >= 0)
                r = append_options(m, o);
        if (r >= 0)
                r = sd_bus_call_async(c->bus, &s->opening, m, on_opened, s, OPEN_TIMEOUT_USEC);
        if (r < 0) {
                free(s);
                return r;
        }
        *ret = s;
        return 0;
}

void stream_free(struct stream *s) {
        if (!s)
                return;
        if (s->number && !s->over)
                (void)sd_bus_call_method_async(s->cli->bus, NULL, MASTER_NAME, s->job.path, MASTER_JOB,
                                               "CloseSession", NULL, NULL, "u", s->number);
        drop_calls(s);
        free(s);
}
