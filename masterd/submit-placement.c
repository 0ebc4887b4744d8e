/* SPDX-License-Identifier: Apache-2.0 */
/* What no host of the cluster is, said at submit: better than a job that waits for ever. Whether there are
 * enough such hosts is another question, which the queue answers. */
#include "masterd/submit-placement.h"

#include <errno.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "masterd/manager.h"
#include "masterd/placement-describe.h"
#include "masterd/placement-parts.h"

#define ERROR_REFUSED "org.primus.Error.Refused"
#define VALUES_MAX 12u /* told of */

/* Different texts, the first of them; for a person who wonders what there is. */
struct known {
        const char *values[VALUES_MAX];
        size_t n;
        bool more;
};

static void know(struct known *k, const char *value) {
        for (size_t i = 0; i < k->n; i++)
                if (strcmp(k->values[i], value) == 0)
                        return;
        if (k->n < VALUES_MAX)
                k->values[k->n++] = value;
        else
                k->more = true;
}

/* "a, b, c ..."; allocated. */
static char *known_text(const struct known *k) {
        char *text = NULL;
        size_t size;
        FILE *f = open_memstream(&text, &size);

        if (!f)
                return NULL;
        for (size_t i = 0; i < k->n; i++)
                fprintf(f, "%s%s", i > 0 ? ", " : "", k->values[i]);
        if (k->more)
                fputs(" ...", f);
        if (k->n == 0)
                fputs("none", f);
        return fclose(f) == 0 ? text : NULL;
}

static int refuse(sd_bus_error *error, const struct known *k, const char *what, const char *of_what) {
        _cleanup_free_ char *text = known_text(k);

        return sd_bus_error_setf(error, ERROR_REFUSED, "%s; known %s: %s", what, of_what, text ?: "");
}

static void know_values(struct manager *m, const char *key, struct known *k) {
        for (struct node *node = m->nodes.by_name; node; node = node->hh.next)
                for (char **l = node->labels; l && *l; l++) {
                        const char *value = label_value(*l, key);
                        if (value && *value)
                                know(k, value);
                }
}

static void know_keys(struct manager *m, struct known *k, char (*keys)[LABEL_MAX + 1]) {
        for (struct node *node = m->nodes.by_name; node; node = node->hh.next)
                for (char **l = node->labels; l && *l && k->n < VALUES_MAX; l++) {
                        snprintf(keys[k->n], sizeof(*keys), "%.*s", (int)strcspn(*l, "="), *l);
                        know(k, keys[k->n]);
                }
}

static int refuse_constraint(struct manager *m, const struct role_spec *role, size_t i,
                             const struct constraint *c, sd_bus_error *error) {
        char keys[VALUES_MAX][LABEL_MAX + 1];
        _cleanup_free_ char *what = NULL;
        struct known k = {};

        if (asprintf(&what, "no host of the cluster has %s (role %s, constraint %zu)", c->text, role->name,
                     i + 1) < 0)
                return -ENOMEM;
        know_values(m, c->key, &k);
        if (k.n > 0 || c->op == CONSTRAINT_HAS_NO)
                return refuse(error, &k, what, "values");
        know_keys(m, &k, keys);
        return refuse(error, &k, what, "labels");
}

static int refuse_gpus(struct manager *m, const struct role_spec *role, sd_bus_error *error) {
        const struct placement_spec *p = &role->placement;
        char models[VALUES_MAX][PLACEMENT_GPU_MODEL_MAX + 32], memory[32] = "";
        _cleanup_free_ char *what = NULL;
        struct known k = {};

        if (p->gpu_memory_mb > 0)
                snprintf(memory, sizeof(memory), " with %u MiB or more", p->gpu_memory_mb);
        if (asprintf(&what, "no host of the cluster has a GPU %s%s%s%s (role %s, gpu)", p->gpu_model ?: "",
                     memory, p->gpu_mig ? " in parts of " : "", p->gpu_mig ?: "", role->name) < 0)
                return -ENOMEM;
        for (struct node *node = m->nodes.by_name; node; node = node->hh.next)
                for (size_t i = 0; i < node->inventory.n_gpus && k.n < VALUES_MAX; i++) {
                        const struct gpu_info *g = &node->inventory.gpus[i];
                        char model[PLACEMENT_GPU_MODEL_MAX];
                        uint32_t mib = placement_gpu_memory_mib(g);
                        placement_gpu_model(g->model ?: "", model, sizeof(model));
                        snprintf(models[k.n], sizeof(*models), mib > 0 ? "%s (%u MiB)" : "%s", model, mib);
                        know(&k, models[k.n]);
                }
        return refuse(error, &k, what, "GPUs");
}

static int admit_role(struct manager *m, const struct role_spec *role, sd_bus_error *error) {
        _cleanup_(shape_data_done) struct shape_data d = {};
        struct sched *s = m->placement->sched;
        struct sched_shape shape, gpus;
        uint32_t n;
        int r = shape_build(m, NULL, role, &shape, &d);

        if (r < 0)
                return r;
        for (size_t i = 0; i < shape.n_required; i++)
                if (sched_constraint_count(s, shape.required[i]) == 0)
                        return refuse_constraint(m, role, i, shape.required[i], error);
        gpus = (struct sched_shape){ .gpu = shape.gpu };
        r = sched_shape_nodes(s, &gpus, &n);
        if (r < 0)
                return r;
        if (n == 0)
                return refuse_gpus(m, role, error);
        r = sched_shape_nodes(s, &shape, &n);
        if (r < 0)
                return r;
        return n > 0 ? 0
                     : sd_bus_error_setf(
                               error, ERROR_REFUSED,
                               "no host of the cluster meets all constraints of role %s together, though "
                               "each of them is met by some; leave one out, or make it one of prefer",
                               role->name);
}

/* Licences that masterd.conf names, and as many as the least number of executors takes. */
static int admit_licences(struct manager *m, const struct role_spec *role, sd_bus_error *error) {
        const struct placement_conf *c = &m->conf.placement;
        const struct placement_spec *p = &role->placement;

        for (size_t i = 0; i < p->n_consumables; i++) {
                char name[SCHED_CONSUMABLE_MAX + 1];
                struct known known = {};
                size_t k = 0;
                uint32_t n;
                int r = spec_consumable(p->consumables[i], name, sizeof(name), &n);
                if (r < 0)
                        return r;
                for (; k < c->n_licences && strcmp(c->licences[k].name, name) != 0; k++)
                        know(&known, c->licences[k].name);
                if (k == c->n_licences) {
                        _cleanup_free_ char *what = NULL;
                        if (asprintf(&what, "masterd.conf has no licences %s (role %s, consumables)", name,
                                     role->name) < 0)
                                return -ENOMEM;
                        return refuse(error, &known, what, "licences");
                }
                if ((uint64_t)n * role->min_num > c->licences[k].total)
                        return sd_bus_error_setf(
                                error, ERROR_REFUSED,
                                "role %s takes %llu of the licences %s for %u executors; the cluster "
                                "has %llu",
                                role->name, (unsigned long long)n * role->min_num, name, role->min_num,
                                (unsigned long long)c->licences[k].total);
        }
        return 0;
}

static int admit_topology(struct manager *m, const struct job_spec *spec, sd_bus_error *error) {
        const struct placement_conf *c = &m->conf.placement;
        struct known k = {};
        _cleanup_free_ char *what = NULL;

        if (spec->topology.mode == TOPOLOGY_ANYWHERE)
                return 0;
        /* Hosts are there without anybody naming a label for them. */
        if (spec->topology.mode == TOPOLOGY_SPREAD && spec->topology.level &&
            strcmp(spec->topology.level, TOPOLOGY_LEVEL_HOST) == 0)
                return 0;
        if (c->n_levels == 0)
                return sd_bus_error_set(
                        error, ERROR_REFUSED,
                        "topology: this cluster has no levels; name labels of hosts in Topology= of "
                        "masterd.conf, or leave topology out");
        for (size_t i = 0; i < c->n_levels; i++) {
                if (!spec->topology.level || strcmp(c->levels[i], spec->topology.level) == 0)
                        return 0;
                know(&k, c->levels[i]);
        }
        if (asprintf(&what, "topology: %s is no level of this cluster", spec->topology.level) < 0)
                return -ENOMEM;
        return refuse(error, &k, what, "levels");
}

int submit_placement_admit(struct manager *m, const struct job_spec *spec, sd_bus_error *error) {
        bool any = false;
        int r = admit_topology(m, spec, error);

        for (struct node *node = m->nodes.by_name; node && !any; node = node->hh.next)
                any = node->in_sched;
        for (size_t i = 0; i < spec->n_roles && r >= 0; i++) {
                r = admit_licences(m, spec->roles + i, error);
                if (r >= 0 && any)
                        r = admit_role(m, spec->roles + i, error);
        }
        return r;
}
