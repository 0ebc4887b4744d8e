/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of link share: who the cluster is, who belongs to it, and who is connected. */
#pragma once

#include <stdint.h>
#include <systemd/sd-event.h>

#include "lib/wire/authority.h"
#include "lib/wire/join.h"
#include "lib/wire/peer.h"
#include "masterd/link/identity.h"
#include "masterd/link/link.h"

struct link_state {
        /* identity.c */
        struct certificate ca;
        struct tls_credentials *credentials; /* masterd's own, of that CA */
        sd_event_source *renew_timer;
        struct token *tokens;    /* by id */
        struct revoked *revoked; /* by serial */

        /* link.c */
        struct listener *listener;
        const struct link_handlers *handlers;
        struct link *links;     /* by peer */
        uint64_t refused_since; /* strangers at the port: when the count began */
        uint32_t n_refused;
};
