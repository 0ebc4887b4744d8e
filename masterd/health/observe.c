/* SPDX-License-Identifier: Apache-2.0 */
/* One sample: what came since the one before, whether that is progress, and the conditions that need nobody
 * else to compare with. Invariant: a sample costs the same however long the executor has run. */
#include "masterd/health/internal.h"

/* Samples that are farther apart say nothing of the time between them. */
#define APART_MAX (120 * SECOND)
/* Heartbeats of stores and collectives, and a line of log now and then, are less. */
#define PROGRESS_NET 2048.0    /* bytes per second, both ways */
#define PROGRESS_FILES 16384.0 /* read and written: those who watch the process read /proc */
#define PROGRESS_CPU 0.05      /* CPUs */
#define PROGRESS_GPU 0.05      /* of the time */
/* Whose counters are at that has worked before it was first seen. */
#define PAST_NET (1 << 20)
#define PAST_CPU (60 * SECOND)

/* What is kept of a sample. */
static const uint8_t kept[] = {
        TELEMETRY_CPU_USEC,
        TELEMETRY_CPU_THROTTLED_USEC,
        TELEMETRY_RUNQUEUE_WAIT_USEC,
        TELEMETRY_PRESSURE_MEMORY_FULL_USEC,
        TELEMETRY_PRESSURE_IO_FULL_USEC,
        TELEMETRY_MEMORY_PEAK_BYTES,
        TELEMETRY_MEMORY_LIMIT_BYTES,
        TELEMETRY_OOM_KILLS,
        TELEMETRY_READ_BYTES,
        TELEMETRY_WRITE_BYTES,
        TELEMETRY_BLOCK_READ_BYTES,
        TELEMETRY_BLOCK_WRITE_BYTES,
        TELEMETRY_NET_RX_BYTES,
        TELEMETRY_NET_TX_BYTES,
        TELEMETRY_TCP_RETRANSMITS,
        TELEMETRY_LOOKS,
        TELEMETRY_LOOKS_UNREAD,
        TELEMETRY_TASKS,
        TELEMETRY_DATA_RECORDS,
        TELEMETRY_DATA_BYTES,
        TELEMETRY_DATA_WAIT_USEC,
        TELEMETRY_GPU_BUSY_USEC,
        TELEMETRY_PROGRESS_STEP,
};
_Static_assert(ELEMENTSOF(kept) == KEPT_FIELDS, "what is kept has its room");

uint64_t member_value(const struct member *m, enum telemetry_field f) {
        for (size_t i = 0; i < KEPT_FIELDS; i++)
                if (kept[i] == f)
                        return m->before[i];
        return TELEMETRY_UNKNOWN;
}

struct growth {
        const uint64_t *before, *now;
        double seconds;
};

/* Of a counter, per second; < 0: not known, or it began anew. */
static double per_second(const struct growth *g, enum telemetry_field f) {
        if (g->before[f] == TELEMETRY_UNKNOWN || g->now[f] == TELEMETRY_UNKNOWN || g->now[f] < g->before[f])
                return -1;
        return (double)(g->now[f] - g->before[f]) / g->seconds;
}

/* The same of a counter of microseconds: a share of the time. */
static double share_of(const struct growth *g, enum telemetry_field f) {
        double v = per_second(g, f);

        return v < 0 ? v : v / 1e6;
}

/* Of two that say parts of one thing: one that is not known counts as nothing, unless both are. */
static double sum(double a, double b) {
        if (a < 0 && b < 0)
                return -1;
        return MAX(a, 0.0) + MAX(b, 0.0);
}

static double gauge(const uint64_t *values, enum telemetry_field f, double scale) {
        return values[f] == TELEMETRY_UNKNOWN ? -1 : (double)values[f] / scale;
}

static void smooth(struct member *m, enum rate r, double v, double weight) {
        if (v < 0)
                return;
        m->rates[r] = (float)(m->rates[r] < 0 ? v : (double)m->rates[r] + weight * (v - (double)m->rates[r]));
}

/* Smoothing over a part of the shortest time that any of its rules has. */
static double smoothing_seconds(const struct health_rules *rules) {
        uint64_t least = 240 * SECOND;

        for (size_t k = 0; k < _VERDICT_MAX; k++)
                if (!rules->of[k].off && rules->of[k].after_usec > 0)
                        least = MIN(least, rules->of[k].after_usec);
        return (double)least / 4e6;
}

/* A GPU that waits in a collective is "busy" and draws little: work is what draws more than that. Where the
 * power hardly differs, or is not known, being busy is enough. */
static bool gpu_works(struct member *m, const uint64_t *now, double gpu) {
        double watts = gauge(now, TELEMETRY_GPU_POWER_MILLIWATTS, 1e3);

        if (watts > 0) {
                m->power_least = m->power_least <= 0 ? (float)watts : MIN(m->power_least, (float)watts);
                m->power_most = MAX(m->power_most, (float)watts);
        }
        if (gpu < PROGRESS_GPU)
                return false;
        if (watts <= 0 || m->power_most < 1.5F * m->power_least)
                return true;
        return watts > (double)m->power_least + 0.25 * (double)(m->power_most - m->power_least);
}

static double gpu_share(const struct member *m, const struct growth *g) {
        double busy = share_of(g, TELEMETRY_GPU_BUSY_USEC);

        if (m->facts.gpus == 0)
                return -1;
        if (busy >= 0)
                return busy / (double)m->facts.gpus;
        return gauge(g->now, TELEMETRY_GPU_UTILIZATION, 1000);
}

enum seen {
        SEEN_NOTHING, /* neither: what would tell is not known */
        SEEN_STILL,
        SEEN_PROGRESS,
};

/* Data, network, files, GPUs, and what the trainer says itself. CPU time is progress only of one that has
 * nobody to wait for in a loop: no peers, and no GPU. */
static enum seen progress_of(const struct health_gang *g, struct member *m, const struct growth *v) {
        double net = sum(per_second(v, TELEMETRY_NET_RX_BYTES), per_second(v, TELEMETRY_NET_TX_BYTES));
        double files = sum(
                sum(per_second(v, TELEMETRY_READ_BYTES), per_second(v, TELEMETRY_WRITE_BYTES)),
                sum(per_second(v, TELEMETRY_BLOCK_READ_BYTES), per_second(v, TELEMETRY_BLOCK_WRITE_BYTES)));
        double cpu = share_of(v, TELEMETRY_CPU_USEC), gpu = gpu_share(m, v);
        /* It has exchanged something, and is still connected. */
        bool peers =
                g->n_members > 1 && net >= 0 && m->moved_usec > 0 && v->now[TELEMETRY_TCP_CONNECTIONS] != 0;

        m->spins = peers || gpu >= PROGRESS_GPU;
        if (m->facts.gpus > 0 && gpu < 0)
                m->spins = false; /* what its GPUs do is not known here */
        if (per_second(v, TELEMETRY_DATA_BYTES) > 0 || per_second(v, TELEMETRY_DATA_RECORDS) > 0 ||
            net >= PROGRESS_NET || files >= PROGRESS_FILES)
                return SEEN_PROGRESS;
        if (gpu >= 0 && gpu_works(m, v->now, gpu))
                return SEEN_PROGRESS;
        if (v->now[TELEMETRY_PROGRESS_STEP] != TELEMETRY_UNKNOWN &&
            v->before[TELEMETRY_PROGRESS_STEP] != v->now[TELEMETRY_PROGRESS_STEP])
                return SEEN_PROGRESS;
        if (cpu >= PROGRESS_CPU && !m->spins)
                return SEEN_PROGRESS;
        /* It waits for data: that is what "starved" is about. */
        if (share_of(v, TELEMETRY_DATA_WAIT_USEC) > 0.5)
                return SEEN_NOTHING;
        return cpu < 0 || (net < 0 && files < 0) ? SEEN_NOTHING : SEEN_STILL;
}

static void rates_enter(struct member *m, const struct growth *g, double weight) {
        smooth(m, RATE_CPU, share_of(g, TELEMETRY_CPU_USEC), weight);
        smooth(m, RATE_THROTTLED, share_of(g, TELEMETRY_CPU_THROTTLED_USEC), weight);
        smooth(m, RATE_RUNQUEUE, share_of(g, TELEMETRY_RUNQUEUE_WAIT_USEC), weight);
        smooth(m, RATE_MEMORY_FULL, share_of(g, TELEMETRY_PRESSURE_MEMORY_FULL_USEC), weight);
        smooth(m, RATE_IO_FULL, share_of(g, TELEMETRY_PRESSURE_IO_FULL_USEC), weight);
        smooth(m, RATE_DATA_WAIT, MIN(share_of(g, TELEMETRY_DATA_WAIT_USEC), 1.0), weight);
        smooth(m, RATE_NET, sum(per_second(g, TELEMETRY_NET_RX_BYTES), per_second(g, TELEMETRY_NET_TX_BYTES)),
               weight);
        smooth(m, RATE_FILES, sum(per_second(g, TELEMETRY_READ_BYTES), per_second(g, TELEMETRY_WRITE_BYTES)),
               weight);
        smooth(m, RATE_RETRANSMITS, per_second(g, TELEMETRY_TCP_RETRANSMITS), weight);
        smooth(m, RATE_RTT, gauge(g->now, TELEMETRY_TCP_RTT_USEC, 1), weight);
        smooth(m, RATE_GPU, gpu_share(m, g), weight);
        smooth(m, RATE_POWER, gauge(g->now, TELEMETRY_GPU_POWER_MILLIWATTS, 1e3), weight);
}

/* The looks count while it exchanges data with others: in a checkpoint or an evaluation the others wait, and
 * that is nobody's slowness. */
static void looks_enter(struct member *m, const struct growth *g, uint64_t now, double weight) {
        double net = sum(per_second(g, TELEMETRY_NET_RX_BYTES), per_second(g, TELEMETRY_NET_TX_BYTES));
        double looks = per_second(g, TELEMETRY_LOOKS), unread = per_second(g, TELEMETRY_LOOKS_UNREAD);

        if (net >= PROGRESS_NET)
                m->moved_usec = now;
        if (looks > 0 && unread >= 0 && m->moved_usec > 0 && now - m->moved_usec <= 30 * SECOND)
                smooth(m, RATE_UNREAD, unread / looks, weight);
}

static void killed_enter(struct member *m, const struct growth *g) {
        const uint64_t *b = g->before, *n = g->now;

        if (b[TELEMETRY_OOM_KILLS] != TELEMETRY_UNKNOWN && n[TELEMETRY_OOM_KILLS] != TELEMETRY_UNKNOWN &&
            n[TELEMETRY_OOM_KILLS] > b[TELEMETRY_OOM_KILLS])
                m->killed += n[TELEMETRY_OOM_KILLS] - b[TELEMETRY_OOM_KILLS];
}

static bool is_idle(const struct health_gang *g, const struct member *m, const struct health_rule *rule,
                    enum seen seen) {
        double least = (double)rule->share_milli / 1000;

        if (m->holding[VERDICT_HUNG].up || g->standstill.up)
                return false;
        if (m->facts.gpus > 0)
                return m->rates[RATE_GPU] >= 0 && (double)m->rates[RATE_GPU] < least;
        return seen == SEEN_STILL && m->rates[RATE_CPU] >= 0 &&
               (double)m->rates[RATE_CPU] < least * MAX((double)m->facts.cpu_milli, 1000.0) / 1000;
}

static bool thrashes(const struct member *m, const struct health_rule *rule) {
        double most = (double)rule->share_milli / 1000;

        /* I/O that is waited for is not yet thrashing: a checkpoint writes for minutes. */
        return (double)m->rates[RATE_MEMORY_FULL] > most ||
               (double)m->rates[RATE_IO_FULL] > MIN(2 * most, 0.9);
}

static bool leaks(struct member *m, const struct health_rule *rule, const uint64_t *now, uint64_t now_usec) {
        uint64_t bytes = now[TELEMETRY_MEMORY_BYTES], limit = now[TELEMETRY_MEMORY_LIMIT_BYTES];

        if (now[TELEMETRY_MEMORY_ANON_BYTES] != TELEMETRY_UNKNOWN)
                bytes = now[TELEMETRY_MEMORY_ANON_BYTES]; /* without what is a cache of files */
        if (limit == TELEMETRY_UNKNOWN || limit == 0)
                limit = m->facts.memory;
        if (bytes == TELEMETRY_UNKNOWN || limit == 0)
                return false;
        leak_enter(&m->leak, now_usec, bytes);
        return leak_fits(&m->leak, bytes, limit, &m->fit) && m->fit.left_usec <= rule->within_usec;
}

/* Conditions that need no comparison. */
static void conditions_enter(const struct health_gang *g, struct member *m, enum seen seen,
                             const uint64_t *now, uint64_t dt, uint64_t now_usec) {
        const struct health_rule *of = member_rules(g, m)->of;
        bool starved =
                !m->dry && (double)m->rates[RATE_DATA_WAIT] > (double)of[VERDICT_STARVED].share_milli / 1000;

        holding_take(m->holding + VERDICT_IDLE,
                     !of[VERDICT_IDLE].off && is_idle(g, m, of + VERDICT_IDLE, seen), dt,
                     of[VERDICT_IDLE].after_usec, now_usec);
        holding_take(m->holding + VERDICT_STARVED, !of[VERDICT_STARVED].off && starved, dt,
                     of[VERDICT_STARVED].after_usec, now_usec);
        holding_take(m->holding + VERDICT_THRASHING,
                     !of[VERDICT_THRASHING].off && thrashes(m, of + VERDICT_THRASHING), dt,
                     of[VERDICT_THRASHING].after_usec, now_usec);
        if (leaks(m, of + VERDICT_LEAKING, now, now_usec) && !of[VERDICT_LEAKING].off)
                /* The fit looks back over that time already. */
                holding_take(m->holding + VERDICT_LEAKING, true, of[VERDICT_LEAKING].after_usec,
                             of[VERDICT_LEAKING].after_usec, now_usec);
        else
                holding_take(m->holding + VERDICT_LEAKING, false, dt, of[VERDICT_LEAKING].after_usec,
                             now_usec);
}

static void threads_enter(struct member *m, const uint64_t *before, const uint64_t *now, double weight) {
        uint64_t tasks = now[TELEMETRY_TASKS], stopped = now[TELEMETRY_TASKS_STOPPED],
                 blocked = now[TELEMETRY_TASKS_BLOCKED];

        if (tasks == TELEMETRY_UNKNOWN)
                return;
        if (weight > 0 && before[TELEMETRY_TASKS] != TELEMETRY_UNKNOWN)
                smooth(m, RATE_CHURN, before[TELEMETRY_TASKS] != tasks, weight);
        /* primus-executor may run beside a trainer that is stopped. */
        m->stopped = stopped != TELEMETRY_UNKNOWN && stopped > 0 && 2 * stopped >= tasks;
        m->blocked = blocked != TELEMETRY_UNKNOWN && blocked > 0;
}

static uint64_t known(const uint64_t *values, enum telemetry_field f) {
        return values[f] == TELEMETRY_UNKNOWN ? 0 : values[f];
}

/* The first sample of one that has run for long: its counters say what a master before this one saw. */
static void past_enter(struct member *m, const uint64_t *values) {
        uint64_t net = known(values, TELEMETRY_NET_RX_BYTES) + known(values, TELEMETRY_NET_TX_BYTES);

        if (m->moved_usec == 0 && net >= PAST_NET)
                m->moved_usec = 1; /* long ago */
        if (known(values, TELEMETRY_DATA_BYTES) > 0 || known(values, TELEMETRY_CPU_USEC) >= PAST_CPU)
                m->worked_usec = MAX(m->worked_usec, 60 * SECOND);
}

void health_observe(struct health_gang *g, uint32_t role, uint32_t index, uint64_t now_usec,
                    const uint64_t values[static _TELEMETRY_MAX]) {
        struct member *m = member_find(g, role, index);
        uint64_t before[_TELEMETRY_MAX];
        uint64_t dt;

        if (!m || (m->seen_usec > 0 && now_usec <= m->seen_usec))
                return;
        rankings_forget(g);
        dt = m->seen_usec > 0 ? now_usec - m->seen_usec : 0;
        for (size_t i = 0; i < KEPT_FIELDS && dt > 0; i++)
                before[kept[i]] = m->before[i];
        if (m->seen_usec == 0) {
                threads_enter(m, values, values, 0);
                past_enter(m, values);
        } else {
                const struct health_rules *rules = member_rules(g, m);
                struct growth growth = { before, values, (double)dt / 1e6 };
                bool began = values[TELEMETRY_CPU_USEC] != TELEMETRY_UNKNOWN &&
                             before[TELEMETRY_CPU_USEC] != TELEMETRY_UNKNOWN &&
                             values[TELEMETRY_CPU_USEC] < before[TELEMETRY_CPU_USEC];
                enum seen seen = began ? SEEN_NOTHING : progress_of(g, m, &growth);
                double weight = growth.seconds / (growth.seconds + smoothing_seconds(rules));
                uint64_t observed = dt <= APART_MAX ? dt : 0;

                threads_enter(m, before, values, weight);
                if (!began) {
                        rates_enter(m, &growth, weight);
                        looks_enter(m, &growth, now_usec,
                                    growth.seconds / (growth.seconds + MAX(smoothing_seconds(rules), 10.0)));
                        killed_enter(m, &growth);
                        conditions_enter(g, m, seen, values, observed, now_usec);
                }
                if (seen == SEEN_PROGRESS) {
                        m->still_usec = 0;
                        m->worked_usec += observed;
                        m->n_progress = (uint16_t)MIN(m->n_progress + 1, 1000);
                } else if (seen == SEEN_STILL) {
                        m->still_usec += observed;
                        m->n_progress = 0;
                }
        }
        m->seen_usec = now_usec;
        for (size_t i = 0; i < KEPT_FIELDS; i++)
                m->before[i] = values[kept[i]];
}
