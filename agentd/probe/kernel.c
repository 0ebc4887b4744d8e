/* SPDX-License-Identifier: Apache-2.0 */
/* The maps of the base set. Invariant: what is read is what the programs wrote; what is written is the number
 * of a pass, and what is taken out is known of no unit any more. */
#include "agentd/probe/kernel.h"

#include <linux/bpf.h>
#include <string.h>

#include "agentd/probe/maps.h"
#include "lib/base/clock.h"

/* Younger than this, agentd may not have heard of a unit yet. */
#define STALE_USEC (60 * USEC_PER_SEC)

struct kernel {
        struct probe_descriptors fds;
        struct events *ring;
        uint64_t pass;               /* the last one */
        probe_event_handler handler; /* while events are dispatched */
        void *userdata;
};

void probe_descriptors_done(struct probe_descriptors *d) {
        d->state = close_fd(d->state);
        d->units = close_fd(d->units);
        d->flows = close_fd(d->flows);
        d->events = close_fd(d->events);
        d->tasks = close_fd(d->tasks);
}

int kernel_new(struct probe_descriptors *d, struct kernel **ret) {
        struct kernel *k = calloc(1, sizeof(*k));
        struct probe_state state;
        uint32_t zero = 0;
        int r;

        if (!k) {
                probe_descriptors_done(d);
                return -ENOMEM;
        }
        k->fds = *d;
        *d = PROBE_DESCRIPTORS_NONE;
        r = map_lookup(k->fds.state, &zero, &state);
        if (r < 0) {
                kernel_free(k);
                return r;
        }
        k->pass = state.pass;
        if (k->fds.events >= 0)
                (void)events_new(TAKE_FD(k->fds.events), PROBE_EVENTS_SIZE,
                                 &k->ring); /* without it: no events */
        *ret = k;
        return 0;
}

void kernel_free(struct kernel *k) {
        if (!k)
                return;
        events_free(k->ring);
        probe_descriptors_done(&k->fds);
        free(k);
}

static void sweep(int fd, bool units, bool (*known)(uint64_t id, void *userdata), void *userdata) {
        union {
                struct probe_unit unit;
                struct probe_flow flow;
        } value;
        uint64_t key, next, now = now_boot();
        bool more = map_next(fd, NULL, &next) == 0;

        for (size_t i = 0; more && i < PROBE_UNITS_MAX; i++) {
                uint64_t created;

                key = next;
                more = map_next(fd, &key, &next) == 0;
                if (known(key, userdata) || map_lookup(fd, &key, &value) < 0)
                        continue;
                created = units ? value.unit.created_ns : value.flow.created_ns;
                if (created / 1000 + STALE_USEC < now)
                        (void)map_delete(fd, &key);
        }
}

void kernel_sweep(struct kernel *k, bool (*known)(uint64_t id, void *userdata), void *userdata) {
        if (!k)
                return;
        sweep(k->fds.units, true, known, userdata);
        sweep(k->fds.flows, false, known, userdata);
}

int kernel_scrape(struct kernel *k) {
        struct probe_state state;
        uint32_t zero = 0;
        int r;

        if (!k || k->fds.tasks < 0)
                return -EOPNOTSUPP;
        /* What the programs themselves have written stays. */
        r = map_lookup(k->fds.state, &zero, &state);
        if (r < 0)
                return r;
        state.pass = k->pass = MAX(k->pass, state.pass) + 1;
        r = map_update(k->fds.state, &zero, &state, BPF_ANY);
        return r < 0 ? r : iterator_run(k->fds.tasks);
}

bool kernel_unit(struct kernel *k, uint64_t id, struct probe_unit *ret, bool *ret_fresh) {
        if (!k || map_lookup(k->fds.units, &id, ret) < 0)
                return false;
        *ret_fresh = ret->pass > 0 && ret->pass == k->pass;
        return true;
}

bool kernel_flow(struct kernel *k, uint64_t id, struct probe_flow *ret) {
        return k && map_lookup(k->fds.flows, &id, ret) == 0;
}

void kernel_forget(struct kernel *k, uint64_t id) {
        if (!k)
                return;
        (void)map_delete(k->fds.units, &id);
        (void)map_delete(k->fds.flows, &id);
}

uint64_t kernel_dropped(struct kernel *k) {
        uint32_t zero = 0;
        struct probe_state now;

        return k && map_lookup(k->fds.state, &zero, &now) == 0 ? now.dropped : 0;
}

int kernel_fd(const struct kernel *k) {
        return k && k->ring ? events_fd(k->ring) : -1;
}

static void on_record(const void *data, size_t size, void *userdata) {
        struct kernel *k = userdata;

        if (size >= sizeof(struct probe_event))
                k->handler(data, k->userdata);
}

int kernel_dispatch(struct kernel *k, probe_event_handler f, void *userdata) {
        if (!k || !k->ring)
                return 0;
        k->handler = f;
        k->userdata = userdata;
        return events_read(k->ring, on_record, k);
}
