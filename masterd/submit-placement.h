/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a job asks for what no host of the cluster is. */
#pragma once

#include <systemd/sd-bus.h>

#include "masterd/spec/spec.h"

struct manager;

/* Refuses, by name, a condition that no host meets, whether it is here now or not; and topology levels and
 * licences that masterd.conf does not have. As long as no host has ever registered, conditions are not
 * judged. */
int submit_placement_admit(struct manager *m, const struct job_spec *spec, sd_bus_error *error);
