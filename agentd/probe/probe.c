/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of each unit, put together from the kernel's maps or /proc. Invariant: a counter that was
 * said once is never said lower, as long as the unit is not forgotten. */
#include "agentd/probe/probe.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <uthash.h>

#include "agentd/probe/kernel.h"
#include "agentd/probe/procfs.h"
#include "lib/base/clock.h"

#define SWEEP_USEC (60 * USEC_PER_SEC)

/* The counters of this room. */
static const enum telemetry_field counters[] = {
        TELEMETRY_CPU_USEC,       TELEMETRY_RUNQUEUE_WAIT_USEC, TELEMETRY_READ_BYTES,
        TELEMETRY_WRITE_BYTES,    TELEMETRY_BLOCK_READ_BYTES,   TELEMETRY_BLOCK_WRITE_BYTES,
        TELEMETRY_NET_RX_BYTES,   TELEMETRY_NET_TX_BYTES,       TELEMETRY_NET_RX_PACKETS,
        TELEMETRY_NET_TX_PACKETS, TELEMETRY_TCP_RETRANSMITS,    TELEMETRY_OOM_KILLS,
};

struct unit {
        uint64_t id;
        int fd; /* its directory, where /proc is asked; -EBADF: not needed, or not found */
        uint64_t said[ELEMENTSOF(counters)];
        struct probe_usage usage;
        uint64_t usage_boot; /* when it was read; 0: never */
        UT_hash_handle hh;
};

struct probe {
        struct kernel *kernel;
        struct probe_program programs[_OBSERVE_PROGRAM_MAX];
        struct unit *units;
        int slice, proc;
        uint64_t slice_id, swept_usec;
        bool scraped; /* by the kernel's iterator, the last time */
};

int probe_new(struct probe **ret) {
        struct probe *p = calloc(1, sizeof(*p));

        if (!p)
                return -ENOMEM;
        p->slice = -EBADF;
        p->proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
        for (size_t i = 0; i < _OBSERVE_PROGRAM_MAX; i++)
                p->programs[i].name = observe_program_name((enum observe_program)i);
        probe_disown(p, "the starter has not answered yet");
        *ret = p;
        return 0;
}

void probe_disown(struct probe *p, const char *why) {
        for (size_t i = 0; i < _OBSERVE_PROGRAM_MAX; i++) {
                p->programs[i].up = false;
                snprintf(p->programs[i].why, sizeof(p->programs[i].why), "%s", why);
        }
}

int probe_adopt(struct probe *p, const struct probe_program *programs, struct probe_descriptors *d) {
        struct kernel *k = NULL;
        int r = 0;

        if (d->state >= 0 && !p->kernel)
                r = kernel_new(d, &k);
        probe_descriptors_done(d);
        if (r == -ENOMEM)
                return r;
        if (r < 0) {
                char why[OBSERVE_WHY_MAX];

                snprintf(why, sizeof(why), "the kernel lets only root read what its programs count: %s%s",
                         strerror(-r),
                         r == -EPERM ? " (see kernel.unprivileged_bpf_disabled; Linux 5.19 and later do)"
                                     : "");
                probe_disown(p, why);
                return 0;
        }
        if (k)
                p->kernel = k;
        for (size_t i = 0; i < _OBSERVE_PROGRAM_MAX; i++) {
                p->programs[i].up = programs[i].up;
                p->programs[i].out_of_place = programs[i].out_of_place;
                memcpy(p->programs[i].why, programs[i].why, sizeof(p->programs[i].why));
        }
        return 0;
}

static void unit_free(struct probe *p, struct unit *u) {
        HASH_DEL(p->units, u);
        close_fd(u->fd);
        free(u);
}

void probe_free(struct probe *p) {
        struct unit *u, *next;

        if (!p)
                return;
        HASH_ITER (hh, p->units, u, next)
                unit_free(p, u);
        kernel_free(p->kernel);
        close_fd(p->slice);
        close_fd(p->proc);
        free(p);
}

int probe_set_slice(struct probe *p, int slice_fd) {
        struct stat st;
        int fd;

        if (fstat(slice_fd, &st) < 0)
                return -errno;
        if (p->slice_id == st.st_ino)
                return 0;
        fd = fcntl(slice_fd, F_DUPFD_CLOEXEC, 3);
        if (fd < 0)
                return -errno;
        close_fd(p->slice);
        p->slice = fd;
        p->slice_id = st.st_ino;
        return 0;
}

static bool is_known(uint64_t id, void *userdata) {
        struct probe *p = userdata;
        struct unit *u;

        HASH_FIND(hh, p->units, &id, sizeof(id), u);
        return u;
}

int probe_scrape(struct probe *p) {
        uint64_t now = now_boot();
        int r = kernel_scrape(p->kernel);

        p->scraped = r >= 0;
        if (now > p->swept_usec + SWEEP_USEC) {
                p->swept_usec = now;
                kernel_sweep(p->kernel, is_known, p);
        }
        return r;
}

bool probe_counts(const struct probe *p) {
        return p->scraped;
}

static struct unit *unit_get(struct probe *p, uint64_t id) {
        struct unit *u;

        HASH_FIND(hh, p->units, &id, sizeof(id), u);
        if (u)
                return u;
        u = calloc(1, sizeof(*u));
        if (!u)
                return NULL;
        u->id = id;
        u->fd = -EBADF;
        HASH_ADD(hh, p->units, id, sizeof(u->id), u);
        return u;
}

static void put_value(uint64_t values[static _TELEMETRY_MAX], enum telemetry_field f, uint64_t value) {
        values[f] = value;
}

static void put_unknown(uint64_t values[static _TELEMETRY_MAX], enum telemetry_field f, uint64_t value) {
        if (values[f] == TELEMETRY_UNKNOWN)
                values[f] = value;
}

static void put_sums(uint64_t values[static _TELEMETRY_MAX], const struct probe_sums *s) {
        /* cpu.stat has what this lacks: the time since the scheduler last looked. */
        put_unknown(values, TELEMETRY_CPU_USEC, s->cpu_ns / 1000);
        put_value(values, TELEMETRY_RUNQUEUE_WAIT_USEC, s->run_delay_ns / 1000);
        put_value(values, TELEMETRY_READ_BYTES, s->read_bytes);
        put_value(values, TELEMETRY_WRITE_BYTES, s->write_bytes);
        put_unknown(values, TELEMETRY_BLOCK_READ_BYTES, s->block_read_bytes);
        put_unknown(values, TELEMETRY_BLOCK_WRITE_BYTES, s->block_write_bytes);
}

/* Neither what has ended by now nor what the pass saw counts anything twice, so the larger is the better. */
static struct probe_sums sum_up(const struct probe_unit *u, bool fresh) {
        const uint64_t *ended = (const uint64_t *)&u->ended, *base = (const uint64_t *)&u->base,
                       *live = (const uint64_t *)&u->live;
        struct probe_sums sums = u->ended;
        uint64_t *ret = (uint64_t *)&sums;

        for (size_t i = 0; fresh && i < sizeof(sums) / sizeof(uint64_t); i++)
                ret[i] = MAX(ended[i], base[i] + live[i]);
        return sums;
}

static uint64_t page_size(void) {
        return (uint64_t)sysconf(_SC_PAGESIZE);
}

static void put_tasks(uint64_t values[static _TELEMETRY_MAX], const struct probe_unit *u, bool fresh) {
        put_value(values, TELEMETRY_TASKS, fresh ? u->tasks : 0);
        put_value(values, TELEMETRY_TASKS_RUNNING, fresh ? u->running : 0);
        put_value(values, TELEMETRY_TASKS_BLOCKED, fresh ? u->blocked : 0);
        put_value(values, TELEMETRY_TASKS_STOPPED, fresh ? u->stopped : 0);
        if (!fresh || u->tasks == 0)
                return;
        put_value(values, TELEMETRY_LAST_RUN_USEC, u->idle_ns / 1000);
        /* The memory controller knows better, where there is one: what is shared counts once there. */
        put_unknown(values, TELEMETRY_MEMORY_BYTES, (u->anon_pages + u->file_pages) * page_size());
        put_unknown(values, TELEMETRY_MEMORY_ANON_BYTES, u->anon_pages * page_size());
}

static void fill_flow(struct probe *p, uint64_t id, uint64_t values[static _TELEMETRY_MAX]) {
        struct probe_flow flow = { 0 };

        (void)kernel_flow(p->kernel, id, &flow); /* nothing yet is nothing */
        if (p->programs[OBSERVE_INGRESS].up) {
                put_value(values, TELEMETRY_NET_RX_BYTES, flow.rx_bytes);
                put_value(values, TELEMETRY_NET_RX_PACKETS, flow.rx_packets);
        }
        if (p->programs[OBSERVE_EGRESS].up) {
                put_value(values, TELEMETRY_NET_TX_BYTES, flow.tx_bytes);
                put_value(values, TELEMETRY_NET_TX_PACKETS, flow.tx_packets);
        }
        if (p->programs[OBSERVE_RETRANSMITS].up)
                put_value(values, TELEMETRY_TCP_RETRANSMITS, flow.retransmits);
        if (p->programs[OBSERVE_BLOCK].up) {
                put_value(values, TELEMETRY_BLOCK_READ_BYTES, flow.block_read_bytes);
                put_value(values, TELEMETRY_BLOCK_WRITE_BYTES, flow.block_write_bytes);
        }
        if (p->programs[OBSERVE_VICTIMS].up)
                put_unknown(values, TELEMETRY_OOM_KILLS, flow.oom_kills);
}

static void keep_up(struct unit *u, uint64_t values[static _TELEMETRY_MAX]) {
        for (size_t i = 0; i < ELEMENTSOF(counters); i++) {
                uint64_t *v = &values[counters[i]];

                if (*v == TELEMETRY_UNKNOWN)
                        continue;
                if (*v < u->said[i])
                        *v = u->said[i];
                u->said[i] = *v;
        }
}

void probe_note_usage(struct probe *p, uint64_t cgroup_id, const struct probe_usage *usage) {
        struct unit *u = unit_get(p, cgroup_id);

        if (!u)
                return;
        u->usage = *usage;
        u->usage_boot = now_boot();
}

/* /proc/PID/io of others is root's to read. */
static void fill_usage(const struct unit *u, uint64_t values[static _TELEMETRY_MAX]) {
        if (u->usage_boot == 0 || now_boot() > u->usage_boot + PROBE_USAGE_USEC)
                return;
        put_unknown(values, TELEMETRY_READ_BYTES, u->usage.read_bytes);
        put_unknown(values, TELEMETRY_WRITE_BYTES, u->usage.write_bytes);
        put_unknown(values, TELEMETRY_BLOCK_READ_BYTES, u->usage.block_read_bytes);
        put_unknown(values, TELEMETRY_BLOCK_WRITE_BYTES, u->usage.block_write_bytes);
}

static void fill_procfs(struct probe *p, struct unit *u, uint64_t values[static _TELEMETRY_MAX]) {
        if (u->fd < 0 && p->slice >= 0)
                u->fd = procfs_find(p->slice, u->id);
        if (u->fd >= 0 && procfs_fill(p->proc, u->fd, values) < 0)
                u->fd = close_fd(u->fd);
        fill_usage(u, values);
}

void probe_fill(struct probe *p, uint64_t cgroup_id, uint64_t values[static _TELEMETRY_MAX]) {
        struct unit *u = unit_get(p, cgroup_id);
        struct probe_unit account = { 0 };
        bool fresh = false;

        if (!u)
                return;
        fill_flow(p, cgroup_id, values);
        if (p->scraped) {
                struct probe_sums sums;

                (void)kernel_unit(p->kernel, cgroup_id, &account, &fresh);
                sums = sum_up(&account, fresh);
                put_sums(values, &sums);
                put_tasks(values, &account, fresh);
        } else {
                fill_procfs(p, u, values);
        }
        keep_up(u, values);
}

bool probe_final(struct probe *p, uint64_t cgroup_id, uint64_t values[static _TELEMETRY_MAX]) {
        struct probe_unit account;
        struct unit *u;
        bool fresh, seen;

        HASH_FIND(hh, p->units, &cgroup_id, sizeof(cgroup_id), u);
        seen = kernel_unit(p->kernel, cgroup_id, &account, &fresh) && account.exits > 0;
        if (seen)
                put_sums(values, &account.ended);
        if (!seen && !u)
                return false;
        fill_flow(p, cgroup_id, values);
        if (u)
                keep_up(u, values);
        return true;
}

void probe_forget(struct probe *p, uint64_t cgroup_id) {
        struct unit *u;

        HASH_FIND(hh, p->units, &cgroup_id, sizeof(cgroup_id), u);
        if (u)
                unit_free(p, u);
        kernel_forget(p->kernel, cgroup_id);
}

size_t probe_programs(const struct probe *p, const struct probe_program **ret) {
        *ret = p->programs;
        return _OBSERVE_PROGRAM_MAX;
}

uint64_t probe_dropped(const struct probe *p) {
        return kernel_dropped(p->kernel);
}

int probe_fd(const struct probe *p) {
        return kernel_fd(p->kernel);
}

int probe_dispatch(struct probe *p, probe_event_handler f, void *userdata) {
        return kernel_dispatch(p->kernel, f, userdata);
}
