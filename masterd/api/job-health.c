/* SPDX-License-Identifier: Apache-2.0 */
/* org.primus.Master1.Job: what its executors suffer from now, as a part of GetStatus. */
#include "lib/base/clock.h"
#include "masterd/api/api.h"
#include "masterd/api/job-calls.h"
#include "masterd/caller/reply.h"
#include "masterd/core/manager.h"
#include "masterd/fleet/liveness.h"
#include "masterd/watch/healing.h"

static int append_numbers(sd_bus_message *reply, const struct episode *p) {
        int r = reply_open_array(reply, "numbers", "a{st}");

        for (size_t i = 0; r >= 0 && i < p->n_numbers; i++)
                r = sd_bus_message_append(reply, "{st}", p->numbers[i].name, p->numbers[i].value);
        return r < 0 ? r : reply_close_array(reply);
}

static int append_episode(sd_bus_message *reply, const struct job *j, const struct episode *p) {
        const struct executor *e = healing_executor(j, p);
        int r = sd_bus_message_open_container(reply, 'a', "{sv}");

        if (r >= 0)
                r = sd_bus_message_append(reply, "{sv}{sv}{sv}{sv}{sv}{sv}", "kind", "s",
                                          verdict_kind_to_string(p->kind), "since", "t", p->since_real,
                                          "found", "t", p->begun_real, "text", "s", p->text ?: "", "action",
                                          "s", health_action_to_string(p->action) ?: "note", "all", "b",
                                          (int)(p->role == EPISODE_ALL));
        if (r >= 0 && e)
                r = sd_bus_message_append(reply, "{sv}{sv}{sv}", "role", "s", executor_role(e)->name, "index",
                                          "u", e->index, "node", "s", e->node ? e->node->name : "");
        if (r >= 0 && p->acted_real > 0)
                r = sd_bus_message_append(reply, "{sv}", "acted", "t", p->acted_real);
        if (r >= 0)
                r = append_numbers(reply, p);
        return r < 0 ? r : sd_bus_message_close_container(reply);
}

/* A host that is not heard of says nothing of what runs there: all would look well. */
static int append_silence(sd_bus_message *reply, const struct manager *m, const struct executor *e) {
        char text[LIVENESS_TEXT_MAX];
        uint64_t since = e->node->seen.real;
        int r = sd_bus_message_open_container(reply, 'a', "{sv}");

        if (r >= 0)
                r = sd_bus_message_append(reply, "{sv}{sv}{sv}{sv}{sv}{sv}{sv}{sv}{sv}", "kind", "s",
                                          HEALTH_SILENT, "since", "t", since, "found", "t", since, "text",
                                          "s", liveness_text(m, e->node, text, sizeof(text)), "action", "s",
                                          "note", "all", "b", 0, "role", "s", executor_role(e)->name, "index",
                                          "u", e->index, "node", "s", e->node->name);
        if (r >= 0)
                r = reply_open_array(reply, "numbers", "a{st}");
        if (r >= 0)
                r = reply_close_array(reply);
        return r < 0 ? r : sd_bus_message_close_container(reply);
}

bool api_is_silent(const struct manager *m, const struct executor *e) {
        /* A new master takes all of them for suspects until they have dialled in. */
        return e->node && executor_state_holds(e->state) && e->node->state == NODE_SUSPECT &&
               (e->node->refused || usec_sub(now_boot(), e->node->seen.boot) >= m->conf.suspect_usec);
}

int api_append_verdicts(sd_bus_message *reply, const struct manager *m, const struct job *j) {
        const struct episode *p = j->health ? j->health->episodes : NULL;
        struct executor *e;
        bool any = p;
        int r = 0;

        if (j->array)
                return 0;
        JOB_FOREACH (j, e)
                any = any || api_is_silent(m, e);
        if (!any)
                return 0;
        r = reply_open_array(reply, "verdicts", "aa{sv}");
        JOB_FOREACH (j, e)
                if (r >= 0 && api_is_silent(m, e) && liveness_stands_for(e))
                        r = append_silence(reply, m, e);
        for (; r >= 0 && p; p = p->next)
                r = append_episode(reply, j, p);
        return r < 0 ? r : reply_close_array(reply);
}
