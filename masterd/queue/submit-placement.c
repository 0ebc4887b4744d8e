/* SPDX-License-Identifier: Apache-2.0 */
/* What no host of the cluster is, and what its hosts do not hold together even when they are empty, said at
 * submit: better than a job that waits for ever. When there is room is another question, which the queue
 * answers. */
#include "masterd/queue/submit-placement.h"

#include <errno.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/wire/errors.h"
#include "masterd/core/manager.h"
#include "masterd/queue/placement-describe.h"
#include "masterd/queue/placement-parts.h"

#define WAIT_FOR_IT                                                                                          \
        "; ask for less, or let the job wait for hosts that come later: --wait-for-hosts (key waitForHosts)"
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

/* ---- names and amounts ---- */

static int refuse_name(struct manager *m, const struct role_spec *role, const char *name,
                       sd_bus_error *error) {
        _cleanup_free_ char *what = NULL;
        struct known k = {};

        for (struct node *node = m->nodes.by_name; node; node = node->hh.next)
                know(&k, node->name);
        if (asprintf(&what, "no host of the cluster is called %s (role %s, nodes)" WAIT_FOR_IT, name,
                     role->name) < 0)
                return -ENOMEM;
        return refuse(error, &k, what, "hosts");
}

/* "16 CPUs", "1.5 GiB of memory", of what a host or an executor has. */
static void amount_text(uint32_t resource, const struct sched_capacity *c, char *buf, size_t size) {
        double gib = (double)(resource == SCHED_MEMORY ? c->memory : c->shm) / (1 << 30);

        if (resource == SCHED_CPU)
                snprintf(buf, size, "%g CPU%s", c->cpu_milli / 1000.0, c->cpu_milli == 1000 ? "" : "s");
        else if (resource == SCHED_GPUS)
                snprintf(buf, size, "%u GPU%s", c->gpus, c->gpus == 1 ? "" : "s");
        else
                snprintf(buf, size, "%.3g GiB of %s", gib,
                         resource == SCHED_MEMORY ? "memory" : "shared memory");
}

/* One executor is more than any host. */
static int refuse_size(const struct role_spec *role, const struct sched_shape *h, const struct sched_ever *e,
                       sd_bus_error *error) {
        static const uint32_t measured[] = { SCHED_GPUS, SCHED_MEMORY, SCHED_CPU, SCHED_SHM };
        const struct sched_capacity one = {
                .cpu_milli = h->cpu_milli, .memory = h->memory, .gpus = h->gpus, .shm = h->shm
        };
        char wanted[64], most[64];

        for (size_t i = 0; i < ELEMENTSOF(measured); i++) {
                if (!(e->short_ & measured[i]))
                        continue;
                amount_text(measured[i], &one, wanted, sizeof(wanted));
                amount_text(measured[i], &e->most, most, sizeof(most));
                return sd_bus_error_setf(
                        error, ERROR_REFUSED,
                        "no host that role %s may use has %s for one executor; the most that one has "
                        "is %s" WAIT_FOR_IT,
                        role->name, wanted, measured[i] == SCHED_GPUS && e->most.gpus == 0 ? "none" : most);
        }
        return sd_bus_error_setf(
                error, ERROR_REFUSED,
                "no host that role %s may use holds one of its executors even when it is empty; "
                "there are %u such hosts" WAIT_FOR_IT,
                role->name, e->nodes);
}

static bool role_is_apart(const struct role_spec *role) {
        for (size_t i = 0; i < role->placement.n_anti_affinity; i++)
                if (strcmp(role->placement.anti_affinity[i], role->name) == 0)
                        return true;
        return false;
}

/* All of the least number, at once, on hosts that are empty. */
static int admit_amounts(struct manager *m, const struct role_spec *role, struct sched_shape *h,
                         sd_bus_error *error) {
        struct sched_ever ever;
        int r;

        for (size_t i = 0; i < role->n_nodes; i++) {
                const struct node *node = nodes_get(&m->nodes, role->nodes[i]);
                if (!node)
                        return refuse_name(m, role, role->nodes[i], error);
                if (!node->in_sched)
                        return 0; /* it has not said what it has */
        }
        h->min = h->max = MAX(role->min_num, 1u);
        h->max_per_node = role_is_apart(role) ? 1 : h->max_per_node;
        r = sched_shape_ever(m->placement->sched, h, &ever);
        if (r < 0)
                return r;
        if (ever.fits >= h->min)
                return 0;
        if (ever.nodes == 0)
                return sd_bus_error_setf(
                        error, ERROR_REFUSED,
                        "none of the hosts named for role %s is what its constraints ask for" WAIT_FOR_IT,
                        role->name);
        if (ever.fits == 0)
                return refuse_size(role, h, &ever, error);
        return sd_bus_error_setf(
                error, ERROR_REFUSED,
                "role %s needs %u executors at once%s; even when they are empty, the hosts that it "
                "may use (%u) hold %u of them" WAIT_FOR_IT,
                role->name, h->min,
                h->max_per_node == 1 || h->per_node == 1 ? ", each on a host of its own" : "", ever.nodes,
                ever.fits);
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
        if (n == 0)
                return sd_bus_error_setf(
                        error, ERROR_REFUSED,
                        "no host of the cluster meets all constraints of role %s together, though "
                        "each of them is met by some; leave one out, or make it one of prefer",
                        role->name);
        return admit_amounts(m, role, &shape, error);
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

static bool any_host(const struct manager *m) {
        for (struct node *node = m->nodes.by_name; node; node = node->hh.next)
                if (node->in_sched)
                        return true;
        return false;
}

int submit_placement_admit(struct manager *m, const struct job_spec *spec, sd_bus_error *error) {
        bool judged = !spec->waits.for_hosts && any_host(m);
        int r = admit_topology(m, spec, error);

        for (size_t i = 0; i < spec->n_roles && r >= 0; i++) {
                r = admit_licences(m, spec->roles + i, error);
                if (r >= 0 && judged)
                        r = admit_role(m, spec->roles + i, error);
        }
        return r;
}

static bool asks_for_more(const struct role_spec *a, const struct role_spec *b) {
        return a->min_num < b->min_num || a->cpu_milli < b->cpu_milli || a->memory < b->memory ||
               a->gpus < b->gpus || a->ports < b->ports;
}

int submit_placement_admit_change(struct manager *m, const struct job_spec *from, const struct job_spec *to,
                                  sd_bus_error *error) {
        int r = 0;

        if (to->waits.for_hosts || !any_host(m))
                return 0;
        for (size_t i = 0; i < to->n_roles && r >= 0; i++) {
                const struct role_spec *before = spec_role(from, to->roles[i].name);
                if (before && asks_for_more(before, to->roles + i))
                        r = admit_role(m, to->roles + i, error);
        }
        return r;
}
