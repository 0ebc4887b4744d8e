/* SPDX-License-Identifier: Apache-2.0 */
/* The base set of programs. Invariant: every map, program and link is a descriptor of this process and pinned
 * nowhere, so the kernel drops them with it and with those that it was handed to, however they end. */
#include "starter/observe/programs.h"

#include <bpf/bpf.h>
#include <malloc.h>
#include <string.h>
#include <sys/stat.h>

#include "bpf/events.h"
#include "lib/base/file.h"
#include "starter/observe/object.h"

struct programs {
        struct probe_maps maps;
        struct bpf_object *object;
        struct bpf_program *loaded[_OBSERVE_PROGRAM_MAX];
        struct bpf_link *links[_OBSERVE_PROGRAM_MAX];
        struct program_state states[_OBSERVE_PROGRAM_MAX];
        uint64_t slice;
        bool maps_made, recovered;
};

static const char *const forms[_OBSERVE_PROGRAM_MAX][PROBE_FORMS_MAX] = {
        [OBSERVE_EXITS] = { "primus_exits" },
        [OBSERVE_TASKS] = { "primus_tasks" },
        [OBSERVE_INGRESS] = { "primus_ingress" },
        [OBSERVE_EGRESS] = { "primus_egress" },
        [OBSERVE_RETRANSMITS] = { "primus_retransmits" },
        [OBSERVE_BLOCK] = { "primus_block" },
        [OBSERVE_VICTIMS] = { "primus_victims_task", "primus_victims_pid" },
};

static void load_programs(struct programs *p) {
        struct object_program wanted[_OBSERVE_PROGRAM_MAX];

        for (size_t i = 0; i < _OBSERVE_PROGRAM_MAX; i++)
                wanted[i] = (struct object_program){ .forms = { forms[i][0], forms[i][1] },
                                                     .state = &p->states[i] };
        object_load(&probe_image_base, &p->maps, wanted, ELEMENTSOF(wanted), &p->object);
        for (size_t i = 0; i < _OBSERVE_PROGRAM_MAX; i++)
                p->loaded[i] = wanted[i].loaded;
        (void)malloc_trim(0); /* the kernel's types were read to load them: some MB */
}

int programs_new(struct programs **ret) {
        struct programs *p = calloc(1, sizeof(*p));
        int r;

        if (!p)
                return -ENOMEM;
        for (size_t i = 0; i < _OBSERVE_PROGRAM_MAX; i++)
                p->states[i].name = observe_program_name((enum observe_program)i);
        r = probe_maps_new(&p->maps);
        for (size_t i = 0; r < 0 && i < _OBSERVE_PROGRAM_MAX; i++)
                object_refused(&p->states[i], "its map cannot be made", r);
        if (r >= 0) {
                p->maps_made = true;
                load_programs(p);
        }
        *ret = p;
        return 0;
}

static void detach_program(struct programs *p, enum observe_program i) {
        (void)bpf_link__destroy(p->links[i]);
        p->links[i] = NULL;
}

void programs_free(struct programs *p) {
        if (!p)
                return;
        for (size_t i = 0; i < _OBSERVE_PROGRAM_MAX; i++)
                detach_program(p, i);
        bpf_object__close(p->object);
        if (p->maps_made)
                probe_maps_done(&p->maps);
        free(p);
}

static void attach(struct programs *p, enum observe_program i, int slice_fd) {
        struct bpf_link *link;

        if (!p->loaded[i] || p->links[i])
                return;
        if (i == OBSERVE_TASKS)
                link = bpf_program__attach_iter(p->loaded[i], NULL);
        else if (i == OBSERVE_INGRESS || i == OBSERVE_EGRESS)
                link = bpf_program__attach_cgroup(p->loaded[i], slice_fd);
        else
                link = bpf_program__attach(p->loaded[i]);
        if (!link) {
                object_refused(&p->states[i], "cannot be attached", -errno);
                return;
        }
        p->links[i] = link;
        p->states[i].up = true;
        *p->states[i].why = 0;
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

static void write_place(struct programs *p, bool recover) {
        const struct probe_place place = { .slice = p->slice, .recover = recover };
        uint32_t zero = 0;

        (void)bpf_map_update_elem(p->maps.fd[PROBE_MAP_PLACE], &zero, &place, BPF_ANY);
}

/* Ahead of the program that adds up what ends: what ends in between is counted by neither, and nothing by
 * both. */
static void recover(struct programs *p) {
        struct probe_state state;
        uint32_t zero = 0;
        char buf[64]; /* the program writes nothing */
        int fd;

        if (p->recovered || !p->links[OBSERVE_TASKS] ||
            bpf_map_lookup_elem(p->maps.fd[PROBE_MAP_STATE], &zero, &state) < 0)
                return;
        p->recovered = true;
        state.pass++;
        (void)bpf_map_update_elem(p->maps.fd[PROBE_MAP_STATE], &zero, &state, BPF_ANY);
        write_place(p, true);
        fd = bpf_iter_create(bpf_link__fd(p->links[OBSERVE_TASKS]));
        while (fd >= 0) {
                ssize_t n = read(fd, buf, sizeof(buf));

                if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
                        break;
        }
        close_fd(fd);
        write_place(p, false);
}

static void say_homeless(struct programs *p) {
        for (size_t i = 0; i < _OBSERVE_PROGRAM_MAX; i++)
                if (p->loaded[i] && !p->links[i])
                        strcpy(p->states[i].why, "there is no primus.slice on a cgroup v2 hierarchy");
}

int programs_set_slice(struct programs *p, int slice_fd) {
        struct stat st;

        if (slice_fd < 0) {
                say_homeless(p);
                return 0;
        }
        if (fstat(slice_fd, &st) < 0)
                return -errno;
        if (p->slice == st.st_ino || !p->maps_made)
                return 0;
        detach_program(p, OBSERVE_INGRESS);
        detach_program(p, OBSERVE_EGRESS);
        p->slice = st.st_ino;
        write_place(p, false);
        attach(p, OBSERVE_TASKS, slice_fd);
        recover(p);
        for (size_t i = 0; i < _OBSERVE_PROGRAM_MAX; i++) {
                if (i == OBSERVE_BLOCK && !has_io_controller(slice_fd)) {
                        detach_program(p, i);
                        p->states[i].up = false;
                        p->states[i].out_of_place = p->loaded[i];
                        if (p->loaded[i])
                                strcpy(p->states[i].why, "the io controller is not on the v2 hierarchy here");
                        continue;
                }
                p->states[i].out_of_place = false;
                attach(p, i, slice_fd);
        }
        return 0;
}

const struct program_state *programs_states(const struct programs *p) {
        return p->states;
}

int programs_descriptor(const struct programs *p, const char *name) {
        static const struct {
                const char *name;
                enum probe_map map;
        } maps[] = {
                { OBSERVE_MAP_STATE, PROBE_MAP_STATE },
                { OBSERVE_MAP_UNITS, PROBE_MAP_UNITS },
                { OBSERVE_MAP_FLOWS, PROBE_MAP_FLOWS },
                { OBSERVE_MAP_EVENTS, PROBE_MAP_EVENTS },
        };

        if (strcmp(name, OBSERVE_LINK_TASKS) == 0)
                return p->links[OBSERVE_TASKS] ? bpf_link__fd(p->links[OBSERVE_TASKS]) : -EBADF;
        for (size_t i = 0; p->maps_made && i < ELEMENTSOF(maps); i++)
                if (strcmp(name, maps[i].name) == 0)
                        return p->maps.fd[maps[i].map];
        return -EBADF;
}
