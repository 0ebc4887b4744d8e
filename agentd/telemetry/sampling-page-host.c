/* SPDX-License-Identifier: Apache-2.0 */
/* Devices and probes as metrics. Invariant: labels are names that the kernel or the vendor's library gave,
 * which exposition_labels() makes harmless. */
#include "agentd/telemetry/sampling-page-host.h"

#include "lib/base/cleanup.h"

/* ---- GPUs ---- */

static const struct {
        enum metric_family family;
        enum gpu_value value;
        enum metric_scale scale;
        const char *labels;
} gpu_series[] = {
        { METRIC_GPU_UTILIZATION, GPU_UTILIZATION, SCALE_MILLI, "" },
        { METRIC_GPU_MEMORY_USED, GPU_MEMORY_USED, SCALE_ONE, "" },
        { METRIC_GPU_MEMORY_TOTAL, GPU_MEMORY_TOTAL, SCALE_ONE, "" },
        { METRIC_GPU_POWER, GPU_POWER_MILLIWATTS, SCALE_MILLI, "" },
        { METRIC_GPU_ENERGY, GPU_ENERGY_MILLIJOULES, SCALE_MILLI, "" },
        { METRIC_GPU_TEMPERATURE, GPU_TEMPERATURE, SCALE_ONE, "" },
        { METRIC_GPU_ECC_ERRORS, GPU_ECC_CORRECTED, SCALE_ONE, "type=\"corrected\"" },
        { METRIC_GPU_ECC_ERRORS, GPU_ECC_UNCORRECTED, SCALE_ONE, "type=\"uncorrected\"" },
        { METRIC_GPU_REMAPPED_ROWS, GPU_REMAPPED_CORRECTABLE, SCALE_ONE, "type=\"correctable\"" },
        { METRIC_GPU_REMAPPED_ROWS, GPU_REMAPPED_UNCORRECTABLE, SCALE_ONE, "type=\"uncorrectable\"" },
        { METRIC_GPU_PCIE_REPLAYS, GPU_PCIE_REPLAYS, SCALE_ONE, "" },
        { METRIC_GPU_XID_ERRORS, GPU_XIDS, SCALE_ONE, "" },
        { METRIC_GPU_LAST_XID, GPU_LAST_XID, SCALE_ONE, "" },
};

static const struct {
        enum gpu_throttle bit;
        const char *labels;
} throttles[] = {
        { GPU_THROTTLE_POWER_CAP, "reason=\"power-cap\"" },
        { GPU_THROTTLE_HARDWARE, "reason=\"hardware\"" },
        { GPU_THROTTLE_THERMAL_SOFTWARE, "reason=\"thermal-software\"" },
        { GPU_THROTTLE_THERMAL_HARDWARE, "reason=\"thermal-hardware\"" },
        { GPU_THROTTLE_POWER_BRAKE, "reason=\"power-brake\"" },
};

void page_add_gpus(struct exposition *x, const char *node, const struct gpu_state *gpus, size_t n) {
        _cleanup_free_ char(*labels)[METRIC_LABELS_MAX] = calloc(n ?: 1, sizeof(*labels));
        char text[METRIC_LABELS_MAX];

        if (!labels)
                return; /* a page without them */
        for (size_t i = 0; i < n; i++) {
                EXPOSITION_LABELS(labels[i], "gpu", gpus[i].uuid);
                exposition_add(x, METRIC_GPU, node,
                               EXPOSITION_LABELS(text, "gpu", gpus[i].uuid, "model", gpus[i].model, "pci",
                                                 gpus[i].pci, "mig", gpus[i].mig, "parent", gpus[i].parent),
                               1, SCALE_ONE);
        }
        for (size_t i = 0; i < n; i++)
                exposition_add(x, METRIC_GPU_LOST, node, labels[i], gpus[i].lost, SCALE_ONE);
        for (size_t s = 0; s < ELEMENTSOF(gpu_series); s++)
                for (size_t i = 0; i < n; i++) {
                        snprintf(text, sizeof(text), "%s%s%s", labels[i], *gpu_series[s].labels ? "," : "",
                                 gpu_series[s].labels);
                        exposition_add(x, gpu_series[s].family, node, text,
                                       gpus[i].values[gpu_series[s].value], gpu_series[s].scale);
                }
        for (size_t i = 0; i < n; i++)
                for (size_t t = 0; t < ELEMENTSOF(throttles) && gpus[i].values[GPU_THROTTLE] != GPU_UNKNOWN;
                     t++) {
                        snprintf(text, sizeof(text), "%s,%s", labels[i], throttles[t].labels);
                        exposition_add(x, METRIC_GPU_THROTTLED, node, text,
                                       (gpus[i].values[GPU_THROTTLE] & throttles[t].bit) > 0, SCALE_ONE);
                }
}

/* ---- interfaces ---- */

static uint64_t bytes_per_second(uint64_t mbps) {
        return mbps > 0 ? mbps * 125000 : TELEMETRY_UNKNOWN;
}

/* Of one family: of each interface one or two values. */
static void add_link_family(struct exposition *x, const char *node, const struct link_facts *l,
                            enum metric_family f) {
        char text[METRIC_LABELS_MAX];
        const struct {
                enum metric_family family;
                const char *dir; /* NULL: has none */
                uint64_t value;
        } values[] = {
                { METRIC_NODE_LINK_UP, NULL, l->up && l->carrier },
                { METRIC_NODE_LINK_SPEED, NULL, bytes_per_second(l->mbps) },
                { METRIC_NODE_LINK_NETWORK, "receive", l->rx_bytes },
                { METRIC_NODE_LINK_NETWORK, "transmit", l->tx_bytes },
                { METRIC_NODE_LINK_ERRORS, "receive", l->rx_errors },
                { METRIC_NODE_LINK_ERRORS, "transmit", l->tx_errors },
                { METRIC_NODE_LINK_DOWNS, NULL, l->carrier_downs },
        };

        for (size_t i = 0; i < ELEMENTSOF(values); i++)
                if (values[i].family == f)
                        exposition_add(x, f, node,
                                       values[i].dir ? EXPOSITION_LABELS(text, "device", l->name, "dir",
                                                                         values[i].dir)
                                                     : EXPOSITION_LABELS(text, "device", l->name),
                                       values[i].value, SCALE_ONE);
}

void page_add_links(struct exposition *x, const char *node, const struct link_facts *links, size_t n) {
        static const enum metric_family families[] = { METRIC_NODE_LINK_UP, METRIC_NODE_LINK_SPEED,
                                                       METRIC_NODE_LINK_NETWORK, METRIC_NODE_LINK_ERRORS,
                                                       METRIC_NODE_LINK_DOWNS };

        for (size_t f = 0; f < ELEMENTSOF(families); f++)
                for (size_t i = 0; i < n; i++)
                        add_link_family(x, node, &links[i], families[f]);
}

/* ---- probes ---- */

void page_add_probes(struct exposition *x, const char *node, const struct probe *probe) {
        const struct probe_program *programs;
        char text[METRIC_LABELS_MAX];
        size_t n = probe_programs(probe, &programs);

        for (size_t i = 0; i < n; i++)
                exposition_add(x, METRIC_BPF_PROGRAM_UP, node,
                               EXPOSITION_LABELS(text, "program", programs[i].name), programs[i].up,
                               SCALE_ONE);
        exposition_add(x, METRIC_BPF_DROPPED, node, "", probe_dropped(probe), SCALE_ONE);
}
