/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a job asks for what no host of the cluster is. */
#pragma once

#include <systemd/sd-bus.h>

#include "masterd/spec/spec.h"

struct manager;

/* Refuses, by name, what no host meets, whether it is here now or not: conditions, names, more of something
 * than any host has, and more executors at once than all hosts hold when they are empty; unless the job waits
 * for hosts (waitForHosts). And topology levels and licences that masterd.conf does not have. As long as no
 * host has ever registered, hosts are not judged. */
int submit_placement_admit(struct manager *m, const struct job_spec *spec, sd_bus_error *error);
/* The same of hosts, of the roles that ask for more than before. */
int submit_placement_admit_change(struct manager *m, const struct job_spec *from, const struct job_spec *to,
                                  sd_bus_error *error);
