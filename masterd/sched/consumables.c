/* SPDX-License-Identifier: Apache-2.0 */
/* What the cluster as a whole has so much of: licences. */
#include <errno.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "masterd/sched/internal.h"

int sched_consumable_find(const struct sched *s, const char *name, uint32_t *ret_index) {
        for (uint32_t i = 0; i < s->n_consumables; i++)
                if (strcmp(s->consumables[i].name, name) == 0) {
                        *ret_index = i;
                        return 0;
                }
        return -ENOENT;
}

int sched_consumable_set(struct sched *s, const char *name, uint64_t total, uint32_t *ret_index) {
        uint32_t i;

        if (!*name || strlen(name) > SCHED_CONSUMABLE_MAX || total > INT64_MAX)
                return -EINVAL;
        if (sched_consumable_find(s, name, &i) < 0) {
                char *copy;
                if (s->n_consumables == SCHED_CONSUMABLES_MAX)
                        return -E2BIG;
                copy = strdup(name);
                if (!copy)
                        return -ENOMEM;
                i = s->n_consumables++;
                s->consumables[i] = (struct consumable){ .name = copy };
        }
        s->consumables[i].total = total;
        s->grown++;
        s->changed++;
        if (ret_index)
                *ret_index = i;
        return 0;
}

int sched_consumable_get(const struct sched *s, uint32_t index, const char **ret_name, uint64_t *ret_total,
                         uint64_t *ret_held) {
        if (index >= s->n_consumables)
                return -ENOENT;
        *ret_name = s->consumables[index].name;
        *ret_total = s->consumables[index].total;
        *ret_held = s->consumables[index].held;
        return 0;
}

uint32_t consumables_room(const struct sched *s, const struct need *n, uint32_t limit, bool empty,
                          uint32_t *ret_scarce) {
        for (size_t i = 0; i < n->n_amounts; i++) {
                const struct sched_amount *a = &n->amounts[i];
                const struct consumable *c = &s->consumables[a->index];
                uint64_t held = empty ? 0 : MIN(c->held, c->total), k;
                if (a->n == 0)
                        continue;
                k = (c->total - held) / a->n;
                if (k < limit) {
                        limit = (uint32_t)k;
                        if (ret_scarce)
                                *ret_scarce = a->index;
                }
        }
        return limit;
}

void consumables_take(struct sched *s, const struct sched_amount *a, size_t n, uint32_t k) {
        for (size_t i = 0; i < n; i++)
                s->consumables[a[i].index].held += (uint64_t)a[i].n * k;
}

void consumables_return(struct sched *s, const struct sched_amount *a, size_t n, uint32_t k) {
        for (size_t i = 0; i < n; i++)
                s->consumables[a[i].index].held -= (uint64_t)a[i].n * k;
}
