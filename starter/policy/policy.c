/* SPDX-License-Identifier: Apache-2.0 */
/* Invariant: what is not allowed by a rule here is refused. */
#include "starter/policy/policy.h"

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
#define OPEN_FILES 65536u

/* One setting of agentd.conf. A value that is none would leave open what it was meant to close. */
static int load_one(const char *key, conf_parser parse, void *target) {
        _cleanup_free_ char *text = conf_lookup("agentd.conf", "Agent", key);
        const char *why = "it is not valid";

        if (!text || !*text || parse(text, target, &why) >= 0)
                return 0;
        log_error("%s=%s in agentd.conf: %s", key, text, why);
        return -EPERSON;
}

static int load_serve(struct serve_policy *p) {
        const struct {
                const char *key;
                conf_parser parse;
                void *target;
        } keys[] = {
                { "AllowRoot", conf_parse_bool, &p->allow_root },
                { "MinUid", serve_parse_min_uid, &p->min_uid },
                { "AllowUsers", serve_parse_names, &p->allow_users },
                { "AllowGroups", serve_parse_names, &p->allow_groups },
                { "DenyUsers", serve_parse_names, &p->deny_users },
        };

        for (size_t i = 0; i < ELEMENTSOF(keys); i++) {
                int r = load_one(keys[i].key, keys[i].parse, keys[i].target);
                if (r < 0)
                        return r;
        }
        serve_policy_complete(p, "");
        return 0;
}

int policy_load(struct policy *ret) {
        struct policy p = { .hide_managers = true,
                            .port_first = PORT_FIRST,
                            .port_last = PORT_LAST,
                            .open_files = OPEN_FILES };
        _cleanup_free_ char *ports = conf_lookup("agentd.conf", "Agent", "Ports"),
                            *files = conf_lookup("agentd.conf", "Agent", "OpenFiles");
        int r = load_serve(&p.serve);

        if (r >= 0)
                r = load_one("HideManagers", conf_parse_bool, &p.hide_managers);

        if (r < 0) {
                policy_done(&p);
                return r;
        }
        /* agentd says what is wrong with another value, and takes the default. */
        if (ports && port_range_parse(ports, &p.port_first, &p.port_last) < 0) {
                p.port_first = PORT_FIRST;
                p.port_last = PORT_LAST;
        }
        if (files && parse_u32(files, 0, UINT32_MAX, &p.open_files) < 0)
                p.open_files = OPEN_FILES;
        *ret = p;
        return 0;
}

void policy_done(struct policy *p) {
        serve_policy_done(&p->serve);
}

const char *policy_refuses(const struct policy *p, const struct start_order *o, const char *node,
                           char **ret_why) {
        const char *error = admission_check(o, node, &p->serve, ret_why);

        for (size_t i = 0; i < o->n_ports && !error; i++)
                if (o->ports[i] < p->port_first || o->ports[i] > p->port_last) {
                        error = LINK_ERROR_REFUSED;
                        if (asprintf(ret_why, "port %u is not one that host %s gives to jobs (%u to %u)",
                                     o->ports[i], node, p->port_first, p->port_last) < 0)
                                *ret_why = NULL;
                }
        return error;
}

bool policy_refuses_uid(const struct policy *p, uint32_t uid) {
        char why[SERVE_WHY_MAX];

        return serve_decide_number(&p->serve, uid, "", why, NULL) != NULL;
}

/* What drivers of GPUs make, and a number behind it where that ends in one. */
static bool device_valid(const char *node) {
        static const char *const numbered[] = { "/dev/nvidia", "/dev/nvidia-caps/nvidia-cap",
                                                "/dev/dri/renderD", "/dev/dri/card", "/dev/accel/accel" };
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
