/* SPDX-License-Identifier: Apache-2.0 */
/* A BPF object that is part of this program, loaded as far as the kernel lets it. Inside the room; built only
 * where libbpf is there. */
#pragma once

#include <bpf/libbpf.h>
#include <stddef.h>

#include "lib/base/cleanup.h"
#include "lib/observe/observe.h"
#include "starter/observe/images.h"
#include "starter/observe/programs.h"

/* Maps that all objects share: names as in bpf/probe.bpf.h. */
enum probe_map {
        PROBE_MAP_PLACE,
        PROBE_MAP_STATE,
        PROBE_MAP_UNITS,
        PROBE_MAP_FLOWS,
        PROBE_MAP_VICTIMS,
        PROBE_MAP_EVENTS,
        _PROBE_MAP_MAX
};
struct probe_maps {
        int fd[_PROBE_MAP_MAX];
};
/* All or none. */
int probe_maps_new(struct probe_maps *ret);
void probe_maps_done(struct probe_maps *m);

/* One task, in up to two forms: which of them this kernel understands is found out by loading. */
#define PROBE_FORMS_MAX 2
struct object_program {
        const char *forms[PROBE_FORMS_MAX]; /* functions of the object; the second may be NULL */
        struct program_state *state;        /* written: why, where none could be loaded. A why that is there
                                               already keeps the program from being loaded. */
        struct bpf_program *loaded;         /* written: NULL where none could be */
};

/* Loads what can be loaded of image; programs are loaded[]-ed then, to be attached, and live as long as the
 * object. NULL in *ret where nothing could be. */
void object_load(const struct probe_image *image, const struct probe_maps *maps,
                 struct object_program *programs, size_t n, struct bpf_object **ret);

/* Why the kernel refuses, for people: what failed, with a negative errno. */
void object_refused(struct program_state *p, const char *what, int error);
