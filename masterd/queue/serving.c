/* SPDX-License-Identifier: Apache-2.0 */
/* Whom hosts serve, told beforehand. Invariant: nothing here is a permission, and a host that has not said
 * whom it serves (an older agent's, or one that has not registered yet) may serve anybody. */
#include "masterd/queue/serving.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/policy/serve.h"
#include "lib/wire/errors.h"
#include "masterd/core/manager.h"

static uint32_t *copy_uids(const uint32_t *uids, size_t n) {
        uint32_t *copy = malloc(n * sizeof(*uids) + 1);

        if (copy && n > 0)
                memcpy(copy, uids, n * sizeof(*uids));
        return copy;
}

int serving_copy(struct serves_info *ret, const struct serves_info *from) {
        struct serves_info copy = *from;

        copy.allow = copy_uids(from->allow, from->n_allow);
        copy.deny = copy_uids(from->deny, from->n_deny);
        if (!copy.allow || !copy.deny) {
                free(copy.allow);
                free(copy.deny);
                *ret = (struct serves_info){};
                return -ENOMEM;
        }
        *ret = copy;
        return 0;
}

static bool among(const uint32_t *uids, size_t n, uint32_t uid) {
        for (size_t i = 0; i < n; i++)
                if (uids[i] == uid)
                        return true;
        return false;
}

static void review(struct manager *m, struct node *node) {
        const struct serves_info *s = &node->inventory.serves;

        node_set_choosy(&m->nodes, node,
                        node->refuses.n > 0 ||
                                (s->known && (s->listed || s->n_deny > 0 || s->min_uid > m->conf.min_uid)));
}

void serving_registered(struct manager *m, struct node *node) {
        node->refuses.n = 0;
        review(m, node);
}

void serving_refused(struct manager *m, struct node *node, uint32_t uid) {
        if (!among(node->refuses.uids, node->refuses.n, uid)) {
                if (node->refuses.n == NODE_REFUSES_MAX)
                        memmove(node->refuses.uids, node->refuses.uids + 1,
                                --node->refuses.n * sizeof(*node->refuses.uids));
                node->refuses.uids[node->refuses.n++] = uid;
        }
        review(m, node);
}

bool serving_may(const struct node *node, uint32_t uid) {
        const struct serves_info *s = &node->inventory.serves;

        if (among(node->refuses.uids, node->refuses.n, uid))
                return false;
        if (!s->known)
                return uid != 0 || node->inventory.allow_root;
        if (among(s->deny, s->n_deny, uid))
                return false;
        if (uid == 0)
                return node->inventory.allow_root;
        return uid >= s->min_uid && (!s->listed || s->groups || among(s->allow, s->n_allow, uid));
}

bool serving_any(struct manager *m, uint32_t uid) {
        for (struct node *node = m->nodes.by_name; node; node = node->hh.next)
                if (serving_may(node, uid))
                        return true;
        return false;
}

uint32_t serving_most(struct manager *m, uint32_t uid) {
        return uid == 0 || m->nodes.n_choosy > 0 ? m->nodes.n : 0;
}

void serving_exclude(struct manager *m, uint32_t uid, uint32_t *slots, size_t *n) {
        if (serving_most(m, uid) == 0)
                return;
        for (struct node *node = m->nodes.by_name; node; node = node->hh.next)
                if ((uid == 0 || node->refuses.choosy) && node->in_sched && !serving_may(node, uid))
                        slots[(*n)++] = node->slot;
}

int serving_admit(struct manager *m, uint32_t uid, sd_bus_error *error) {
        if (uid == 0)
                return serving_any(m, 0)
                               ? 0
                               : sd_bus_error_set(error, ERROR_REFUSED,
                                                  "Jobs of root are refused by every host; submit as an "
                                                  "ordinary user (or set AllowRoot=yes in agentd.conf of the "
                                                  "hosts that may run them)");
        if (serve_uid_is_nobodys(uid) || (m->conf.min_uid > 0 && uid == getuid()))
                return sd_bus_error_setf(
                        error, ERROR_REFUSED,
                        "uid %u is no person's, and no host runs anything as it; submit as an "
                        "ordinary user",
                        uid);
        if (uid < m->conf.min_uid)
                return sd_bus_error_setf(
                        error, ERROR_REFUSED,
                        "uid %u is a system account's, and it may be another's on the next host: users begin "
                        "with %u (MinUid= in masterd.conf and in agentd.conf of each host). Submit as an "
                        "ordinary user",
                        uid, m->conf.min_uid);
        return m->nodes.n == 0 || serving_any(m, uid)
                       ? 0
                       : sd_bus_error_setf(error, ERROR_REFUSED,
                                           "No host of the cluster runs anything as uid %u (MinUid=, "
                                           "AllowUsers=, AllowGroups= and DenyUsers= in agentd.conf of the "
                                           "hosts)",
                                           uid);
}
