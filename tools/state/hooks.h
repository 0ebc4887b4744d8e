/* SPDX-License-Identifier: Apache-2.0 */
/* Programs in a backup that this host would run: which they are, what they differ in from those that are
 * here, and what each may do. */
#pragma once

#include <stddef.h>

#include "tools/state/manifest.h"

/* "settings/hooks/..." */
bool hooks_are(const char *name);
/* Who runs it, when, and as whom. Static text. */
const char *hooks_rights(const char *name);

/* Prints a line for each that differs from the one below directory (PRIMUS_SYSCONFDIR). Returns how many do.
 */
size_t hooks_compare(const struct manifest *m, const char *directory);
