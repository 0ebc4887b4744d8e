/* SPDX-License-Identifier: Apache-2.0 */
/* The base set of programs. Invariant: every map, program and link is a descriptor of this process and pinned
 * nowhere, so the kernel drops them with it, however it ends. */
#include "agentd/probe/kernel.h"

#include <bpf/bpf.h>
#include <string.h>

#include "agentd/probe/object.h"
#include "lib/base/clock.h"
#include "lib/base/file.h"

/* Younger than this, agentd may not have heard of a unit yet. */
#define STALE_USEC (60 * USEC_PER_SEC)

struct kernel {
        struct probe_maps maps;
        struct bpf_object *object;
        struct bpf_program *programs[_KERNEL_PROGRAM_MAX];
        struct bpf_link *links[_KERNEL_PROGRAM_MAX];
        struct ring_buffer *ring;
        struct probe_state state; /* as written last */
        bool recovered;
        probe_event_handler handler; /* while events are dispatched */
        void *userdata;
};

static const char *const forms[_KERNEL_PROGRAM_MAX][PROBE_FORMS_MAX] = {
        [KERNEL_EXITS] = { "primus_exits" },
        [KERNEL_TASKS] = { "primus_tasks" },
        [KERNEL_INGRESS] = { "primus_ingress" },
        [KERNEL_EGRESS] = { "primus_egress" },
        [KERNEL_RETRANSMITS] = { "primus_retransmits" },
        [KERNEL_BLOCK] = { "primus_block" },
        [KERNEL_VICTIMS] = { "primus_victims_task", "primus_victims_pid" },
};

static int on_event(void *userdata, void *data, size_t size) {
        struct kernel *k = userdata;

        if (size >= sizeof(struct probe_event) && k->handler)
                k->handler(data, k->userdata);
        return 0;
}

static void load(struct kernel *k, struct probe_program *programs) {
        struct object_program wanted[_KERNEL_PROGRAM_MAX];

        for (size_t i = 0; i < _KERNEL_PROGRAM_MAX; i++)
                wanted[i] = (struct object_program){ .forms = { forms[i][0], forms[i][1] },
                                                     .state = &programs[i] };
        object_load(&probe_image_base, &k->maps, wanted, ELEMENTSOF(wanted), &k->object);
        for (size_t i = 0; i < _KERNEL_PROGRAM_MAX; i++)
                k->programs[i] = wanted[i].loaded;
}

static void attach(struct kernel *k, enum kernel_program i, int slice_fd, struct probe_program *programs) {
        struct bpf_link *link;

        if (!k->programs[i] || k->links[i])
                return;
        if (i == KERNEL_TASKS)
                link = bpf_program__attach_iter(k->programs[i], NULL);
        else if (i == KERNEL_INGRESS || i == KERNEL_EGRESS)
                link = bpf_program__attach_cgroup(k->programs[i], slice_fd);
        else
                link = bpf_program__attach(k->programs[i]);
        if (!link) {
                object_refused(&programs[i], "cannot be attached", -errno);
                return;
        }
        k->links[i] = link;
        programs[i].up = true;
        *programs[i].why = 0;
}

static void detach(struct kernel *k, enum kernel_program i) {
        (void)bpf_link__destroy(k->links[i]);
        k->links[i] = NULL;
}

static int write_state(struct kernel *k) {
        uint32_t zero = 0;
        struct probe_state now;

        /* What the programs themselves have written stays. */
        if (bpf_map_lookup_elem(k->maps.fd[PROBE_MAP_STATE], &zero, &now) == 0) {
                k->state.dropped = now.dropped;
                if (k->state.slice == now.slice)
                        k->state.level = now.level;
        }
        return bpf_map_update_elem(k->maps.fd[PROBE_MAP_STATE], &zero, &k->state, BPF_ANY);
}

int kernel_new(struct probe_program programs[static _KERNEL_PROGRAM_MAX], struct kernel **ret) {
        struct kernel *k = calloc(1, sizeof(*k));
        int r;

        if (!k)
                return -ENOMEM;
        r = probe_maps_new(&k->maps);
        if (r < 0) {
                for (size_t i = 0; i < _KERNEL_PROGRAM_MAX; i++)
                        object_refused(&programs[i], "its map cannot be made", r);
                free(k);
                *ret = NULL;
                return 0;
        }
        load(k, programs);
        k->ring = ring_buffer__new(k->maps.fd[PROBE_MAP_EVENTS], on_event, k, NULL);
        *ret = k;
        return 0;
}

void kernel_free(struct kernel *k) {
        if (!k)
                return;
        for (size_t i = 0; i < _KERNEL_PROGRAM_MAX; i++)
                detach(k, i);
        ring_buffer__free(k->ring);
        bpf_object__close(k->object);
        probe_maps_done(&k->maps);
        free(k);
}

/* The io controller may sit on a v1 hierarchy, and then requests are charged to groups that we do not know.
 */
static bool has_io_controller(int slice_fd) {
        _cleanup_free_ char *text = NULL;

        if (read_file_at(slice_fd, "cgroup.controllers", 4096, &text, NULL) < 0)
                return false;
        for (char *save, *word = strtok_r(text, " \n", &save); word; word = strtok_r(NULL, " \n", &save))
                if (strcmp(word, "io") == 0)
                        return true;
        return false;
}

void kernel_set_slice(struct kernel *k, int slice_fd, uint64_t slice_id,
                      struct probe_program programs[static _KERNEL_PROGRAM_MAX]) {
        if (!k)
                return;
        detach(k, KERNEL_INGRESS);
        detach(k, KERNEL_EGRESS);
        k->state.slice = slice_id;
        k->state.level = 0;
        (void)write_state(k);
        attach(k, KERNEL_TASKS, slice_fd, programs);
        if (!k->recovered) {
                /* Ahead of the program that adds up what ends: what ends in between is counted by neither,
                 * and nothing by both. */
                k->state.recover = 1;
                (void)kernel_scrape(k);
                k->state.recover = 0;
                k->recovered = true;
                (void)write_state(k);
        }
        for (size_t i = 0; i < _KERNEL_PROGRAM_MAX; i++) {
                if (i == KERNEL_BLOCK && !has_io_controller(slice_fd)) {
                        detach(k, i);
                        programs[i].up = false;
                        programs[i].out_of_place = k->programs[i];
                        if (k->programs[i])
                                strcpy(programs[i].why, "the io controller is not on the v2 hierarchy here");
                        continue;
                }
                attach(k, i, slice_fd, programs);
        }
}

static void sweep(struct kernel *k, enum probe_map map, bool (*known)(uint64_t id, void *userdata),
                  void *userdata) {
        union {
                struct probe_unit unit;
                struct probe_flow flow;
        } value;
        int fd = k->maps.fd[map];
        uint64_t key, next, now = now_boot();
        bool more = bpf_map_get_next_key(fd, NULL, &next) == 0;

        for (size_t i = 0; more && i < PROBE_UNITS_MAX; i++) {
                uint64_t created;

                key = next;
                more = bpf_map_get_next_key(fd, &key, &next) == 0;
                if (known(key, userdata) || bpf_map_lookup_elem(fd, &key, &value) < 0)
                        continue;
                created = map == PROBE_MAP_UNITS ? value.unit.created_ns : value.flow.created_ns;
                if (created / 1000 + STALE_USEC < now)
                        (void)bpf_map_delete_elem(fd, &key);
        }
}

void kernel_sweep(struct kernel *k, bool (*known)(uint64_t id, void *userdata), void *userdata) {
        if (!k)
                return;
        sweep(k, PROBE_MAP_UNITS, known, userdata);
        sweep(k, PROBE_MAP_FLOWS, known, userdata);
}

int kernel_scrape(struct kernel *k) {
        char buf[64]; /* the program writes nothing */
        int fd, r;

        if (!k || !k->links[KERNEL_TASKS])
                return -EOPNOTSUPP;
        k->state.pass++;
        r = write_state(k);
        if (r < 0)
                return r;
        fd = bpf_iter_create(bpf_link__fd(k->links[KERNEL_TASKS]));
        if (fd < 0)
                return fd;
        for (;;) {
                ssize_t n = read(fd, buf, sizeof(buf));

                if (n < 0 && (errno == EAGAIN || errno == EINTR))
                        continue;
                if (n < 0)
                        r = -errno;
                if (n <= 0)
                        break;
        }
        close_fd(fd);
        return r;
}

bool kernel_unit(struct kernel *k, uint64_t id, struct probe_unit *ret, bool *ret_fresh) {
        if (!k || bpf_map_lookup_elem(k->maps.fd[PROBE_MAP_UNITS], &id, ret) < 0)
                return false;
        *ret_fresh = ret->pass > 0 && ret->pass == k->state.pass;
        return true;
}

bool kernel_flow(struct kernel *k, uint64_t id, struct probe_flow *ret) {
        return k && bpf_map_lookup_elem(k->maps.fd[PROBE_MAP_FLOWS], &id, ret) == 0;
}

void kernel_forget(struct kernel *k, uint64_t id) {
        if (!k)
                return;
        (void)bpf_map_delete_elem(k->maps.fd[PROBE_MAP_UNITS], &id);
        (void)bpf_map_delete_elem(k->maps.fd[PROBE_MAP_FLOWS], &id);
}

uint64_t kernel_dropped(struct kernel *k) {
        uint32_t zero = 0;
        struct probe_state now;

        return k && bpf_map_lookup_elem(k->maps.fd[PROBE_MAP_STATE], &zero, &now) == 0 ? now.dropped : 0;
}

int kernel_fd(const struct kernel *k) {
        return k && k->ring ? ring_buffer__epoll_fd(k->ring) : -1;
}

int kernel_dispatch(struct kernel *k, probe_event_handler f, void *userdata) {
        int r;

        if (!k || !k->ring)
                return 0;
        k->handler = f;
        k->userdata = userdata;
        r = ring_buffer__consume(k->ring);
        k->handler = NULL;
        return r;
}
