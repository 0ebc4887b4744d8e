/* SPDX-License-Identifier: Apache-2.0 */
/* Calls to systemd, for calls of agentd's. Invariant: each such call is answered once, unless its connection
 * ends first; at most RELAYED_MAX of a connection are under way; every job that was asked for counts on the
 * lane that asked until it is over. */
#include "starter/calls/relay.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>
#include <utlist.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/wire/bus-owner.h"
#include "starter/calls/starter.h"
#include "starter/systemd/lanes.h"

#define SERVICE "org.freedesktop.systemd1"
#define OBJECT "/org/freedesktop/systemd1"
#define MANAGER SERVICE ".Manager"
/* PID 1 may be busy for long (a herd of units, a reload); longer than agentd waits. */
#define CALL_USEC (UINT64_C(130) * USEC_PER_SEC)

struct relayed {
        struct relay *relay;
        struct connection *connection; /* NULL: it is gone; the job still counts */
        sd_bus_message *call, *message;
        sd_bus_slot *slot;
        bool job;
        struct lane *lane; /* under way, of a job */
        struct relayed *next, *prev;
};

/* A job in systemd's queue; over: its end was told before the answer to who asked for it. */
struct job {
        UT_hash_handle hh;
        uint64_t lane;
        bool over;
        char path[];
};

struct relay {
        sd_bus *systemd;
        int (*connect)(sd_bus **ret, void *userdata);
        void *userdata;
        struct lanes lanes;
        struct relayed *waiting, *under_way; /* waiting: for a lane */
        unsigned asking;                     /* calls for jobs that are under way */
        struct job *jobs;
        struct bus_owner *owner; /* of systemd's name: signals of others are none */
        sd_bus_slot *match;
};

static void relayed_free(struct relayed *x) {
        if (x->connection)
                x->connection->n_relayed--;
        sd_bus_slot_unref(x->slot);
        sd_bus_message_unref(x->message);
        sd_bus_message_unref(x->call);
        free(x);
}

int relay_message(struct connection *c, const char *member, sd_bus_message **ret) {
        return sd_bus_message_new_method_call(c->starter->systemd, ret, SERVICE, OBJECT, MANAGER, member);
}

/* ---- jobs ---- */

static struct job *job_find(struct relay *r, const char *path) {
        struct job *j;

        HASH_FIND_STR(r->jobs, path, j);
        return j;
}

static struct job *job_add(struct relay *r, const char *path) {
        struct job *j = calloc(1, sizeof(*j) + strlen(path) + 1);

        if (!j)
                return NULL;
        strcpy(j->path, path);
        HASH_ADD_STR(r->jobs, path, j);
        return j;
}

static void job_forget(struct relay *r, struct job *j) {
        HASH_DEL(r->jobs, j);
        free(j);
}

/* What was told early and is of nobody who still asks. */
static void forget_early(struct relay *r) {
        struct job *j, *next;

        if (r->asking > 0)
                return;
        HASH_ITER (hh, r->jobs, j, next)
                if (j->over)
                        job_forget(r, j);
}

/* True: there is such a job, and it was not there already. */
static bool job_begun(struct relay *r, const char *path, uint64_t lane) {
        struct job *j = job_find(r, path);

        if (j && j->over)
                job_forget(r, j);
        else if (!j && (j = job_add(r, path))) {
                j->lane = lane;
                return true;
        }
        return false;
}

static void pump_relay(struct relay *r);

static int on_job_removed(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        struct relay *r = userdata;
        const char *path;
        struct job *j;

        if (!bus_owner_sent(r->owner, m) || sd_bus_message_read(m, "uoss", NULL, &path, NULL, NULL) < 0)
                return 0;
        j = job_find(r, path);
        if (j && !j->over) {
                lanes_job_over(&r->lanes, j->lane);
                job_forget(r, j);
                pump_relay(r);
        } else if (!j && r->asking > 0 && (j = job_add(r, path)))
                j->over = true;
        return 0;
}

/* ---- calls ---- */

static void answer_relayed(struct relayed *x, sd_bus_message *reply, const char *job) {
        const sd_bus_error *e = sd_bus_message_get_error(reply);

        if (!x->connection)
                return;
        if (e)
                (void)sd_bus_reply_method_error(x->call, e);
        else if (job)
                (void)sd_bus_reply_method_return(x->call, "o", job);
        else
                (void)sd_bus_reply_method_return(x->call, NULL);
}

static int on_reply(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        struct relayed *x = userdata;
        struct relay *r = x->relay;
        const char *job = NULL;

        if (x->job && !sd_bus_message_is_method_error(reply, NULL) &&
            sd_bus_message_read(reply, "o", &job) <= 0)
                job = NULL;
        answer_relayed(x, reply, job);
        DL_DELETE(r->under_way, x);
        if (x->lane) {
                struct lane *lane = TAKE_PTR(x->lane);

                r->asking--;
                lane_answered(lane, job && job_begun(r, job, lane->number));
                forget_early(r);
        }
        relayed_free(x);
        pump_relay(r);
        return 0;
}

static int send_relayed(struct relayed *x, struct lane *lane) {
        struct relay *r = x->relay;
        int k = sd_bus_call_async(lane ? lane->bus : r->systemd, &x->slot, x->message, on_reply, x,
                                  CALL_USEC);

        if (k < 0)
                return k;
        x->message = sd_bus_message_unref(x->message);
        x->lane = lane;
        DL_APPEND(r->under_way, x);
        if (lane) {
                lane_called(lane);
                r->asking++;
        }
        return 0;
}

static void pump_relay(struct relay *r) {
        struct relayed *x;
        struct lane *lane;

        while ((x = r->waiting) && (lane = lanes_pick(&r->lanes))) {
                int k;

                DL_DELETE(r->waiting, x);
                k = send_relayed(x, lane);
                if (k < 0) { /* the bus is going, which ends the loop */
                        if (x->connection)
                                (void)sd_bus_reply_method_errno(x->call, k, NULL);
                        relayed_free(x);
                }
        }
}

static int enter(struct connection *c, sd_bus_message *call, sd_bus_message *m, bool job,
                 sd_bus_error *error) {
        struct relay *r = c->starter->relay;
        struct relayed *x;
        int k;

        if (c->n_relayed >= RELAYED_MAX)
                return sd_bus_error_set(error, SD_BUS_ERROR_LIMITS_EXCEEDED, "too many calls are under way");
        x = calloc(1, sizeof(*x));
        if (!x)
                return -ENOMEM;
        *x = (struct relayed){ .relay = r,
                               .connection = c,
                               .call = sd_bus_message_ref(call),
                               .message = sd_bus_message_ref(m),
                               .job = job };
        c->n_relayed++;
        if (job) {
                DL_APPEND(r->waiting, x);
                pump_relay(r);
                return 1;
        }
        k = send_relayed(x, NULL);
        if (k < 0) {
                relayed_free(x);
                return k;
        }
        return 1;
}

int relay_call(struct connection *c, sd_bus_message *call, sd_bus_message *m, sd_bus_error *error) {
        return enter(c, call, m, false, error);
}

int relay_job(struct connection *c, sd_bus_message *call, sd_bus_message *m, sd_bus_error *error) {
        return enter(c, call, m, true, error);
}

void relay_forget(struct connection *c) {
        struct relay *r = c->starter->relay;
        struct relayed *x, *next;

        DL_FOREACH_SAFE (r->waiting, x, next)
                if (x->connection == c) {
                        DL_DELETE(r->waiting, x);
                        relayed_free(x);
                }
        DL_FOREACH (r->under_way, x)
                if (x->connection == c) {
                        x->connection = NULL;
                        c->n_relayed--;
                }
}

/* ---- the rest ---- */

static int connect_system(sd_bus **ret) {
        const char *address = secure_getenv("DBUS_SYSTEM_BUS_ADDRESS");
        _cleanup_(sd_bus_unrefp) sd_bus *bus = NULL;
        int r = sd_bus_new(&bus);

        if (r < 0 || (r = sd_bus_set_address(bus, address ?: "unix:path=/run/dbus/system_bus_socket")) < 0 ||
            (r = sd_bus_set_bus_client(bus, true)) < 0)
                return r;
        *ret = TAKE_PTR(bus);
        return 0;
}

static int connect_bus(sd_bus **ret, void *userdata) {
        struct relay *r = userdata;

        return r->connect ? r->connect(ret, r->userdata) : connect_system(ret);
}

static void on_lane_connected(void *userdata) {
        pump_relay(userdata);
}

int relay_new(sd_bus *systemd, int (*connect)(sd_bus **ret, void *userdata), void *userdata,
              struct relay **ret) {
        struct relay *r = calloc(1, sizeof(*r));
        int k;

        if (!r)
                return -ENOMEM;
        *r = (struct relay){ .systemd = sd_bus_ref(systemd), .connect = connect, .userdata = userdata };
        lanes_init(&r->lanes, systemd, connect_bus, on_lane_connected, r);
        k = bus_owner_new(systemd, SERVICE, NULL, NULL, &r->owner);
        k = k < 0 ? k
                  : sd_bus_match_signal_async(systemd, &r->match, SERVICE, OBJECT, MANAGER, "JobRemoved",
                                              on_job_removed, NULL, r);
        if (k < 0) {
                relay_free(r);
                return k;
        }
        *ret = r;
        return 0;
}

void relay_free(struct relay *r) {
        struct relayed *x, *next;
        struct job *j, *next_job;

        if (!r)
                return;
        DL_FOREACH_SAFE (r->waiting, x, next)
                relayed_free(x);
        DL_FOREACH_SAFE (r->under_way, x, next)
                relayed_free(x);
        HASH_ITER (hh, r->jobs, j, next_job)
                job_forget(r, j);
        sd_bus_slot_unref(r->match);
        bus_owner_free(r->owner);
        lanes_done(&r->lanes);
        sd_bus_unref(r->systemd);
        free(r);
}
