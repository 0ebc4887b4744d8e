/* SPDX-License-Identifier: Apache-2.0 */
/* Removes trees that users have filled, which may take long: in child processes, a few at a time. */
#pragma once

#include <stdint.h>
#include <systemd/sd-event.h>

#include "lib/base/cleanup.h"

struct remover;
int remover_new(sd_event *event, struct remover **ret);
/* What was not begun stays. */
void remover_free(struct remover *r);
DEFINE_CLEANUP(struct remover *, remover_free)

/* Takes path, allocated, also where it fails. -EBUSY: very many wait. */
int remover_take(struct remover *r, char *path);

/* artifacts_trim(root, max, keep), in a process of its own; takes keep (strings_free()). -EBUSY: one is at
 * work. */
int remover_trim(struct remover *r, const char *root, uint64_t max, char **keep);
