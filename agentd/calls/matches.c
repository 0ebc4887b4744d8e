/* SPDX-License-Identifier: Apache-2.0 */
/* Invariant: a signal that a rule is for is wanted, whatever else stands in it. */
#include "agentd/calls/matches.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"

enum rule_kind {
        RULE_OF_NONE, /* or of what the bus itself says, which is told in any case */
        RULE_OF_PATH,
        RULE_OF_ALL,
};

/* The value of a key that stands at the beginning or behind a comma: key is "path='". Allocated, or NULL. */
static char *value_of(const char *rule, const char *key) {
        for (const char *p = rule; (p = strstr(p, key)); p++)
                if (p == rule || p[-1] == ',')
                        return strndup(p + strlen(key), strcspn(p + strlen(key), "'"));
        return NULL;
}

static enum rule_kind read_rule(const char *rule, char **ret_path) {
        _cleanup_free_ char *sender = value_of(rule, "sender='");

        *ret_path = NULL;
        if (sender && strcmp(sender, "org.freedesktop.DBus") == 0)
                return RULE_OF_NONE;
        *ret_path = value_of(rule, "path='");
        if (!*ret_path)
                return RULE_OF_ALL;
        if (strlen(*ret_path) <= MATCH_PATH_MAX)
                return RULE_OF_PATH;
        free(*ret_path);
        *ret_path = NULL;
        return RULE_OF_NONE;
}

void matches_done(struct matches *m) {
        for (size_t i = 0; i < m->n_paths; i++)
                free(m->paths[i]);
        free(m->paths);
        *m = (struct matches){};
}

int matches_add(struct matches *m, const char *rule, char **ret_path) {
        _cleanup_free_ char *path = NULL, *copy = NULL;
        enum rule_kind kind = read_rule(rule, &path);
        char **more;

        *ret_path = NULL;
        if (kind == RULE_OF_NONE)
                return 0;
        if (m->n_paths + m->all >= MATCHES_MAX)
                return -ENOBUFS;
        copy = strdup(path ?: "");
        if (!copy)
                return -ENOMEM;
        if (kind == RULE_OF_PATH) {
                more = reallocarray(m->paths, m->n_paths + 1, sizeof(*more));
                if (!more)
                        return -ENOMEM;
                m->paths = more;
                m->paths[m->n_paths++] = TAKE_PTR(path);
        } else
                m->all++;
        *ret_path = TAKE_PTR(copy);
        return 0;
}

void matches_remove(struct matches *m, const char *rule, char **ret_path) {
        _cleanup_free_ char *path = NULL;
        enum rule_kind kind = read_rule(rule, &path);

        *ret_path = NULL;
        if (kind == RULE_OF_ALL && m->all > 0) {
                m->all--;
                *ret_path = strdup("");
        }
        for (size_t i = 0; path && i < m->n_paths; i++)
                if (strcmp(m->paths[i], path) == 0) {
                        *ret_path = m->paths[i];
                        m->paths[i] = m->paths[--m->n_paths];
                        return;
                }
}

bool matches_want(const struct matches *m, const char *path) {
        if (m->all > 0)
                return true;
        for (size_t i = 0; i < m->n_paths; i++)
                if (strcmp(m->paths[i], path) == 0)
                        return true;
        return false;
}
