/* SPDX-License-Identifier: Apache-2.0 */
/* Which of systemd's units are made by primus-starter, told by their names. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define HOOK_UNIT_PREFIX "primus-hook-"
/* Of an executor, a session, a reader of artifacts, a hook of a run ("primus-hook-prolog-418-99.1.service",
 * no instance of a template), a job's slice or its shared memory. Never of a daemon or of primus.slice. */
bool unit_is_ours(const char *name);
bool session_unit_name_valid(const char *name);
bool get_unit_name_valid(const char *name);
bool hook_unit_name_valid(const char *name);
bool slice_name_valid(const char *name); /* of a job */
