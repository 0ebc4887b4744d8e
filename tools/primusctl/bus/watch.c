/* SPDX-License-Identifier: Apache-2.0 */
/* Follows a job by signals. Invariant: between two synced() calls every change of state reaches the handlers;
 * a handler is called only when something differs. */
#include "tools/primusctl/bus/watch.h"
#include "lib/wire/bus-owner.h"

#include <string.h>

#include <utlist.h>

#include "lib/base/clock.h"

#define AWAY_MAX (60 * USEC_PER_SEC) /* how long masterd may be gone */
#define REJOIN_USEC (100 * USEC_PER_MSEC)
#define MISSED_MAX 10u

struct watch {
        struct cli *cli;
        sd_event *event;
        struct job_ref job;
        enum watch_what what;
        bool is_away;
        const struct watch_handlers *handlers;
        void *userdata;
        struct job_properties properties;
        struct executor *executors;
        size_t n_executors, allocated;
        struct bus_owner *owner;                        /* of the master's name */
        unsigned replies;                               /* of the present sync that are still to come */
        sd_bus_message *got_properties, *got_executors; /* the latest of each */
        sd_bus_slot *slots[3], *calls[4];
        sd_event_source *timer, *again;
        unsigned refused; /* syncs in a row that a busy masterd has cut short */
        unsigned missed;  /* and those where the job was not on the bus */
        struct watch *prev, *next;
};

static void drop_slots(struct watch *w) {
        for (size_t i = 0; i < ELEMENTSOF(w->slots); i++)
                w->slots[i] = sd_bus_slot_unref(w->slots[i]);
        for (size_t i = 0; i < ELEMENTSOF(w->calls); i++)
                w->calls[i] = sd_bus_slot_unref(w->calls[i]);
}

void watch_free(struct watch *w) {
        if (!w)
                return;
        if (w->prev) /* utlist's: of one that is in the list */
                DL_DELETE(w->cli->watches, w);
        drop_slots(w);
        bus_owner_free(w->owner);
        sd_event_source_disable_unref(w->timer);
        sd_event_source_disable_unref(w->again);
        job_properties_done(&w->properties);
        executors_free(w->executors, w->n_executors);
        sd_bus_message_unref(w->got_properties);
        sd_bus_message_unref(w->got_executors);
        free(w);
}

const struct job_ref *watch_job(const struct watch *w) {
        return &w->job;
}

const struct job_properties *watch_properties(const struct watch *w) {
        return &w->properties;
}

const struct executor *watch_executors(const struct watch *w, size_t *ret_n) {
        *ret_n = w->n_executors;
        return w->executors;
}

void watch_replies(const struct watch *w, sd_bus_message **ret_properties, sd_bus_message **ret_executors) {
        *ret_properties = w->got_properties;
        *ret_executors = w->got_executors;
}

/* Instead of the one before. */
static void keep(sd_bus_message **got, sd_bus_message *m) {
        sd_bus_message_unref(*got);
        *got = sd_bus_message_ref(m);
}

bool watch_ended(const struct watch *w) {
        return w->properties.state && job_state_exit(w->properties.state) >= 0;
}

static void quit(struct watch *w, int status) {
        (void)sd_event_exit(w->event, status);
}

static int still_away(sd_event_source *s, uint64_t usec, void *userdata) {
        struct watch *w = userdata;

        cli_fail(w->cli,
                 "masterd has been away for a minute; job %" PRIu32
                 " is not stopped by that. Check with: systemctl status primus-masterd",
                 w->job.number);
        quit(w, CLI_UNREACHABLE);
        return 0;
}

static void be_away(struct watch *w) {
        if (w->is_away)
                return;
        w->is_away = true;
        if (sd_event_add_time_relative(w->event, &w->timer, CLOCK_BOOTTIME, AWAY_MAX, 0, still_away, w) < 0)
                quit(w, cli_oom(w->cli));
        if (w->handlers->away)
                w->handlers->away(w, w->userdata);
}

static void went_away(struct watch *w) {
        /* Without its bus nobody hears of it coming back: that is bus_gone()'s. */
        if (sd_bus_is_open(w->cli->bus) > 0)
                be_away(w);
}

static int on_again(sd_event_source *s, uint64_t usec, void *userdata) {
        struct watch *w = userdata;

        w->again = sd_event_source_disable_unref(w->again);
        watch_refresh(w);
        return 0;
}

/* Several watches of one user ask side by side, and only one of them may have a question at the store: those
 * that were refused together do not come back together. */
static uint64_t again_pause(struct watch *w) {
        return cli_busy_pause(w->refused++) * (4 + w->job.number % 8) / 4;
}

static void sync_later(struct watch *w) {
        if (!w->again && sd_event_add_time_relative(w->event, &w->again, CLOCK_BOOTTIME, again_pause(w), 0,
                                                    on_again, w) < 0)
                quit(w, cli_oom(w->cli));
}

static int on_job_again(sd_bus_message *m, void *userdata, sd_bus_error *ret_error);

/* A job that ended before masterd was started comes onto the bus only when it is asked for. */
static void ask_for_job(struct watch *w) {
        w->calls[3] = sd_bus_slot_unref(w->calls[3]);
        if (sd_bus_call_method_async(w->cli->bus, &w->calls[3], MASTER_NAME, MASTER_PATH, MASTER_MANAGER,
                                     "GetJob", on_job_again, w, "u", w->job.number) < 0)
                quit(w, cli_oom(w->cli));
}

/* Another masterd has it now, though nobody has told us yet that the one before is gone. */
static bool is_not_on_bus(const sd_bus_error *error) {
        return sd_bus_error_has_name(error, SD_BUS_ERROR_UNKNOWN_OBJECT);
}

void watch_call_failed(struct watch *w, const sd_bus_error *error) {
        if (w->cli->agent && sd_bus_is_open(w->cli->bus) <= 0)
                return; /* everything is asked again by the next connection */
        if (cli_error_busy(error))
                sync_later(w);
        else if (is_not_on_bus(error) && w->calls[3])
                return; /* it is asked for already, and everything is read behind that */
        else if (is_not_on_bus(error) && w->missed++ < MISSED_MAX)
                ask_for_job(w);
        else if (sd_bus_error_has_name(error, SD_BUS_ERROR_DISCONNECTED) || !cli_error_unreachable(error, 0))
                quit(w, cli_call_failed(w->cli, error, -EIO, NULL, &w->job));
        else /* it has answered before, if only where the job is: being started again, it comes back */
                went_away(w);
}

int watch_call(struct watch *w, sd_bus_message *m, sd_bus_message_handler_t reply, void *userdata,
               uint64_t timeout) {
        return sd_bus_call_async(w->cli->bus, NULL, m, reply, userdata, timeout);
}

/* Tells the handlers when the last reply of a sync has come. */
static void replied(struct watch *w) {
        if (--w->replies > 0)
                return;
        w->refused = w->missed = 0;
        if (w->handlers->synced)
                w->handlers->synced(w, w->userdata);
}

static void take_properties(struct watch *w, sd_bus_message *m) {
        _cleanup_free_ char *before = w->properties.state ? strdup(w->properties.state) : NULL;
        int r = job_properties_read(m, &w->properties);

        if (r < 0) {
                quit(w, cli_bad_reply(w->cli, r));
                return;
        }
        if (w->properties.state && (!before || strcmp(before, w->properties.state) != 0) &&
            w->handlers->state)
                w->handlers->state(w, w->userdata);
}

static int on_get_all(sd_bus_message *m, void *userdata, sd_bus_error *ret_error) {
        struct watch *w = userdata;

        (void)ret_error;
        if (sd_bus_message_is_method_error(m, NULL))
                watch_call_failed(w, sd_bus_message_get_error(m));
        else {
                keep(&w->got_properties, m);
                take_properties(w, m);
                replied(w);
        }
        return 0;
}

static struct executor *find(struct watch *w, const char *role, uint32_t index) {
        for (size_t i = 0; i < w->n_executors; i++)
                if (w->executors[i].index == index && strcmp(w->executors[i].role, role) == 0)
                        return &w->executors[i];
        return NULL;
}

/* Puts e (taken) in the place of the older row of the same executor. */
static int update(struct watch *w, struct executor *e) {
        struct executor *old = find(w, e->role, e->index);

        if (old) {
                if (old->attempt == e->attempt && strcmp(old->state, e->state) == 0) {
                        executor_done(old);
                        *old = *e;
                        *e = (struct executor){ 0 };
                        return 0;
                }
                if (old->attempt > e->attempt)
                        return 0;
                executor_done(old);
        } else {
                if (w->n_executors == w->allocated) {
                        size_t bigger = w->allocated ? w->allocated * 2 : 16;
                        struct executor *p = realloc(w->executors, bigger * sizeof(*p));
                        if (!p)
                                return -ENOMEM;
                        w->executors = p;
                        w->allocated = bigger;
                }
                old = &w->executors[w->n_executors++];
        }
        *old = *e;
        *e = (struct executor){ 0 };
        if (w->handlers->executor)
                w->handlers->executor(w, old, w->userdata);
        return 0;
}

/* Every attempt: the latest are known better already, the earlier ones are told. */
static int on_attempts(sd_bus_message *m, void *userdata, sd_bus_error *ret_error) {
        struct watch *w = userdata;
        struct executor *list;
        size_t n;
        int r;

        (void)ret_error;
        if (sd_bus_message_is_method_error(m, NULL)) {
                watch_call_failed(w, sd_bus_message_get_error(m));
                return 0;
        }
        r = executors_read(m, &list, &n);
        if (r < 0) {
                quit(w, cli_bad_reply(w->cli, r));
                return 0;
        }
        for (size_t i = 0; i < n; i++) {
                const struct executor *now = find(w, list[i].role, list[i].index);

                if (now && list[i].attempt < now->attempt && w->handlers->executor)
                        w->handlers->executor(w, &list[i], w->userdata);
        }
        executors_free(list, n);
        replied(w);
        return 0;
}

static int ask_executors(struct watch *w, bool all, sd_bus_message_handler_t handler, sd_bus_slot **slot) {
        _cleanup_(sd_bus_message_unref_p) sd_bus_message *m = NULL;
        int r;

        if (cli_job_call(w->cli, &w->job, "ListExecutors", &m))
                return -ENOMEM;
        r = sd_bus_message_append(m, "b", (int)all);
        return r < 0 ? r : sd_bus_call_async(w->cli->bus, slot, m, handler, w, 0);
}

static int on_executors(sd_bus_message *m, void *userdata, sd_bus_error *ret_error) {
        struct watch *w = userdata;
        struct executor *list;
        bool earlier = false;
        size_t n;
        int r;

        (void)ret_error;
        if (sd_bus_message_is_method_error(m, NULL)) {
                watch_call_failed(w, sd_bus_message_get_error(m));
                return 0;
        }
        keep(&w->got_executors, m);
        r = executors_read(m, &list, &n);
        if (r < 0) {
                quit(w, cli_bad_reply(w->cli, r));
                return 0;
        }
        for (size_t i = 0; i < n && r >= 0; i++) {
                earlier |= list[i].attempt > 1;
                r = update(w, &list[i]);
        }
        executors_free(list, n);
        if (r >= 0 && w->what == WATCH_ATTEMPTS && earlier) {
                w->replies++;
                r = ask_executors(w, true, on_attempts, &w->calls[2]);
        }
        if (r < 0)
                quit(w, cli_oom(w->cli));
        replied(w);
        return 0;
}

static int sync_now(struct watch *w) {
        int r;

        for (size_t i = 0; i < ELEMENTSOF(w->calls); i++)
                w->calls[i] = sd_bus_slot_unref(w->calls[i]);
        w->replies = w->what != WATCH_STATE ? 2 : 1;
        if (w->what != WATCH_STATE) {
                r = ask_executors(w, false, on_executors, &w->calls[0]);
                if (r < 0)
                        return r;
        }
        return sd_bus_call_method_async(w->cli->bus, &w->calls[1], MASTER_NAME, w->job.path,
                                        "org.freedesktop.DBus.Properties", "GetAll", on_get_all, w, "s",
                                        MASTER_JOB);
}

/* masterd has come back and knows the job again. */
static int on_job_again(sd_bus_message *m, void *userdata, sd_bus_error *ret_error) {
        struct watch *w = userdata;

        (void)ret_error;
        w->calls[3] = sd_bus_slot_unref(w->calls[3]);
        if (sd_bus_message_is_method_error(m, NULL))
                watch_call_failed(w, sd_bus_message_get_error(m));
        else if (sync_now(w) < 0)
                quit(w, cli_oom(w->cli));
        return 0;
}

void watch_refresh(struct watch *w) {
        if (!w->is_away && sync_now(w) < 0)
                quit(w, cli_oom(w->cli));
}

static int on_properties_changed(sd_bus_message *m, void *userdata, sd_bus_error *ret_error) {
        struct watch *w = userdata;
        const char *interface;

        (void)ret_error;
        if (bus_owner_sent(w->owner, m) && sd_bus_message_read(m, "s", &interface) >= 0 &&
            strcmp(interface, MASTER_JOB) == 0)
                take_properties(w, m);
        return 0;
}

static int on_executor_changed(sd_bus_message *m, void *userdata, sd_bus_error *ret_error) {
        struct watch *w = userdata;
        const char *role, *state, *node;
        struct executor e = { .status = INT32_MIN }, *old;
        int r;

        (void)ret_error;
        if (!bus_owner_sent(w->owner, m))
                return 0;
        r = sd_bus_message_read(m, "suuss", &role, &e.index, &e.attempt, &state, &node);
        if (r < 0) {
                quit(w, cli_bad_reply(w->cli, r));
                return 0;
        }
        old = find(w, role, e.index);
        if (old)
                e.rank = old->rank;
        e.role = strdup(role);
        e.state = strdup(state);
        e.node = strdup(node);
        e.unit = strdup("");
        r = e.role && e.state && e.node && e.unit ? update(w, &e) : -ENOMEM;
        executor_done(&e);
        if (r < 0)
                quit(w, cli_oom(w->cli));
        return 0;
}

static void back_again(struct watch *w) {
        w->is_away = false;
        w->timer = sd_event_source_disable_unref(w->timer);
        ask_for_job(w);
}

static int on_owner_changed(sd_bus_message *m, void *userdata, sd_bus_error *ret_error) {
        struct watch *w = userdata;
        const char *name, *before, *now;

        (void)ret_error;
        if (!bus_itself_sent(m) || sd_bus_message_read(m, "sss", &name, &before, &now) < 0 ||
            strcmp(name, MASTER_NAME) != 0)
                return 0;
        if (!*now) {
                went_away(w);
                return 0;
        }
        back_again(w);
        return 0;
}

static int add_matches(struct watch *w) {
        int r;

        /* The bus daemon handles these in order, so the matches stand before the master sees a question, and
         * its owner is known before the first signal. */
        w->owner = bus_owner_free(w->owner);
        r = bus_owner_new(w->cli->bus, MASTER_NAME, NULL, NULL, &w->owner);
        if (r < 0)
                return r;
        r = sd_bus_match_signal_async(w->cli->bus, &w->slots[0], MASTER_NAME, w->job.path,
                                      "org.freedesktop.DBus.Properties", "PropertiesChanged",
                                      on_properties_changed, NULL, w);
        if (r >= 0 && w->what != WATCH_STATE)
                r = sd_bus_match_signal_async(w->cli->bus, &w->slots[1], MASTER_NAME, w->job.path, MASTER_JOB,
                                              "ExecutorChanged", on_executor_changed, NULL, w);
        if (r >= 0)
                r = sd_bus_add_match_async(
                        w->cli->bus, &w->slots[2],
                        "type='signal',sender='org.freedesktop.DBus',interface='org.freedesktop.DBus',"
                        "member='NameOwnerChanged',arg0='" MASTER_NAME "'",
                        on_owner_changed, NULL, w);
        return r;
}

int watch_new(struct cli *c, sd_event *event, const struct job_ref *job, enum watch_what what,
              const struct watch_handlers *handlers, void *userdata, struct watch **ret) {
        _cleanup_(watch_free_p) struct watch *w = malloc(sizeof(*w));
        int r;

        if (!w)
                return cli_oom(c);
        *w = (struct watch){
                .cli = c,
                .event = event,
                .job = *job,
                .what = what,
                .handlers = handlers,
                .userdata = userdata,
        };
        r = add_matches(w);
        if (r >= 0)
                r = sync_now(w);
        if (r < 0)
                return cli_fail(c, "cannot follow job %" PRIu32 ": %s", job->number, strerror(-r));
        DL_APPEND(c->watches, w);
        *ret = TAKE_PTR(w);
        return 0;
}

/* ---- the loop ---- */

static int attach_bus(struct cli *c, sd_event *event);

/* The agent is started again: another connection, by which everything is asked anew. */
static int on_rejoin(sd_event_source *s, uint64_t usec, void *userdata) {
        struct cli *c = userdata;
        sd_bus *bus = NULL;
        struct watch *w;
        int r = master_bus_open(&bus, &c->agent);

        if (r < 0 || !c->agent) { /* watches end the loop when it is away for too long */
                sd_bus_close_unref(bus);
                c->agent = true;
                (void)sd_event_source_set_time_relative(s, REJOIN_USEC);
                return sd_event_source_set_enabled(s, SD_EVENT_ONESHOT);
        }
        (void)sd_bus_detach_event(c->bus);
        sd_bus_unref(c->bus);
        c->bus = bus;
        c->rejoin = sd_event_source_disable_unref(c->rejoin);
        r = attach_bus(c, c->loop);
        DL_FOREACH (c->watches, w) {
                if (r >= 0)
                        r = add_matches(w);
                if (r >= 0)
                        back_again(w);
        }
        return r < 0 ? sd_event_exit(c->loop, cli_oom(c)) : 0;
}

/* Other commands than those that watch a job have nothing that could be asked anew. */
static int agent_gone(struct cli *c) {
        struct watch *w;

        if (!c->watches) {
                cli_fail(
                        c,
                        "this host's agent has ended the connection to the master: it is being started again, or "
                        "this did not read what it was told");
                return sd_event_exit(c->loop, CLI_UNREACHABLE);
        }
        DL_FOREACH (c->watches, w) {
                drop_slots(w);
                be_away(w);
        }
        return sd_event_add_time_relative(c->loop, &c->rejoin, CLOCK_BOOTTIME, REJOIN_USEC, 0, on_rejoin, c);
}

static int bus_gone(sd_bus_message *m, void *userdata, sd_bus_error *ret_error) {
        struct cli *c = userdata;

        (void)m;
        (void)ret_error;
        if (c->agent)
                return agent_gone(c);
        cli_fail(c, "the connection to the system bus%s%s was lost", c->host ? " of " : "",
                 c->host ? c->host : "");
        (void)sd_event_exit(c->loop, CLI_UNREACHABLE);
        return 0;
}

static int attach_bus(struct cli *c, sd_event *event) {
        int r = sd_bus_attach_event(c->bus, event, SD_EVENT_PRIORITY_NORMAL);

        return r < 0 ? r
                     : sd_bus_match_signal_async(c->bus, NULL, NULL, "/org/freedesktop/DBus/Local",
                                                 "org.freedesktop.DBus.Local", "Disconnected", bus_gone, NULL,
                                                 c);
}

int watch_loop_new(struct cli *c, sd_event **ret) {
        sd_event *event = NULL;
        int r;

        r = cli_connect(c);
        if (r)
                return r;
        r = sd_event_new(&event);
        if (r >= 0)
                r = attach_bus(c, event);
        if (r < 0) {
                sd_event_unref(event);
                return cli_fail(c, "cannot make an event loop: %s", strerror(-r));
        }
        *ret = c->loop = event;
        return 0;
}
