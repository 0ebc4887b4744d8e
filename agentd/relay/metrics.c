/* SPDX-License-Identifier: Apache-2.0 */
/* Invariant: batches are a list by their number; those up to r->sent went out on the connection that is up,
 * and the open one, which takes what comes, is behind them all. */
#include "agentd/relay/metrics.h"

#include <string.h>
#include <uthash.h>
#include <utlist.h>

#include "agentd/link/link.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/try.h"
#include "lib/base/unitname.h"

#define TOGETHER_USEC (2 * USEC_PER_SEC)  /* what comes within that is one message */
#define BATCH_BYTES (UINT64_C(128) << 10) /* of one message, about */
#define BYTES_MAX (UINT64_C(4) << 20)     /* of all that masterd has not on disk */
#define EXECUTOR_BYTES_MAX (256u << 10)   /* of one executor in TOGETHER_USEC */
#define DROPPED_SAY_USEC (600 * USEC_PER_SEC)

struct said {
        struct said *next;
        struct executor_id id;
        uint32_t local;
        size_t size;
        uint8_t points[];
};

struct batch {
        struct batch *prev, *next;
        uint64_t seq;
        size_t bytes;
        struct said *first, *last;
};

/* What an executor has said since the last message. */
struct share {
        char unit[UNIT_NAME_MAX];
        size_t bytes;
        UT_hash_handle hh;
};

struct metric_relay {
        sd_event_source *timer;
        struct link *link;
        struct batch *batches, *open; /* open: the last of them, or NULL */
        uint64_t seq, sent;
        size_t bytes;
        struct share *shares;
        uint64_t dropped_boot; /* when it was last said that some were left out */
};

static void batch_free(struct metric_relay *r, struct batch *b) {
        DL_DELETE(r->batches, b);
        r->bytes -= b->bytes;
        if (r->open == b)
                r->open = NULL;
        while (b->first) {
                struct said *next = b->first->next;
                free(b->first);
                b->first = next;
        }
        free(b);
}

static int append_said(sd_bus_message *m, const struct said *x) {
        TRY(sd_bus_message_open_container(m, 'r', LINK_ID_SIGNATURE "uay"));
        TRY(executor_id_append(m, &x->id));
        TRY(sd_bus_message_append_basic(m, 'u', &x->local));
        TRY(sd_bus_message_append_array(m, 'y', x->points, x->size));
        return sd_bus_message_close_container(m);
}

static int send_batch(sd_bus *bus, const struct batch *b) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;

        TRY(sd_bus_message_new_method_call(bus, &m, NULL, LINK_PATH, LINK_INTERFACE, "Metrics"));
        TRY(sd_bus_message_append_basic(m, 't', &b->seq));
        TRY(sd_bus_message_open_container(m, 'a', "(" LINK_ID_SIGNATURE "uay)"));
        for (const struct said *x = b->first; x; x = x->next)
                TRY(append_said(m, x));
        TRY(sd_bus_message_close_container(m));
        TRY(link_append_extra_empty(m));
        TRY(sd_bus_message_set_expect_reply(m, false));
        return sd_bus_send(bus, m, NULL);
}

static void forget_shares(struct metric_relay *r) {
        struct share *x, *next;

        HASH_ITER (hh, r->shares, x, next) {
                HASH_DEL(r->shares, x);
                free(x);
        }
}

/* One that says more than any trainer does takes nothing from the others. */
static bool may_say(struct metric_relay *r, const struct executor_id *id, size_t size) {
        char unit[UNIT_NAME_MAX];
        struct share *x;

        executor_unit_name(id->job, id->role, id->index, id->attempt, unit);
        HASH_FIND_STR(r->shares, unit, x);
        if (!x) {
                x = calloc(1, sizeof(*x));
                if (!x)
                        return false;
                strcpy(x->unit, unit);
                HASH_ADD_STR(r->shares, unit, x);
        }
        if (x->bytes + size > EXECUTOR_BYTES_MAX)
                return false;
        x->bytes += size;
        return true;
}

int metric_relay_say(struct metric_relay *r, sd_bus *bus, bool again) {
        struct batch *b;

        if (again)
                r->sent = 0;
        r->open = NULL;
        DL_FOREACH (r->batches, b) {
                if (b->seq <= r->sent)
                        continue;
                TRY(send_batch(bus, b));
                r->sent = b->seq;
        }
        return 0;
}

/* Without a link it stays: the next registration says it. */
static int on_time(sd_event_source *s, uint64_t usec, void *userdata) {
        struct metric_relay *r = userdata;
        sd_bus *bus = r->link ? link_bus(r->link) : NULL;
        int k;

        forget_shares(r);
        if (!bus || link_is_congested(r->link, false))
                return 0;
        k = metric_relay_say(r, bus, false);
        if (k < 0)
                log_full(LOG_DEBUG, k, NULL, "Metrics were not sent; they are sent again on the next link");
        return 0;
}

static struct batch *open_batch(struct metric_relay *r) {
        struct batch *b = r->open;

        if (b && b->bytes < BATCH_BYTES)
                return b;
        b = calloc(1, sizeof(*b));
        if (!b)
                return NULL;
        b->seq = ++r->seq;
        DL_APPEND(r->batches, b);
        return r->open = b;
}

static void arm_timer(struct metric_relay *r) {
        int enabled = SD_EVENT_OFF;

        (void)sd_event_source_get_enabled(r->timer, &enabled);
        if (enabled != SD_EVENT_OFF)
                return;
        (void)sd_event_source_set_time_relative(r->timer, TOGETHER_USEC);
        (void)sd_event_source_set_enabled(r->timer, SD_EVENT_ONESHOT);
}

static void trim_to_most(struct metric_relay *r) {
        uint64_t now = now_boot();

        if (r->bytes <= BYTES_MAX)
                return;
        while (r->bytes > BYTES_MAX && r->batches != r->open)
                batch_free(r, r->batches);
        if (r->dropped_boot > 0 && now < usec_add(r->dropped_boot, DROPPED_SAY_USEC))
                return;
        r->dropped_boot = now;
        log_warning("masterd has not taken metrics of jobs for long: the oldest are left out");
}

void metric_relay_take(struct metric_relay *r, const struct executor_id *id, uint32_t local,
                       const void *points, size_t size) {
        struct said *x = may_say(r, id, size) ? malloc(sizeof(*x) + size) : NULL;
        struct batch *b = x ? open_batch(r) : NULL;

        if (!b) {
                free(x);
                return;
        }
        *x = (struct said){ .id = *id, .local = local, .size = size };
        memcpy(x->points, points, size);
        if (b->last)
                b->last->next = x;
        else
                b->first = x;
        b->last = x;
        b->bytes += sizeof(*x) + size;
        r->bytes += sizeof(*x) + size;
        trim_to_most(r);
        arm_timer(r);
}

void metric_relay_kept(struct metric_relay *r, uint64_t seq) {
        while (r->batches && r->batches->seq <= MIN(seq, r->sent))
                batch_free(r, r->batches);
}

void metric_relay_set_link(struct metric_relay *r, struct link *link) {
        r->link = link;
}

int metric_relay_new(sd_event *event, struct metric_relay **ret) {
        _cleanup_(metric_relay_free_p) struct metric_relay *r = calloc(1, sizeof(*r));

        if (!r)
                return -ENOMEM;
        /* So that the numbers of an agent that was started anew are behind those of the one before. */
        r->seq = now_real();
        TRY(sd_event_add_time_relative(event, &r->timer, CLOCK_BOOTTIME, TOGETHER_USEC, USEC_PER_SEC / 2,
                                       on_time, r));
        TRY(sd_event_source_set_enabled(r->timer, SD_EVENT_OFF));
        *ret = TAKE_PTR(r);
        return 0;
}

void metric_relay_free(struct metric_relay *r) {
        if (!r)
                return;
        while (r->batches)
                batch_free(r, r->batches);
        forget_shares(r);
        sd_event_source_disable_unref(r->timer);
        free(r);
}
