/* SPDX-License-Identifier: Apache-2.0 */
/* How the host is, by the site's health hook. Invariant: one run at a time; what the last one said is told
 * again to every master. */
#include "agentd/host/health.h"

#include <string.h>

#include "agentd/core/manager.h"
#include "agentd/executors/units.h"
#include "agentd/link/link.h"
#include "agentd/unit/hooks.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"

void health_tell(struct manager *m, const char *hook, uint32_t job, bool ok, const char *text) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *message = NULL;
        int r = link_message(m->link, false, "HookResult", &message);

        if (r == -ENOTCONN)
                return;
        if (r < 0 || (r = sd_bus_message_append(message, "sub", hook, job, (int)ok)) < 0 ||
            (r = link_append_text(message, text, LINK_TEXT_MAX)) < 0 ||
            (r = link_append_extra_empty(message)) < 0 || (r = link_send(m->link, message)) < 0)
                log_warning_errno(r, "Cannot tell masterd how the %s hook went", hook);
}

static void on_checked(bool ok, const char *text, void *userdata) {
        struct manager *m = userdata;
        bool news = !m->health.known || m->health.ok != ok || strcmp(m->health.text, text) != 0;

        m->health.running = false;
        m->health.known = true;
        m->health.ok = ok;
        snprintf(m->health.text, sizeof(m->health.text), "%s", text);
        if (news && !ok)
                log_warning("The health hook fails: %s", text);
        else if (news)
                log_info("The health hook is content");
        if (news || !ok)
                health_tell(m, "health", 0, ok, text);
}

static int on_time(sd_event_source *s, uint64_t usec, void *userdata) {
        struct manager *m = userdata;
        char node[80], *env[] = { node, NULL };
        int r;

        (void)sd_event_source_set_time_relative(s, m->settings.health_usec);
        (void)sd_event_source_set_enabled(s, SD_EVENT_ONESHOT);
        if (m->health.running)
                return 0;
        if (!hooks_present("health")) {
                /* It was taken away: what it said does not hold any more. */
                if (m->health.known && !m->health.ok)
                        on_checked(true, "", m);
                m->health.known = false;
                return 0;
        }
        snprintf(node, sizeof(node), "PRIMUS_NODE=%s", m->node);
        m->health.running = true;
        r = units_run_hook(m->units, "health", env, on_checked, m);
        if (r < 0) {
                m->health.running = false;
                log_error_errno(r, "Cannot run the health hook");
        }
        return 0;
}

int health_start(struct manager *m) {
        return sd_event_add_time_relative(m->event, &m->health.timer, CLOCK_BOOTTIME, 0, 100 * USEC_PER_MSEC,
                                          on_time, m);
}

void health_link_up(struct manager *m) {
        if (m->health.known)
                health_tell(m, "health", 0, m->health.ok, m->health.text);
}
