/* SPDX-License-Identifier: Apache-2.0 */
/* Asking the user database. It is waited for: agentd has asked the same a moment ago, in a thread
 * (agentd/host/serving.h), and starts nothing of whom it has not heard of; so what answers here is a cache,
 * or files. An agentd that was captured can have this wait for a database that does not answer, which holds
 * up the starts of this host and nothing else. Invariant: whom it cannot tell about is refused. */
#include "starter/policy/lookup.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"

#define FRESH_USEC (60 * USEC_PER_SEC)
#define STALE_USEC (3600 * USEC_PER_SEC)
#define KNOWN_MAX 256u

struct lookup {
        const struct serve_policy *policy;
        bool needed;
        struct {
                struct serve_person person;
                uint64_t told_boot; /* 0: never */
        } known[KNOWN_MAX];         /* by uid modulo its length */
};

int lookup_new(const struct serve_policy *policy, struct lookup **ret) {
        struct lookup *l = calloc(1, sizeof(*l));

        if (!l)
                return -ENOMEM;
        l->policy = policy;
        l->needed = serve_needs_lookup(policy);
        *ret = l;
        return 0;
}

void lookup_free(struct lookup *l) {
        free(l);
}

const char *lookup_refuses(struct lookup *l, uint32_t uid, const char *node, char buf[static SERVE_WHY_MAX]) {
        _cleanup_free_ char *unknown = NULL;
        struct serve_person person;
        uint64_t now = now_boot();
        const char *why;
        bool sure, mine;
        int r;

        why = serve_decide_number(l->policy, uid, node, buf, &sure);
        if (why || sure || !l->needed)
                return why;
        mine = l->known[uid % KNOWN_MAX].told_boot > 0 && l->known[uid % KNOWN_MAX].person.uid == uid;
        if (!mine || usec_sub(now, l->known[uid % KNOWN_MAX].told_boot) > FRESH_USEC) {
                r = serve_lookup(l->policy, uid, &person, &unknown);
                if (r >= 0) {
                        l->known[uid % KNOWN_MAX].person = person;
                        l->known[uid % KNOWN_MAX].told_boot = now;
                } else if (!mine || usec_sub(now, l->known[uid % KNOWN_MAX].told_boot) > STALE_USEC) {
                        snprintf(buf, SERVE_WHY_MAX, "host %s cannot find out whether it serves uid %u", node,
                                 uid);
                        return buf;
                }
        }
        return serve_decide(l->policy, &l->known[uid % KNOWN_MAX].person, node, buf);
}
