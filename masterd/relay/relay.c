/* SPDX-License-Identifier: Apache-2.0 */
/* Makes and frees the state of relay. */
#include "masterd/relay/relay.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/base/exit.h"
#include "lib/base/log.h"
#include "masterd/core/manager.h"
#include "masterd/relay/bundles.h"
#include "masterd/relay/logs.h"
#include "masterd/relay/relay-parts.h"
#include "masterd/relay/sessions.h"

int relay_state_new(struct manager *m) {
        m->relay = calloc(1, sizeof(*m->relay));
        return m->relay ? 0 : -ENOMEM;
}

int relay_open(struct manager *m) {
        struct relay_state *relay = m->relay;
        int r;

        r = logs_new(m, &relay->logs);
        if (r < 0)
                return exit_person(log_error_errno(r, "Cannot set up the kept logs in %s/logs",
                                                   m->conf.state_directory));
        r = bundles_new(m, &relay->bundles);
        if (r < 0)
                return exit_person(log_error_errno(r, "Cannot set up %s/bundles", m->conf.state_directory));
        r = sessions_new(m, &relay->sessions);
        return r < 0 ? log_oom() : 0;
}

void relay_close_sessions(struct manager *m) {
        sessions_free(m->relay->sessions);
        m->relay->sessions = NULL;
}

void relay_state_free(struct manager *m) {
        if (!m->relay)
                return;
        relay_close_sessions(m);
        logs_free(m->relay->logs);
        bundles_free(m->relay->bundles);
        sd_event_source_disable_unref(m->relay->prune_timer);
        free(m->relay);
        m->relay = NULL;
}
