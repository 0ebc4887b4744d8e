/* SPDX-License-Identifier: Apache-2.0 */
/* The schema of what a job says about changes while it runs. */
#include "masterd/spec/schema-rows.h"
#include "masterd/spec/spec.h"
#include "masterd/spec/valid.h"

static const struct key rendezvous_keys[] = {
        { "signal", KEY_TEXT, AT(rendezvous_spec, signal), RANGE(1, 16), .valid = valid_plain_signal },
};
const struct schema rendezvous_schema = SCHEMA(rendezvous_keys);
