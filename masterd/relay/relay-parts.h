/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of relay share. */
#pragma once

#include <stdint.h>
#include <systemd/sd-event.h>

struct relay_state {
        struct logs *logs; /* NULL, as the others: not open */
        struct bundles *bundles;
        struct sessions *sessions;
        sd_event_source *prune_timer;
        uint64_t pruned_used; /* prune.c: bytes of the store at the last time */
};
