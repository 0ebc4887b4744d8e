/* SPDX-License-Identifier: Apache-2.0 */
/* How near nodes are to each other, and gangs that care. Invariant: level_of[] says what the labels say;
 * numbers of domains are never used again for another, so clones may share the names. */
#include <errno.h>
#include <string.h>

#include <uthash.h>

#include "lib/base/cleanup.h"
#include "masterd/sched/placing.h"

#define TRIES_MAX 64u /* domains of a level that are tried for one gang */

struct domain {
        uint32_t number;
        UT_hash_handle hh;
        char name[]; /* level, and the values of its label and of the farther ones' */
};

struct domains {
        uint32_t refs, n; /* numbers 1 ... n */
        struct domain *by_name;
};

/* ---- names ---- */

uint32_t domains_count(const struct domains *d) {
        return d ? d->n : 0;
}

struct domains *domains_ref(struct domains *d) {
        if (d)
                d->refs++;
        return d;
}

struct domains *domains_unref(struct domains *d) {
        struct domain *e, *next;

        if (!d || --d->refs > 0)
                return NULL;
        HASH_ITER (hh, d->by_name, e, next) {
                HASH_DEL(d->by_name, e);
                free(e);
        }
        free(d);
        return NULL;
}

static int domain_number(struct domains *d, const char *name, size_t size, uint32_t *ret) {
        struct domain *e;

        HASH_FIND(hh, d->by_name, name, size, e);
        if (!e) {
                e = malloc(sizeof(*e) + size);
                if (!e)
                        return -ENOMEM;
                memcpy(e->name, name, size);
                e->number = ++d->n;
                HASH_ADD(hh, d->by_name, name, size, e);
        }
        *ret = e->number;
        return 0;
}

int topology_describe(struct sched *s, uint32_t slot) {
        char name[1 + SCHED_LEVELS_MAX * (LABEL_MAX + 1)];
        uint32_t numbers[SCHED_LEVELS_MAX] = {};
        size_t size = 1;

        for (uint32_t level = s->n_levels; level-- > 0;) {
                const char *value = sched_node_label(s, slot, s->level_keys[level]);
                int r;
                if (!value)
                        break;
                size = (size_t)(stpcpy(name + size, value) + 1 - name);
                name[0] = (char)level;
                r = domain_number(s->domains, name, size, &numbers[level]);
                if (r < 0)
                        return r;
        }
        for (uint32_t level = 0; level < s->n_levels; level++)
                s->level_of[level][slot] = numbers[level];
        return 0;
}

static int copy_keys(char *to[static SCHED_LEVELS_MAX], const char *const *keys, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (!(to[i] = strdup(keys[i]))) {
                        while (i-- > 0)
                                free(to[i]);
                        return -ENOMEM;
                }
        return 0;
}

int sched_topology_set(struct sched *s, const char *const *keys, size_t n) {
        char *copies[SCHED_LEVELS_MAX] = {};
        struct domains *domains;

        if (n > SCHED_LEVELS_MAX)
                return -EINVAL;
        for (size_t i = 0; i < n; i++)
                if (label_key_check(keys[i], NULL) < 0)
                        return -EINVAL;
        for (size_t i = 0; i < n; i++) {
                uint32_t *level = realloc(s->level_of[i], MAX(s->allocated, 1u) * sizeof(*level));
                if (!level)
                        return -ENOMEM;
                memset(level, 0, s->allocated * sizeof(*level));
                s->level_of[i] = level;
        }
        domains = calloc(1, sizeof(*domains));
        if (!domains || copy_keys(copies, keys, n) < 0) {
                free(domains);
                return -ENOMEM;
        }
        domains->refs = 1;
        domains_unref(s->domains);
        s->domains = domains;
        for (size_t i = 0; i < SCHED_LEVELS_MAX; i++) {
                free(s->level_keys[i]);
                s->level_keys[i] = copies[i];
        }
        s->n_levels = (uint32_t)n;
        s->grown++;
        s->changed++;
        for (uint32_t i = 0; i < s->n; i++) {
                int r = topology_describe(s, i);
                if (r < 0)
                        return r;
        }
        return 0;
}

uint32_t sched_node_domain(const struct sched *s, uint32_t slot, uint32_t level) {
        return slot < s->n && level < s->n_levels ? s->level_of[level][slot] : 0;
}

/* ---- in one domain ---- */

/* What one domain has for a gang. */
struct room {
        uint64_t now;    /* executors of the shape that is looked at */
        uint64_t spare;  /* of all shapes */
        uint64_t filled; /* of all shapes, no more than their min */
        uint32_t own;    /* executors of the gang that are there already */
        bool lacks;      /* it has too little for a shape */
        uint8_t rank;    /* of its nodes, the one that is preferred most */
};

static uint32_t room_on(struct placing *p, uint32_t shape, uint32_t slot, bool empty) {
        uint32_t min = p->gang->shapes[shape].min, k;

        if (empty)
                return p->s->nodes[slot].exists && p->s->nodes[slot].usable
                               ? fit_capacity(p->s, &p->needs[shape], slot, min)
                               : 0;
        if (p->s->executors[slot] <= 0)
                return 0;
        k = MIN(min, placing_allowance(p, shape, slot));
        return k > 0 ? fit_count(p->s, &p->needs[shape], slot, k) : 0;
}

/* The room of every domain of a level, by number. It says no where there is certainly none; where it says
 * yes, the shapes may still be in each other's way. */
static int find_rooms(struct placing *p, uint32_t level, bool empty, struct room **ret) {
        const uint32_t *domain_of = p->s->level_of[level];
        uint32_t n = domains_count(p->s->domains) + 1;
        struct room *rooms = calloc(n, sizeof(*rooms));

        if (!rooms)
                return -ENOMEM;
        for (uint32_t d = 0; d < n; d++)
                rooms[d].rank = FILTER_OUT;
        for (uint32_t i = 0; i < p->gang->n_shapes; i++) {
                const struct sched_shape *h = &p->gang->shapes[i];
                for (size_t k = 0; k < h->n_present; k++)
                        if (h->present[k] < p->s->n)
                                rooms[domain_of[h->present[k]]].own++;
                if (h->min == 0 || h->near) /* what has to be near to others comes where they come */
                        continue;
                placing_begin_shape(p, i);
                for (size_t k = 0; k < (p->limited ? p->n_universe : p->s->n); k++) {
                        uint32_t slot = p->limited ? p->s->universe[k] : (uint32_t)k,
                                 fit = room_on(p, i, slot, empty);
                        struct room *r = &rooms[domain_of[slot]];
                        if (fit == 0)
                                continue;
                        r->now += fit;
                        if (p->needs[i].filter)
                                r->rank = MIN(r->rank, p->needs[i].filter->rank[slot]);
                }
                placing_end_shape(p);
                for (uint32_t d = 0; d < n; d++) {
                        rooms[d].lacks |= rooms[d].now < h->min;
                        rooms[d].spare += rooms[d].now;
                        rooms[d].filled += MIN(rooms[d].now, h->min);
                        rooms[d].now = 0;
                }
        }
        rooms[0].lacks = true; /* those without these labels are not near to each other */
        *ret = rooms;
        return 0;
}

/* Where the gang is first, then what is preferred, then the domain with least to spare. */
static uint64_t room_key(const struct room *r) {
        return (uint64_t)(r->own == 0) << 63 | (uint64_t)r->rank << 55 |
               MIN(r->spare, (UINT64_C(1) << 55) - 1);
}

/* In one domain of a level. strict: where the gang is, if it is somewhere. */
static int place_in_level(struct placing *p, uint32_t level, bool strict, bool *scope) {
        _cleanup_free_ struct room *rooms = NULL;
        uint32_t n = domains_count(p->s->domains) + 1, own = 0;
        int r = find_rooms(p, level, false, &rooms);

        if (r < 0)
                return r;
        for (uint32_t d = 0; d < n; d++)
                own += rooms[d].own;
        p->scope_level = level;
        for (uint32_t try = 0; try < TRIES_MAX; try++) {
                uint32_t best = 0;
                for (uint32_t d = 1; d < n; d++)
                        if (!rooms[d].lacks && (!strict || own == 0 || rooms[d].own > 0) &&
                            (best == 0 || room_key(&rooms[d]) < room_key(&rooms[best])))
                                best = d;
                if (best == 0)
                        break;
                scope[best] = true;
                p->scope = scope;
                placing_restart(p);
                r = place_somehow(p, NULL);
                if (r <= 0)
                        return r;
                p->scope = NULL;
                scope[best] = false;
                rooms[best].lacks = true;
        }
        return SCHED_E_NO_FIT;
}

/* In as few domains as can be: those with most room first, one more until it fits. */
static int place_in_some(struct placing *p, uint32_t level, bool *scope) {
        _cleanup_free_ struct room *rooms = NULL;
        uint32_t n = domains_count(p->s->domains) + 1;
        uint64_t filled = 0;
        int r = find_rooms(p, level, false, &rooms);

        if (r < 0)
                return r;
        p->scope_level = level;
        for (uint32_t d; filled < p->min;) {
                uint32_t best = n;
                for (d = 0; d < n; d++)
                        if (!scope[d] && rooms[d].filled > 0 &&
                            (best == n || rooms[d].own > rooms[best].own ||
                             (rooms[d].own == rooms[best].own && rooms[d].filled > rooms[best].filled)))
                                best = d;
                if (best == n)
                        return SCHED_E_NO_FIT;
                filled += rooms[best].filled;
                scope[best] = true;
        }
        p->scope = scope;
        placing_restart(p);
        r = place_somehow(p, NULL);
        if (r > 0)
                p->scope = NULL;
        return r;
}

int place_in_topology(struct placing *p, bool **ret_scope) {
        bool require = p->gang->topology == SCHED_REQUIRE;
        uint32_t level = p->gang->level, n_levels = p->s->n_levels;
        bool *scope;
        int r = SCHED_E_NO_FIT;

        if (level >= n_levels || p->s->domains->n == 0)
                return require ? SCHED_E_NO_FIT : place_somehow(p, NULL);
        *ret_scope = scope = calloc((size_t)p->s->domains->n + 1, sizeof(*scope));
        if (!scope)
                return -ENOMEM;
        if (require)
                return place_in_level(p, level, true, scope);
        for (uint32_t l = 0; l < n_levels && r > 0; l++)
                r = place_in_level(p, l, false, scope);
        if (r > 0)
                r = place_in_some(p, level, scope);
        if (r > 0) {
                placing_restart(p);
                r = place_somehow(p, NULL);
        }
        return r;
}

int topology_room(struct placing *p, bool empty, uint64_t *ret_most, bool *ret_all) {
        _cleanup_free_ struct room *rooms = NULL;
        int r;

        *ret_most = 0;
        *ret_all = false;
        if (p->gang->level >= p->s->n_levels)
                return 0;
        r = find_rooms(p, p->gang->level, empty, &rooms);
        if (r < 0)
                return r;
        for (uint32_t d = 1; d <= p->s->domains->n; d++) {
                *ret_most = MAX(*ret_most, rooms[d].filled);
                *ret_all |= !rooms[d].lacks;
        }
        return 0;
}
