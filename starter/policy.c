/* SPDX-License-Identifier: Apache-2.0 */
/* Invariant: what is not allowed by a rule here is refused. */
#include "starter/policy.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/conf.h"
#include "lib/base/exit.h"
#include "lib/base/log.h"
#include "lib/base/parse.h"
#include "lib/unit/admission.h"
#include "lib/unit/ports-range.h"

#define PORT_FIRST 23000u
#define PORT_LAST 27999u

static int load_root(struct policy *p) {
        _cleanup_free_ char *text = conf_lookup("agentd.conf", "Agent", "AllowRoot");
        const char *why;

        if (text && conf_parse_bool(text, &p->allow_root, &why) < 0) {
                log_error("AllowRoot=%s in agentd.conf: %s", text, why);
                return -EPERSON;
        }
        return 0;
}

int policy_load(struct policy *ret) {
        struct policy p = { .port_first = PORT_FIRST, .port_last = PORT_LAST };
        _cleanup_free_ char *ports = conf_lookup("agentd.conf", "Agent", "Ports");
        int r = load_root(&p);

        if (r < 0)
                return r;
        /* agentd says what is wrong with another value, and takes the default. */
        if (ports && port_range_parse(ports, &p.port_first, &p.port_last) < 0) {
                p.port_first = PORT_FIRST;
                p.port_last = PORT_LAST;
        }
        *ret = p;
        return 0;
}

const char *policy_refuses(const struct policy *p, const struct start_order *o, const char *node,
                           char **ret_why) {
        const char *error = admission_check(o, node, p->allow_root, ret_why);

        for (size_t i = 0; i < o->n_ports && !error; i++)
                if (o->ports[i] < p->port_first || o->ports[i] > p->port_last) {
                        error = LINK_ERROR_REFUSED;
                        if (asprintf(ret_why, "port %u is not one that host %s gives to jobs (%u to %u)", o->ports[i],
                                     node, p->port_first, p->port_last) < 0)
                                *ret_why = NULL;
                }
        return error;
}

bool policy_refuses_uid(const struct policy *p, uint32_t uid) {
        return (uid == 0 && !p->allow_root) || uid == UINT16_MAX || uid == UINT32_MAX;
}

/* What drivers of GPUs make, and a number behind it where that ends in one. */
static bool device_valid(const char *node) {
        static const char *const numbered[] = { "/dev/nvidia", "/dev/nvidia-caps/nvidia-cap", "/dev/dri/renderD",
                                                "/dev/dri/card", "/dev/accel/accel" };
        static const char *const whole[] = { "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools",
                                             "/dev/nvidia-modeset", "/dev/kfd" };

        for (size_t i = 0; i < ELEMENTSOF(whole); i++)
                if (strcmp(node, whole[i]) == 0)
                        return true;
        for (size_t i = 0; i < ELEMENTSOF(numbered); i++) {
                size_t n = strlen(numbered[i]);
                uint32_t number;

                if (strncmp(node, numbered[i], n) == 0 && parse_u32(node + n, 0, 1 << 20, &number) >= 0)
                        return true;
        }
        return false;
}

bool policy_devices_valid(const char *nodes) {
        _cleanup_free_ char *copy = strdup(nodes);
        char *save;

        for (char *n = copy ? strtok_r(copy, " ", &save) : NULL; n; n = strtok_r(NULL, " ", &save))
                if (!device_valid(n))
                        return false;
        return copy;
}
