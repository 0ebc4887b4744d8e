/* SPDX-License-Identifier: Apache-2.0 */
/* Captures under way. Invariant: each is answered once, in time: one whose look hangs, with what it has found
 * up to then. */
#include "agentd/relay/captures.h"

#include <signal.h>
#include <string.h>
#include <utlist.h>

#include "agentd/capture/found.h"
#include "agentd/observe/records.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/unitname.h"
#include "lib/unit/files.h"
#include "lib/wire/skip.h"

#define FLAG_PYTHON 1u
/* At once. Looks that hang are counted by the starter. */
#define CAPTURES_MAX 8u
#define LOOK_USEC (8 * USEC_PER_SEC)

struct capturing {
        struct captures *captures;
        struct executor_id id;
        sd_bus_message *call;
        sd_bus_slot *asked;
        struct records *records;
        struct capture found;
        sd_event_source *deadline;
        struct capturing *next, *prev;
};

struct captures {
        sd_event *event;
        struct units *units;
        struct observer *observer;
        struct capturing *list;
        unsigned n;
};

static void capturing_free(struct capturing *c) {
        DL_DELETE(c->captures->list, c);
        c->captures->n--;
        sd_bus_slot_unref(c->asked);
        records_free(c->records);
        capture_done(&c->found);
        sd_event_source_disable_unref(c->deadline);
        sd_bus_message_unref(c->call);
        free(c);
}

int captures_new(sd_event *event, struct units *units, struct observer *observer, struct captures **ret) {
        struct captures *c = calloc(1, sizeof(*c));

        if (!c)
                return -ENOMEM;
        *c = (struct captures){ .event = sd_event_ref(event), .units = units, .observer = observer };
        *ret = c;
        return 0;
}

void captures_free(struct captures *c) {
        if (!c)
                return;
        while (c->list)
                capturing_free(c->list);
        sd_event_unref(c->event);
        free(c);
}

/* ---- the answer ---- */

static void refuse_capture(struct capturing *c, const char *name, const char *text) {
        (void)sd_bus_reply_method_errorf(c->call, name, "%s", text);
        capturing_free(c);
}

static void answer_capture(struct capturing *c, const char *note) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        int r;

        if (note && !c->found.note)
                c->found.note = strdup(note);
        if ((r = sd_bus_message_new_method_return(c->call, &reply)) >= 0 &&
            (r = capture_append(reply, &c->found)) >= 0)
                r = sd_bus_send(NULL, reply, NULL);
        if (r < 0) /* the link is gone */
                log_full(LOG_DEBUG, r, NULL, "Cannot answer a capture");
        capturing_free(c);
}

static int on_deadline(sd_event_source *s, uint64_t usec, void *userdata) {
        answer_capture(userdata,
                       "the kernel does not answer about one of the threads, which is usual where one hangs "
                       "in it; this is what was found before");
        return 0;
}

/* ---- the look ---- */

static void on_record(int r, const struct stream_item *item, void *userdata) {
        struct capturing *c = userdata;

        if (item)
                r = found_add(&c->found, item);
        if (!item)
                answer_capture(c,
                               r < 0 ? "the look at its threads was cut short; this is what was found before"
                                     : NULL);
        else if (r < 0)
                answer_capture(c, "this host's agent is short of memory; this is what was found before");
}

static void on_pipe(int r, const char *error, int fd, void *userdata) {
        struct capturing *c = userdata;

        c->asked = sd_bus_slot_unref(c->asked);
        if (r >= 0) {
                r = records_new(c->captures->event, fd, on_record, c, &c->records);
                error = r < 0 ? strerror(-r) : NULL;
        }
        if (r < 0)
                refuse_capture(c, r == -ENOENT ? LINK_ERROR_UNKNOWN : LINK_ERROR_BUSY,
                               r == -ENOENT ? "it has ended meanwhile, or not begun" : error);
}

static int begin_capture(struct capturing *c, int signal) {
        struct unit_facts facts;
        char unit[UNIT_NAME_MAX], work[WORK_NAME_MAX];
        int r;

        executor_unit_name(c->id.job, c->id.role, c->id.index, c->id.attempt, unit);
        r = units_find(c->captures->units, unit, &facts);
        if (r < 0 || facts.state > EXECUTOR_STOPPING)
                return -ENOENT;
        r = observer_capture(c->captures->observer, unit, work_name(c->id.job, c->id.job_uid, work), signal,
                             on_pipe, c, &c->asked);
        return r < 0 ? r
                     : sd_event_add_time_relative(c->captures->event, &c->deadline, CLOCK_MONOTONIC,
                                                  LOOK_USEC, 0, on_deadline, c);
}

/* ---- the order ---- */

static int read_entry(sd_bus_message *call, const char *key, void *userdata) {
        uint32_t *number = userdata;

        return strcmp(key, "signal") == 0 ? sd_bus_message_read(call, "v", "u", number)
                                          : message_skip(call, "v");
}

static int read_extra(sd_bus_message *call, int *ret_signal) {
        uint32_t number = 0;

        if (link_read_entries(call, read_entry, &number) < 0 || number > (uint32_t)SIGRTMAX ||
            number == SIGKILL || number == SIGSTOP)
                return -EBADMSG;
        *ret_signal = (int)number;
        return 0;
}

int captures_order(struct captures *captures, const struct executor_id *id, sd_bus_message *call,
                   sd_bus_error *error) {
        struct capturing *c;
        uint32_t flags;
        int signal, r = sd_bus_message_read_basic(call, 'u', &flags);

        if (r <= 0 || read_extra(call, &signal) < 0)
                return sd_bus_error_set(error, SD_BUS_ERROR_INVALID_ARGS,
                                        "the message is not within the bounds of the protocol");
        if (captures->n >= CAPTURES_MAX)
                return sd_bus_error_set(error, LINK_ERROR_BUSY,
                                        "too many are looking at executors of this host; try again later");
        c = calloc(1, sizeof(*c));
        if (!c)
                return -ENOMEM;
        *c = (struct capturing){ .captures = captures, .id = *id, .call = sd_bus_message_ref(call) };
        DL_APPEND(captures->list, c);
        captures->n++;
        r = begin_capture(c, flags & FLAG_PYTHON ? signal : 0);
        if (r >= 0)
                return 1;
        capturing_free(c);
        return r == -ENOENT ? sd_bus_error_set(error, LINK_ERROR_UNKNOWN, "this host has no unit of it") : r;
}
