/* SPDX-License-Identifier: Apache-2.0 */
/* From a savepoint to a job: a submission whose data goes on where that of another job stood. */
#pragma once

#include <stdint.h>
#include <systemd/sd-bus.h>

#include "masterd/admit/submit.h"

#define RESTORES_MAX 16u /* under way at a time */

/* j: the job, recorded in the open batch; or NULL, and error is set. */
typedef void (*restore_done_t)(void *userdata, struct job *j, const sd_bus_error *error);

/* Makes a job of s->savepoint, one of the submitter's own (root: anybody's). Without a configuration, those
 * of the savepoint are taken: its configuration, name, and files; with one, it must cut the same data into
 * the same tasks. Reads the savepoint's files a piece at a time; nothing is recorded before all of it fits.
 * 0: the submission was taken over (its configuration stays the caller's, until done); done is called later,
 * once. Negative, and the D-Bus error set: refused, the submission is still the caller's. */
int restore_job(struct manager *m, struct submission *s, restore_done_t done, void *userdata,
                sd_bus_error *error);
