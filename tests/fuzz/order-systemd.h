/* SPDX-License-Identifier: Apache-2.0 */
/* systemd as primus-starter has it: takes every call, and ends the program where one asks for what no order
 * may come to. */
#pragma once

#include <stdbool.h>
#include <systemd/sd-bus.h>

#include "starter/policy/policy.h"

struct order_systemd {
        sd_bus *server, *client; /* client: the starter's */
        const char *root;
        const struct policy *policy;
        unsigned jobs;       /* number of the last */
        bool refuses, lasts; /* every call; jobs do not end */
};

/* root, policy: the starter's; both stay the caller's. */
void order_systemd_new(struct order_systemd *s, const char *root, const struct policy *policy);
void order_systemd_done(struct order_systemd *s);
