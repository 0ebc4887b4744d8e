/* SPDX-License-Identifier: Apache-2.0 */
/* [Master] RelayFrom=: which hosts may hand on the calls of their users, and of whom. Pure, but for
 * relay_conf_resolve(). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RELAY_RULES_MAX 256u
#define RELAY_USERS_MAX 256u /* of a rule */

struct relay_rule {
        char *hosts;    /* a pattern as of the shell */
        char **users;   /* names or numbers, NULL-ended; NULL: whom the host serves */
        uint32_t *uids; /* of them, behind relay_conf_resolve() */
        size_t n_uids;
};

struct relay_conf {
        struct relay_rule *rules;
        size_t n;
};

/* "login* gpu[0-9]:ml,ann": replaces the list; "": no host. For conf_load(). */
int relay_parse_from(const char *value, void *target, const char **ret_why);
/* The default: every host, for whom it serves. -ENOMEM. */
int relay_conf_init(struct relay_conf *c);
void relay_conf_done(struct relay_conf *c);

/* Looks the users up; who is not known is left out, and is said in the log. May block. */
int relay_conf_resolve(struct relay_conf *c);

/* The first rule with the host holds. Root is nobody's. */
bool relay_conf_host(const struct relay_conf *c, const char *node);
bool relay_conf_may(const struct relay_conf *c, const char *node, uint32_t uid);
