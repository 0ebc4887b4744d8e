/* SPDX-License-Identifier: Apache-2.0 */
/* A consistent copy of the master's database, whether masterd runs or not. */
#pragma once

#include "tools/state/manifest.h"

/* An open file without a name; fills in the manifest's cluster and store_version. Says why not. */
int snapshot(const char *state_directory, int *ret_fd, struct manifest *m);
