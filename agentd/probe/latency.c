/* SPDX-License-Identifier: Apache-2.0 */
/* Programs on demand. Invariant: none of them is attached without somebody who has asked for it, and each is
 * a descriptor of this process, pinned nowhere. */
#include "agentd/probe/latency.h"

#include <bpf/bpf.h>
#include <seccomp.h>
#include <string.h>

#include "agentd/probe/object.h"

#define PROGRAMS_MAX 3u
#define STACKS_TEXT_MAX (512u << 10)

struct latency {
        struct bpf_object *object;
        struct bpf_link *links[PROGRAMS_MAX];
        int settings, latencies;
        int n_cpus;
        struct trace_unit *all; /* one for each CPU */
};

static const char *const programs_of[_LATENCY_KIND_MAX][PROGRAMS_MAX] = {
        [LATENCY_IO] = { "primus_call_exit", "primus_call_enter" },
        [LATENCY_RUNQUEUE] = { "primus_switch", "primus_wakeup", "primus_wakeup_new" },
};

static const struct {
        const char *name;
        uint8_t class;
} calls[] = {
        { "read", TRACE_READ },        { "readv", TRACE_READ },      { "pread64", TRACE_READ },
        { "preadv", TRACE_READ },      { "preadv2", TRACE_READ },    { "write", TRACE_WRITE },
        { "writev", TRACE_WRITE },     { "pwrite64", TRACE_WRITE },  { "pwritev", TRACE_WRITE },
        { "pwritev2", TRACE_WRITE },   { "sendfile", TRACE_WRITE },  { "splice", TRACE_WRITE },
        { "recvfrom", TRACE_RECEIVE }, { "recvmsg", TRACE_RECEIVE }, { "recvmmsg", TRACE_RECEIVE },
        { "sendto", TRACE_SEND },      { "sendmsg", TRACE_SEND },    { "sendmmsg", TRACE_SEND },
        { "fsync", TRACE_SYNC },       { "fdatasync", TRACE_SYNC },  { "sync_file_range", TRACE_SYNC },
        { "syncfs", TRACE_SYNC },      { "msync", TRACE_SYNC },
};

/* ---- loading ---- */

/* All of names or none; *ret_programs in their order. */
static int load(const char *const *names, char *why, struct bpf_object **ret,
                struct bpf_program **ret_programs) {
        /* The object has none of the maps that the base set shares. */
        struct probe_maps none;
        struct object_program wanted[PROGRAMS_MAX] = {};
        struct probe_program states[PROGRAMS_MAX] = {};
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
                        snprintf(why, LATENCY_WHY_MAX, "%s", states[i].why);
                        bpf_object__close(object);
                        return -EOPNOTSUPP;
                }
        for (size_t i = 0; i < n; i++)
                ret_programs[i] = wanted[i].loaded;
        *ret = object;
        return 0;
}

static int write_settings(struct bpf_object *object, const struct trace_settings *s) {
        int fd = bpf_object__find_map_fd_by_name(object, "settings");
        uint32_t zero = 0;

        return fd < 0 ? fd : bpf_map_update_elem(fd, &zero, s, BPF_ANY);
}

static int tell(struct latency *l, enum latency_kind k, uint64_t slice) {
        struct trace_settings s = { .slice = slice };

        for (size_t i = 0; k == LATENCY_IO && i < ELEMENTSOF(calls); i++) {
                int number = seccomp_syscall_resolve_name(calls[i].name);

                if (number >= 0 && number < (int)TRACE_CALLS_MAX)
                        s.class_of[number] = (uint8_t)(calls[i].class + 1);
        }
        return write_settings(l->object, &s);
}

int latency_new(enum latency_kind k, uint64_t slice, char why[static LATENCY_WHY_MAX], struct latency **ret) {
        _cleanup_(latency_free_p) struct latency *l = calloc(1, sizeof(*l));
        struct bpf_program *programs[PROGRAMS_MAX] = {};
        int r;

        if (!l)
                return -ENOMEM;
        l->n_cpus = libbpf_num_possible_cpus();
        if (l->n_cpus <= 0)
                return -EOPNOTSUPP;
        l->all = calloc((size_t)l->n_cpus, sizeof(*l->all));
        if (!l->all)
                return -ENOMEM;
        if ((r = load(programs_of[k], why, &l->object, programs)) < 0 || (r = tell(l, k, slice)) < 0)
                return r;
        l->settings = bpf_object__find_map_fd_by_name(l->object, "settings");
        l->latencies = bpf_object__find_map_fd_by_name(l->object, "latencies");
        for (size_t i = 0; i < PROGRAMS_MAX && programs[i]; i++) {
                l->links[i] = bpf_program__attach(programs[i]);
                if (!l->links[i]) {
                        snprintf(why, LATENCY_WHY_MAX, "the kernel does not attach %s: %s", programs_of[k][i],
                                 strerror(errno));
                        return -EOPNOTSUPP;
                }
        }
        *ret = TAKE_PTR(l);
        return 0;
}

void latency_free(struct latency *l) {
        if (!l)
                return;
        for (size_t i = 0; i < PROGRAMS_MAX; i++)
                (void)bpf_link__destroy(l->links[i]);
        bpf_object__close(l->object);
        free(l->all);
        free(l);
}

/* ---- counting ---- */

int latency_add(struct latency *l, uint64_t cgroup_id) {
        memset(l->all, 0, (size_t)l->n_cpus * sizeof(*l->all));
        return bpf_map_update_elem(l->latencies, &cgroup_id, l->all, BPF_NOEXIST);
}

void latency_remove(struct latency *l, uint64_t cgroup_id) {
        (void)bpf_map_delete_elem(l->latencies, &cgroup_id);
}

static void sum(struct trace_histogram *to, const struct trace_histogram *from) {
        to->count += from->count;
        to->sum_ns += from->sum_ns;
        to->bytes += from->bytes;
        for (size_t i = 0; i < TRACE_BUCKETS; i++)
                to->buckets[i] += from->buckets[i];
}

int latency_read(struct latency *l, uint64_t cgroup_id, struct trace_unit *ret) {
        struct trace_unit all = {};
        int r = bpf_map_lookup_elem(l->latencies, &cgroup_id, l->all);

        if (r < 0)
                return r;
        for (int cpu = 0; cpu < l->n_cpus; cpu++)
                for (size_t i = 0; i < _TRACE_CLASS_MAX; i++)
                        sum(&all.classes[i], &l->all[cpu].classes[i]);
        *ret = all;
        return 0;
}

uint64_t latency_missed(struct latency *l) {
        struct trace_settings s;
        uint32_t zero = 0;

        return bpf_map_lookup_elem(l->settings, &zero, &s) < 0 ? 0 : s.missed;
}

/* ---- stacks ---- */

static char *read_text(int fd) {
        _cleanup_free_ char *text = malloc(STACKS_TEXT_MAX + 1);
        size_t n = 0;

        while (text && n < STACKS_TEXT_MAX) {
                ssize_t l = read(fd, text + n, STACKS_TEXT_MAX - n);

                if (l < 0 && (errno == EAGAIN || errno == EINTR))
                        continue;
                if (l <= 0)
                        break;
                n += (size_t)l;
        }
        if (!text || n == 0)
                return NULL;
        text[n] = 0;
        return TAKE_PTR(text);
}

char *latency_stacks(uint64_t slice, uint64_t cgroup_id) {
        static const char *const names[PROGRAMS_MAX] = { "primus_stacks" };
        const struct trace_settings s = { .slice = slice, .target = cgroup_id };
        struct bpf_program *programs[PROGRAMS_MAX] = {};
        struct bpf_object *object = NULL;
        struct bpf_link *link = NULL;
        char why[LATENCY_WHY_MAX], *text = NULL;
        int fd = -EBADF;

        if (load(names, why, &object, programs) < 0)
                return NULL;
        if (write_settings(object, &s) >= 0)
                link = bpf_program__attach_iter(programs[0], NULL);
        if (link)
                fd = bpf_iter_create(bpf_link__fd(link));
        if (fd >= 0)
                text = read_text(fd);
        close_fd(fd);
        (void)bpf_link__destroy(link);
        bpf_object__close(object);
        return text;
}
