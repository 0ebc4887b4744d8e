/* SPDX-License-Identifier: Apache-2.0 */
/* Invariants: a value with a mistake in it changes nothing; a rule whose users are not known is nobody's. */
#include "masterd/conf/relay-conf.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/log.h"
#include "lib/base/strv.h"
#include "lib/base/try.h"
#include "lib/policy/serve.h"

#define ALL_HOSTS "*"
#define HOSTS_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._*?[]!"

static void rule_done(struct relay_rule *r) {
        free(r->hosts);
        strings_free(r->users);
        free(r->uids);
        *r = (struct relay_rule){};
}

void relay_conf_done(struct relay_conf *c) {
        for (size_t i = 0; i < c->n; i++)
                rule_done(c->rules + i);
        free(c->rules);
        *c = (struct relay_conf){};
}

static int add_rule(struct relay_conf *c, const char *hosts, const char *users, const char **ret_why) {
        struct relay_rule *more, rule = {};
        int r = 0;

        if (c->n == RELAY_RULES_MAX || !*hosts || strspn(hosts, HOSTS_CHARACTERS) != strlen(hosts))
                return -EINVAL;
        more = reallocarray(c->rules, c->n + 1, sizeof(*more));
        if (!more)
                return -ENOMEM;
        c->rules = more;
        rule.hosts = strdup(hosts);
        if (users)
                r = serve_parse_names(users, &rule.users, ret_why);
        if (!rule.hosts)
                r = -ENOMEM;
        if (r >= 0 && users && !rule.users) /* "n1:" is a mistake, not everybody */
                r = -EINVAL;
        if (r < 0) {
                rule_done(&rule);
                return r;
        }
        c->rules[c->n++] = rule;
        return 0;
}

int relay_parse_from(const char *value, void *target, const char **ret_why) {
        static const char expected[] =
                "expected patterns of hosts, each with users or without, such as: login* gpu[0-9]:ml,ann";
        _cleanup_(relay_conf_done) struct relay_conf new = {};
        _cleanup_free_ char *copy = strdup(value);
        struct relay_conf *c = target, old;
        char *save = NULL;

        if (!copy)
                return -ENOMEM;
        for (char *word = strtok_r(copy, " \t", &save); word; word = strtok_r(NULL, " \t", &save)) {
                char *users = strchr(word, ':');
                int r;

                if (users)
                        *users++ = 0;
                for (char *s = users; s && *s; s++)
                        if (*s == ',')
                                *s = ' ';
                r = add_rule(&new, word, users, ret_why);
                if (r < 0) {
                        *ret_why = expected;
                        return r;
                }
        }
        old = *c;
        *c = new;
        new = old;
        return 0;
}

int relay_conf_init(struct relay_conf *c) {
        const char *why;

        *c = (struct relay_conf){};
        return relay_parse_from(ALL_HOSTS, c, &why);
}

int relay_conf_resolve(struct relay_conf *c) {
        for (struct relay_rule *r = c->rules; r < c->rules + c->n; r++) {
                size_t n = strings_count(r->users);

                free(r->uids);
                r->n_uids = 0;
                r->uids = calloc(n + 1, sizeof(*r->uids));
                if (!r->uids)
                        return -ENOMEM;
                TRY(serve_lookup_uids(r->users, r->uids, n, &r->n_uids));
                if (r->n_uids < n)
                        log_warning(
                                "masterd.conf: RelayFrom= names %zu user%s for %s whom this host does not know",
                                n - r->n_uids, n - r->n_uids == 1 ? "" : "s", r->hosts);
        }
        return 0;
}

static const struct relay_rule *rule_of(const struct relay_conf *c, const char *node) {
        for (size_t i = 0; i < c->n; i++)
                if (fnmatch(c->rules[i].hosts, node, 0) == 0)
                        return c->rules + i;
        return NULL;
}

bool relay_conf_host(const struct relay_conf *c, const char *node) {
        return rule_of(c, node) != NULL;
}

bool relay_conf_may(const struct relay_conf *c, const char *node, uint32_t uid) {
        const struct relay_rule *r = rule_of(c, node);

        if (!r || uid == 0)
                return false;
        for (size_t i = 0; i < r->n_uids; i++)
                if (r->uids[i] == uid)
                        return true;
        return !r->users;
}
