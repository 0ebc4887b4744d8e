/* SPDX-License-Identifier: Apache-2.0 */
/* The page of metrics. Invariant: no two samples have the same name and labels: of two attempts of one
 * executor the later one is shown. */
#include "agentd/telemetry/sampling-page.h"

#include <string.h>

#include "agentd/core/manager.h"
#include "agentd/executors/executor-state.h"
#include "agentd/executors/units.h"
#include "agentd/host/gpus.h"
#include "agentd/host/hostwatch.h"
#include "agentd/link/link.h"
#include "agentd/metrics/host.h"
#include "agentd/metrics/server.h"
#include "agentd/telemetry/sampling-page-host.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"

/* What systemd calls the end of a service; the last is for those to come. */
static const char *const results[] = {
        "success",  "exit-code", "signal",    "core-dump",      "oom-kill",        "timeout",
        "watchdog", "protocol",  "resources", "exec-condition", "start-limit-hit", "other",
};

struct sampling_page {
        struct manager *manager;
        struct sampler *sampler;
        const struct probe *probe;
        uint64_t exits[ELEMENTSOF(results)];
        struct exposition *exposition;
        struct metrics_server **servers;
        size_t n_servers;
};

struct roles {
        struct manager *manager;
        struct exposition_role *list;
        size_t n, max;
};

static int gather(const struct sampled *u, const struct telemetry_sample *x, void *userdata) {
        struct roles *roles = userdata;
        struct exposition_role *r = &roles->list[roles->n];
        struct unit_facts facts;

        if (roles->n == roles->max)
                return 0;
        *r = (struct exposition_role){ .sample = x, .unit = u->unit, .cgroup_id = u->cgroup_id };
        if (units_find(roles->manager->units, u->unit, &facts) >= 0) {
                r->state = facts.frozen ? "frozen" : executor_state_to_string(facts.state);
                r->started_real = facts.started_real;
        }
        roles->n++;
        return 0;
}

/* By job, role and index; the later attempt first. */
static int by_executor(const void *a, const void *b) {
        const struct executor_id *x = &((const struct exposition_role *)a)->sample->id,
                                 *y = &((const struct exposition_role *)b)->sample->id;
        int r = x->job != y->job ? (x->job < y->job ? -1 : 1) : strcmp(x->role, y->role);

        if (r == 0 && x->index != y->index)
                r = x->index < y->index ? -1 : 1;
        if (r == 0 && x->attempt != y->attempt)
                r = x->attempt > y->attempt ? -1 : 1;
        return r;
}

static bool same_executor(const struct executor_id *x, const struct executor_id *y) {
        return x->job == y->job && x->index == y->index && strcmp(x->role, y->role) == 0;
}

static size_t only_latest(struct exposition_role *list, size_t n) {
        size_t kept = 0;

        if (n > 0)
                qsort(list, n, sizeof(*list), by_executor);
        for (size_t i = 0; i < n; i++)
                if (kept == 0 || !same_executor(&list[kept - 1].sample->id, &list[i].sample->id))
                        list[kept++] = list[i];
        return kept;
}

static int add_executors(struct sampling_page *p) {
        struct roles roles = { .manager = p->manager, .max = sampler_count(p->sampler) };
        _cleanup_free_ struct exposition_role *list = calloc(roles.max ?: 1, sizeof(*list));

        if (!list)
                return -ENOMEM;
        roles.list = list;
        (void)sampler_visit(p->sampler, gather, &roles);
        exposition_roles(p->exposition, p->manager->node, list, only_latest(list, roles.n));
        return 0;
}

void sampling_page_note_exit(struct sampling_page *p, const char *result) {
        size_t i = 0;

        if (!p)
                return;
        while (i + 1 < ELEMENTSOF(results) && strcmp(results[i], result) != 0)
                i++;
        p->exits[i]++;
}

static void add_exits(struct sampling_page *p, const char *node) {
        char result[METRIC_LABELS_MAX];

        for (size_t i = 0; i < ELEMENTSOF(results); i++)
                if (p->exits[i] > 0)
                        exposition_add(p->exposition, METRIC_NODE_EXITS, node,
                                       EXPOSITION_LABELS(result, "result", results[i]), p->exits[i],
                                       SCALE_ONE);
}

static void add_host(struct sampling_page *p, uint64_t began) {
        struct exposition *x = p->exposition;
        char node[METRIC_LABELS_MAX], version[METRIC_LABELS_MAX];
        const struct links *links;
        uint64_t rounds, spent;
        size_t n;

        EXPOSITION_LABELS(node, "node", p->manager->node);
        exposition_add(x, METRIC_NODE, node, EXPOSITION_LABELS(version, "version", PRIMUS_VERSION), 1,
                       SCALE_ONE);
        exposition_add(x, METRIC_NODE_EXECUTORS, node, "", units_count(p->manager->units), SCALE_ONE);
        exposition_add(x, METRIC_NODE_CONNECTED, node, "", link_bus(p->manager->link) ? 1 : 0, SCALE_ONE);
        host_add(x, "", node);
        add_exits(p, node);
        links = hostwatch_links(p->manager->watch);
        if (links) {
                const struct link_facts *list = links_list(links, &n);
                page_add_links(x, node, list, n);
        }
        if (p->manager->gpus) {
                const struct gpu_state *gpus;
                n = gpu_watch_devices(gpus_watch(p->manager->gpus), &gpus);
                page_add_gpus(x, node, gpus, n);
        }
        page_add_probes(x, node, p->probe);
        host_add_agent(x, "", node);
        rounds = sampler_rounds(p->sampler, &spent);
        exposition_add(x, METRIC_AGENT_ROUNDS, node, "", rounds, SCALE_ONE);
        exposition_add(x, METRIC_AGENT_ROUND_TIME, node, "", spent, SCALE_MICRO);
        exposition_add(x, METRIC_SCRAPE_DURATION, node, "", usec_sub(now_boot(), began), SCALE_MICRO);
}

static int on_page(bool openmetrics, char **ret, size_t *ret_size, void *userdata) {
        struct sampling_page *p = userdata;
        uint64_t began = now_boot();
        int r;

        exposition_begin(p->exposition, openmetrics);
        r = add_executors(p);
        if (r < 0)
                return r;
        add_host(p, began);
        return exposition_end(p->exposition, ret, ret_size);
}

/* For who may be anybody: what is whose, and how it goes, is not theirs to know. */
static int on_host_page(bool openmetrics, char **ret, size_t *ret_size, void *userdata) {
        struct sampling_page *p = userdata;
        uint64_t began = now_boot();

        exposition_begin(p->exposition, openmetrics);
        add_host(p, began);
        return exposition_end(p->exposition, ret, ret_size);
}

static int listen_all(struct sampling_page *p, char *const *addresses) {
        size_t n = 0;

        while (addresses[n])
                n++;
        p->servers = calloc(n ?: 1, sizeof(struct metrics_server *));
        if (!p->servers)
                return log_oom();
        for (size_t i = 0; i < n; i++) {
                /* The mode of a socket says who may look; who reaches a port is not known. */
                bool executors = *addresses[i] == '/' || p->manager->settings.metrics_jobs;
                int r = metrics_server_new(p->manager->event, addresses[i],
                                           executors ? on_page : on_host_page, p, &p->servers[p->n_servers]);

                if (r == -ENOMEM)
                        return log_oom();
                if (r == -EOPNOTSUPP)
                        return log_full(LOG_NOTICE, 0, NULL,
                                        "This build serves no metrics (it was made without libmicrohttpd)");
                if (r < 0)
                        log_warning_errno(r, "Cannot serve metrics at %s (MetricsListen= in agentd.conf)",
                                          addresses[i]);
                else {
                        p->n_servers++;
                        log_info("Metrics of %s are served at %s",
                                 executors ? "the host and of its jobs" : "the host", addresses[i]);
                }
        }
        return 0;
}

int sampling_page_new(struct manager *m, struct sampler *sampler, const struct probe *probe,
                      struct sampling_page **ret) {
        _cleanup_(sampling_page_free_p) struct sampling_page *p = calloc(1, sizeof(*p));
        int r;

        if (!p)
                return log_oom();
        p->manager = m;
        p->sampler = sampler;
        p->probe = probe;
        if (exposition_new(&p->exposition) < 0)
                return log_oom();
        r = listen_all(p, m->settings.metrics_listen);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(p);
        return 0;
}

void sampling_page_free(struct sampling_page *p) {
        if (!p)
                return;
        for (size_t i = 0; i < p->n_servers; i++)
                metrics_server_free(p->servers[i]);
        free(p->servers);
        exposition_free(p->exposition);
        free(p);
}
