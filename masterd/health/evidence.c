/* SPDX-License-Identifier: Apache-2.0 */
/* Why: a sentence with the numbers, and the numbers (of 63 bits, as the store has them) for programs. The
 * sentence has no subject: who carries it on knows the names. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/format.h"
#include "masterd/health/internal.h"

static void put_number(struct health_verdict *v, const char *name, uint64_t value) {
        if (v->n_numbers < HEALTH_NUMBERS_MAX)
                v->numbers[v->n_numbers++] = (struct health_number){ name, MIN(value, (uint64_t)INT64_MAX) };
}

static uint64_t milli(float v) {
        return health_whole((double)v * 1000 + 0.5);
}

/* Appends to the sentence. */
static void _printf_(2, 3) say(struct health_verdict *v, const char *format, ...) {
        size_t l = strnlen(v->text, sizeof(v->text));
        va_list ap;

        va_start(ap, format);
        (void)vsnprintf(v->text + l, sizeof(v->text) - l, format, ap);
        va_end(ap);
}

static void say_rates(const struct member *m, struct health_verdict *v) {
        char net[FORMAT_SIZE_MAX], files[FORMAT_SIZE_MAX];

        if (m->rates[RATE_NET] >= 0)
                say(v, "network %s/s",
                    format_size(health_whole((double)m->rates[RATE_NET]), net, sizeof(net)));
        if (m->rates[RATE_FILES] >= 0)
                say(v, "%sfiles %s/s", m->rates[RATE_NET] >= 0 ? ", " : "",
                    format_size(health_whole((double)m->rates[RATE_FILES]), files, sizeof(files)));
        if (m->facts.gpus > 0 && m->rates[RATE_GPU] >= 0)
                say(v, ", GPUs %.0f %% busy", (double)m->rates[RATE_GPU] * 100);
        if (m->facts.gpus > 0 && m->rates[RATE_POWER] > 0)
                say(v, " at %.0f W", (double)m->rates[RATE_POWER]);
        if (m->rates[RATE_CPU] >= 0)
                say(v, ", %.2f CPUs busy", (double)m->rates[RATE_CPU]);
}

enum health_wait evidence_wait(const struct member *m, uint64_t now_usec) {
        if (m->seen_usec == 0 || now_usec - m->seen_usec > HEARD_WITHIN)
                return WAIT_UNKNOWN;
        if (m->stopped)
                return WAIT_STOPPED;
        if (m->blocked)
                return WAIT_DISK;
        return m->rates[RATE_CPU] > 0.5F ? WAIT_RUNNING : WAIT_OTHER;
}

static const char *doing(enum health_wait w) {
        switch (w) {
        case WAIT_UNKNOWN:
                return "is not heard of";
        case WAIT_STOPPED:
                return "is stopped";
        case WAIT_DISK:
                return "hangs in the kernel";
        case WAIT_RUNNING:
                return "runs";
        default:
                return "waits";
        }
}

void evidence_standstill(size_t n, const struct member *least, const struct member *suspect,
                         enum health_wait usual, enum health_wait odd, struct health_verdict *v) {
        char still[FORMAT_DURATION_MAX];

        say(v, "none of %zu makes progress, for %s: ", n,
            format_duration(least->still_usec / SECOND * SECOND, still, sizeof(still)));
        say_rates(least, v);
        if (suspect)
                say(v, "; the odd one out %s while the others %s", doing(odd),
                    usual == WAIT_RUNNING ? "run in a loop" : "wait");
        put_number(v, "stillUsec", least->still_usec);
        put_number(v, "members", n);
        put_number(v, "netBytesPerSecond", health_whole((double)least->rates[RATE_NET]));
        put_number(v, "cpuMilli", milli(least->rates[RATE_CPU]));
}

static void say_hung(const struct member *m, struct health_verdict *v) {
        char still[FORMAT_DURATION_MAX];

        say(v,
            "no progress for %s: ", format_duration(m->still_usec / SECOND * SECOND, still, sizeof(still)));
        say_rates(m, v);
        if (m->stopped)
                say(v, "; its processes are stopped (SIGSTOP, or a debugger)");
        else if (m->blocked)
                say(v, "; it hangs in the kernel (D state)");
        else if (m->spins && m->rates[RATE_CPU] > 0.5F)
                say(v, " (it runs in a loop)");
        put_number(v, "stillUsec", m->still_usec);
        put_number(v, "netBytesPerSecond", health_whole((double)m->rates[RATE_NET]));
        put_number(v, "fileBytesPerSecond", health_whole((double)m->rates[RATE_FILES]));
        put_number(v, "cpuMilli", milli(m->rates[RATE_CPU]));
}

/* Resources in which a straggler may differ from the others, in the order in which they explain something. */
static const struct {
        enum rate rate;
        float least; /* so much more than the others, and */
        float times; /* so many times as much */
        const char *resource;
        const char *what;
        const char *unit; /* of value * scale, with so many digits */
        float scale;
        int digits;
} differences[] = {
        { RATE_THROTTLED, 0.05F, 2, "cpu-limit", "its CPUs are throttled", " % of the time", 100, 0 },
        { RATE_MEMORY_FULL, 0.05F, 3, "memory", "it lacks memory", " % of the time", 100, 0 },
        { RATE_DATA_WAIT, 0.1F, 2, "data", "it waits for data", " % of the time", 100, 0 },
        { RATE_IO_FULL, 0.1F, 3, "io", "it stands still for I/O", " % of the time", 100, 0 },
        { RATE_RETRANSMITS, 1, 4, "network", "its packets are sent again", "/s", 1, 1 },
        { RATE_RTT, 1000, 4, "network", "its round trips take", " us", 1, 0 },
        { RATE_RUNQUEUE, 0.1F, 2, "cpu", "it waits for a CPU", " s/s", 1, 2 },
};

static void say_difference(struct health_gang *g, const struct member *m, struct health_verdict *v) {
        float mine, others;

        for (size_t i = 0; i < ELEMENTSOF(differences); i++) {
                mine = m->rates[differences[i].rate];
                others = member_median_of_others(g, m, differences[i].rate);
                if (mine < 0 || others < 0 || mine - others < differences[i].least ||
                    mine < differences[i].times * others)
                        continue;
                v->resource = differences[i].resource;
                say(v, ": %s %.*f%s (others %.*f)", differences[i].what, differences[i].digits,
                    (double)(mine * differences[i].scale), differences[i].unit, differences[i].digits,
                    (double)(others * differences[i].scale));
                return;
        }
        mine = m->rates[RATE_POWER];
        others = member_median_of_others(g, m, RATE_POWER);
        if (mine > 0 && others > 0 && mine < 0.8F * others) {
                v->resource = "gpu";
                say(v, ": its GPUs draw %.0f W (others %.0f W)", (double)mine, (double)others);
                return;
        }
        mine = m->rates[RATE_CPU];
        others = member_median_of_others(g, m, RATE_CPU);
        if (mine > 0 && others >= 0 && mine > 1.3F * others) {
                v->resource = "work";
                say(v, ": it computes longer, %.2f CPUs busy (others %.2f)", (double)mine, (double)others);
                return;
        }
        if (mine >= 0 && others > 0 && mine < 0.7F * others) {
                v->resource = "cpu";
                say(v, ": it gets %.2f CPUs (others %.2f)", (double)mine, (double)others);
                return;
        }
        say(v, ": nothing that is measured is short there, so it has more to do, or a slower host");
}

static void say_straggler(struct health_gang *g, const struct member *m, struct health_verdict *v) {
        float others = member_median_of_others(g, m, RATE_UNREAD);

        float cpu = member_median_of_others(g, m, RATE_CPU);
        struct apart apart;

        if (m->rates[RATE_UNREAD] > 3 * others && m->rates[RATE_UNREAD] > 0.2F)
                say(v,
                    "the others wait for it: data from them lies unread in %.0f %% of the looks (others %.0f "
                    "%%)",
                    (double)m->rates[RATE_UNREAD] * 100, (double)MAX(others, 0.0F) * 100);
        else if (!apart_differs(g, m, &apart))
                say(v, "the others wait for it: it computes (%.2f CPUs busy) while they wait (%.2f)",
                    (double)m->rates[RATE_CPU], (double)cpu);
        else
                say(v, "the others wait for it");
        if (apart_differs(g, m, &apart)) {
                v->resource = apart.resource;
                say(v, ": %s%s%s in %.0f %% of the looks (others %.0f %%)", apart.what,
                    apart.place ? ", in " : "", apart.place ?: "", (double)MIN(apart.mine, 1.0F) * 100,
                    (double)MAX(MIN(apart.others, 1.0F), 0.0F) * 100);
                put_number(v, "apartMilli", milli(apart.mine));
        } else
                say_difference(g, m, v);
        put_number(v, "unreadMilli", milli(m->rates[RATE_UNREAD]));
        put_number(v, "unreadMilliOthers", milli(others));
        put_number(v, "cpuMilli", milli(m->rates[RATE_CPU]));
        put_number(v, "throttledMilli", milli(m->rates[RATE_THROTTLED]));
        put_number(v, "runqueueMilli", milli(m->rates[RATE_RUNQUEUE]));
        put_number(v, "dataWaitMilli", milli(m->rates[RATE_DATA_WAIT]));
}

static void say_idle(const struct member *m, uint64_t after, struct health_verdict *v) {
        char time[FORMAT_DURATION_MAX];

        format_duration(after, time, sizeof(time));
        if (m->facts.gpus > 0) {
                say(v, "its %" PRIu32 " GPU%s used %.1f %% of the time, for %s", m->facts.gpus,
                    m->facts.gpus == 1 ? " was" : "s were", (double)m->rates[RATE_GPU] * 100, time);
                put_number(v, "gpus", m->facts.gpus);
                put_number(v, "gpuMilli", milli(m->rates[RATE_GPU]));
        } else
                say(v, "it uses %.3f of its %.2f CPUs, for %s", (double)m->rates[RATE_CPU],
                    (double)m->facts.cpu_milli / 1000, time);
        v->resource = m->facts.gpus > 0 ? "gpu" : "cpu";
        put_number(v, "cpuMilli", milli(m->rates[RATE_CPU]));
}

static void say_thrashing(const struct member *m, struct health_verdict *v) {
        bool memory = m->rates[RATE_MEMORY_FULL] > 0.5F * m->rates[RATE_IO_FULL];

        v->resource = memory ? "memory" : "io";
        say(v, "all of it stands still for %s %.0f %% of the time", memory ? "lack of memory" : "I/O",
            (double)m->rates[memory ? RATE_MEMORY_FULL : RATE_IO_FULL] * 100);
        put_number(v, "memoryFullMilli", milli(m->rates[RATE_MEMORY_FULL]));
        put_number(v, "ioFullMilli", milli(m->rates[RATE_IO_FULL]));
}

static void say_leaking(const struct member *m, struct health_verdict *v) {
        char rate[FORMAT_SIZE_MAX], grown[FORMAT_SIZE_MAX], over[FORMAT_DURATION_MAX],
                left[FORMAT_DURATION_MAX];

        v->resource = "memory";
        say(v, "its memory grows by %s an hour (%s in %s) and comes to its limit in about %s",
            format_size(m->fit.bytes_per_hour, rate, sizeof(rate)),
            format_size(m->fit.grown_bytes, grown, sizeof(grown)),
            format_duration(m->fit.over_usec / SECOND * SECOND, over, sizeof(over)),
            format_duration(m->fit.left_usec / SECOND * SECOND, left, sizeof(left)));
        put_number(v, "bytesPerHour", m->fit.bytes_per_hour);
        put_number(v, "leftUsec", m->fit.left_usec);
}

static void say_oom(const struct member *m, struct health_verdict *v) {
        uint64_t limit = member_value(m, TELEMETRY_MEMORY_LIMIT_BYTES),
                 peak = member_value(m, TELEMETRY_MEMORY_PEAK_BYTES);
        char most[FORMAT_SIZE_MAX], of[FORMAT_SIZE_MAX];

        if (limit == TELEMETRY_UNKNOWN)
                limit = m->facts.memory;
        v->resource = "memory";
        say(v, "the kernel killed %" PRIu64 " of its processes for lack of memory", m->killed);
        if (peak != TELEMETRY_UNKNOWN && limit > 0)
                say(v, ": it held %s of %s at most", format_size(peak, most, sizeof(most)),
                    format_size(limit, of, sizeof(of)));
        put_number(v, "killed", m->killed);
        if (peak != TELEMETRY_UNKNOWN)
                put_number(v, "peakBytes", peak);
        put_number(v, "limitBytes", limit);
}

void evidence_member(struct health_gang *g, const struct member *m, enum verdict_kind kind,
                     struct health_verdict *v) {
        const struct health_rule *rule = member_rules(g, m)->of + kind;
        char after[FORMAT_DURATION_MAX];

        switch (kind) {
        case VERDICT_HUNG:
                say_hung(m, v);
                return;
        case VERDICT_STRAGGLER:
                say_straggler(g, m, v);
                return;
        case VERDICT_IDLE:
                say_idle(m, rule->after_usec, v);
                return;
        case VERDICT_STARVED:
                v->resource = "data";
                say(v, "it waits for data %.0f %% of the time, for %s",
                    (double)m->rates[RATE_DATA_WAIT] * 100,
                    format_duration(rule->after_usec, after, sizeof(after)));
                put_number(v, "dataWaitMilli", milli(m->rates[RATE_DATA_WAIT]));
                return;
        case VERDICT_THRASHING:
                say_thrashing(m, v);
                return;
        case VERDICT_LEAKING:
                say_leaking(m, v);
                return;
        case VERDICT_OOM:
                say_oom(m, v);
                return;
        default:
                return;
        }
}
