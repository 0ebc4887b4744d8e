/* SPDX-License-Identifier: Apache-2.0 */
/* What this host allows, by its own configuration: nothing that a connection says changes it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/policy/serve.h"
#include "lib/wire/messages.h"

struct policy {
        struct serve_policy serve;
        bool hide_managers; /* starter/unit/hide.h */
        uint16_t port_first, port_last;
        uint32_t open_files; /* starter/unit/open-files.h */
};

/* From agentd.conf. -EPERSON (lib/base/exit.h), logged: a value that only a person can mend. */
int policy_load(struct policy *ret);
void policy_done(struct policy *p);

/* NULL, or the D-Bus error name with *ret_why (allocated; NULL on ENOMEM). */
const char *policy_refuses(const struct policy *p, const struct start_order *o, const char *node,
                           char **ret_why);
/* Whether nothing may run as that user here, as far as his number tells (lookup.h has the rest). */
bool policy_refuses_uid(const struct policy *p, uint32_t uid);
/* A list of nodes below /dev, by spaces: all of them of GPUs. */
bool policy_devices_valid(const char *nodes);
/* Keeps the kernel from handing out the jobs' ports to whoever connects somewhere. */
void ports_reserve(const struct policy *p);
