/* SPDX-License-Identifier: Apache-2.0 */
/* What a job takes of masterd's memory. Pure. Counted is what its submitter decides about: configuration,
 * variables, secrets, executors. Not counted is what comes with executors that really run, of which hosts
 * bound the number: samples, ports, timers; and what has a bound of its own (series, data). */
#pragma once

#include <stddef.h>

#include "masterd/job/job.h"

/* Of a job with this configuration and nothing else. */
size_t footprint_of_spec(const struct job_spec *s);
size_t footprint_of_secrets(const struct job_secret *secrets, size_t n);

/* Of the job as it is now. An element has its configuration together with its array, where it costs nothing
 * again. */
size_t footprint_of_job(const struct job *j);
