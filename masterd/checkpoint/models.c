/* SPDX-License-Identifier: Apache-2.0 */
#include "masterd/checkpoint/models.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "lib/base/cleanup.h"
#include "lib/base/utf8.h"

#define WORD "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"

/* Some thousands at most, which people ask for: a list will do. */
struct models {
        struct model *list;
};

int models_new(struct models **ret) {
        *ret = calloc(1, sizeof(**ret));
        return *ret ? 0 : -ENOMEM;
}

static void model_free(struct model *m) {
        const char *const texts[] = { m->name, m->path, m->host, m->metric, m->note, m->labels };

        for (size_t i = 0; i < ELEMENTSOF(texts); i++)
                free((char *)(uintptr_t)texts[i]);
        free(m);
}

void models_free(struct models *all) {
        struct model *m, *next;

        if (!all)
                return;
        DL_FOREACH_SAFE (all->list, m, next)
                model_free(m);
        free(all);
}

bool model_name_valid(const char *name) {
        const size_t n = strspn(name, WORD);

        return n > 0 && n <= MODEL_NAME_MAX && !name[n] && !strchr("0123456789_.-", name[0]);
}

bool model_label_valid(const char *label) {
        const size_t n = strspn(label, WORD);

        return n > 0 && n <= MODEL_LABEL_MAX && !label[n];
}

bool model_note_valid(const char *note) {
        for (const char *p = note; *p; p++)
                if ((unsigned char)*p < ' ' || *p == 0x7f)
                        return false;
        return strlen(note) <= MODEL_NOTE_MAX && utf8_valid(note, strlen(note));
}

/* As many as there are of the owner, and of all; the latest version of that name. */
static void count_models(const struct models *all, const struct model *of, size_t *n, size_t *n_all,
                         uint32_t *latest) {
        const struct model *m;

        *n = *n_all = *latest = 0;
        DL_FOREACH (all->list, m) {
                ++*n_all;
                *n += m->owner == of->owner;
                if (m->owner == of->owner && strcmp(m->name, of->name) == 0 && m->version > *latest)
                        *latest = m->version;
        }
}

static struct model *copy_model(const struct model *m) {
        struct model *c = malloc(sizeof(*c));

        if (!c)
                return NULL;
        *c = *m;
        c->name = strdup(m->name);
        c->path = strdup(m->path);
        c->host = strdup(m->host);
        c->metric = strdup(m->metric);
        c->note = strdup(m->note);
        c->labels = strdup(m->labels);
        if (c->name && c->path && c->host && c->metric && c->note && c->labels)
                return c;
        model_free(c);
        return NULL;
}

int models_add(struct models *all, const struct model *m, struct model **ret) {
        size_t n, n_all;
        struct model *c;
        uint32_t latest;

        count_models(all, m, &n, &n_all, &latest);
        if (n_all >= MODELS_MAX)
                return -ENOSPC;
        if (n >= MODELS_PER_USER_MAX)
                return -EDQUOT;
        if (m->version > 0 && models_find(all, m->owner, m->name, m->version))
                return -EEXIST;
        c = copy_model(m);
        if (!c)
                return -ENOMEM;
        c->version = m->version ?: latest + 1;
        DL_APPEND(all->list, c);
        *ret = c;
        return 0;
}

struct model *models_find(const struct models *all, uint32_t owner, const char *name, uint32_t version) {
        struct model *m, *found = NULL;

        DL_FOREACH (all->list, m)
                if (m->owner == owner && strcmp(m->name, name) == 0 &&
                    (version ? m->version == version
                             : !m->archived && (!found || m->version > found->version)))
                        found = m;
        return found;
}

int models_edit(struct model *m, const char *note, const char *labels) {
        char *n = strdup(note ?: m->note), *l = strdup(labels ?: m->labels);

        if (!n || !l) {
                free(n);
                free(l);
                return -ENOMEM;
        }
        free((char *)(uintptr_t)m->note);
        free((char *)(uintptr_t)m->labels);
        m->note = n;
        m->labels = l;
        return 0;
}

struct model *models_next(const struct models *all, const struct model *after) {
        return after ? after->next : all->list;
}
