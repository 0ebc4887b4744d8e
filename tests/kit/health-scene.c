/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/kit/health-scene.h"
#include "tests/kit/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"

#define GIB (UINT64_C(1) << 30)
#define SECOND UINT64_C(1000000)
#define BEGIN (UINT64_C(1000) * SECOND)

struct body {
        bool here;
        double counts[_TELEMETRY_MAX];
        double memory;
        double steps;
};

struct play {
        const struct scene *scene;
        struct health_gang *gang;
        struct body bodies[32];
        struct verdicts *verdicts;
        uint32_t at;
        uint32_t random;
};

/* 0.9 to 1.1, the same in every run. */
static double jitter(struct play *p) {
        p->random = p->random * 1664525u + 1013904223u;
        return 0.9 + 0.2 * (double)(p->random >> 8) / (double)(1u << 24);
}

static uint32_t role_of(const struct scene *s, uint32_t i) {
        return s->roles && i == 0 ? 1 : 0;
}

static uint32_t index_of(const struct scene *s, uint32_t i) {
        return s->roles ? (i == 0 ? 0 : i - 1) : i;
}

static const struct line *line_of(const struct scene *s, uint32_t member, uint32_t at, enum event event) {
        for (size_t i = s->n; i-- > 0;)
                if (s->lines[i].event == event && s->lines[i].who & ONLY(member) && at >= s->lines[i].from &&
                    at < s->lines[i].to)
                        return s->lines + i;
        return NULL;
}

static void add(struct body *b, enum telemetry_field f, double v) {
        b->counts[f] = v < 0 ? -1 : MAX(b->counts[f], 0.0) + v;
}

static void live(struct play *p, struct body *b, const struct doing *d) {
        double j = jitter(p);

        add(b, TELEMETRY_CPU_USEC, d->cpu < 0 ? -1 : d->cpu * 1e6 * (d->cpu < 0.95 ? j : 1));
        add(b, TELEMETRY_NET_RX_BYTES, d->net < 0 ? -1 : d->net / 2 * j);
        add(b, TELEMETRY_NET_TX_BYTES, d->net < 0 ? -1 : d->net / 2 * j);
        add(b, TELEMETRY_READ_BYTES, d->files < 0 ? -1 : d->files / 2 * j);
        add(b, TELEMETRY_WRITE_BYTES, d->files < 0 ? -1 : d->files / 2 * j);
        add(b, TELEMETRY_DATA_BYTES, d->data * j);
        add(b, TELEMETRY_DATA_WAIT_USEC, MIN(d->data_wait * j, 1.0) * 1e6);
        add(b, TELEMETRY_LOOKS, d->unread < 0 ? -1 : 1);
        add(b, TELEMETRY_LOOKS_UNREAD, d->unread < 0 ? -1 : MIN(d->unread * j, 1.0));
        add(b, TELEMETRY_GPU_BUSY_USEC,
            p->scene->gpus == 0 || d->gpu < 0 ? -1 : d->gpu * 1e6 * p->scene->gpus);
        add(b, TELEMETRY_CPU_THROTTLED_USEC, d->throttled * 1e6);
        add(b, TELEMETRY_RUNQUEUE_WAIT_USEC, d->runqueue * 1e6);
        add(b, TELEMETRY_PRESSURE_MEMORY_FULL_USEC, d->memory_full * 1e6);
        add(b, TELEMETRY_PRESSURE_IO_FULL_USEC, d->io_full * 1e6 * MIN(j, 1.0));
        add(b, TELEMETRY_TCP_RETRANSMITS, d->retransmits);
        add(b, TELEMETRY_OOM_KILLS, 0);
        if (p->at == 0 || d->steps)
                b->steps += d->steps;
        b->memory = MAX(b->memory + d->grows, (double)GIB);
}

static void sample(struct play *p, const struct body *b, const struct doing *d,
                   uint64_t values[_TELEMETRY_MAX]) {
        for (size_t f = 0; f < _TELEMETRY_MAX; f++)
                values[f] = b->counts[f] < 0 ? TELEMETRY_UNKNOWN : (uint64_t)b->counts[f];
        values[TELEMETRY_MEMORY_BYTES] = (uint64_t)(b->memory * (0.999 + 0.002 * jitter(p)));
        values[TELEMETRY_MEMORY_LIMIT_BYTES] = p->scene->memory ?: 8 * GIB;
        values[TELEMETRY_TASKS] = (d->tasks ?: 10) + (d->forks ? p->random >> 28 : 0);
        values[TELEMETRY_TASKS_STOPPED] = d->stopped ? values[TELEMETRY_TASKS] - 2 : 0;
        values[TELEMETRY_TASKS_BLOCKED] = d->blocked;
        values[TELEMETRY_TCP_CONNECTIONS] = d->net < 0       ? TELEMETRY_UNKNOWN
                                            : d->connections ? d->connections - 1
                                                             : 3;
        values[TELEMETRY_TCP_RTT_USEC] = (uint64_t)(d->rtt > 0 ? d->rtt : 100);
        values[TELEMETRY_PROGRESS_STEP] = b->steps > 0 ? (uint64_t)b->steps : TELEMETRY_UNKNOWN;
        values[TELEMETRY_MEMORY_PEAK_BYTES] = values[TELEMETRY_MEMORY_BYTES];
        values[TELEMETRY_GPUS] = values[TELEMETRY_GPU_UTILIZATION] = TELEMETRY_UNKNOWN;
        values[TELEMETRY_GPU_POWER_MILLIWATTS] = values[TELEMETRY_MEMORY_ANON_BYTES] = TELEMETRY_UNKNOWN;
        if (p->scene->gpus > 0 && d->gpu >= 0) {
                values[TELEMETRY_GPUS] = p->scene->gpus;
                values[TELEMETRY_GPU_UTILIZATION] = (uint64_t)(d->gpu * 1000);
                values[TELEMETRY_GPU_POWER_MILLIWATTS] =
                        d->watts > 0 ? (uint64_t)(d->watts * 1000 * jitter(p)) : TELEMETRY_UNKNOWN;
        }
}

static void note(const struct health_verdict *v, void *userdata) {
        struct play *p = userdata;

        assert_true(p->verdicts->n < VERDICTS_MAX);
        assert_true(!v->begins || *v->text);
        p->verdicts->all[p->verdicts->n].at = p->at;
        p->verdicts->all[p->verdicts->n++].v = *v;
}

static void join(struct play *p, uint32_t i) {
        const struct scene *s = p->scene;
        struct health_facts facts = { s->gpus, 1000, s->memory ?: 8 * GIB };

        assert_int_equal(health_join(p->gang, role_of(s, i), index_of(s, i), BEGIN + p->at * SECOND, &facts),
                         0);
}

static void leave(struct play *p, uint32_t i) {
        if (p->bodies[i].here)
                health_leave(p->gang, role_of(p->scene, i), index_of(p->scene, i));
        p->bodies[i].here = false;
}

static void gang_begin(struct play *p) {
        assert_int_equal(health_gang_new(&p->gang), 0);
        for (uint32_t r = 0; p->scene->rules && r < 2; r++)
                assert_int_equal(health_set_rules(p->gang, r, p->scene->rules), 0);
        for (uint32_t i = 0; i < p->scene->members; i++)
                if (p->bodies[i].here)
                        join(p, i);
}

static double chance(struct play *p) {
        return (jitter(p) - 0.9) / 0.2;
}

static const char *place_of(const struct doing *d) {
        if (random_below(1000) >= 1000 * d->strays)
                return "step (train.py:12)";
        return random_below(2) > 0 ? "compute (train.py:9)" : "all_reduce (train.py:40)";
}

/* As often as the engine wants it, here with each sample at the most. */
static void look(struct play *p, uint32_t i, const struct doing *d) {
        uint32_t role = role_of(p->scene, i), index = index_of(p->scene, i);
        enum health_wait waits[16];
        bool mains[16];
        double at = chance(p);
        uint64_t every;
        size_t n = 0;
        enum health_looked what = health_wants_look(p->gang, role, index, BEGIN + p->at * SECOND, &every);

        if (what == LOOK_NONE)
                return;
        waits[n++] = (at -= d->sleeps) < 0   ? WAIT_SLEEP
                     : (at -= d->reads) < 0  ? WAIT_DISK
                     : (at -= d->pipes) < 0  ? WAIT_PIPE
                     : (at -= d->server) < 0 ? WAIT_NETWORK
                     : (at -= d->locks) < 0  ? WAIT_FUTEX
                                             : WAIT_RUNNING;
        for (unsigned k = 0; k < d->launcher; k++)
                waits[n++] = WAIT_SLEEP;
        for (unsigned k = 0; k < d->loaders; k++)
                waits[n++] = chance(p) < d->loading ? WAIT_DISK : WAIT_PIPE;
        waits[n] = WAIT_FUTEX; /* another thread, which says nothing */
        for (size_t k = 0; k <= n; k++)
                mains[k] = k < n;
        health_look(p->gang, role, index, waits, mains, n + 1, what == LOOK_PLACE ? place_of(d) : NULL);
}

static void member_second(struct play *p, uint32_t i) {
        static const struct doing nothing = {};
        const struct scene *s = p->scene;
        struct body *b = p->bodies + i;
        const struct line *l, *does = line_of(s, i, p->at, DOES);
        const struct doing *d = does ? &does->doing : &nothing;
        uint64_t values[_TELEMETRY_MAX];

        l = line_of(s, i, p->at, LEAVES);
        if (l && l->from == p->at)
                leave(p, i);
        l = line_of(s, i, p->at, COMES);
        if (p->at == 0 && !line_of(s, i, FOREVER - 1, COMES))
                b->here = false;
        if ((l && l->from == p->at) || (p->at == 0 && !b->here)) {
                memset(b, 0, sizeof(*b));
                b->memory = (double)GIB;
                b->here = !(p->at == 0 && line_of(s, i, FOREVER - 1, COMES));
                if (b->here)
                        join(p, i);
        }
        if (!b->here)
                return;
        l = line_of(s, i, p->at, AGENT_AGAIN);
        if (l && l->from == p->at)
                memset(b->counts, 0, sizeof(b->counts));
        l = line_of(s, i, p->at, SHRINKS);
        if (l && l->from == p->at)
                b->memory = (double)GIB;
        live(p, b, d);
        if (does && does->from == p->at)
                b->counts[TELEMETRY_OOM_KILLS] += d->killed;
        if ((p->at + i) % (s->sample ?: 5) != 0 || line_of(s, i, p->at, SILENT) || line_of(s, i, p->at, HELD))
                return;
        sample(p, b, d, values);
        health_observe(p->gang, role_of(s, i), index_of(s, i), BEGIN + p->at * SECOND, values);
        look(p, i, d);
}

void scene_play(const struct scene *s, struct verdicts *ret) {
        struct play p = { .scene = s, .verdicts = ret, .random = 7 };

        ret->n = 0;
        gang_begin(&p);
        for (p.at = 0; p.at < s->seconds; p.at++) {
                const struct line *again = line_of(s, 0, p.at, MASTER_AGAIN),
                                  *held = line_of(s, 0, p.at, HELD);

                if (again && again->from == p.at) {
                        health_gang_free(p.gang);
                        gang_begin(&p);
                }
                if (held)
                        health_pause(p.gang);
                for (uint32_t i = 0; i < s->members; i++)
                        member_second(&p, i);
                if (p.at % 5 == 4 && !held)
                        health_judge(p.gang, BEGIN + p.at * SECOND, note, &p);
        }
        health_gang_free(p.gang);
}

static void print(const struct scene *s, const struct verdicts *v) {
        for (size_t i = 0; i < v->n; i++)
                print_message("%s: %u:%02u %s %s %s%u/%u %s%s\n", s->name, v->all[i].at / 60,
                              v->all[i].at % 60, verdict_kind_to_string(v->all[i].v.kind),
                              v->all[i].v.begins ? "begins" : "ends", v->all[i].v.gang ? "gang " : "",
                              v->all[i].v.role, v->all[i].v.index, v->all[i].v.text,
                              v->all[i].v.suspect ? " (suspect)" : "");
}

void scene_is_healthy(const struct scene *s) {
        struct verdicts v;

        scene_play(s, &v);
        print(s, &v);
        assert_int_equal(v.n, 0);
}

struct health_verdict scene_is_sick(const struct scene *s, enum verdict_kind kind, bool gang, uint32_t member,
                                    uint32_t after, uint32_t before) {
        struct verdicts v;
        const struct health_verdict *first;

        scene_play(s, &v);
        print(s, &v);
        assert_true(v.n > 0);
        first = &v.all[0].v;
        assert_true(first->begins);
        assert_int_equal(first->kind, kind);
        assert_int_equal(first->gang, gang);
        assert_true(v.all[0].at >= after && v.all[0].at < before);
        if (member == UINT32_MAX)
                assert_false(first->suspect);
        else {
                assert_int_equal(first->suspect, gang);
                assert_int_equal(first->role, role_of(s, member));
                assert_int_equal(first->index, index_of(s, member));
        }
        for (size_t i = 1; i < v.n; i++)
                assert_false(v.all[i].v.begins);
        return *first;
}
