/* SPDX-License-Identifier: Apache-2.0 */
/* Programs on demand. Invariant: none of them is attached without somebody who has asked for it, and each is
 * a descriptor of this process, pinned nowhere; what they look at is fixed before they run. */
#include "starter/observe/tracing.h"

#include <bpf/bpf.h>
#include <malloc.h>
#include <string.h>
#include <sys/syscall.h>

#include "bpf/trace.h"
#include "starter/observe/object.h"

#define PROGRAMS_MAX 3u

struct tracing {
        struct bpf_object *object;
        struct bpf_link *links[PROGRAMS_MAX];
};

static const char *const programs_of[_OBSERVE_TRACE_MAX][PROGRAMS_MAX] = {
        [OBSERVE_TRACE_IO] = { "primus_call_exit", "primus_call_enter" },
        [OBSERVE_TRACE_RUNQUEUE] = { "primus_switch", "primus_wakeup", "primus_wakeup_new" },
};

static const struct {
        int number;
        uint8_t class;
} calls[] = {
        { SYS_read, TRACE_READ },
        { SYS_readv, TRACE_READ },
        { SYS_pread64, TRACE_READ },
        { SYS_preadv, TRACE_READ },
        { SYS_preadv2, TRACE_READ },
        { SYS_write, TRACE_WRITE },
        { SYS_writev, TRACE_WRITE },
        { SYS_pwrite64, TRACE_WRITE },
        { SYS_pwritev, TRACE_WRITE },
        { SYS_pwritev2, TRACE_WRITE },
        { SYS_splice, TRACE_WRITE },
#ifdef SYS_sendfile
        { SYS_sendfile, TRACE_WRITE },
#endif
#ifdef SYS_recvfrom /* not where all of them are one call */
        { SYS_recvfrom, TRACE_RECEIVE },
        { SYS_recvmsg, TRACE_RECEIVE },
        { SYS_recvmmsg, TRACE_RECEIVE },
        { SYS_sendto, TRACE_SEND },
        { SYS_sendmsg, TRACE_SEND },
        { SYS_sendmmsg, TRACE_SEND },
#endif
        { SYS_fsync, TRACE_SYNC },
        { SYS_fdatasync, TRACE_SYNC },
        { SYS_syncfs, TRACE_SYNC },
        { SYS_msync, TRACE_SYNC },
#ifdef SYS_sync_file_range
        { SYS_sync_file_range, TRACE_SYNC },
#endif
};

/* All of names or none; *ret_programs in their order. */
static int load_object(const char *const *names, char *why, struct bpf_object **ret,
                       struct bpf_program **ret_programs) {
        /* The object has none of the maps that the base set shares. */
        struct probe_maps none;
        struct object_program wanted[PROGRAMS_MAX] = {};
        struct program_state states[PROGRAMS_MAX] = {};
        struct bpf_object *object = NULL;
        size_t n = 0;

        for (size_t i = 0; i < _PROBE_MAP_MAX; i++)
                none.fd[i] = -EBADF;
        for (; n < PROGRAMS_MAX && names[n]; n++) {
                states[n].name = names[n];
                wanted[n] = (struct object_program){ .forms = { names[n] }, .state = &states[n] };
        }
        object_load(&probe_image_trace, &none, wanted, n, &object);
        for (size_t i = 0; i < n; i++)
                if (!wanted[i].loaded) {
                        snprintf(why, OBSERVE_WHY_MAX, "%s", states[i].why);
                        bpf_object__close(object);
                        return -EOPNOTSUPP;
                }
        for (size_t i = 0; i < n; i++)
                ret_programs[i] = wanted[i].loaded;
        *ret = object;
        return 0;
}

/* Nobody writes them any more afterwards but the programs: not whoever the descriptor is handed to. */
static int write_settings(struct bpf_object *object, const struct trace_settings *s) {
        int fd = bpf_object__find_map_fd_by_name(object, "settings"), r;
        uint32_t zero = 0;

        if (fd < 0)
                return fd;
        r = bpf_map_update_elem(fd, &zero, s, BPF_ANY);
        return r < 0 ? r : bpf_map_freeze(fd);
}

static int give_settings(struct tracing *t, enum observe_trace k, uint64_t slice) {
        struct trace_settings s = { .slice = slice };

        for (size_t i = 0; k == OBSERVE_TRACE_IO && i < ELEMENTSOF(calls); i++)
                if (calls[i].number < (int)TRACE_CALLS_MAX)
                        s.class_of[calls[i].number] = (uint8_t)(calls[i].class + 1);
        return write_settings(t->object, &s);
}

int tracing_new(enum observe_trace k, uint64_t slice, char why[static OBSERVE_WHY_MAX],
                struct tracing **ret) {
        _cleanup_(tracing_free_p) struct tracing *t = calloc(1, sizeof(*t));
        struct bpf_program *programs[PROGRAMS_MAX] = {};
        int r;

        if (!t)
                return -ENOMEM;
        r = load_object(programs_of[k], why, &t->object, programs);
        (void)malloc_trim(0); /* the kernel's types were read to load them: some MB */
        if (r < 0)
                return r;
        r = give_settings(t, k, slice);
        if (r < 0) {
                snprintf(why, OBSERVE_WHY_MAX, "the kernel does not take its settings: %s", strerror(-r));
                return -EOPNOTSUPP;
        }
        for (size_t i = 0; i < PROGRAMS_MAX && programs[i]; i++) {
                t->links[i] = bpf_program__attach(programs[i]);
                if (!t->links[i]) {
                        snprintf(why, OBSERVE_WHY_MAX, "the kernel does not attach %s: %s", programs_of[k][i],
                                 strerror(errno));
                        return -EOPNOTSUPP;
                }
        }
        *ret = TAKE_PTR(t);
        return 0;
}

void tracing_free(struct tracing *t) {
        if (!t)
                return;
        for (size_t i = 0; i < PROGRAMS_MAX; i++)
                (void)bpf_link__destroy(t->links[i]);
        bpf_object__close(t->object);
        free(t);
        (void)malloc_trim(0);
}

int tracing_settings(const struct tracing *t) {
        return bpf_object__find_map_fd_by_name(t->object, "settings");
}

int tracing_latencies(const struct tracing *t) {
        return bpf_object__find_map_fd_by_name(t->object, "latencies");
}

/* ---- stacks ---- */

int tracing_stacks(uint64_t slice, uint64_t cgroup_id) {
        static const char *const names[PROGRAMS_MAX] = { "primus_stacks" };
        const struct trace_settings s = { .slice = slice, .target = cgroup_id };
        struct bpf_program *programs[PROGRAMS_MAX] = {};
        struct bpf_object *object = NULL;
        struct bpf_link *link = NULL;
        char why[OBSERVE_WHY_MAX];
        int fd = -EBADF;

        if (load_object(names, why, &object, programs) < 0)
                return -EOPNOTSUPP;
        if (write_settings(object, &s) >= 0)
                link = bpf_program__attach_iter(programs[0], NULL);
        if (link)
                fd = bpf_iter_create(bpf_link__fd(link));
        /* The pass that is under way keeps the program. */
        (void)bpf_link__destroy(link);
        bpf_object__close(object);
        return fd < 0 ? -EOPNOTSUPP : fd;
}
