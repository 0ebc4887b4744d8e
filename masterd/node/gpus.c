/* SPDX-License-Identifier: Apache-2.0 */
/* Invariant: gpus_of_text(v, gpus_text(v, x)) is x, for GPUs of v. */
#include "masterd/node/gpus.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"

static_assert(NODE_GPUS_MAX >= LINK_GPUS_MAX, "a set has room for all that an agent may say");

static size_t count_gpus(const struct inventory *v) {
        return MIN(v->n_gpus, (size_t)NODE_GPUS_MAX);
}

char *gpus_text(const struct inventory *v, uint64_t gpus) {
        size_t size = 1;
        char *text, *end;

        for (size_t i = 0; i < count_gpus(v); i++)
                if (gpus >> i & 1)
                        size += strlen(v->gpus[i].uuid) + 1;
        end = text = malloc(size);
        if (!text)
                return NULL;
        for (size_t i = 0; i < count_gpus(v); i++) {
                if (!(gpus >> i & 1))
                        continue;
                if (end > text)
                        *end++ = ' ';
                end = stpcpy(end, v->gpus[i].uuid);
        }
        *end = 0;
        return text;
}

/* A whole word of the text: "GPU-1" is none of "GPU-10 MIG-GPU-1". */
static bool names(const char *text, const char *uuid) {
        size_t l = strlen(uuid);

        for (const char *p = text; l > 0 && (p = strstr(p, uuid)); p += l)
                if ((p == text || p[-1] == ' ') && (p[l] == ' ' || p[l] == 0))
                        return true;
        return false;
}

uint64_t gpus_of_text(const struct inventory *v, const char *text) {
        uint64_t gpus = 0;

        for (size_t i = 0; i < count_gpus(v); i++)
                if (names(text, v->gpus[i].uuid))
                        gpus |= UINT64_C(1) << i;
        return gpus;
}

int gpus_index(const struct inventory *v, const char *uuid) {
        for (size_t i = 0; i < count_gpus(v); i++)
                if (strcmp(v->gpus[i].uuid, uuid) == 0)
                        return (int)i;
        return -ENOENT;
}

uint64_t gpus_remap(const struct inventory *old, const struct inventory *v, uint64_t gpus) {
        uint64_t found = 0;

        for (size_t i = 0; i < count_gpus(old); i++) {
                int k = gpus >> i & 1 ? gpus_index(v, old->gpus[i].uuid) : -ENOENT;
                if (k >= 0)
                        found |= UINT64_C(1) << k;
        }
        return found;
}

static int add_named(struct inventory *v, const char *uuid, size_t size) {
        struct gpu_info *bigger,
                g = { .uuid = strndup(uuid, size), .model = strdup(""), .nodes = strdup("") };

        bigger = reallocarray(v->gpus, v->n_gpus + 1, sizeof(*bigger));
        if (bigger)
                v->gpus = bigger;
        if (!bigger || !g.uuid || !g.model || !g.nodes) {
                free(g.uuid);
                free(g.model);
                free(g.nodes);
                return -ENOMEM;
        }
        v->gpus[v->n_gpus++] = g;
        return 0;
}

int gpus_named(const char *text, struct inventory *v) {
        for (const char *p = text; *p;) {
                size_t l = strcspn(p, " ");
                int r = l == 0 || v->n_gpus >= NODE_GPUS_MAX ? 0 : add_named(v, p, l);
                if (r < 0)
                        return r;
                p += l + (p[l] == ' ');
        }
        return 0;
}
