/* SPDX-License-Identifier: Apache-2.0 */
/* org.primus.Link1, the master's side: what agents say, and which room it is for. Invariants: nothing is
 * believed from a link before Hello, and no order goes out before Register is reconciled and on disk. */
#include "masterd/api/link-object.h"

#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/utf8.h"
#include "lib/wire/messages.h"
#include "lib/wire/skip.h"
#include "masterd/calls/calls.h"
#include "masterd/core/manager.h"
#include "masterd/core/record.h"
#include "masterd/feed/feeding.h"
#include "masterd/fleet/conditions.h"
#include "masterd/fleet/exits.h"
#include "masterd/fleet/hosts.h"
#include "masterd/fleet/liveness.h"
#include "masterd/fleet/stuck.h"
#include "masterd/life/attempts.h"
#include "masterd/life/searcher.h"
#include "masterd/life/searches.h"
#include "masterd/link/identity.h"
#include "masterd/link/link-hold.h"
#include "masterd/link/link.h"
#include "masterd/link/orders.h"
#include "masterd/recover/registered.h"
#include "masterd/relay/bundles.h"
#include "masterd/relay/logs.h"
#include "masterd/relay/sessions.h"
#include "masterd/watch/checkpoints.h"
#include "masterd/watch/pressure.h"
#include "masterd/watch/telemetry.h"
#include "masterd/watch/training.h"

static int refuse(struct link *l, sd_bus_message *m, const char *name, const char *why) {
        link_noticed(l);
        return sd_bus_reply_method_errorf(m, name, "%s", why);
}

/* Every message but Hello: only from a node that said who it is. */
static struct node *node_of(struct link *l) {
        return l->node;
}

static int hello_extra(sd_bus_message *m, enum link_channel *ret) {
        int r = sd_bus_message_enter_container(m, 'a', "{sv}");

        if (r < 0)
                return r;
        while ((r = sd_bus_message_enter_container(m, 'e', "sv")) > 0) {
                const char *key;
                int b;

                r = sd_bus_message_read_basic(m, 's', &key);
                if (r < 0)
                        return r;
                if (strcmp(key, "bulk") == 0 || strcmp(key, "calls") == 0) {
                        r = sd_bus_message_read(m, "v", "b", &b);
                        if (r >= 0 && b)
                                *ret = *key == 'b' ? LINK_BULK : LINK_CALLS;
                } else
                        r = message_skip(m, "v");
                if (r < 0)
                        return r;
                r = sd_bus_message_exit_container(m);
                if (r < 0)
                        return r;
        }
        return r < 0 ? r : sd_bus_message_exit_container(m);
}

/* The host is there; what runs on it runs on, and is neither seen nor touched until one side is upgraded. */
static int refuse_version(struct link *l, sd_bus_message *m, const char *build, uint16_t major,
                          uint16_t minor, enum link_channel channel) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        struct node *node = nodes_get(&l->manager->nodes, peer_name(l->peer));
        char text[LINK_VERSION_TEXT_MAX];
        int r;

        link_noticed(l);
        (void)link_version_refusal(LINK_MASTER, build, major, minor, text);
        if (node && channel == LINK_MAIN && !l->node) {
                link_drop(node, "replaced by a new connection of the same node");
                node_set_version(node, build);
                liveness_refused(l->manager, node, text);
        }
        r = sd_bus_message_new_method_errorf(m, &reply, LINK_ERROR_VERSION, "%s", text);
        if (r >= 0)
                r = link_refusal_append(reply,
                                        &(struct link_refusal){ l->manager->cluster, l->manager->term });
        return r < 0 ? r : sd_bus_send(NULL, reply, NULL);
}

static int on_hello(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        struct link *l = userdata;
        struct manager *manager = l->manager;
        sd_bus_message *reply = NULL;
        struct node *node;
        uint16_t major, minor;
        const char *build, *why;
        enum link_channel channel = LINK_MAIN;
        int r;

        r = sd_bus_message_read(m, "qqs", &major, &minor, &build);
        if (r >= 0)
                r = message_skip(m, "as");
        if (r >= 0)
                r = hello_extra(m, &channel);
        if (r < 0)
                return r;
        /* Again: since the handshake, the name may have been given to another. */
        why = identity_check(peer_name(l->peer), peer_serial(l->peer), manager);
        if (why)
                return refuse(l, m, LINK_ERROR_REFUSED, why);
        if (!link_versions_fit(major, minor))
                return refuse_version(l, m, build, major, minor, channel);
        if (l->node)
                return refuse(l, m, LINK_ERROR_REFUSED, "Hello was said already");
        node = nodes_get(&manager->nodes, peer_name(l->peer));
        if (channel == LINK_CALLS && (!node->link || !calls_welcome(manager, node)))
                return refuse(l, m, LINK_ERROR_REFUSED, "no calls are taken from this host");
        if (channel == LINK_BULK) {
                link_attach_bulk(l, node);
        } else if (channel == LINK_CALLS) {
                link_attach_calls(l, node);
        } else {
                /* A connection that the other side lost without our knowing must not block the name. */
                link_drop(node, "replaced by a new connection of the same node");
                node->link = l;
                node->epoch++;
                node_set_version(node, build);
                node->refused = (free(node->refused), NULL);
                identity_seen(manager, node, peer_serial(l->peer));
                record_node(manager, node);
        }
        l->node = node;
        l->channel = channel;
        l->minor = link_minor_spoken(minor);
        if (channel == LINK_MAIN)
                link_came(l);
        else if (channel == LINK_CALLS) {
                r = calls_attach(l);
                if (r < 0)
                        return r;
        }

        r = sd_bus_message_new_method_return(m, &reply);
        if (r >= 0)
                r = welcome_append(reply, &(struct welcome){ .major = LINK_MAJOR,
                                                             .minor = LINK_MINOR,
                                                             .build = (char *)PRIMUS_VERSION,
                                                             .cluster = manager->cluster,
                                                             .term = manager->term,
                                                             .epoch = node->epoch,
                                                             .heartbeat_usec = manager->conf.heartbeat_usec,
                                                             .lost_usec = manager->conf.lost_usec,
                                                             .spread_usec = manager->conf.spread_usec });
        if (r >= 0)
                r = welcome_append_extra(reply, calls_welcome(manager, node));
        if (r < 0) {
                sd_bus_message_unref(reply);
                return r;
        }
        r = manager_reply_later(manager, reply);
        return r < 0 ? r : 1;
}

/* A good agent says nothing of the kind. */
static void unusable(struct link *l, int r, const char *what) {
        link_noticed(l);
        if (!l->node || node_may_log(l->node, now_boot()))
                log_warning_errno(r, "Unusable %s from %s", what, peer_name(l->peer));
}

static int on_register(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        struct link *l = userdata;
        struct registration registration = {};
        sd_bus_message *reply = NULL;
        int r;

        if (!node_of(l) || l->channel != LINK_MAIN)
                return refuse(l, m, LINK_ERROR_REFUSED,
                              "Register belongs on the main connection, after Hello");
        /* It is the most that a message can make us do. A host that has something else to say of itself comes
         * again. */
        if (l->register_said)
                return refuse(l, m, LINK_ERROR_REFUSED, "Register was said already");
        l->register_said = true;
        r = registration_read(m, &registration);
        if (r >= 0)
                r = recover_registered(l->manager, l->node, l, &registration);
        registration_done(&registration);
        if (r < 0) {
                unusable(l, r, "registration");
                return r;
        }
        r = sd_bus_message_new_method_return(m, &reply);
        if (r < 0)
                return r;
        r = manager_reply_later(l->manager, reply);
        return r < 0 ? r : 1;
}

static int on_heartbeat(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        struct link *l = userdata;
        sd_bus_message *ack = NULL;
        uint64_t seq;
        int r = sd_bus_message_read_basic(m, 't', &seq);

        if (r < 0 || !node_of(l) || l->channel != LINK_MAIN)
                return 1;
        liveness_heard(l->manager, l->node);
        r = sd_bus_message_new_method_call(sd_bus_message_get_bus(m), &ack, NULL, LINK_PATH, LINK_INTERFACE,
                                           "HeartbeatAck");
        if (r >= 0)
                r = sd_bus_message_set_expect_reply(ack, false);
        if (r >= 0)
                r = sd_bus_message_append_basic(ack, 't', &seq);
        if (r >= 0)
                r = sd_bus_message_append(ack, "a{sv}", 1, "now", "t", now_real());
        if (r >= 0)
                (void)sd_bus_send(NULL, ack, NULL);
        sd_bus_message_unref(ack);
        return 1;
}

static int on_exited(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        struct link *l = userdata;
        struct exit_report report = {};
        int r = exit_report_read(m, &report);

        if (r >= 0 && node_of(l))
                exit_reported(l->manager, l->node, &report);
        else
                unusable(l, r, "exit report");
        exit_report_done(&report);
        return 1;
}

static int on_hook_result(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        _cleanup_free_ char *text = NULL;
        char reason[LINK_TEXT_MAX + 64];
        struct link *l = userdata;
        const char *hook;
        uint32_t job;
        int ok, r = sd_bus_message_read(m, "sub", &hook, &job, &ok);

        if (r > 0)
                r = link_read_text(m, LINK_TEXT_MAX, &text);
        if (r <= 0 || !node_of(l) || l->channel != LINK_MAIN)
                return 1;
        if (!ok || strcmp(hook, "health") == 0)
                link_noticed(l);
        if (strcmp(hook, "health") == 0 && ok)
                (void)hosts_release(l->manager, l->node, HOLD_HEALTH, "its health hook is content");
        else if (strcmp(hook, "health") == 0)
                (void)hosts_hold_noticed(l->manager, l->node, HOLD_HEALTH, text);
        else if (strcmp(hook, "epilog") == 0 && !ok) {
                snprintf(reason, sizeof(reason), "epilog of job %u: %s", job, text);
                (void)hosts_hold_noticed(l->manager, l->node, HOLD_HOOK, reason);
        }
        return 1;
}

static int on_host_condition(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        struct link *l = userdata;
        struct host_condition c;
        int r = host_condition_read(m, &c);

        if (r > 0 && node_of(l) && l->channel == LINK_MAIN && l->registered) {
                link_noticed(l);
                conditions_told(l->manager, l->node, &c);
        }
        return 1;
}

static int on_unkillable(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        _cleanup_free_ char *text = NULL;
        struct link *l = userdata;
        struct executor_id id;
        int r = executor_id_read(m, &id);

        if (r > 0)
                r = link_read_text(m, LINK_TEXT_MAX, &text);
        if (r > 0 && node_of(l) && l->channel == LINK_MAIN) {
                link_noticed(l);
                stuck_told(l->manager, l->node, &id, text);
        }
        return 1;
}

static int on_pressure(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        _cleanup_free_ char *what = NULL;
        struct link *l = userdata;
        struct executor_id id;
        uint64_t amount;
        int r = executor_id_read(m, &id);

        if (r > 0)
                r = link_read_text(m, LINK_TEXT_MAX, &what);
        if (r > 0 && sd_bus_message_read(m, "t", &amount) > 0 && node_of(l) && l->channel == LINK_MAIN &&
            l->registered)
                pressure_told(l->manager, l->node, &id, what, amount);
        return 1;
}

/* r > 0: it says more than it has to. */
static int received(struct link *l, int r, const char *what) {
        if (r < 0)
                unusable(l, r, what);
        if (r != 0) /* so that one which sends nothing else does not fill the log either */
                link_hold(l, LINK_NOTICED_USEC);
        return 1;
}

static int on_telemetry(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        struct link *l = userdata;

        if (!node_of(l) || l->channel != LINK_MAIN || !l->registered)
                return 1;
        return received(l, telemetry_received(l->manager, l->node, m), "telemetry");
}

/* Also ahead of Register, which may say that the executors have ended. */
static int on_metrics(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        struct link *l = userdata;

        if (!node_of(l) || l->channel != LINK_MAIN)
                return 1;
        return received(l, training_received(l->manager, l->node, m), "message of metrics");
}

static int on_feed_open(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        struct link *l = userdata;
        struct executor_id id;
        struct feed_opened opened;

        if (executor_id_read(m, &id) > 0 && feed_opened_read(m, &opened) > 0 && node_of(l))
                feeding_opened(l->manager, l->node, &id, &opened);
        return 1;
}

static int on_ready_report(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        struct link *l = userdata;
        char clean[LINK_TEXT_MAX + 1];
        struct executor_id id;
        const char *why;
        int ready, r = executor_id_read(m, &id);

        if (r > 0)
                r = sd_bus_message_read(m, "bs", &ready, &why);
        if (r > 0 && node_of(l))
                attempts_ready(l->manager, l->node, &id, ready,
                               utf8_clean(why, strlen(why), clean, sizeof(clean)));
        return 1;
}

static int on_taken(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        struct link *l = userdata;
        struct executor_id id;

        if (executor_id_read(m, &id) > 0 && node_of(l))
                orders_taken(l->manager, l, &id);
        return 1;
}

static int on_feed_report(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        struct link *l = userdata;
        struct feed_report report;
        struct executor_id id;
        int r;

        if ((r = executor_id_read(m, &id)) <= 0 || (r = feed_report_read(m, &report)) <= 0)
                unusable(l, r < 0 ? r : -EBADMSG, "progress report");
        else if (node_of(l))
                feeding_reported(l->manager, l->node, &id, &report);
        return 1;
}

static int on_trial_report(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        struct link *l = userdata;
        struct trial_report report;
        int r = trial_report_read(m, &report);

        if (r <= 0) {
                unusable(l, r < 0 ? r : -EBADMSG, "result of a trial");
                return r < 0 ? r : -EBADMSG;
        }
        if (!node_of(l) || l->channel != LINK_MAIN || !l->registered)
                return refuse(l, m, LINK_ERROR_REFUSED, "TrialReport belongs behind Register");
        r = searches_reported(l->manager, l->node, m, &report, error);
        link_hold_for_store(l);
        return r;
}

static int on_ask_search(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        struct link *l = userdata;
        struct search_question question;
        int r = search_question_read(m, &question);

        if (r <= 0) {
                unusable(l, r < 0 ? r : -EBADMSG, "question of a searcher");
                return r < 0 ? r : -EBADMSG;
        }
        if (!node_of(l) || l->channel != LINK_MAIN || !l->registered)
                return refuse(l, m, LINK_ERROR_REFUSED, "AskSearch belongs behind Register");
        r = checkpoints_asked(l->manager, l->node, m, &question, error);
        if (r == -ENOENT)
                r = searcher_asks(l->manager, l->node, m, &question, error);
        link_hold_for_store(l);
        return r;
}

static int on_scan_batch(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        struct link *l = userdata;
        struct scan_batch batch;
        struct executor_id id;
        int r;

        if ((r = executor_id_read(m, &id)) <= 0 || (r = scan_batch_read(m, &batch)) <= 0)
                unusable(l, r < 0 ? r : -EBADMSG, "list of files");
        else if (node_of(l))
                feeding_scanned(l->manager, l->node, &id, &batch);
        /* A source may be listed faster than the disk takes it: its agent notices, and so does the unit that
         * lists. */
        link_hold_for_store(l);
        return 1;
}

static int on_tail(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        struct link *l = userdata;
        struct executor_id id;
        const void *bytes;
        uint64_t offset;
        size_t size;
        int r = executor_id_read(m, &id);

        if (r >= 0)
                r = sd_bus_message_read_basic(m, 't', &offset);
        if (r >= 0)
                r = sd_bus_message_read_array(m, 'y', &bytes, &size);
        if (r >= 0 && node_of(l) && size <= LINK_CHUNK_MAX)
                logs_tail(l->manager, l->node, &id, offset, bytes, size);
        return 1;
}

static int on_get_bundle(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        struct link *l = userdata;

        if (!node_of(l))
                return refuse(l, m, LINK_ERROR_REFUSED, "say Hello first");
        return bundles_serve(l->manager, l->node, m);
}

static int on_renew(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        struct link *l = userdata;
        struct certificate fresh = {};
        sd_bus_message *reply = NULL;
        const void *csr;
        size_t size;
        int r = sd_bus_message_read_array(m, 'y', &csr, &size);

        if (r < 0)
                return r;
        if (!node_of(l) || size > 8192)
                return refuse(l, m, LINK_ERROR_REFUSED,
                              "a renewal is asked for after Hello, with at most 8 KiB");
        r = identity_renew(l->manager, l->node, csr, size, &fresh);
        if (r < 0)
                return refuse(l, m, LINK_ERROR_REFUSED,
                              r == -EBUSY ? "this node's certificate was renewed a moment ago"
                                          : "the certificate request is not valid");
        r = sd_bus_message_new_method_return(m, &reply);
        if (r >= 0)
                r = sd_bus_message_append_array(reply, 'y', fresh.cert_pem, strlen(fresh.cert_pem));
        if (r >= 0)
                r = sd_bus_message_append(reply, "a{sv}", 1, "authority", "s",
                                          identity_authority(l->manager));
        certificate_done(&fresh);
        if (r < 0) {
                sd_bus_message_unref(reply);
                return r;
        }
        r = manager_reply_later(l->manager, reply);
        return r < 0 ? r : 1;
}

static int read_caller(sd_bus_message *m, const char *key, void *userdata) {
        return strcmp(key, "job") == 0 ? sd_bus_message_read(m, "v", "u", (uint32_t *)userdata)
                                       : message_skip(m, "v");
}

static int on_caller(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        struct link *l = userdata;
        uint32_t uid, job = 0;
        const char *name;

        if (sd_bus_message_read(m, "su", &name, &uid) > 0 && link_read_entries(m, read_caller, &job) > 0 &&
            node_of(l) && l->channel == LINK_CALLS)
                calls_caller(l, name, uid, job);
        else
                link_noticed(l);
        return 1;
}

/* Of one text, on the connection for calls. */
static int on_text(sd_bus_message *m, struct link *l, void (*take)(struct link *l, const char *text)) {
        const char *text;

        if (sd_bus_message_read_basic(m, 's', &text) > 0 && node_of(l) && l->channel == LINK_CALLS)
                take(l, text);
        else
                link_noticed(l);
        return 1;
}

static int on_caller_gone(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        return on_text(m, userdata, calls_caller_gone);
}

static int on_listen(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        return on_text(m, userdata, calls_listen);
}

static int on_unlisten(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        return on_text(m, userdata, calls_unlisten);
}

const sd_bus_vtable api_link_vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_METHOD("Hello", "qqsasa{sv}", "(qqsayttttt)a{sv}", on_hello, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("Register", "s(sssuta(ssts)qqbb(yayq))a((ayusuu)saytb)a((ayusuu)ayssibbttttttts)a{sv}",
                      "", on_register, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("Renew", "aya{sv}", "aya{sv}", on_renew, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("Heartbeat", "ta{sv}", "", on_heartbeat,
                      SD_BUS_VTABLE_UNPRIVILEGED | SD_BUS_VTABLE_METHOD_NO_REPLY),
        SD_BUS_METHOD("Unkillable", "(ayusuu)sa{sv}", "", on_unkillable,
                      SD_BUS_VTABLE_UNPRIVILEGED | SD_BUS_VTABLE_METHOD_NO_REPLY),
        SD_BUS_METHOD("HostCondition", "(ssust)a{sv}", "", on_host_condition,
                      SD_BUS_VTABLE_UNPRIVILEGED | SD_BUS_VTABLE_METHOD_NO_REPLY),
        SD_BUS_METHOD("HookResult", "subsa{sv}", "", on_hook_result,
                      SD_BUS_VTABLE_UNPRIVILEGED | SD_BUS_VTABLE_METHOD_NO_REPLY),
        SD_BUS_METHOD("Exited", "((ayusuu)ayssibbttttttts)a{sv}", "", on_exited,
                      SD_BUS_VTABLE_UNPRIVILEGED | SD_BUS_VTABLE_METHOD_NO_REPLY),
        SD_BUS_METHOD("Pressure", "(ayusuu)sta{sv}", "", on_pressure,
                      SD_BUS_VTABLE_UNPRIVILEGED | SD_BUS_VTABLE_METHOD_NO_REPLY),
        SD_BUS_METHOD("Telemetry", "ta((ayusuu)at)a{sv}", "", on_telemetry,
                      SD_BUS_VTABLE_UNPRIVILEGED | SD_BUS_VTABLE_METHOD_NO_REPLY),
        SD_BUS_METHOD("Metrics", "ta((ayusuu)uay)a{sv}", "", on_metrics,
                      SD_BUS_VTABLE_UNPRIVILEGED | SD_BUS_VTABLE_METHOD_NO_REPLY),
        SD_BUS_METHOD("FeedOpen", "(ayusuu)ua{sv}", "", on_feed_open,
                      SD_BUS_VTABLE_UNPRIVILEGED | SD_BUS_VTABLE_METHOD_NO_REPLY),
        SD_BUS_METHOD("FeedReport", "(ayusuu)ayu(tttt)a{sv}", "", on_feed_report,
                      SD_BUS_VTABLE_UNPRIVILEGED | SD_BUS_VTABLE_METHOD_NO_REPLY),
        SD_BUS_METHOD("TrialReport", "(ayusuu)tdba{sv}", "a{sv}", on_trial_report,
                      SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("AskSearch", "(ayusuu)sa{sv}", "sa{sv}", on_ask_search, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("Ready", "(ayusuu)bsa{sv}", "", on_ready_report,
                      SD_BUS_VTABLE_UNPRIVILEGED | SD_BUS_VTABLE_METHOD_NO_REPLY),
        SD_BUS_METHOD("Taken", "(ayusuu)a{sv}", "", on_taken,
                      SD_BUS_VTABLE_UNPRIVILEGED | SD_BUS_VTABLE_METHOD_NO_REPLY),
        SD_BUS_METHOD("ScanBatch", "(ayusuu)aybsa{sv}", "", on_scan_batch,
                      SD_BUS_VTABLE_UNPRIVILEGED | SD_BUS_VTABLE_METHOD_NO_REPLY),
        SD_BUS_METHOD("Tail", "(ayusuu)taya{sv}", "", on_tail,
                      SD_BUS_VTABLE_UNPRIVILEGED | SD_BUS_VTABLE_METHOD_NO_REPLY),
        SD_BUS_METHOD("GetBundle", "ustua{sv}", "taya{sv}", on_get_bundle, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("Caller", "sua{sv}", "", on_caller,
                      SD_BUS_VTABLE_UNPRIVILEGED | SD_BUS_VTABLE_METHOD_NO_REPLY),
        SD_BUS_METHOD("CallerGone", "sa{sv}", "", on_caller_gone,
                      SD_BUS_VTABLE_UNPRIVILEGED | SD_BUS_VTABLE_METHOD_NO_REPLY),
        SD_BUS_METHOD("Listen", "sa{sv}", "", on_listen,
                      SD_BUS_VTABLE_UNPRIVILEGED | SD_BUS_VTABLE_METHOD_NO_REPLY),
        SD_BUS_METHOD("Unlisten", "sa{sv}", "", on_unlisten,
                      SD_BUS_VTABLE_UNPRIVILEGED | SD_BUS_VTABLE_METHOD_NO_REPLY),
        SD_BUS_VTABLE_END,
};
