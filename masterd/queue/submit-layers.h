/* SPDX-License-Identifier: Apache-2.0 */
/* What a site forces for the jobs of a pool (primus-masterd.conf(5)). */
#pragma once

#include <systemd/sd-bus.h>

#include "masterd/spec/layers.h"

/* Refuses a job that is otherwise, or a change that makes it so: one that was so before, submitted when less
 * was forced, may be changed in what is left. before NULL: it is submitted. 0, or the D-Bus error's negative
 * errno. */
int submit_layers_admit(const struct layers *layers, const struct job_spec *before, const struct job_spec *s,
                        sd_bus_error *error);
