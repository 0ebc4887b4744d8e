/* SPDX-License-Identifier: Apache-2.0 */
/* What nodes are like. Invariant: after every change the filters and domains say what the labels say. */
#include <errno.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "masterd/sched/internal.h"

void label_set_unref(struct label_set *l) {
        if (l && --l->refs == 0)
                free(l);
}

static bool key_is_new(const struct sched_description *d, size_t i) {
        char key[LABEL_MAX + 1];
        size_t n = strcspn(d->labels[i], "=");

        memcpy(key, d->labels[i], n);
        key[n] = 0;
        for (size_t k = 0; k < i; k++)
                if (label_value(d->labels[k], key))
                        return false;
        return true;
}

static int label_set_new(const struct sched_description *d, struct label_set **ret) {
        struct label_set *l;
        size_t size = 0;
        char *text;

        if (d->n_labels > SCHED_LABELS_MAX)
                return -EINVAL;
        for (size_t i = 0; i < d->n_labels; i++) {
                if (label_check(d->labels[i], NULL) < 0 || !key_is_new(d, i))
                        return -EINVAL;
                size += strlen(d->labels[i]) + 1;
        }
        l = malloc(sizeof(*l) + d->n_labels * sizeof(*l->labels) + size);
        if (!l)
                return -ENOMEM;
        l->refs = 1;
        l->n = (uint32_t)d->n_labels;
        text = (char *)(l->labels + l->n);
        for (size_t i = 0; i < d->n_labels; i++) {
                l->labels[i] = text;
                text = stpcpy(text, d->labels[i]) + 1;
        }
        *ret = l;
        return 0;
}

int sched_node_describe(struct sched *s, uint32_t slot, const struct sched_description *d) {
        struct sched_node *n = slot < s->n && s->nodes[slot].exists ? &s->nodes[slot] : NULL;
        struct label_set *labels, *old_labels;
        struct layout *layout, *old_layout;
        int r;

        if (!n)
                return -ENOENT;
        r = label_set_new(d, &labels);
        if (r < 0)
                return r;
        r = layout_get(s, d, &layout);
        if (r < 0) {
                label_set_unref(labels);
                return r;
        }
        old_labels = n->labels;
        old_layout = n->layout;
        n->labels = labels;
        n->layout = layout;
        r = topology_describe(s, slot);
        if (r < 0) {
                n->labels = old_labels;
                n->layout = old_layout;
                label_set_unref(labels);
                layout_unref(layout);
                return r;
        }
        label_set_unref(old_labels);
        layout_unref(old_layout);
        filters_update(s, slot);
        node_refresh(s, slot);
        s->grown++;
        s->changed++;
        return 0;
}

const char *sched_node_label(const struct sched *s, uint32_t slot, const char *key) {
        const struct label_set *l = slot < s->n ? s->nodes[slot].labels : NULL;
        const char *value = NULL;

        for (uint32_t i = 0; l && i < l->n && !value; i++)
                value = label_value(l->labels[i], key);
        return value;
}

uint32_t sched_constraint_count(const struct sched *s, const struct constraint *c) {
        uint32_t n = 0;

        for (uint32_t i = 0; i < s->n; i++) {
                const struct label_set *l = s->nodes[i].labels;
                n += s->nodes[i].exists && constraint_met(c, l ? l->labels : NULL, l ? l->n : 0);
        }
        return n;
}
