/* SPDX-License-Identifier: Apache-2.0 */
/* In the place of programs.c where the starter is built without BPF: says so of every program. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "starter/observe/programs.h"

struct programs {
        struct program_state states[_OBSERVE_PROGRAM_MAX];
};

int programs_new(struct programs **ret) {
        struct programs *p = calloc(1, sizeof(*p));

        if (!p)
                return -ENOMEM;
        for (size_t i = 0; i < _OBSERVE_PROGRAM_MAX; i++) {
                p->states[i].name = observe_program_name((enum observe_program)i);
                strcpy(p->states[i].why,
                       "Primus was built without BPF (libbpf, and clang for the target bpf)");
        }
        *ret = p;
        return 0;
}

void programs_free(struct programs *p) {
        free(p);
}

int programs_set_slice(struct programs *p, int slice_fd) {
        return 0;
}

const struct program_state *programs_states(const struct programs *p) {
        return p->states;
}

int programs_descriptor(const struct programs *p, const char *name) {
        return -EBADF;
}
