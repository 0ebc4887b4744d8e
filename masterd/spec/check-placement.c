/* SPDX-License-Identifier: Apache-2.0 */
/* Where executors may go: single texts, and rules between keys. Invariant: what is accepted the scheduler
 * takes; whether any host is such is masterd's to say at submit. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/labels.h"
#include "lib/base/parse.h"
#include "masterd/spec/check.h"
#include "masterd/spec/valid.h"

bool valid_constraint(const char *s, const char **ret_why) {
        struct constraint *c;

        *ret_why = "must be a condition on labels of hosts";
        if (constraint_parse(s, &c, ret_why) < 0)
                return false;
        constraint_free(c);
        return true;
}

bool valid_label_key(const char *s, const char **ret_why) {
        return label_key_check(s, ret_why) == 0;
}

bool valid_label_value(const char *s, const char **ret_why) {
        char label[LABEL_MAX + 4];

        *ret_why = "must not have spaces, commas, parentheses or equals signs";
        return snprintf(label, sizeof(label), "x=%s", s) < (int)sizeof(label) &&
               label_check(label, NULL) == 0;
}

int spec_consumable(const char *text, char *name, size_t size, uint32_t *ret_n) {
        size_t n = strcspn(text, "=");

        if (n == 0 || n >= size || text[n] != '=' || parse_u32(text + n + 1, 1, INT32_MAX, ret_n) < 0)
                return -EINVAL;
        memcpy(name, text, n);
        name[n] = 0;
        return 0;
}

static struct place place_in(size_t i, const char *key) {
        struct place p = place_of("role");

        place_push(&p, NULL, i);
        place_push(&p, key, 0);
        return p;
}

static size_t role_index(const struct job_spec *s, const char *name) {
        size_t i = 0;

        while (i < s->n_roles && strcmp(s->roles[i].name, name) != 0)
                i++;
        return i;
}

/* Bits of the roles that the list names. */
static int check_roles(struct reader *r, const struct job_spec *s, size_t i, const char *key,
                       char *const *names, uint64_t *ret) {
        uint64_t bits = 0;

        for (size_t k = 0; names[k]; k++) {
                size_t other = role_index(s, names[k]);
                struct place p = place_in(i, key);
                place_push(&p, NULL, k);
                if (other == s->n_roles)
                        return report_at(r, p, "there is no role %s", names[k]);
                bits |= UINT64_C(1) << other;
        }
        *ret = bits;
        return 0;
}

static int check_role(struct reader *r, const struct job_spec *s, size_t i, uint64_t *ret_near) {
        const struct role_spec *role = &s->roles[i];
        const struct placement_spec *p = &role->placement;
        size_t errors = r->diagnostics->n_errors;
        uint64_t near = 0, apart = 0;
        char name[65];
        uint32_t n;
        int q;

        if (p->n_constraints + p->n_prefer + p->rdma > SPEC_CONSTRAINTS_MAX)
                return report_at(r, place_in(i, "prefer"),
                                 "with constraints there are %zu; at most %u are accepted",
                                 p->n_constraints + p->n_prefer, SPEC_CONSTRAINTS_MAX);
        if (role->gpus == 0 && (p->gpu_model || p->gpu_mig || p->gpu_memory_mb > 0))
                return report_at(r, place_in(i, "gpu"), "says which GPUs, but gpuNum is 0: say how many");
        if (p->cpu_policy == CPU_EXCLUSIVE && (role->cpu_milli == 0 || role->cpu_milli % 1000 != 0))
                return report_at(r, place_in(i, "cpuPolicy"),
                                 "exclusive needs whole CPUs: vcores must be 1 or more, "
                                 "without a fraction");
        if (p->cpu_policy == CPU_EXCLUSIVE && role->cpu_milli / 1000 > SPEC_EXCLUSIVE_CPUS_MAX)
                return report_at(r, place_in(i, "vcores"), "at most %u can be exclusive",
                                 SPEC_EXCLUSIVE_CPUS_MAX);
        if (p->numa != NUMA_NONE && p->cpu_policy != CPU_EXCLUSIVE && role->gpus == 0)
                return report_at(r, place_in(i, "numa"),
                                 "has nothing to align: it is about exclusive CPUs (cpuPolicy) and GPUs");
        for (size_t k = 0; k < p->n_consumables; k++)
                if (spec_consumable(p->consumables[k], name, sizeof(name), &n) < 0) {
                        struct place at = place_in(i, "consumables");
                        return report_at(r, at,
                                         "%s: a name of at most 64 characters and a whole number from 1 are "
                                         "expected",
                                         p->consumables[k]);
                }
        q = check_roles(r, s, i, "affinity", p->affinity, &near);
        if (q < 0 || r->diagnostics->n_errors > errors)
                return q;
        q = check_roles(r, s, i, "antiAffinity", p->anti_affinity, &apart);
        if (q < 0 || r->diagnostics->n_errors > errors)
                return q;
        if (near >> i & 1)
                return report_at(r, place_in(i, "affinity"),
                                 "names the role itself; replicasPerNode puts executors "
                                 "of one role together");
        if (near & apart)
                return report_at(r, place_in(i, "antiAffinity"), "names a role that affinity names as well");
        ret_near[i] = near;
        return 0;
}

/* A role that is near to another which is, perhaps over others, near to it. */
static int check_circles(struct reader *r, const struct job_spec *s, const uint64_t *near) {
        uint64_t all = s->n_roles >= 64 ? UINT64_MAX : (UINT64_C(1) << s->n_roles) - 1, done = 0, before;

        do {
                before = done;
                for (size_t i = 0; i < s->n_roles; i++)
                        if (!(near[i] & ~done))
                                done |= UINT64_C(1) << i;
        } while (done != before);
        if (done == all)
                return 0;
        return report_at(r, place_in((size_t)__builtin_ctzll(~done), "affinity"),
                         "goes in a circle; say it of one of the roles alone");
}

int check_placement(struct reader *r, const struct job_spec *s) {
        uint64_t near[SPEC_ROLES_MAX] = {};
        size_t errors = r->diagnostics->n_errors;
        int q = 0;

        for (size_t i = 0; i < s->n_roles && q >= 0; i++)
                q = check_role(r, s, i, near);
        if (q >= 0 && r->diagnostics->n_errors == errors)
                q = check_circles(r, s, near);
        return MIN(q, 0);
}
