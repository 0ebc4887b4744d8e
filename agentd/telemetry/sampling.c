/* SPDX-License-Identifier: Apache-2.0 */
/* What agentd sees of its executors. Invariant: telemetry never waits and is never queued: what the link does
 * not take at once is not sent, and the next sample says all of it anew. */
#include "agentd/telemetry/sampling.h"

#include "agentd/core/manager.h"
#include "agentd/device/gpu-watch.h"
#include "agentd/executors/units.h"
#include "agentd/host/gpus.h"
#include "agentd/link/link.h"
#include "agentd/metrics/sampler.h"
#include "agentd/net/sockets.h"
#include "agentd/observe/observer.h"
#include "agentd/relay/data.h"
#include "agentd/telemetry/sampling-page.h"
#include "agentd/telemetry/sampling-pressure.h"
#include "agentd/telemetry/sampling-probe.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"

/* How often the units are gone over, should one have been found that nobody told of. */
#define RECOUNT_USEC (60 * USEC_PER_SEC)

struct sampling {
        struct manager *manager;
        struct sampler *sampler;
        struct sampling_page *page;
        struct sampling_probe *probe;
        struct sampling_pressure *pressure;
        struct sockets *sockets; /* NULL: the kernel has no such thing */
        uint64_t recounted_boot;
        bool holding_back; /* and it was said */
};

/* ---- who measures ---- */

static void fill_cgroup(const struct sampled *u, uint64_t values[static _TELEMETRY_MAX], void *userdata) {
        if (u->cgroup)
                cgroup_fill(u->cgroup, values);
}

static void forget_pressure(const struct sampled *u, void *userdata) {
        sampling_pressure_forget(userdata, u);
}

static void fill_gpus(const struct sampled *u, uint64_t values[static _TELEMETRY_MAX], void *userdata) {
        struct manager *m = userdata;
        struct unit_facts facts;

        if (m->gpus && units_find(m->units, u->unit, &facts) >= 0 && facts.gpus)
                gpu_watch_fill(gpus_watch(m->gpus), facts.gpus, u->unit, values);
}

static int look_sockets(const uint64_t *ids, size_t n, void *userdata) {
        return sockets_look(userdata, ids, n);
}

static void fill_sockets(const struct sampled *u, uint64_t values[static _TELEMETRY_MAX], void *userdata) {
        sockets_fill(userdata, u->cgroup_id, values);
}

static void forget_sockets(const struct sampled *u, void *userdata) {
        sockets_forget(userdata, u->cgroup_id);
}

static int add_providers(struct sampling *e) {
        /* A later one has the last word on a field. */
        const struct sampler_provider providers[] = {
                { "cgroup", NULL, fill_cgroup, NULL, NULL },
                sampling_probe_provider(e->probe),
                { "pressure", NULL, NULL, forget_pressure, e->pressure },
                { "gpu", NULL, fill_gpus, NULL, e->manager },
        };
        int r = 0;

        for (size_t i = 0; i < ELEMENTSOF(providers) && r >= 0; i++)
                r = sampler_add_provider(e->sampler, &providers[i]);
        if (r < 0)
                return r;
        /* Last: it has byte counts of its own for where nobody has better ones. */
        r = sockets_new(&e->sockets);
        if (r >= 0)
                r = sampler_add_provider(e->sampler,
                                         &(struct sampler_provider){ "sockets", look_sockets, fill_sockets,
                                                                     forget_sockets, e->sockets });
        else if (r != -ENOMEM) {
                log_full(LOG_NOTICE, r, NULL,
                         "The kernel does not tell connections by control group; what executors do with the "
                         "network is not seen that way");
                r = 0;
        }
        return r;
}

/* ---- who is told ---- */

/* A message with an open array of samples. */
struct sending {
        struct link *link;
        sd_bus_message *message;
        uint64_t now_boot;
        unsigned n;
};

static int sending_begin(struct sending *s) {
        int r = link_message(s->link, false, "Telemetry", &s->message);

        s->n = 0;
        return r < 0 || (r = sd_bus_message_append(s->message, "t", s->now_boot)) < 0
                       ? r
                       : sd_bus_message_open_container(s->message, 'a', TELEMETRY_SAMPLE_SIGNATURE);
}

static int sending_end(struct sending *s) {
        int r = sd_bus_message_close_container(s->message);

        if (r >= 0 && (r = link_append_extra_empty(s->message)) >= 0)
                r = link_send(s->link, s->message);
        s->message = sd_bus_message_unref(s->message);
        return r;
}

static int send_sample(const struct sampled *u, const struct telemetry_sample *x, void *userdata) {
        struct sending *s = userdata;
        int r;

        if (s->n == TELEMETRY_SAMPLES_MAX && ((r = sending_end(s)) < 0 || (r = sending_begin(s)) < 0))
                return r;
        s->n++;
        return telemetry_sample_append(s->message, x);
}

static int recount(const char *unit, const struct unit_facts *facts, void *userdata) {
        return sampler_add(userdata, &facts->id);
}

static void on_telemetry(uint64_t now, void *userdata) {
        struct sampling *e = userdata;
        struct sending s = { .link = e->manager->link, .now_boot = now };
        bool congested = link_queued(s.link) > LINK_QUEUE_CAUTIOUS;
        int r;

        if (now - e->recounted_boot > RECOUNT_USEC) {
                e->recounted_boot = now;
                (void)units_visit(e->manager->units, recount, e->sampler);
        }
        if (congested != e->holding_back)
                log_debug(congested ? "The link is slow; samples of executors are left out"
                                    : "Samples of executors are sent again");
        e->holding_back = congested;
        if (congested || !link_bus(s.link))
                return;
        if ((r = sending_begin(&s)) < 0 || (r = sampler_visit(e->sampler, send_sample, &s)) < 0 ||
            (r = sending_end(&s)) < 0)
                log_full(LOG_DEBUG, r, NULL, "Cannot send samples of executors");
        sd_bus_message_unref(s.message);
}

static void on_opened(const struct sampled *u, void *userdata) {
        sampling_pressure_watch(((struct sampling *)userdata)->pressure, u);
}

/* The page lies in a directory of root's, and is the user's: the starter opens it. */
struct page_asked {
        struct sampling *sampling;
        char unit[UNIT_NAME_MAX];
};

static void on_page(int r, const char *error, int fd, void *userdata) {
        const struct page_asked *a = userdata;

        if (r >= 0)
                sampler_set_progress(a->sampling->sampler, a->unit, fd);
}

static void on_progress_wanted(const char *unit, void *userdata) {
        struct page_asked *a = calloc(1, sizeof(*a));

        if (!a)
                return;
        a->sampling = userdata;
        snprintf(a->unit, sizeof(a->unit), "%s", unit);
        (void)observer_open(a->sampling->manager->observer, unit, OBSERVE_FILE_PROGRESS, on_page, a, free,
                            NULL);
}

void sampling_push(struct sampling *e, const char *unit) {
        struct sending s = { .link = e->manager->link, .now_boot = now_boot() };
        const struct telemetry_sample *x = sampler_refresh(e->sampler, unit);

        if (!x || e->manager->settings.telemetry_usec == 0 || !link_bus(s.link) ||
            link_queued(s.link) > LINK_QUEUE_CAUTIOUS)
                return;
        if (sending_begin(&s) < 0 || telemetry_sample_append(s.message, x) < 0 || sending_end(&s) < 0)
                log_debug("Cannot send a sample of an executor");
        sd_bus_message_unref(s.message);
}

static void on_counters(const struct executor_id *id, const struct feed_counters *c, void *userdata) {
        sampler_note_data(((struct sampling *)userdata)->sampler, id, c);
}

/* ---- life ---- */

void sampling_starting(struct sampling *e, const struct executor_id *id) {
        if (sampler_add(e->sampler, id) < 0)
                log_oom(); /* the next recount finds it */
}

void sampling_account(struct sampling *e, struct exit_report *x) {
        struct sending s = { .link = e->manager->link, .now_boot = now_boot() };
        struct telemetry_sample sample = { .id = x->id };

        sampling_page_note_exit(e->page, x->result);
        telemetry_clear(sample.values);
        if (!sampling_probe_account(e->probe, x, sample.values) || e->manager->settings.telemetry_usec == 0 ||
            !s.link || !link_bus(s.link) || link_queued(s.link) > LINK_QUEUE_CAUTIOUS)
                return;
        /* The last sample has all of it, also of an executor that lived between two looks. */
        if (sending_begin(&s) < 0 || telemetry_sample_append(s.message, &sample) < 0 || sending_end(&s) < 0)
                log_debug("Cannot send the last sample of an executor");
        sd_bus_message_unref(s.message);
}

void sampling_ended(struct sampling *e, const struct executor_id *id) {
        sampler_remove(e->sampler, id);
}

const struct probe *sampling_probes(const struct sampling *e) {
        return sampling_probe_get(e->probe);
}

int sampling_start(struct sampling *e) {
        int r = sampling_page_new(e->manager, e->sampler, sampling_probe_get(e->probe), &e->page);

        if (r < 0)
                return r;
        e->recounted_boot = now_boot();
        return units_visit(e->manager->units, recount, e->sampler);
}

int sampling_new(struct manager *m, struct sampling **ret) {
        static const struct sampler_ops ops = { .telemetry = on_telemetry,
                                                .opened = on_opened,
                                                .progress = on_progress_wanted };
        const struct sampler_options options = { .root = "", .telemetry_usec = m->settings.telemetry_usec };
        _cleanup_(sampling_free_p) struct sampling *e = calloc(1, sizeof(*e));
        int r;

        if (!e)
                return log_oom();
        e->manager = m;
        if ((r = sampler_new(m->event, &options, &ops, e, &e->sampler)) < 0 ||
            (r = sampling_pressure_new(m, &e->pressure)) < 0 || (r = sampling_probe_new(m, &e->probe)) < 0 ||
            (r = add_providers(e)) < 0)
                return log_error_errno(r, "Cannot prepare to look at executors");
        data_watch_counters(m->data, on_counters, e);
        *ret = TAKE_PTR(e);
        return 0;
}

void sampling_free(struct sampling *e) {
        if (!e)
                return;
        sampling_page_free(e->page);
        sampler_free(e->sampler);
        sampling_probe_free(e->probe);
        sampling_pressure_free(e->pressure); /* which the sampler tells of units that go */
        sockets_free(e->sockets);
        free(e);
}
