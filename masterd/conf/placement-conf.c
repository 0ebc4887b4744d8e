/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of placement. Invariant: a value with a mistake in it changes nothing. */
#include "masterd/conf/placement-conf.h"

#include <errno.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/parse.h"

int placement_parse_topology(const char *value, void *target, const char **ret_why) {
        struct placement_conf *c = target, new = {};
        _cleanup_free_ char *copy = strdup(value);
        char *save = NULL;

        *ret_why = "expected up to 8 labels of hosts, the nearest first, such as: switch rack";
        if (!copy)
                return -ENOMEM;
        for (char *word = strtok_r(copy, " \t", &save); word; word = strtok_r(NULL, " \t", &save)) {
                if (new.n_levels == SCHED_LEVELS_MAX || label_key_check(word, NULL) < 0)
                        return -EINVAL;
                snprintf(new.levels[new.n_levels++], sizeof(new.levels[0]), "%s", word);
        }
        memcpy(c->levels, new.levels, sizeof(c->levels));
        c->n_levels = new.n_levels;
        return 0;
}

int placement_parse_licences(const char *value, void *target, const char **ret_why) {
        struct placement_conf *c = target;
        _cleanup_free_ struct licence *list = calloc(SCHED_CONSUMABLES_MAX, sizeof(*list));
        _cleanup_free_ char *copy = strdup(value);
        char *save = NULL;
        size_t n = 0;

        *ret_why = "expected up to 64 licences with their numbers, such as: matlab=10 abaqus=5";
        if (!copy || !list)
                return -ENOMEM;
        for (char *word = strtok_r(copy, " \t", &save); word; word = strtok_r(NULL, " \t", &save)) {
                char *number = strchr(word, '=');
                uint32_t total;
                if (!number || n == SCHED_CONSUMABLES_MAX)
                        return -EINVAL;
                *number++ = 0;
                if (label_key_check(word, NULL) < 0 || strlen(word) > SCHED_CONSUMABLE_MAX ||
                    parse_u32(number, 0, INT32_MAX, &total) < 0)
                        return -EINVAL;
                list[n].total = total;
                snprintf(list[n++].name, sizeof(list->name), "%s", word);
        }
        memcpy(c->licences, list, SCHED_CONSUMABLES_MAX * sizeof(*list));
        c->n_licences = n;
        return 0;
}

int placement_configure(struct sched *s, const struct placement_conf *c) {
        const char *keys[SCHED_LEVELS_MAX], *name;
        uint64_t total, held;
        int r;

        for (size_t i = 0; i < c->n_levels; i++)
                keys[i] = c->levels[i];
        r = sched_topology_set(s, keys, c->n_levels);
        for (uint32_t i = 0; r >= 0 && sched_consumable_get(s, i, &name, &total, &held) >= 0; i++)
                r = sched_consumable_set(s, name, 0, NULL);
        for (size_t i = 0; r >= 0 && i < c->n_licences; i++)
                r = sched_consumable_set(s, c->licences[i].name, c->licences[i].total, NULL);
        return r;
}
