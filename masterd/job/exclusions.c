/* SPDX-License-Identifier: Apache-2.0 */
/* Invariant: a host is in the list once, a rank once in its host's. */
#include "masterd/job/exclusions.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"

#define RANKS_MAX 1001u /* more are not told apart: enough for the largest maxFailedContainerPerNode */

void exclusions_done(struct exclusions *x) {
        for (size_t i = 0; i < x->n; i++)
                free(x->hosts[i].ranks);
        free(x->hosts);
        *x = (struct exclusions){};
}

static struct exclusion *find_node(const struct exclusions *x, const char *node) {
        for (size_t i = 0; i < x->n; i++)
                if (strcmp(x->hosts[i].node, node) == 0)
                        return x->hosts + i;
        return NULL;
}

static struct exclusion *find_or_add(struct exclusions *x, const char *node) {
        struct exclusion *e = find_node(x, node), *bigger;

        if (e)
                return e;
        bigger = reallocarray(x->hosts, x->n + 1, sizeof(*bigger));
        if (!bigger)
                return NULL;
        x->hosts = bigger;
        e = bigger + x->n++;
        *e = (struct exclusion){};
        snprintf(e->node, sizeof(e->node), "%s", node);
        return e;
}

int exclusions_failed(struct exclusions *x, const char *node, uint32_t rank, uint64_t when) {
        struct exclusion *e = find_or_add(x, node);
        uint32_t *bigger;

        if (!e)
                return -ENOMEM;
        if (when <= e->allowed_real)
                return 0;
        e->last_real = MAX(e->last_real, when);
        for (uint32_t i = 0; i < e->n_ranks; i++)
                if (e->ranks[i] == rank)
                        return (int)e->n_ranks;
        if (e->n_ranks < RANKS_MAX) {
                bigger = reallocarray(e->ranks, e->n_ranks + 1, sizeof(*bigger));
                if (!bigger)
                        return -ENOMEM;
                e->ranks = bigger;
                bigger[e->n_ranks++] = rank;
        }
        return (int)e->n_ranks;
}

int exclusions_until(struct exclusions *x, const char *node, uint64_t until) {
        struct exclusion *e = find_or_add(x, node);

        if (!e)
                return -ENOMEM;
        e->until_real = MAX(e->until_real, until);
        return 0;
}

int exclusions_allow(struct exclusions *x, const char *node, uint64_t when) {
        struct exclusion *e = find_or_add(x, node);

        if (!e)
                return -ENOMEM;
        free(e->ranks);
        e->ranks = NULL;
        e->n_ranks = 0;
        e->last_real = e->until_real = 0;
        e->allowed_real = when;
        return 0;
}

uint64_t exclusions_allowed(const struct exclusions *x, const char *node) {
        const struct exclusion *e = find_node(x, node);

        return e ? e->allowed_real : 0;
}

uint64_t exclusions_of(const struct exclusions *x, const char *node, uint64_t now) {
        const struct exclusion *e = find_node(x, node);

        return e && e->until_real > now ? e->until_real : 0;
}

size_t exclusions_hosts_since(const struct exclusions *x, uint64_t since) {
        size_t n = 0;

        for (size_t i = 0; i < x->n; i++)
                n += x->hosts[i].n_ranks > 0 && x->hosts[i].last_real >= since;
        return n;
}
