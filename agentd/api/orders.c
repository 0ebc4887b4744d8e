/* SPDX-License-Identifier: Apache-2.0 */
/* What masterd may call, and nothing else: the vtables of org.primus.Link1 on agentd's side. Invariant: an
 * order whose term or epoch is not the current one changes nothing. */
#include "agentd/api/orders.h"

#include <signal.h>
#include <string.h>

#include "agentd/core/manager.h"
#include "agentd/executors/units.h"
#include "agentd/host/hostwatch.h"
#include "agentd/link/link.h"
#include "agentd/relay/captures.h"
#include "agentd/relay/data.h"
#include "agentd/relay/finds.h"
#include "agentd/relay/logs.h"
#include "agentd/relay/traces.h"
#include "agentd/session/sessions.h"
#include "agentd/unit/systemd.h"
#include "lib/base/log.h"
#include "lib/base/utf8.h"
#include "lib/unit/admission.h"
#include "lib/wire/skip.h"

/* > 0: go on; otherwise the handler's result. */
static int fenced(struct manager *m, uint64_t term, uint64_t epoch, sd_bus_error *error) {
        if (fence_accepts(&m->fence, term, epoch))
                return 1;
        return sd_bus_error_setf(
                error, LINK_ERROR_STALE,
                "node %s follows term %llu, epoch %llu; the order is of term %llu, epoch %llu", m->node,
                (unsigned long long)m->fence.term, (unsigned long long)m->fence.epoch,
                (unsigned long long)term, (unsigned long long)epoch);
}

static int malformed(int r, sd_bus_error *error) {
        return r == -ENOMEM ? r
                            : sd_bus_error_set(error, SD_BUS_ERROR_INVALID_ARGS,
                                               "the message is not within the bounds of the protocol");
}

/* What an order to one executor begins with. */
struct head {
        uint64_t term, epoch;
        struct executor_id id;
};

/* As the other functions that read: 1 when it is there. */
static int read_head(sd_bus_message *call, struct head *ret) {
        int r = sd_bus_message_read(call, "tt", &ret->term, &ret->epoch);

        return r > 0 ? executor_id_read(call, &ret->id) : r;
}

/* The order was read with this result. > 0: go on; otherwise the handler's. */
static int accepted(struct manager *m, int r, const struct head *h, sd_bus_error *error) {
        return r <= 0 ? malformed(r, error) : fenced(m, h->term, h->epoch, error);
}

/* An error whose text may quote what a user wrote, cut. */
static int answer_error(sd_bus_message *call, const char *name, const char *text) {
        char clean[1024];

        text = text ?: "";
        return sd_bus_reply_method_errorf(call, name, "%s",
                                          utf8_clean(text, strlen(text), clean, sizeof(clean)));
}

/* An empty answer, where one is wanted. */
static int reply_empty(sd_bus_message *call) {
        int r = sd_bus_reply_method_return(call, NULL);

        return r < 0 ? r : 1;
}

static void on_started(const struct start_result *result, void *userdata) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *call = userdata, *reply = NULL;
        int r;

        /* Without an answer masterd would wait for an hour. */
        if (result->error)
                r = answer_error(call, result->error, result->message);
        else if ((r = sd_bus_message_new_method_return(call, &reply)) >= 0 &&
                 (r = sd_bus_message_append_array(reply, 'y', result->invocation.bytes,
                                                  sizeof(result->invocation.bytes))) >= 0 &&
                 (r = sd_bus_message_append(reply, "ta{sv}", result->started_real, 0)) >= 0)
                r = sd_bus_send(NULL, reply, NULL);
        if (r < 0) /* the link is gone; masterd learns it from the next registration */
                log_full(LOG_DEBUG, r, NULL, "Cannot answer a start");
}

static int method_start(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        _cleanup_(start_order_done) struct start_order order = { 0 };
        struct manager *m = userdata;
        _cleanup_free_ char *why = NULL;
        uint64_t term, epoch;
        const char *name;
        int r;

        r = sd_bus_message_read(call, "tt", &term, &epoch);
        if (r > 0)
                r = start_order_read(call, &order);
        if (r > 0)
                r = start_extra_read(call, &order.extra);
        if (r <= 0)
                return malformed(r, error);
        r = fenced(m, term, epoch, error);
        if (r <= 0)
                return r;
        name = admission_check(&order, m->node, &m->settings.serve, &why);
        if (name)
                return sd_bus_error_set(error, name, why ?: "the order is not acceptable");
        log_full(LOG_INFO, 0, &(struct log_fields){ .job = order.id.job, .role = order.id.role },
                 "Starting job %u, %s %u, attempt %u", order.id.job, order.id.role, order.id.index,
                 order.id.attempt);
        units_start(m->units, term, &order, on_started, sd_bus_message_ref(call));
        return 1;
}

static int method_stop(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        struct manager *m = userdata;
        struct head h;
        uint64_t grace;
        const char *reason;
        int r;

        r = read_head(call, &h);
        if (r > 0)
                r = sd_bus_message_read(call, "ts", &grace, &reason);
        r = accepted(m, r, &h, error);
        if (r <= 0)
                return r;
        if (units_stop(m->units, &h.id, grace, reason) < 0)
                return sd_bus_error_setf(error, LINK_ERROR_UNKNOWN,
                                         "host %s has neither a unit nor an exit record of it", m->node);
        return reply_empty(call);
}

static int method_signal(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        struct manager *m = userdata;
        struct head h;
        int32_t number;
        int r;

        r = read_head(call, &h);
        if (r > 0)
                r = sd_bus_message_read(call, "i", &number);
        if (r > 0 && (number < 1 || number > SIGRTMAX))
                r = -EBADMSG;
        r = accepted(m, r, &h, error);
        if (r <= 0)
                return r;
        r = units_signal(m->units, &h.id, number);
        if (r < 0 && r != -ENOENT) /* it has ended: its end is reported */
                log_full(LOG_WARNING, r, &(struct log_fields){ .job = h.id.job, .role = h.id.role },
                         "Cannot send a signal to job %u, %s %u", h.id.job, h.id.role, h.id.index);
        return reply_empty(call);
}

static void on_limits(const char *error, const char *text, void *userdata) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *call = userdata;
        int r = error ? answer_error(call, error, text) : sd_bus_reply_method_return(call, NULL);

        if (r < 0)
                log_full(LOG_DEBUG, r, NULL, "Cannot answer about limits");
}

static int method_set_limits(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        struct manager *m = userdata;
        struct unit_limits limits;
        struct head h;
        int r;

        r = read_head(call, &h);
        if (r > 0)
                r = unit_limits_read(call, &limits);
        r = accepted(m, r, &h, error);
        if (r <= 0)
                return r;
        r = units_set_limits(m->units, &h.id, &limits, on_limits, sd_bus_message_ref(call));
        if (r >= 0)
                return 1;
        sd_bus_message_unref(call);
        return r == -ENOENT
                       ? sd_bus_error_setf(error, LINK_ERROR_UNKNOWN, "host %s has no unit of it", m->node)
                       : r;
}

static int method_set_rendezvous(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        _cleanup_(rendezvous_order_done) struct rendezvous_order order = {};
        struct manager *m = userdata;
        struct head h;
        int r;

        r = read_head(call, &h);
        if (r > 0)
                r = rendezvous_order_read(call, &order);
        r = accepted(m, r, &h, error);
        if (r <= 0)
                return r;
        r = units_set_rendezvous(m->units, &h.id, &order);
        if (r < 0 && r != -ENOENT)
                log_full(LOG_WARNING, r, &(struct log_fields){ .job = h.id.job, .role = h.id.role },
                         "Cannot tell job %u, %s %u who its peers are", h.id.job, h.id.role, h.id.index);
        return reply_empty(call);
}

static void on_frozen(int r, const char *why, void *userdata) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *call = userdata;

        if (r < 0)
                (void)answer_error(call, LINK_ERROR_REFUSED, why);
        else
                (void)sd_bus_reply_method_return(call, NULL);
}

static int method_freeze(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        struct manager *m = userdata;
        struct head h;
        int r, freeze;

        r = read_head(call, &h);
        if (r > 0)
                r = sd_bus_message_read(call, "b", &freeze);
        r = accepted(m, r, &h, error);
        if (r <= 0)
                return r;
        r = units_freeze(m->units, &h.id, freeze, on_frozen, sd_bus_message_ref(call));
        if (r >= 0)
                return 1;
        sd_bus_message_unref(call);
        if (r == -EALREADY)
                return reply_empty(call);
        if (r == -ENOENT)
                return sd_bus_error_setf(error, LINK_ERROR_UNKNOWN, "host %s has no unit of it", m->node);
        if (r == -EAGAIN)
                return sd_bus_error_setf(error, LINK_ERROR_BUSY, "it does not run on %s at the moment",
                                         m->node);
        return r;
}

static int method_capture(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        struct manager *m = userdata;
        struct head h;
        int r = accepted(m, read_head(call, &h), &h, error);

        return r <= 0 ? r : captures_order(m->captures, &h.id, call, error);
}

static int method_trace(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        struct manager *m = userdata;
        struct head h;
        int r = accepted(m, read_head(call, &h), &h, error);

        return r <= 0 ? r : traces_order(m->traces, &h.id, call, error);
}

static int method_find_in_log(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        struct manager *m = userdata;
        struct head h;
        int r = accepted(m, read_head(call, &h), &h, error);

        if (r <= 0)
                return r;
        r = finds_order(m->finds, &h.id, call);
        return r < 0 ? malformed(r, error) : 1;
}

static int method_drop_job(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        struct manager *m = userdata;
        const void *bytes;
        sd_id128_t uid;
        uint64_t term;
        uint32_t job;
        size_t n;
        int r;

        if ((r = sd_bus_message_read(call, "t", &term)) <= 0 ||
            (r = sd_bus_message_read_array(call, 'y', &bytes, &n)) <= 0 || n != sizeof(uid.bytes) ||
            (r = sd_bus_message_read(call, "u", &job)) <= 0)
                return malformed(r, error);
        r = fenced(m, term, 0, error);
        if (r <= 0)
                return r;
        memcpy(uid.bytes, bytes, n);
        units_drop_job(m->units, uid, job);
        return reply_empty(call);
}

static int method_power(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        struct manager *m = userdata;
        const char *action, *reason;
        uint64_t term, epoch;
        int r = sd_bus_message_read(call, "ttss", &term, &epoch, &action, &reason);

        if (r <= 0)
                return malformed(r, error);
        r = fenced(m, term, epoch, error);
        if (r <= 0)
                return r;
        log_notice("masterd asks for: %s%s%s", action, *reason ? ": " : "", reason);
        if (strcmp(action, "reboot") != 0 && strcmp(action, "poweroff") != 0)
                return sd_bus_error_setf(error, LINK_ERROR_REFUSED, "host %s cannot do '%.*s'", m->node,
                                         utf8_fit(action, 32), action);
        starter_tell(units_systemd(m->units), "Power", "s", action);
        return reply_empty(call);
}

static int method_exit_committed(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        struct manager *m = userdata;
        struct executor_id id;
        int r = executor_id_read(call, &id);

        if (r <= 0)
                return malformed(r, error);
        units_committed(m->units, &id);
        return reply_empty(call);
}

static int method_metrics_kept(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        struct manager *m = userdata;
        uint64_t seq;
        int r = sd_bus_message_read_basic(call, 't', &seq);

        if (r <= 0)
                return malformed(r, error);
        data_metrics_kept(m->data, seq);
        return reply_empty(call);
}

/* Its wall clock, where it says so. */
static int read_ack_extra(sd_bus_message *m, const char *key, void *userdata) {
        uint64_t *real = userdata;

        return strcmp(key, "now") == 0 ? sd_bus_message_read(m, "v", "t", real) : message_skip(m, "v");
}

static int method_heartbeat_ack(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        struct manager *m = userdata;
        uint64_t seq, real = 0, sent;
        int r = sd_bus_message_read(call, "t", &seq);

        if (r > 0 && link_read_entries(call, read_ack_extra, &real) < 0)
                r = -EBADMSG;
        if (r <= 0)
                return malformed(r, error);
        sent = link_heartbeat_acked(m->link, seq);
        if (sent > 0 && real > 0)
                hostwatch_clock(m->watch, real, sent);
        return reply_empty(call);
}

static int method_grant(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        struct manager *m = userdata;
        int r = data_grant(m->data, call);

        return r < 0 ? malformed(r, error) : reply_empty(call);
}

static int method_feed_control(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        struct manager *m = userdata;
        int r = data_control(m->data, call);

        return r < 0 ? malformed(r, error) : reply_empty(call);
}

static int method_feed_source(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        struct manager *m = userdata;
        int r = data_source(m->data, call);

        return r < 0 ? malformed(r, error) : reply_empty(call);
}

static int method_read_log(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        struct manager *m = userdata;
        int r = logs_read(m->logs, call);

        if (r == -EBUSY)
                return sd_bus_error_setf(error, LINK_ERROR_BUSY, "too many are reading logs on host %s",
                                         m->node);
        return r < 0 ? malformed(r, error) : 1;
}

/* ---- sessions ---- */

static int session_done(int r, sd_bus_message *call, sd_bus_error *error) {
        return r < 0 && !sd_bus_error_is_set(error) ? malformed(r, error) : r;
}

#define OPEN_METHOD(name, function)                                                                          \
        static int name(sd_bus_message *call, void *userdata, sd_bus_error *error) {                         \
                struct manager *m = userdata;                                                                \
                uint64_t term, epoch;                                                                        \
                int r = sd_bus_message_read(call, "tt", &term, &epoch);                                      \
                                                                                                             \
                if (r <= 0)                                                                                  \
                        return malformed(r, error);                                                          \
                r = fenced(m, term, epoch, error);                                                           \
                return r <= 0 ? r : session_done(function(m->sessions, call, error), call, error);           \
        }
OPEN_METHOD(method_session_open, sessions_open)
OPEN_METHOD(method_artifacts_open, sessions_open_artifacts)

#define SESSION_METHOD(name, function)                                                                       \
        static int name(sd_bus_message *call, void *userdata, sd_bus_error *error) {                         \
                struct manager *m = userdata;                                                                \
                return session_done(function(m->sessions, call, error), call, error);                        \
        }
SESSION_METHOD(method_session_read, sessions_read)
SESSION_METHOD(method_session_write, sessions_write)
SESSION_METHOD(method_session_resize, sessions_resize)
SESSION_METHOD(method_session_close, sessions_close)

#define ORDER_SIGNATURE "((ayusuu)yuaayayaayasa(say)tttuasasaqttsssuayb)"

const sd_bus_vtable orders_vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_METHOD("Start", "tt" ORDER_SIGNATURE "a{sv}", "ayta{sv}", method_start, 0),
        SD_BUS_METHOD("Stop", "tt(ayusuu)tsa{sv}", "", method_stop, 0),
        SD_BUS_METHOD("Power", "ttssa{sv}", "", method_power, 0),
        SD_BUS_METHOD("Signal", "tt(ayusuu)ia{sv}", "", method_signal, SD_BUS_VTABLE_METHOD_NO_REPLY),
        SD_BUS_METHOD("SetLimits", "tt(ayusuu)bttta{sv}", "", method_set_limits, 0),
        SD_BUS_METHOD("SetRendezvous", "tt(ayusuu)tuaaya{sv}", "", method_set_rendezvous,
                      SD_BUS_VTABLE_METHOD_NO_REPLY),
        SD_BUS_METHOD("Freeze", "tt(ayusuu)ba{sv}", "", method_freeze, 0),
        SD_BUS_METHOD("Capture", "tt(ayusuu)ua{sv}", "a(uusssss)a{sv}", method_capture, 0),
        SD_BUS_METHOD("Trace", "tt(ayusuu)sta{sv}", "ta(stttat)a{sv}", method_trace, 0),
        SD_BUS_METHOD("FindInLog", "tt(ayusuu)ayuasa{sv}", "a(us)a{sv}", method_find_in_log, 0),
        SD_BUS_METHOD("DropJob", "tayua{sv}", "", method_drop_job, SD_BUS_VTABLE_METHOD_NO_REPLY),
        SD_BUS_METHOD("ExitCommitted", "(ayusuu)a{sv}", "", method_exit_committed,
                      SD_BUS_VTABLE_METHOD_NO_REPLY),
        SD_BUS_METHOD("HeartbeatAck", "ta{sv}", "", method_heartbeat_ack, SD_BUS_VTABLE_METHOD_NO_REPLY),
        SD_BUS_METHOD("MetricsKept", "ta{sv}", "", method_metrics_kept, SD_BUS_VTABLE_METHOD_NO_REPLY),
        SD_BUS_METHOD("Grant", "(ayusuu)ayba{sv}", "", method_grant, SD_BUS_VTABLE_METHOD_NO_REPLY),
        SD_BUS_METHOD("FeedControl", "(ayusuu)utta{sv}", "", method_feed_control,
                      SD_BUS_VTABLE_METHOD_NO_REPLY),
        SD_BUS_METHOD("FeedSource", "(ayusuu)usa{sv}", "", method_feed_source, SD_BUS_VTABLE_METHOD_NO_REPLY),
        SD_BUS_VTABLE_END,
};

const sd_bus_vtable bulk_orders_vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_METHOD("ReadLog", "(ayusuu)ayuta{sv}", "ayayba{sv}", method_read_log, 0),
        SD_BUS_METHOD("ArtifactsOpen", "ttuayuuaaya{sv}", "a{sv}", method_artifacts_open, 0),
        SD_BUS_METHOD("SessionOpen", "tt(ayusuu)usbqqqaayaaya{sv}", "a{sv}", method_session_open, 0),
        SD_BUS_METHOD("SessionRead", "uta{sv}", "a(yay)bisa{sv}", method_session_read, 0),
        SD_BUS_METHOD("SessionWrite", "uayba{sv}", "a{sv}", method_session_write, 0),
        SD_BUS_METHOD("SessionResize", "uqqa{sv}", "", method_session_resize, SD_BUS_VTABLE_METHOD_NO_REPLY),
        SD_BUS_METHOD("SessionClose", "ua{sv}", "", method_session_close, SD_BUS_VTABLE_METHOD_NO_REPLY),
        SD_BUS_VTABLE_END,
};
