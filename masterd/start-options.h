/* SPDX-License-Identifier: Apache-2.0 */
/* Options of a submission that say when the job starts and as how many, over what its configuration says. */
#pragma once

#include <stdbool.h>
#include <systemd/sd-bus.h>

#include "masterd/spec/spec.h"

struct start_options {
        char **after; /* NULL-ended; NULL: not given */
        char *array, *begin;
        bool anew; /* of a job that is run again: what its configuration says of after and begin is over */
};

void start_options_done(struct start_options *o);

/* Reads the value (a variant) of the option of that name: "after" as, "array" s, "begin" s. -EINVAL with the
 * error set. */
int start_options_read(sd_bus_message *m, const char *key, struct start_options *o, sd_bus_error *error);

/* Puts them in the place of the configuration's. On refusal sets the D-Bus error BadConfig. */
int start_options_apply(const struct start_options *o, struct job_spec *spec, sd_bus_error *error);
