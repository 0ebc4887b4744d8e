/* SPDX-License-Identifier: Apache-2.0 */
/* The probes of this host. Invariant: they count below the primus.slice that is there now; systemd may make
 * it anew while agentd runs. */
#include "agentd/telemetry/sampling-probe.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "agentd/cgroup/cgroup.h"
#include "agentd/core/manager.h"
#include "agentd/observe/observer.h"
#include "agentd/telemetry/sampling-usage.h"
#include "lib/base/log.h"

#define SLICE "primus.slice"
/* Victims of which the unit's end has not been heard of yet; a unit with more names the last ones. */
#define VICTIMS_MAX 16u

struct sampling_probe {
        struct manager *manager;
        struct probe *probe;
        struct sampling_usage *usage; /* what is known where the probes are not */
        sd_bus_slot *asked;           /* for the programs */
        bool said;                    /* what is missing */
        sd_event_source *source;
        int root; /* of the v2 hierarchy; -EBADF: there is none */
        ino_t slice;
        struct probe_event victims[VICTIMS_MAX];
        size_t next_victim;
};

/* ---- what the kernel says by itself ---- */

static uint64_t bytes_of(uint64_t pages) {
        return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void on_event(const struct probe_event *event, void *userdata) {
        struct sampling_probe *e = userdata;
        struct probe_event *v;

        if (event->kind != PROBE_OOM_VICTIM) {
                log_debug("Process %u (%.16s) was ended by signal %u", event->pid, event->comm,
                          event->signal);
                return;
        }
        log_notice("Out of memory: the kernel ends process %u (%.16s), which has %" PRIu64 " MiB of its own",
                   event->pid, event->comm, bytes_of(event->anon_pages) >> 20);
        /* A victim is named when it is chosen, and by some kernels again when it ends. */
        for (v = e->victims; v < e->victims + VICTIMS_MAX; v++)
                if (v->pid == event->pid && v->cgroup_id == event->cgroup_id)
                        return;
        e->victims[e->next_victim] = *event;
        e->next_victim = (e->next_victim + 1) % VICTIMS_MAX;
}

static int on_readable(sd_event_source *s, int fd, uint32_t revents, void *userdata) {
        struct sampling_probe *e = userdata;
        int r = probe_dispatch(e->probe, on_event, e);

        if (r < 0) {
                log_warning_errno(r, "Cannot read what the probes say; events of executors are missed");
                (void)sd_event_source_set_enabled(s, SD_EVENT_OFF);
        }
        return 0;
}

/* The kernel's log, which primus-exit reads, says more; but it may be closed to it, or have gone over. */
static void name_victim(struct sampling_probe *e, struct exit_report *x) {
        for (struct probe_event *v = e->victims; v < e->victims + VICTIMS_MAX; v++) {
                if (v->cgroup_id == 0 || v->cgroup_id != x->cgroup_id)
                        continue;
                if (!*x->oom.task) {
                        snprintf(x->oom.task, sizeof(x->oom.task), "%.16s", v->comm);
                        x->oom.pid = v->pid;
                        x->oom.held = bytes_of(v->anon_pages);
                }
                *v = (struct probe_event){ 0 };
        }
}

/* ---- the provider ---- */

static void ask_starter(struct sampling_probe *e);

static void find_slice(struct sampling_probe *e) {
        _cleanup_close_ int fd = -EBADF;
        struct stat st;
        int r;

        if (e->root < 0 || fstatat(e->root, SLICE, &st, AT_SYMLINK_NOFOLLOW) < 0 || st.st_ino == e->slice)
                return;
        fd = openat(e->root, SLICE, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        r = fd < 0 ? -errno : probe_set_slice(e->probe, fd);
        if (r < 0) {
                log_warning_errno(r, "Cannot look below " SLICE);
                return;
        }
        e->slice = st.st_ino;
        ask_starter(e);
}

static int look_at_units(const uint64_t *ids, size_t n, void *userdata) {
        struct sampling_probe *e = userdata;

        int r;

        find_slice(e);
        r = probe_scrape(e->probe);
        if (r < 0)
                sampling_usage_ask(e->usage);
        return r;
}

static void fill_values(const struct sampled *u, uint64_t values[static _TELEMETRY_MAX], void *userdata) {
        struct sampling_probe *e = userdata;

        if (u->cgroup_id == 0)
                return;
        probe_fill(e->probe, u->cgroup_id, values);
        if (!probe_counts(e->probe))
                sampling_usage_want(e->usage, u->unit, u->cgroup_id);
}

static void forget_unit(const struct sampled *u, void *userdata) {
        if (u->cgroup_id > 0)
                probe_forget(((struct sampling_probe *)userdata)->probe, u->cgroup_id);
}

struct sampler_provider sampling_probe_provider(struct sampling_probe *e) {
        return (struct sampler_provider){ "probe", look_at_units, fill_values, forget_unit, e };
}

bool sampling_probe_account(struct sampling_probe *e, struct exit_report *x,
                            uint64_t values[static _TELEMETRY_MAX]) {
        if (x->cgroup_id == 0)
                return false;
        (void)probe_dispatch(e->probe, on_event, e); /* a victim's name may still be on its way */
        name_victim(e, x);
        values[TELEMETRY_CPU_USEC] = x->cpu_usec;
        if (!probe_final(e->probe, x->cgroup_id, values))
                return false;
        x->cpu_usec = values[TELEMETRY_CPU_USEC];
        if (values[TELEMETRY_READ_BYTES] != TELEMETRY_UNKNOWN) {
                x->io_read = values[TELEMETRY_READ_BYTES];
                x->io_write = values[TELEMETRY_WRITE_BYTES];
        }
        probe_forget(e->probe, x->cgroup_id);
        return true;
}

const struct probe *sampling_probe_get(const struct sampling_probe *e) {
        return e->probe;
}

/* ---- life ---- */

static void say_what_is_missing(struct sampling_probe *e) {
        const struct probe_program *programs;
        size_t n = probe_programs(e->probe, &programs), down = 0;
        bool same = true;

        for (size_t i = 0; i < n; i++) {
                down += !programs[i].up;
                same &= strcmp(programs[i].why, programs[0].why) == 0;
        }
        if (down == n && same) {
                log_notice(
                        "There are no probes in the kernel (%s); what executors use is read from /proc and "
                        "their control groups",
                        programs[0].why);
                return;
        }
        for (size_t i = 0; i < n; i++)
                if (!programs[i].up)
                        /* What a host is like is said by doctor, and need not be by each start. */
                        log_full(programs[i].out_of_place ? LOG_DEBUG : LOG_INFO, 0, NULL,
                                 "The probe \"%s\" is not in the kernel: %s", programs[i].name,
                                 programs[i].why);
}

/* ---- the starter's programs ---- */

static int watch_events(struct sampling_probe *e) {
        int fd = probe_fd(e->probe);

        return e->source || fd < 0
                       ? 0
                       : sd_event_add_io(e->manager->event, &e->source, fd, EPOLLIN, on_readable, e);
}

static void on_programs(int r, const char *error, const int fds[static _OBSERVED_FD_MAX],
                        const struct observed_program observed[static _OBSERVE_PROGRAM_MAX], void *userdata) {
        struct probe_program programs[_OBSERVE_PROGRAM_MAX];
        struct probe_descriptors d = { .state = fds[OBSERVED_STATE],
                                       .units = fds[OBSERVED_UNITS],
                                       .flows = fds[OBSERVED_FLOWS],
                                       .events = fds[OBSERVED_EVENTS],
                                       .tasks = fds[OBSERVED_TASKS] };
        struct sampling_probe *e = userdata;

        e->asked = sd_bus_slot_unref(e->asked);
        if (r < 0) {
                char why[OBSERVE_WHY_MAX];

                snprintf(why, sizeof(why), "the starter cannot say: %s", error);
                probe_disown(e->probe, why);
        } else {
                for (size_t i = 0; i < _OBSERVE_PROGRAM_MAX; i++) {
                        programs[i] = (struct probe_program){ .up = observed[i].up,
                                                              .out_of_place = observed[i].out_of_place };
                        memcpy(programs[i].why, observed[i].why, sizeof(programs[i].why));
                }
                if (probe_adopt(e->probe, programs, &d) < 0 || watch_events(e) < 0)
                        log_oom();
        }
        if (!e->said)
                say_what_is_missing(e);
        e->said = true;
}

static void ask_starter(struct sampling_probe *e) {
        int r;

        e->asked = sd_bus_slot_unref(e->asked); /* a later answer has the last word */
        r = observer_probes(e->manager->observer, on_programs, e, &e->asked);
        if (r < 0)
                log_warning_errno(r, "Cannot ask the starter for probes in the kernel");
}

int sampling_probe_new(struct manager *m, struct sampling_probe **ret) {
        _cleanup_(sampling_probe_free_p) struct sampling_probe *e = calloc(1, sizeof(*e));
        _cleanup_free_ char *root = NULL;
        int r;

        if (!e)
                return -ENOMEM;
        e->manager = m;
        e->root = -EBADF;
        r = cgroup_root("", &root);
        if (r == -ENOMEM)
                return r;
        if (root)
                e->root = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if ((r = probe_new(&e->probe)) < 0 || (r = sampling_usage_new(m, e->probe, &e->usage)) < 0)
                return r;
        find_slice(e);
        if (!e->asked) /* there is no slice: why there are no probes is to be known all the same */
                ask_starter(e);
        *ret = TAKE_PTR(e);
        return 0;
}

void sampling_probe_free(struct sampling_probe *e) {
        if (!e)
                return;
        sd_bus_slot_unref(e->asked);
        sd_event_source_disable_unref(e->source);
        sampling_usage_free(e->usage);
        probe_free(e->probe);
        close_fd(e->root);
        free(e);
}
