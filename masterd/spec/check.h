/* SPDX-License-Identifier: Apache-2.0 */
/* What no single key can know: defaults that come from other keys, and rules between keys. */
#pragma once

#include "masterd/spec/read.h"
#include "masterd/spec/spec.h"

/* Fills in the remaining defaults of a spec that was read without error, and reports what does not go
 * together. 0 (see the diagnostics), or -ENOMEM. */
int check_job(struct reader *r, struct job_spec *s);
