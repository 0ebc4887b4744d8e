/* SPDX-License-Identifier: Apache-2.0 */
/* What systemd keeps of a job's slice beside the slice: SetUnitProperties of one that was not made by
 * StartTransientUnit is written to /run/systemd/system.control, outlives the slice, and would be the limits
 * of whatever gets that name. */
#pragma once

#include <systemd/sd-bus.h>

/* Has systemd forget what it keeps of that slice, if there is such a thing. What is in force stays so. */
void slice_forget(sd_bus *systemd, const char *root, const char *slice);
/* Of all jobs' slices that have no units. */
void slices_sweep(sd_bus *systemd, const char *root);
