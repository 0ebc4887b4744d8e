/* SPDX-License-Identifier: Apache-2.0 */
/* Loading of BPF objects. Invariant: a program that the kernel refuses keeps no other one out: it is left
 * aside, with the reason, and the rest is tried again. */
#include "starter/observe/object.h"

#include <bpf/bpf.h>
#include <string.h>

#include "bpf/events.h"
#include "lib/base/log.h"

static const struct {
        const char *name;
        enum bpf_map_type type;
        uint32_t key, value, entries;
} map_table[_PROBE_MAP_MAX] = {
        [PROBE_MAP_PLACE] = { "place", BPF_MAP_TYPE_ARRAY, sizeof(uint32_t), sizeof(struct probe_place), 1 },
        [PROBE_MAP_STATE] = { "state", BPF_MAP_TYPE_ARRAY, sizeof(uint32_t), sizeof(struct probe_state), 1 },
        [PROBE_MAP_UNITS] = { "units", BPF_MAP_TYPE_HASH, sizeof(uint64_t), sizeof(struct probe_unit),
                              PROBE_UNITS_MAX },
        [PROBE_MAP_FLOWS] = { "flows", BPF_MAP_TYPE_HASH, sizeof(uint64_t), sizeof(struct probe_flow),
                              PROBE_UNITS_MAX },
        [PROBE_MAP_VICTIMS] = { "victims", BPF_MAP_TYPE_LRU_HASH, sizeof(uint32_t), sizeof(uint64_t),
                                PROBE_VICTIMS_MAX },
        [PROBE_MAP_EVENTS] = { "events", BPF_MAP_TYPE_RINGBUF, 0, 0, PROBE_EVENTS_SIZE },
};

void probe_maps_done(struct probe_maps *m) {
        for (size_t i = 0; i < _PROBE_MAP_MAX; i++)
                m->fd[i] = close_fd(m->fd[i]);
}

int probe_maps_new(struct probe_maps *ret) {
        struct probe_maps m;

        for (size_t i = 0; i < _PROBE_MAP_MAX; i++)
                m.fd[i] = -EBADF;
        for (size_t i = 0; i < _PROBE_MAP_MAX; i++) {
                char name[16];

                snprintf(name, sizeof(name), "primus_%s", map_table[i].name);
                m.fd[i] = bpf_map_create(map_table[i].type, name, map_table[i].key, map_table[i].value,
                                         map_table[i].entries, NULL);
                if (m.fd[i] < 0) {
                        int r = m.fd[i];

                        probe_maps_done(&m);
                        return r;
                }
        }
        *ret = m;
        return 0;
}

void object_refused(struct program_state *p, const char *what, int error) {
        const char *hint = "";

        if (error == -EPERM)
                hint = ": the starter lacks CAP_BPF or CAP_PERFMON, or the kernel is locked down";
        else if (error == -ENOENT || error == -ESRCH)
                hint = ": this kernel does not have what it hooks onto";
        else if (error == -EINVAL || error == -EOPNOTSUPP)
                hint = ": this kernel cannot do it";
        p->up = false;
        snprintf(p->why, sizeof(p->why), "%s: %s%s", what, strerror(-error), hint);
}

/* ---- what libbpf says ---- */

/* libbpf hands its messages to a function without a context, and only they tell which program was refused. */
static _Thread_local struct {
        char program[64]; /* "": none was named */
        char reason[96];  /* the verifier's last sentence */
} refusal;

/* "…: failed" of a program is the first message of it; the verifier's log follows in one piece. */
static void note_refusal(const char *text) {
        const char *name = strstr(text, "prog '"), *end, *line, *log;

        if (name && !*refusal.program && strstr(text, "failed") && (end = strchr(name + 6, '\''))) {
                size_t n = MIN((size_t)(end - name - 6), sizeof(refusal.program) - 1);

                memcpy(refusal.program, name + 6, n);
                refusal.program[n] = 0;
        }
        log = strstr(text, "-- BEGIN PROG LOAD LOG --");
        if (!log || *refusal.reason || !(end = strstr(log, "\nprocessed ")))
                return;
        for (line = end; line > log && line[-1] != '\n';)
                line--;
        snprintf(refusal.reason, sizeof(refusal.reason), "%.*s", (int)(end - line), line);
}

__attribute__((format(printf, 2, 0))) static int on_print(enum libbpf_print_level level, const char *format,
                                                          va_list ap) {
        char *text;

        if (level == LIBBPF_DEBUG)
                return 0;
        if (vasprintf(&text, format, ap) < 0)
                return 0;
        text[strcspn(text, "\n") == strlen(text) - 1 ? strlen(text) - 1 : strlen(text)] = 0;
        log_debug("%s", text);
        note_refusal(text);
        free(text);
        return 0;
}

/* ---- loading ---- */

/* How far an attempt is: form[i] of program i is to be loaded, -1: none of it. */
struct attempt {
        struct object_program *programs;
        size_t n;
        int form[16];
};

static int select_programs(const struct attempt *a, struct bpf_object *object) {
        struct bpf_program *program;

        bpf_object__for_each_program(program, object)(void) bpf_program__set_autoload(program, false);
        for (size_t i = 0; i < a->n; i++) {
                if (a->form[i] < 0)
                        continue;
                program = bpf_object__find_program_by_name(object, a->programs[i].forms[a->form[i]]);
                if (!program)
                        return -ENOENT;
                (void)bpf_program__set_autoload(program, true);
        }
        return 0;
}

static int share_maps(struct bpf_object *object, const struct probe_maps *maps) {
        for (size_t i = 0; i < _PROBE_MAP_MAX; i++) {
                struct bpf_map *map = bpf_object__find_map_by_name(object, map_table[i].name);
                int r = map ? bpf_map__reuse_fd(map, maps->fd[i]) : 0;

                if (r < 0)
                        return r;
        }
        return 0;
}

static int try_load(const struct probe_image *image, const struct probe_maps *maps, const struct attempt *a,
                    struct bpf_object **ret) {
        LIBBPF_OPTS(bpf_object_open_opts, options, .object_name = image->name);
        struct bpf_object *object = bpf_object__open_mem(image->data, image->size, &options);
        int r;

        if (!object)
                return -errno;
        memset(&refusal, 0, sizeof(refusal));
        r = select_programs(a, object);
        if (r >= 0 && (r = share_maps(object, maps)) >= 0)
                r = bpf_object__load(object);
        if (r < 0) {
                bpf_object__close(object);
                return r;
        }
        *ret = object;
        return 0;
}

static void give_up(struct attempt *a, size_t i, int error) {
        struct program_state *p = a->programs[i].state;
        size_t n;

        a->form[i] = -1;
        object_refused(p, "cannot be loaded", error);
        n = strlen(p->why);
        if (*refusal.reason && n + 3 < sizeof(p->why))
                snprintf(p->why + n, sizeof(p->why) - n, " (%.*s)", (int)(sizeof(p->why) - n - 4),
                         refusal.reason);
}

/* The program that the kernel named is tried in its other form, or not at all. false: it named none that we
 * wanted, so there is nobody to leave aside. */
static bool leave_aside(struct attempt *a, int error) {
        for (size_t i = 0; i < a->n; i++) {
                struct object_program *p = &a->programs[i];

                if (a->form[i] < 0 || strcmp(p->forms[a->form[i]], refusal.program) != 0)
                        continue;
                if (a->form[i] + 1 < PROBE_FORMS_MAX && p->forms[a->form[i] + 1])
                        a->form[i]++;
                else
                        give_up(a, i, error);
                return true;
        }
        return false;
}

static bool any_left(const struct attempt *a) {
        for (size_t i = 0; i < a->n; i++)
                if (a->form[i] >= 0)
                        return true;
        return false;
}

void object_load(const struct probe_image *image, const struct probe_maps *maps,
                 struct object_program *programs, size_t n, struct bpf_object **ret) {
        struct attempt a = { .programs = programs, .n = MIN(n, ELEMENTSOF(a.form)) };
        struct bpf_object *object = NULL;
        libbpf_print_fn_t before = libbpf_set_print(on_print);
        int r;

        for (size_t i = 0; i < a.n; i++) {
                programs[i].loaded = NULL;
                a.form[i] = *programs[i].state->why ? -1 : 0;
        }
        while (any_left(&a) && (r = try_load(image, maps, &a, &object)) < 0) {
                if (leave_aside(&a, r))
                        continue;
                for (size_t i = 0; i < a.n; i++)
                        if (a.form[i] >= 0)
                                give_up(&a, i, r);
        }
        libbpf_set_print(before);
        for (size_t i = 0; object && i < a.n; i++)
                if (a.form[i] >= 0)
                        programs[i].loaded =
                                bpf_object__find_program_by_name(object, programs[i].forms[a.form[i]]);
        *ret = object;
}
