/* SPDX-License-Identifier: Apache-2.0 */
/* The round over the executors. Invariant: a unit that was added is looked at in every round until it is
 * removed, and the timer runs exactly while there is one. */
#include "agentd/metrics/sampler.h"

#include <string.h>
#include <uthash.h>

#include "agentd/metrics/progress.h"
#include "lib/base/clock.h"

#define ROUND_USEC USEC_PER_SEC
/* The kernel may put the wake-up together with others. */
#define SLACK_USEC (100 * USEC_PER_MSEC)
#define PROVIDERS_MAX 16u
/* A page of progress that is not there is looked for in that many rounds, then in every so many. */
#define EAGER_ROUNDS 10u
#define LAZY_ROUNDS 5u

struct unit {
        char name[UNIT_NAME_MAX];
        struct telemetry_sample sample;
        struct sampled facts; /* as providers see it */
        unsigned rounds;
        int progress;
        struct {
                bool known;
                struct feed_counters counters;
                uint64_t rose_boot;
        } data;
        UT_hash_handle hh;
};

struct sampler {
        sd_event *event;
        sd_event_source *timer;
        char *cgroups; /* NULL: none on this host */
        struct sampler_options options;
        struct sampler_ops ops;
        void *userdata;
        struct unit *units; /* by name */
        uint64_t *ids;      /* room for one of each unit */
        size_t n_room;
        struct sampler_provider providers[PROVIDERS_MAX];
        size_t n_providers;
        uint64_t told_boot, rounds, spent_usec;
};

/* ---- a round ---- */

static void open_cgroup(struct sampler *s, struct unit *u) {
        char path[sizeof("primus.slice//") + 2 * UNIT_NAME_MAX], slice[UNIT_NAME_MAX];

        if (!s->cgroups)
                return;
        snprintf(path, sizeof(path), "primus.slice/%s/%s", job_slice_name(u->sample.id.job, slice), u->name);
        if (cgroup_open(s->cgroups, path, &u->facts.cgroup) < 0)
                return; /* it comes when systemd starts the unit */
        u->facts.cgroup_id = cgroup_id(u->facts.cgroup);
        if (s->ops.opened)
                s->ops.opened(&u->facts, s->userdata);
}

static void fill_own(struct sampler *s, struct unit *u, uint64_t now) {
        uint64_t *values = u->sample.values;

        if (u->data.known) {
                /* What is spliced into a pipe is bytes; nobody counts its records. */
                if (u->data.counters.records > 0 || u->data.counters.bytes == 0)
                        values[TELEMETRY_DATA_RECORDS] = u->data.counters.records;
                values[TELEMETRY_DATA_BYTES] = u->data.counters.bytes;
                values[TELEMETRY_DATA_WAIT_USEC] = u->data.counters.consumer_wait_usec;
                values[TELEMETRY_DATA_PRODUCER_USEC] = u->data.counters.producer_wait_usec;
                values[TELEMETRY_DATA_AGE_USEC] = usec_sub(now, u->data.rose_boot);
        }
        if (u->progress < 0 && s->ops.progress && (u->rounds < EAGER_ROUNDS || u->rounds % LAZY_ROUNDS == 0))
                s->ops.progress(u->name, s->userdata);
        if (u->progress >= 0)
                progress_fill(u->progress, now, values);
}

static void fill_values(struct sampler *s, struct unit *u, uint64_t now) {
        telemetry_clear(u->sample.values);
        for (size_t i = 0; i < s->n_providers; i++)
                if (s->providers[i].fill)
                        s->providers[i].fill(&u->facts, u->sample.values, s->providers[i].userdata);
        fill_own(s, u, now);
        u->rounds++;
}

void sampler_round(struct sampler *s) {
        const uint64_t now = now_boot();
        struct unit *u, *next;
        size_t n = 0;

        HASH_ITER (hh, s->units, u, next) {
                u->facts.now_boot = now;
                if (!u->facts.cgroup)
                        open_cgroup(s, u);
                if (u->facts.cgroup_id > 0)
                        s->ids[n++] = u->facts.cgroup_id;
        }
        for (size_t i = 0; i < s->n_providers; i++)
                if (s->providers[i].look)
                        (void)s->providers[i].look(s->ids, n, s->providers[i].userdata);
        HASH_ITER (hh, s->units, u, next)
                fill_values(s, u, now);
        s->rounds++;
        s->spent_usec += usec_sub(now_boot(), now);
        if (s->ops.telemetry && s->options.telemetry_usec > 0 &&
            now - s->told_boot + SLACK_USEC >= s->options.telemetry_usec) {
                s->told_boot = now;
                s->ops.telemetry(now, s->userdata);
        }
}

static int on_time(sd_event_source *source, uint64_t usec, void *userdata) {
        struct sampler *s = userdata;
        uint64_t now = now_boot(), next = usec_add(usec, ROUND_USEC);

        sampler_round(s);
        /* After a pause of the host there is one round, not one for each that was missed. */
        if (next < now)
                next = usec_add(now, ROUND_USEC);
        (void)sd_event_source_set_time(source, next);
        return sd_event_source_set_enabled(source, s->units ? SD_EVENT_ONESHOT : SD_EVENT_OFF);
}

/* ---- the units ---- */

static int start_rounds(struct sampler *s) {
        int enabled, r;

        if (!s->timer)
                return sd_event_add_time_relative(s->event, &s->timer, CLOCK_BOOTTIME, ROUND_USEC, SLACK_USEC,
                                                  on_time, s);
        r = sd_event_source_get_enabled(s->timer, &enabled);
        if (r < 0 || enabled != SD_EVENT_OFF)
                return r < 0 ? r : 0;
        r = sd_event_source_set_time_relative(s->timer, ROUND_USEC);
        return r < 0 ? r : sd_event_source_set_enabled(s->timer, SD_EVENT_ONESHOT);
}

static struct unit *find_unit(struct sampler *s, const struct executor_id *id) {
        char name[UNIT_NAME_MAX];
        struct unit *u;

        executor_unit_name(id->job, id->role, id->index, id->attempt, name);
        HASH_FIND_STR(s->units, name, u);
        return u;
}

static int make_room(struct sampler *s) {
        size_t wanted = HASH_COUNT(s->units) + 1;
        uint64_t *ids;

        if (wanted <= s->n_room)
                return 0;
        wanted = MAX(wanted, 2 * s->n_room);
        ids = reallocarray(s->ids, wanted, sizeof(*ids));
        if (!ids)
                return -ENOMEM;
        s->ids = ids;
        s->n_room = wanted;
        return 0;
}

int sampler_add(struct sampler *s, const struct executor_id *id) {
        struct unit *u = find_unit(s, id);
        int r;

        if (u)
                return 0;
        if ((r = make_room(s)) < 0 || (r = start_rounds(s)) < 0)
                return r;
        u = calloc(1, sizeof(*u));
        if (!u)
                return -ENOMEM;
        executor_unit_name(id->job, id->role, id->index, id->attempt, u->name);
        u->sample.id = *id;
        telemetry_clear(u->sample.values);
        u->facts.unit = u->name;
        u->facts.id = &u->sample.id;
        u->progress = -EBADF;
        HASH_ADD_STR(s->units, name, u);
        return 0;
}

void sampler_set_progress(struct sampler *s, const char *unit, int fd) {
        struct unit *u;

        HASH_FIND_STR(s->units, unit, u);
        if (!u || u->progress >= 0)
                close_fd(fd);
        else
                u->progress = fd;
}

static void unit_free(struct sampler *s, struct unit *u) {
        for (size_t i = 0; i < s->n_providers; i++)
                if (s->providers[i].forget)
                        s->providers[i].forget(&u->facts, s->providers[i].userdata);
        HASH_DEL(s->units, u);
        cgroup_free(u->facts.cgroup);
        (void)close_fd(u->progress);
        free(u);
}

void sampler_remove(struct sampler *s, const struct executor_id *id) {
        struct unit *u = find_unit(s, id);

        if (u)
                unit_free(s, u); /* the timer goes off by itself when it finds none */
}

void sampler_note_data(struct sampler *s, const struct executor_id *id, const struct feed_counters *c) {
        struct unit *u = find_unit(s, id);

        if (!u)
                return;
        if (!u->data.known || c->records > u->data.counters.records || c->bytes > u->data.counters.bytes)
                u->data.rose_boot = now_boot();
        u->data.known = true;
        u->data.counters = *c;
}

/* ---- looking ---- */

const struct telemetry_sample *sampler_find(struct sampler *s, const char *unit) {
        struct unit *u;

        HASH_FIND_STR(s->units, unit, u);
        return u && u->rounds > 0 ? &u->sample : NULL;
}

const struct telemetry_sample *sampler_refresh(struct sampler *s, const char *unit) {
        struct unit *u;

        HASH_FIND_STR(s->units, unit, u);
        if (!u)
                return NULL;
        if (u->facts.cgroup)
                cgroup_hasten(u->facts.cgroup);
        u->facts.now_boot = now_boot();
        fill_values(s, u, u->facts.now_boot);
        return &u->sample;
}

int sampler_visit(struct sampler *s, sampler_visitor f, void *userdata) {
        struct unit *u, *next;

        HASH_ITER (hh, s->units, u, next) {
                int r = u->rounds > 0 ? f(&u->facts, &u->sample, userdata) : 0;

                if (r < 0)
                        return r;
        }
        return 0;
}

size_t sampler_count(const struct sampler *s) {
        return HASH_COUNT(s->units);
}

uint64_t sampler_rounds(const struct sampler *s, uint64_t *ret_usec) {
        *ret_usec = s->spent_usec;
        return s->rounds;
}

/* ---- life ---- */

int sampler_add_provider(struct sampler *s, const struct sampler_provider *p) {
        if (s->n_providers == PROVIDERS_MAX)
                return -ENOBUFS;
        s->providers[s->n_providers++] = *p;
        return 0;
}

int sampler_new(sd_event *event, const struct sampler_options *options, const struct sampler_ops *ops,
                void *userdata, struct sampler **ret) {
        _cleanup_(sampler_free_p) struct sampler *s = calloc(1, sizeof(*s));
        int r;

        if (!s)
                return -ENOMEM;
        s->event = sd_event_ref(event);
        s->options = *options;
        s->ops = *ops;
        s->userdata = userdata;
        r = cgroup_root(options->root, &s->cgroups);
        if (r == -ENOMEM)
                return r;
        *ret = TAKE_PTR(s);
        return 0;
}

void sampler_free(struct sampler *s) {
        struct unit *u, *next;

        if (!s)
                return;
        HASH_ITER (hh, s->units, u, next)
                unit_free(s, u);
        sd_event_source_disable_unref(s->timer);
        sd_event_unref(s->event);
        free(s->cgroups);
        free(s->ids);
        free(s);
}
