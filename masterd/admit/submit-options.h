/* SPDX-License-Identifier: Apache-2.0 */
/* Options of Submit that say what a key of the configuration says, and win over it. */
#pragma once

#include <jansson.h>
#include <systemd/sd-bus.h>

#include "masterd/spec/spec.h"

/* Reads the value of an option (the variant is next in m) into *overrides, an object of the configuration's
 * keys that is made when it is needed. 1: it is such an option; 0: it is another one, nothing was read. */
int submit_option_read(sd_bus_message *m, const char *option, json_t **overrides);

/* Puts them over the spec, which is replaced: everything is checked again as if it had been written so.
 * -EBADMSG with the D-Bus error set (BadConfig), -ENOMEM. */
int submit_options_apply(struct job_spec **spec, const json_t *overrides, sd_bus_error *error);
