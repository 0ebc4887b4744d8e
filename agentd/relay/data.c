/* SPDX-License-Identifier: Apache-2.0 */
/* Feed and bundles, joined to the link. Invariant: every transfer that asked for bytes gets exactly one
 * answer; while the second connection is down, it waits. */
#include "agentd/relay/data.h"

#include <string.h>
#include <utlist.h>

#include "agentd/feed/bundles.h"
#include "agentd/feed/final.h"
#include "agentd/feed/server.h"
#include "agentd/relay/metrics.h"
#include "agentd/unit/systemd.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/try.h"
#include "lib/base/unitname.h"
#include "lib/unit/files.h"

#define FETCH_USEC (60 * USEC_PER_SEC)
#define RESULT_USEC UINT64_MAX /* as long as the link is there: masterd answers what it has on disk */

/* GetBundle, under way (slot) or waiting for the connection. */
struct fetch {
        struct data *data;
        struct bundle_transfer *transfer;
        sd_bus_slot *slot;
        uint32_t uid, max;
        char sha256[65];
        uint64_t offset;
        struct fetch *next, *prev;
};

/* A scanner that was told to wait. */
struct paused {
        struct executor_id id;
        bool farewell; /* its last word has to be passed on still */
        bool failed;
        char *text;
        struct paused *next, *prev;
};

struct data {
        sd_event *event;
        struct units *units;
        struct observer *observer;
        struct link *link;
        struct feed_server *feed;
        struct bundles *bundles;
        struct fetch *fetches;
        struct paused *paused;
        struct metric_relay *metrics;
        counters_handler on_counters; /* NULL: nobody listens */
        void *counters_data;
};

/* ---- bundles ---- */

static void fetch_free(struct fetch *f) {
        DL_DELETE(f->data->fetches, f);
        sd_bus_slot_unref(f->slot);
        free(f);
}

static int on_chunk(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        struct fetch *f = userdata;
        struct bundle_transfer *transfer = f->transfer;
        const sd_bus_error *e = sd_bus_message_get_error(reply);
        const void *chunk = NULL;
        uint64_t size = 0;
        size_t n = 0;
        int r = 0;

        if (e && !link_bulk_bus(f->data->link)) {
                f->slot = sd_bus_slot_unref(f->slot); /* the connection went; asked for again on the next */
                return 0;
        }
        if (!e && (sd_bus_message_read(reply, "t", &size) <= 0 ||
                   sd_bus_message_read_array(reply, 'y', &chunk, &n) <= 0 || n > f->max))
                r = -EBADMSG;
        else if (e)
                r = sd_bus_error_has_name(e, LINK_ERROR_NOT_FOUND) ? -ENOENT
                                                                   : -sd_bus_message_get_errno(reply);
        fetch_free(f);
        bundles_chunk(transfer, r,
                      r == 0            ? NULL
                      : e && e->message ? e->message
                                        : "masterd's answer is not understood",
                      size, chunk, n);
        return 0;
}

static int ask_master(struct fetch *f) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;

        TRY(link_message(f->data->link, true, "GetBundle", &m));
        TRY(sd_bus_message_append(m, "ustua{sv}", f->uid, f->sha256, f->offset, f->max, 0));
        return sd_bus_call_async(sd_bus_message_get_bus(m), &f->slot, m, on_chunk, f, FETCH_USEC);
}

static int bundle_get(void *userdata, uint32_t uid, const char *sha256, uint64_t offset, uint32_t max,
                      struct bundle_transfer *transfer) {
        struct data *d = userdata;
        struct fetch *f = calloc(1, sizeof(*f));
        int r;

        if (!f)
                return -ENOMEM;
        *f = (struct fetch){ .data = d, .transfer = transfer, .uid = uid, .max = max, .offset = offset };
        snprintf(f->sha256, sizeof(f->sha256), "%s", sha256);
        DL_APPEND(d->fetches, f);
        r = ask_master(f);
        if (r < 0 && r != -ENOTCONN) {
                fetch_free(f);
                return r;
        }
        return 0;
}

static int bundle_give(void *userdata, int fd, uint32_t uid) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        struct systemd *s = units_systemd(((struct data *)userdata)->units);

        TRY(starter_message(s, "GiveBundle", &m));
        TRY(sd_bus_message_append(m, "hu", fd, uid));
        return starter_send(s, m);
}

int data_want_bundle(struct data *d, uint32_t uid, const char *sha256, bundle_handler handler,
                     void *userdata) {
        return bundles_want(d->bundles, uid, sha256, handler, userdata);
}

void data_bulk_up(struct data *d) {
        struct fetch *f, *next;

        DL_FOREACH_SAFE (d->fetches, f, next)
                if (!f->slot && ask_master(f) < 0)
                        log_oom();
}

void data_bulk_down(struct data *d) {
        struct fetch *f;

        DL_FOREACH (d->fetches, f)
                f->slot = sd_bus_slot_unref(f->slot);
}

/* ---- feed: executors to masterd ---- */

static int find_unit(void *userdata, const char *unit, struct feed_unit *ret) {
        struct data *d = userdata;
        struct unit_facts facts;

        if (units_find(d->units, unit, &facts) < 0)
                return -ENOENT;
        *ret = (struct feed_unit){ .id = facts.id,
                                   .uid = facts.uid,
                                   .kind = facts.kind,
                                   .ack = facts.ack,
                                   .pipe_size = facts.pipe_size };
        return 0;
}

static int begin_call(struct data *d, const char *member, const struct executor_id *id,
                      sd_bus_message **ret) {
        int r = link_message(d->link, false, member, ret);

        return r < 0 ? r : executor_id_append(*ret, id);
}

static void on_open(void *userdata, const struct executor_id *id, const struct feed_opened *opened) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        struct data *d = userdata;
        int r;

        if ((r = begin_call(d, "FeedOpen", id, &m)) < 0 || (r = feed_opened_append(m, opened)) < 0 ||
            (r = link_send(d->link, m)) < 0)
                log_full(LOG_DEBUG, r, NULL,
                         "FeedOpen was not sent; the executor says it again on the next link");
}

static int send_report(sd_bus_message *m, const struct executor_id *id, const struct feed_report *report) {
        TRY(executor_id_append(m, id));
        TRY(feed_report_append(m, report));
        TRY(sd_bus_message_set_expect_reply(m, false));
        return sd_bus_send(sd_bus_message_get_bus(m), m, NULL);
}

static void on_progress(void *userdata, const struct executor_id *id, const struct feed_report *report) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        struct data *d = userdata;
        int r;

        if (d->on_counters)
                d->on_counters(id, &report->counters, d->counters_data);
        if ((r = link_message(d->link, false, "FeedReport", &m)) < 0 || (r = send_report(m, id, report)) < 0)
                log_full(LOG_DEBUG, r, NULL,
                         "FeedReport was not sent; the executor says it again on the next link");
}

/* A result that masterd has not answered yet. */
struct asked {
        struct data *data;
        uint64_t peer, number;
};

/* Why it will not be taken however often it is said; NULL: the link is over, or the like. */
static const char *why_refused(const sd_bus_error *e, const char *unknown) {
        if (sd_bus_error_has_name(e, LINK_ERROR_REFUSED) || sd_bus_error_has_name(e, LINK_ERROR_UNKNOWN))
                return e->message ?: "masterd refuses it";
        return sd_bus_error_has_name(e, SD_BUS_ERROR_UNKNOWN_METHOD) ? unknown : NULL;
}

/* Without an answer (the link is over) it is said again: on a new link all executors connect anew. */
static int on_result_answer(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        struct asked *a = userdata;
        const sd_bus_error *e = sd_bus_message_get_error(reply);
        const char *why = e ? why_refused(e, "masterd is of a release that knows no searches") : NULL;

        if (!e || why)
                feed_taken(a->data->feed, a->peer, a->number, why);
        return 0;
}

/* Asks masterd on behalf of a peer; handler gets a copy of whose. */
static int call_for(sd_bus_message *m, const struct asked *whose, sd_bus_message_handler_t handler) {
        _cleanup_free_ struct asked *a = malloc(sizeof(*a));
        sd_bus_slot *slot;

        if (!a)
                return -ENOMEM;
        *a = *whose;
        TRY(sd_bus_call_async(sd_bus_message_get_bus(m), &slot, m, handler, a, RESULT_USEC));
        (void)sd_bus_slot_set_destroy_callback(slot, free);
        (void)sd_bus_slot_set_floating(slot, true);
        sd_bus_slot_unref(slot);
        (void)TAKE_PTR(a); /* the slot's */
        return 0;
}

static int ask_result(struct data *d, uint64_t peer, const struct executor_id *id,
                      const struct feed_result *result) {
        struct trial_report report = { *id, result->step, result->metric, result->invalid };
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;

        TRY(link_message(d->link, false, "TrialReport", &m));
        TRY(trial_report_append(m, &report));
        return call_for(m, &(struct asked){ d, peer, result->number }, on_result_answer);
}

static void on_result(void *userdata, uint64_t peer, const struct executor_id *id,
                      const struct feed_result *result) {
        int r = ask_result(userdata, peer, id, result);

        if (r < 0)
                log_full(LOG_DEBUG, r, NULL,
                         "A trial's result was not sent; it is said again on the next link");
}

/* Without an answer it is asked again, as a result is said again. */
static int on_question_answer(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        struct asked *a = userdata;
        const sd_bus_error *e = sd_bus_message_get_error(reply);
        const char *text = e ? why_refused(e, "masterd is of a release that knows no searchers") : NULL;

        if (!e && sd_bus_message_read(reply, "s", &text) <= 0)
                text = NULL;
        if (text)
                feed_told(a->data->feed, a->peer, a->number, e != NULL, text);
        return 0;
}

static void on_ask(void *userdata, uint64_t peer, const struct executor_id *id, uint64_t number,
                   const char *text) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        struct search_question question = { *id, text };
        struct data *d = userdata;
        int r;

        if ((r = link_message(d->link, false, "AskSearch", &m)) < 0 ||
            (r = search_question_append(m, &question)) < 0 ||
            (r = call_for(m, &(struct asked){ d, peer, number }, on_question_answer)) < 0)
                log_full(LOG_DEBUG, r, NULL,
                         "A searcher's question was not sent; it is asked again on the next link");
}

static void on_metrics(void *userdata, const struct executor_id *id, uint32_t local, const void *points,
                       size_t size) {
        metric_relay_take(((struct data *)userdata)->metrics, id, local, points, size);
}

static int on_final(void *userdata, const char *unit, const void *body, size_t size, bool first) {
        int r = final_put("", unit, body, size, first);

        if (r < 0)
                log_warning_errno(
                        r, "Cannot keep the last report of %s in " FINAL_DIR "; it is asked for again", unit);
        return r;
}

/* Where last words are passed on to. */
struct last_words {
        sd_bus *bus;
        const struct executor_id *id;
};

static int send_final(const struct feed_report *report, void *userdata) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        struct last_words *w = userdata;
        int r = sd_bus_message_new_method_call(w->bus, &m, NULL, LINK_PATH, LINK_INTERFACE, "FeedReport");

        return r < 0 ? r : send_report(m, w->id, report);
}

int data_send_metrics(struct data *d, sd_bus *bus) {
        return metric_relay_say(d->metrics, bus, true);
}

void data_metrics_kept(struct data *d, uint64_t seq) {
        metric_relay_kept(d->metrics, seq);
}

int data_send_last(struct data *d, sd_bus *bus, const struct executor_id *id) {
        if (d->feed)
                feed_drain(d->feed, id);
        TRY(metric_relay_say(d->metrics, bus, false));
        return data_send_final(bus, id);
}

int data_send_final(sd_bus *bus, const struct executor_id *id) {
        struct last_words w = { bus, id };
        char unit[UNIT_NAME_MAX];
        int r;

        executor_unit_name(id->job, id->role, id->index, id->attempt, unit);
        r = final_read("", unit, send_final, &w);
        if (r == -EBADMSG) {
                log_warning("The last report of %s is cut off; tasks may be fed again", unit);
                return 0;
        }
        return r;
}

void data_forget_final(const struct executor_id *id) {
        char unit[UNIT_NAME_MAX];

        final_delete("", executor_unit_name(id->job, id->role, id->index, id->attempt, unit));
}

static bool still_known(const char *unit, void *userdata) {
        struct data *d = userdata;

        return units_known(d->units, unit);
}

static int send_scan(struct data *d, const struct executor_id *id, const struct scan_batch *batch) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;

        if (link_is_congested(d->link, false))
                return -EAGAIN;
        TRY(begin_call(d, "ScanBatch", id, &m));
        TRY(scan_batch_append(m, batch));
        return link_send(d->link, m);
}

/* Nothing more comes of the scan; error: "" or why. */
static int send_scan_end(struct data *d, const struct executor_id *id, const char *error) {
        struct scan_batch batch = { .last = true };

        snprintf(batch.error, sizeof(batch.error), "%s", error);
        return send_scan(d, id, &batch);
}

static int pause_executor(struct data *d, const struct executor_id *id, bool farewell, bool bad,
                          const char *text) {
        struct paused *p = calloc(1, sizeof(*p));

        if (p && farewell)
                p->text = strdup(text);
        if (!p || (farewell && !p->text)) {
                free(p);
                log_oom();
                return -EAGAIN;
        }
        p->id = *id;
        p->farewell = farewell;
        p->failed = bad;
        DL_APPEND(d->paused, p);
        return -EAGAIN;
}

static int on_entries(void *userdata, const struct executor_id *id, const struct scan_batch *batch) {
        struct data *d = userdata;

        return send_scan(d, id, batch) < 0 ? pause_executor(d, id, false, false, NULL) : 0;
}

static int on_bye(void *userdata, const struct executor_id *id, bool bad, const char *text) {
        struct data *d = userdata;
        struct unit_facts facts;
        char unit[UNIT_NAME_MAX];

        executor_unit_name(id->job, id->role, id->index, id->attempt, unit);
        if (units_find(d->units, unit, &facts) < 0 || facts.kind != ORDER_SCAN)
                return 0;
        if (bad && !*text)
                text = "the scan failed";
        return send_scan_end(d, id, bad ? text : "") < 0 ? pause_executor(d, id, true, bad, text) : 0;
}

static void paused_free(struct data *d, struct paused *p) {
        DL_DELETE(d->paused, p);
        free(p->text);
        free(p);
}

void data_resume(struct data *d) {
        struct paused *p, *next, *list;

        if (!link_bus(d->link) || link_is_congested(d->link, false))
                return;
        list = TAKE_PTR(d->paused); /* resuming may pause again */
        DL_FOREACH_SAFE (list, p, next) {
                if (!p->farewell)
                        (void)feed_resume(d->feed, &p->id);
                else if (send_scan_end(d, &p->id, p->failed ? p->text : "") >= 0)
                        (void)feed_farewell(d->feed, &p->id);
                else {
                        (void)pause_executor(d, &p->id, true, p->failed, p->text);
                }
                free(p->text);
                free(p);
        }
}

void data_link_up(struct data *d) {
        struct paused *p, *next;

        /* They connect again at once and say all of it anew. */
        DL_FOREACH_SAFE (d->paused, p, next)
                paused_free(d, p);
        if (d->feed)
                feed_drop_all(d->feed);
}

/* ---- feed: masterd to executors ---- */

int data_grant(struct data *d, sd_bus_message *m) {
        struct grant_batch batch;
        struct executor_id id;
        int r;

        if ((r = executor_id_read(m, &id)) <= 0 || (r = grant_batch_read(m, &batch)) <= 0)
                return r < 0 ? r : -EBADMSG;
        r = feed_grant(d->feed, &id, &batch);
        if (r < 0) /* it will say what it holds when it connects again */
                log_full(LOG_DEBUG, r, NULL, "Tasks were not passed on to an executor");
        return 0;
}

int data_control(struct data *d, sd_bus_message *m) {
        struct feed_order order;
        struct executor_id id;
        int r;

        if ((r = executor_id_read(m, &id)) <= 0 || (r = feed_order_read(m, &order)) <= 0)
                return r < 0 ? r : -EBADMSG;
        r = feed_control(d->feed, &id, &order);
        if (r < 0) /* masterd says it again when it opens */
                log_full(LOG_DEBUG, r, NULL, "An order was not passed on to an executor's feeder");
        return 0;
}

int data_source(struct data *d, sd_bus_message *m) {
        struct feed_source_order order;
        struct executor_id id;
        int r;

        if ((r = executor_id_read(m, &id)) <= 0 || (r = feed_source_read(m, &order)) <= 0)
                return r < 0 ? r : -EBADMSG;
        r = feed_source(d->feed, &id, &order);
        if (r < 0) /* it says how many it knows when it connects again */
                log_full(LOG_DEBUG, r, NULL, "An executor's feeder was not told of a source");
        return 0;
}

/* ---- the rest ---- */

static void on_narrow_pipe(int fd, uint32_t size, void *userdata) {
        observer_widen(((struct data *)userdata)->observer, fd, size);
}

int data_new(sd_event *event, struct units *units, struct observer *observer, struct data **ret) {
        static const struct bundle_ops ops = { .get = bundle_get, .give = bundle_give };
        _cleanup_(data_free_p) struct data *d = calloc(1, sizeof(*d));
        int r;

        if (!d)
                return -ENOMEM;
        d->event = sd_event_ref(event);
        d->units = units;
        d->observer = observer;
        TRY(metric_relay_new(event, &d->metrics));
        r = bundles_new(event, BUNDLES_DIR, &bundle_limits_default, &ops, d, &d->bundles);
        if (r < 0)
                return log_error_errno(r, "Cannot open the cache of job files in " BUNDLES_DIR);
        *ret = TAKE_PTR(d);
        return 0;
}

int data_listen(struct data *d) {
        static const struct feed_ops ops = {
                .find_unit = find_unit,
                .on_open = on_open,
                .on_progress = on_progress,
                .on_final = on_final,
                .on_result = on_result,
                .on_ask = on_ask,
                .on_metrics = on_metrics,
                .on_entries = on_entries,
                .on_bye = on_bye,
                .widen = on_narrow_pipe,
        };
        int r = final_sweep("", still_known, d);

        if (r < 0)
                log_warning_errno(r, "Cannot look into " FINAL_DIR);
        r = feed_server_new(d->event, FEED_SOCKET, &feed_limits_default, NULL, &ops, d, &d->feed);

        return r < 0 ? log_error_errno(r, "Cannot listen on " FEED_SOCKET) : 0;
}

void data_watch_counters(struct data *d, counters_handler f, void *userdata) {
        d->on_counters = f;
        d->counters_data = userdata;
}

void data_set_link(struct data *d, struct link *link) {
        d->link = link;
        metric_relay_set_link(d->metrics, link);
}

void data_free(struct data *d) {
        struct fetch *f, *next;
        struct paused *p, *next_paused;

        if (!d)
                return;
        DL_FOREACH_SAFE (d->paused, p, next_paused)
                paused_free(d, p);
        feed_server_free(d->feed);
        metric_relay_free(d->metrics);
        bundles_free(
                d->bundles); /* tells those who wait; transfers that asked for bytes stay until answered */
        DL_FOREACH_SAFE (d->fetches, f, next) {
                struct bundle_transfer *transfer = f->transfer;

                fetch_free(f);
                bundles_chunk(transfer, -ECANCELED, NULL, 0, NULL, 0);
        }
        sd_event_unref(d->event);
        free(d);
}
