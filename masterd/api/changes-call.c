/* SPDX-License-Identifier: Apache-2.0 */
/* org.primus.Master1.Manager: Changes, which waits for the next one. Invariant: what is told is on disk, as
 * with signals, and a call waits no longer than it said. */
#include <inttypes.h>
#include <string.h>
#include <utlist.h>

#include "lib/base/clock.h"
#include "lib/base/parse.h"
#include "lib/base/try.h"
#include "lib/wire/errors.h"
#include "masterd/api/api-parts.h"
#include "masterd/api/api.h"
#include "masterd/api/changes-call.h"
#include "masterd/api/options.h"
#include "masterd/caller/reply.h"
#include "masterd/core/changes.h"
#include "masterd/core/manager.h"

#define WAIT_MAX (20 * USEC_PER_SEC)
#define WAITS_MAX 2048u
#define WAITS_PER_USER 16u
#define TOLD_MAX 1000u /* jobs and hosts; whoever has missed more lists them */
/* What changes together is told together. */
#define TOGETHER_USEC (20 * USEC_PER_MSEC)

/* "TERM.NUMBER": what is counted in one term of masterd's says nothing in another. */
#define MARK_MAX 44u

struct change_wait {
        struct change_wait *prev, *next;
        struct change_waits *waits;
        sd_bus_message *call;
        sd_event_source *timer;
        uint64_t since; /* of this term */
        uint32_t uid;
};

struct change_waits {
        struct manager *manager;
        struct change_wait *list;
        sd_event_source *wake;
        unsigned n;
        bool armed;
};

static char *mark_now(const struct manager *m, char buf[static MARK_MAX]) {
        snprintf(buf, MARK_MAX, "%" PRIu64 ".%" PRIu64, m->term, changes_now(m->changes));
        return buf;
}

/* The number of a mark of this term; false: it is of another one, or none. */
static bool mark_parse(const struct manager *m, const char *text, uint64_t *ret) {
        const char *point = strchr(text, '.');
        _cleanup_free_ char *term = point ? strndup(text, (size_t)(point - text)) : NULL;
        uint64_t value;

        return term && parse_u64(term, 0, UINT64_MAX, &value) >= 0 && value == m->term &&
               parse_u64(point + 1, 0, UINT64_MAX, ret) >= 0;
}

/* ---- answers ---- */

struct telling {
        sd_bus_message *reply;
        bool nodes;
};

static int count_one(const struct change *x, void *userdata) {
        return ++*(unsigned *)userdata > TOLD_MAX ? -E2BIG : 0;
}

static int tell_one(const struct change *x, void *userdata) {
        const struct telling *t = userdata;

        if (t->nodes != (x->node != NULL))
                return 0;
        return x->node ? sd_bus_message_append(t->reply, "s", x->node)
                       : sd_bus_message_append(t->reply, "u", x->job);
}

static int append_list(sd_bus_message *reply, struct manager *m, uint64_t since, bool reset, bool nodes) {
        struct telling t = { reply, nodes };

        TRY(sd_bus_message_open_container(reply, 'a', nodes ? "s" : "u"));
        TRY(reset ? 0 : changes_each(m->changes, since, tell_one, &t));
        return sd_bus_message_close_container(reply);
}

static int append_answer(sd_bus_message *reply, struct manager *m, uint64_t since, bool reset) {
        char mark[MARK_MAX];

        TRY(sd_bus_message_append(reply, "sb", mark_now(m, mark), reset));
        TRY(append_list(reply, m, since, reset, false));
        return append_list(reply, m, since, reset, true);
}

/* since is of this term, or (reset) says nothing. */
static int answer_changes(struct manager *m, sd_bus_message *call, uint64_t since, bool reset) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        unsigned n = 0;

        reset = reset || changes_each(m->changes, since, count_one, &n) < 0;
        TRY(sd_bus_message_new_method_return(call, &reply));
        TRY(append_answer(reply, m, since, reset));
        return reply_send(reply);
}

/* ---- waiting ---- */

static void wait_free(struct change_wait *w) {
        DL_DELETE(w->waits->list, w);
        w->waits->n--;
        sd_event_source_disable_unref(w->timer);
        sd_bus_message_unref(w->call);
        free(w);
}

static void wait_ends(struct change_wait *w) {
        struct manager *m = w->waits->manager;

        (void)answer_changes(m, w->call, w->since, !changes_known(m->changes, w->since));
        wait_free(w);
}

static int on_time(sd_event_source *s, uint64_t usec, void *userdata) {
        wait_ends(userdata);
        return 0;
}

static int on_wake(sd_event_source *s, uint64_t usec, void *userdata) {
        struct change_waits *waits = userdata;
        struct change_wait *w, *next;

        waits->armed = false;
        DL_FOREACH_SAFE (waits->list, w, next)
                if (w->since < changes_now(waits->manager->changes))
                        wait_ends(w);
        return 0;
}

void changes_call_wake(struct manager *m) {
        struct change_waits *waits = m->api->change_waits;

        if (!waits || !waits->list || waits->armed)
                return;
        waits->armed = true;
        (void)sd_event_source_set_time_relative(waits->wake, TOGETHER_USEC);
        (void)sd_event_source_set_enabled(waits->wake, SD_EVENT_ONESHOT);
}

static int wait_begin(struct change_waits *waits, sd_bus_message *call, uint32_t uid, uint64_t since,
                      uint64_t wait, sd_bus_error *error) {
        struct change_wait *w;
        unsigned n = 0;
        int r;

        DL_FOREACH (waits->list, w)
                n += w->uid == uid;
        if (n >= WAITS_PER_USER || waits->n >= WAITS_MAX)
                return sd_bus_error_set(error, ERROR_BUSY, "Too many wait for changes already");
        w = calloc(1, sizeof(*w));
        if (!w)
                return -ENOMEM;
        *w = (struct change_wait){
                .waits = waits, .call = sd_bus_message_ref(call), .since = since, .uid = uid
        };
        DL_APPEND(waits->list, w);
        waits->n++;
        r = sd_event_add_time_relative(waits->manager->event, &w->timer, CLOCK_BOOTTIME, MIN(wait, WAIT_MAX),
                                       0, on_time, w);
        if (r < 0)
                wait_free(w);
        return r;
}

/* ---- the call ---- */

static const struct call_option no_options[] = { { NULL } };

static int find_changes(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        struct manager *m = userdata;
        uint64_t wait, count;
        const char *since;

        TRY(sd_bus_message_read(call, "st", &since, &wait));
        TRY(options_read(call, "Changes", "option", no_options, NULL, error));
        if (!*since)
                return answer_changes(m, call, changes_now(m->changes), false);
        if (!mark_parse(m, since, &count) || !changes_known(m->changes, count))
                return answer_changes(m, call, 0, true);
        if (wait == 0 || count < changes_now(m->changes))
                return answer_changes(m, call, count, false);
        return wait_begin(m->api->change_waits, call, uid, count, wait, error);
}

int api_on_changes(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        return api_with_caller(userdata, call, find_changes, error);
}

/* ---- life ---- */

int changes_call_start(struct manager *m) {
        struct change_waits *waits = calloc(1, sizeof(*waits));
        int r;

        if (!waits)
                return -ENOMEM;
        m->api->change_waits = waits;
        waits->manager = m;
        r = sd_event_add_time(m->event, &waits->wake, CLOCK_BOOTTIME, 0, USEC_PER_MSEC, on_wake, waits);
        return r < 0 ? r : sd_event_source_set_enabled(waits->wake, SD_EVENT_OFF);
}

void changes_call_stop(struct manager *m) {
        struct change_waits *waits = TAKE_PTR(m->api->change_waits);

        if (!waits)
                return;
        while (waits->list)
                wait_free(waits->list);
        sd_event_source_disable_unref(waits->wake);
        free(waits);
}
