/* SPDX-License-Identifier: Apache-2.0 */
/* Labels, GPUs and NUMA nodes of a node. Invariant: what an agent says wrongly makes its node plainer, never
 * unusable. */
#include "masterd/queue/placement-describe.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/cpulist.h"
#include "lib/base/labels.h"
#include "lib/base/log.h"
#include "lib/base/strv.h"
#include "masterd/core/manager.h"
#include "masterd/queue/placement-parts.h"

static bool starts_with(const char *s, const char *prefix) {
        return strncasecmp(s, prefix, strlen(prefix)) == 0;
}

/* A word of a name that tells of its form or memory: "SXM4", "PCIe", "80GB", "HBM3", "NVL". */
static bool is_form(const char *word, size_t n) {
        static const char *const forms[] = { "SXM", "PCI", "HBM", "NVL", "GRID" };

        for (size_t i = 0; i < ELEMENTSOF(forms); i++)
                if (starts_with(word, forms[i]))
                        return true;
        return n > 2 && isdigit((unsigned char)word[0]) && strncasecmp(word + n - 2, "GB", 2) == 0;
}

void placement_gpu_model(const char *model, char *buf, size_t size) {
        static const char *const vendors[] = { "NVIDIA ", "AMD ", "Intel ", "Tesla ", "GeForce ", "Quadro " };
        size_t used = 0;

        for (size_t i = 0; i < ELEMENTSOF(vendors); i++)
                if (starts_with(model, vendors[i]))
                        model += strlen(vendors[i]);
        while (*model) {
                size_t n = strcspn(model, " -"), k = 0;
                if (used > 0 && is_form(model, n))
                        break;
                if (n > 0 && used > 0 && used + 1 < size)
                        buf[used++] = '-';
                for (; k < n && used + 1 < size; k++)
                        if (isalnum((unsigned char)model[k]) || strchr("._", model[k]))
                                buf[used++] = model[k];
                model += n;
                model += strspn(model, " -");
        }
        buf[used] = 0;
}

uint32_t placement_gpu_memory_mib(const struct gpu_info *g) {
        if (g->memory > 0)
                return (uint32_t)MIN(g->memory >> 20, (uint64_t)UINT32_MAX);
        for (const char *p = g->model; *p; p++)
                if (isdigit((unsigned char)*p) && (p == g->model || !isalnum((unsigned char)p[-1]))) {
                        char *end;
                        unsigned long gib = strtoul(p, &end, 10);
                        if (strncasecmp(end, "GB", 2) == 0 && gib < 4096)
                                return (uint32_t)gib * 1024;
                }
        return 0;
}

/* ---- labels ---- */

static bool has_key(char *const *labels, const char *key) {
        for (; labels && *labels; labels++)
                if (label_value(*labels, key))
                        return true;
        return false;
}

static int add_label(struct inventory *i, const char *key, const char *value) {
        size_t n = strings_count(i->labels);
        char label[LABEL_MAX + 1], **bigger;

        if (snprintf(label, sizeof(label), "%s=%s", key, value) >= (int)sizeof(label) ||
            label_check(label, NULL) < 0 || has_key(i->labels, key) || n >= LINK_LABELS_MAX)
                return 0;
        bigger = reallocarray(i->labels, n + 2, sizeof(*bigger));
        if (!bigger)
                return -ENOMEM;
        i->labels = bigger;
        bigger[n] = strdup(label);
        if (!bigger[n])
                return -ENOMEM;
        bigger[n + 1] = NULL;
        return 0;
}

int placement_add_labels(const char *name, struct inventory *i) {
        char model[PLACEMENT_GPU_MODEL_MAX] = "", other[PLACEMENT_GPU_MODEL_MAX];
        int r = add_label(i, "host", name);

        for (size_t k = 0; k < i->n_gpus; k++) {
                placement_gpu_model(i->gpus[k].model, other, sizeof(other));
                if (k > 0 && strcmp(model, other) != 0)
                        return r;
                memcpy(model, other, sizeof(model));
        }
        return r >= 0 && *model ? add_label(i, "gpu.model", model) : r;
}

/* ---- all of it ---- */

int placement_describe(struct manager *m, const struct node *node) {
        const struct inventory *v = &node->inventory;
        _cleanup_free_ struct sched_gpu *gpus = calloc(SCHED_GPUS_MAX, sizeof(*gpus));
        _cleanup_free_ char(*models)[PLACEMENT_GPU_MODEL_MAX] = calloc(SCHED_GPUS_MAX, sizeof(*models));
        _cleanup_free_ struct sched_cpuset *numa = calloc(SCHED_NUMA_MAX, sizeof(*numa));
        struct sched_description d = { .labels = (const char *const *)node->labels,
                                       .n_labels = MIN(strings_count(node->labels), (size_t)SCHED_LABELS_MAX),
                                       .gpus = gpus,
                                       .numa = numa };
        int r;

        if (!gpus || !models || !numa)
                return -ENOMEM;
        for (; d.n_gpus < v->n_gpus && d.n_gpus < SCHED_GPUS_MAX; d.n_gpus++) {
                const struct gpu_info *g = &v->gpus[d.n_gpus];
                placement_gpu_model(g->model, models[d.n_gpus], sizeof(*models));
                gpus[d.n_gpus] = (struct sched_gpu){ .model = models[d.n_gpus],
                                                     .memory_mib = placement_gpu_memory_mib(g),
                                                     .mig = g->mig,
                                                     .links = g->links,
                                                     .numa = g->numa };
        }
        for (; v->numa && v->numa[d.n_numa] && d.n_numa < SCHED_NUMA_MAX; d.n_numa++)
                if (cpulist_parse(v->numa[d.n_numa], numa[d.n_numa].bits, ELEMENTSOF(numa->bits)) < 0)
                        break;
        r = sched_node_describe(m->placement->sched, node->slot, &d);
        if (r != -EINVAL)
                return r;
        log_full(LOG_WARNING, 0, &(struct log_fields){ .node = node->name },
                 "%s: what its agent says of GPUs and NUMA nodes does not fit together; it goes on without",
                 node->name);
        d.n_gpus = d.n_numa = 0;
        r = sched_node_describe(m->placement->sched, node->slot, &d);
        return r == -EINVAL ? 0 : r;
}
