/* SPDX-License-Identifier: Apache-2.0 */
/* Makes and frees the state of fleet. */
#include "masterd/fleet/fleet.h"

#include <errno.h>
#include <stdlib.h>

#include "masterd/core/manager.h"
#include "masterd/fleet/blaming.h"
#include "masterd/fleet/fleet-parts.h"
#include "masterd/fleet/hooks.h"
#include "masterd/fleet/hosts.h"
#include "masterd/fleet/liveness.h"

int fleet_new(struct manager *m) {
        m->fleet = calloc(1, sizeof(*m->fleet));
        return m->fleet ? 0 : -ENOMEM;
}

void fleet_free(struct manager *m) {
        if (!m->fleet)
                return;
        hooks_stop(m);
        hosts_stop(m);
        blaming_stop(m);
        liveness_stop(m);
        free(m->fleet);
        m->fleet = NULL;
}
