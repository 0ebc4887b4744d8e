/* SPDX-License-Identifier: Apache-2.0 */
/* agentd as a whole: the parts (units, link, feed, bundles) do not know each other; they meet here. */
#pragma once

#include <systemd/sd-event.h>

#include "lib/base/cleanup.h"

struct manager;

int manager_new(sd_event *event, struct manager **ret);
void manager_free(struct manager *m);
DEFINE_CLEANUP(struct manager *, manager_free)
