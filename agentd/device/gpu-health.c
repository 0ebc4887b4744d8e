/* SPDX-License-Identifier: Apache-2.0 */
/* Invariant: a GPU is to be drained only for what does not pass by itself; what may pass is a warning. */
#include "agentd/device/gpu-health.h"

#include <stdarg.h>
#include <stdio.h>

#include "lib/base/cleanup.h"

struct verdict {
        enum gpu_severity severity;
        char *text;
};

static void say_verdict(struct verdict *v, enum gpu_severity severity, const char *format, ...)
        _printf_(3, 4);
static void say_verdict(struct verdict *v, enum gpu_severity severity, const char *format, ...) {
        va_list ap;

        if (severity <= v->severity)
                return;
        v->severity = severity;
        va_start(ap, format);
        vsnprintf(v->text, GPU_HEALTH_TEXT_MAX, format, ap);
        va_end(ap);
}

static bool is(const struct gpu_state *s, enum gpu_value value) {
        return s->values[value] != GPU_UNKNOWN && s->values[value] > 0;
}

/* What the driver asks for: docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt, "Error Recovery and Response
 * Flags". A pending row is remapped at the next reset, and does no harm until then; one that could not be is
 * a GPU to be replaced. */
static void judge_memory(const struct gpu_state *s, struct verdict *v) {
        uint64_t recovery = s->values[GPU_RECOVERY];

        if (s->lost)
                say_verdict(v, GPU_DRAIN,
                            s->reset_required ? "the driver demands a reset of the GPU"
                                              : "the GPU does not answer any more: it has fallen off "
                                                "the bus");
        if (is(s, GPU_REMAP_FAILURE))
                say_verdict(v, GPU_DRAIN,
                            "a row of its memory failed and could not be remapped: it is to be replaced");
        if (recovery == GPU_RECOVERY_REBOOT)
                say_verdict(v, GPU_DRAIN, "the driver demands a restart of the host");
        else if (recovery == GPU_RECOVERY_RESET || recovery == GPU_RECOVERY_DRAIN_AND_RESET)
                say_verdict(v, GPU_DRAIN, "the driver demands a reset of the GPU");
        else if (recovery == GPU_RECOVERY_DRAIN_P2P)
                say_verdict(v, GPU_DRAIN,
                            "the driver demands that peer-to-peer traffic ends, and a reset of the GPU");
        if (is(s, GPU_ECC_UNCORRECTED))
                say_verdict(v, GPU_WARN,
                            "%llu ECC errors that could not be corrected since the driver was loaded",
                            (unsigned long long)s->values[GPU_ECC_UNCORRECTED]);
        if (is(s, GPU_REMAP_PENDING))
                say_verdict(v, GPU_WARN,
                            "a row of its memory is to be remapped: reset the GPU when it is free");
}

static void judge_clocks(struct gpu_health *h, const struct gpu_state *s, struct verdict *v) {
        uint64_t t = s->values[GPU_THROTTLE];
        bool hot, braked;

        if (t == GPU_UNKNOWN)
                t = 0;
        hot = t & (GPU_THROTTLE_THERMAL_HARDWARE | GPU_THROTTLE_THERMAL_SOFTWARE);
        braked = t & (GPU_THROTTLE_POWER_BRAKE | GPU_THROTTLE_HARDWARE);
        h->throttled = hot || braked ? h->throttled + 1 : 0;
        if (h->throttled < GPU_HEALTH_LOOKS)
                return;
        if (hot && s->values[GPU_TEMPERATURE] != GPU_UNKNOWN)
                say_verdict(v, GPU_WARN, "it is too hot, and slowed down: %llu °C",
                            (unsigned long long)s->values[GPU_TEMPERATURE]);
        else if (hot)
                say_verdict(v, GPU_WARN, "it is too hot, and slowed down");
        else
                say_verdict(v, GPU_WARN, "it is slowed down by its board or power supply (power brake)");
}

static void judge_link(struct gpu_health *h, const struct gpu_state *s, struct verdict *v) {
        uint64_t now = s->values[GPU_PCIE_REPLAYS];

        if (now == GPU_UNKNOWN)
                return;
        h->replaying = h->known && now >= h->replays + GPU_HEALTH_REPLAYS ? h->replaying + 1 : 0;
        h->replays = now;
        h->known = true;
        if (h->replaying >= GPU_HEALTH_LOOKS)
                say_verdict(v, GPU_WARN, "its PCIe link repeats itself: %llu packets were sent again",
                            (unsigned long long)now);
}

enum gpu_severity gpu_health_judge(struct gpu_health *h, const struct gpu_state *now,
                                   char text[static GPU_HEALTH_TEXT_MAX]) {
        struct verdict v = { GPU_FINE, text };

        text[0] = 0;
        judge_memory(now, &v);
        judge_clocks(h, now, &v);
        judge_link(h, now, &v);
        return v.severity;
}
