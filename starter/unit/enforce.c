/* SPDX-License-Identifier: Apache-2.0 */
/* Limits as systemd's properties. Invariant: a controller that the host lacks is systemd's to pass over; no
 * property here makes a start fail on such a host. */
#include "starter/unit/enforce.h"

#include <linux/mempolicy.h>
#include <string.h>

#include "lib/base/cpulist.h"
#include "lib/base/try.h"
#include "lib/base/unitname.h"
#include "starter/unit/property.h"

/* ---- CPUs ---- */

/* As systemd wants them: a bit for each, the first in the lowest of the first byte. */
static int property_bits(sd_bus_message *m, const char *name, const uint64_t *bits, size_t words) {
        uint8_t bytes[UNIT_CPU_WORDS * sizeof(*bits)];
        size_t n = 0;

        for (size_t i = 0; i < words * sizeof(*bits); i++) {
                bytes[i] = (uint8_t)(bits[i / 8] >> (i % 8 * 8));
                if (bytes[i])
                        n = i + 1;
        }
        TRY(property_open(m, name, "ay"));
        TRY(sd_bus_message_append_array(m, 'y', bytes, n));
        return property_close(m);
}

/* Its own, or those that nobody has for himself. */
static int append_cpus(sd_bus_message *m, const struct start_order *o, const struct unit_context *c) {
        const char *list = o->extra.cpus ?: c->shared_cpus;
        uint64_t bits[UNIT_CPU_WORDS];

        if (!list)
                return 0;
        TRY(cpulist_parse(list, bits, UNIT_CPU_WORDS));
        return property_bits(m, "AllowedCPUs", bits, UNIT_CPU_WORDS);
}

int unit_cpus_build(sd_bus_message *m, const char *unit, const uint64_t *bits) {
        TRY(sd_bus_message_append(m, "sb", unit, 1));
        TRY(sd_bus_message_open_container(m, 'a', "(sv)"));
        TRY(property_bits(m, "AllowedCPUs", bits, UNIT_CPU_WORDS));
        return sd_bus_message_close_container(m);
}

/* Memory of the nodes that its CPUs are in. "prefer" over several nodes is what the kernel does anyway. */
static int append_numa(sd_bus_message *m, const struct start_order *o, const struct unit_context *c) {
        bool require = strcmp(o->extra.numa, "require") == 0, prefer = strcmp(o->extra.numa, "prefer") == 0;

        if (c->numa_nodes == 0 || !(require || (prefer && __builtin_popcountll(c->numa_nodes) == 1)))
                return 0;
        TRY(sd_bus_message_append(m, "(sv)", "NUMAPolicy", "i",
                                  (int32_t)(require ? MPOL_BIND : MPOL_PREFERRED)));
        return property_bits(m, "NUMAMask", &c->numa_nodes, 1);
}

/* ---- io ---- */

static uint64_t read_bps(const struct io_limit *io) {
        return io->read_bps;
}

static uint64_t write_bps(const struct io_limit *io) {
        return io->write_bps;
}

static uint64_t read_iops(const struct io_limit *io) {
        return io->read_iops;
}

static uint64_t write_iops(const struct io_limit *io) {
        return io->write_iops;
}

static uint64_t weight(const struct io_limit *io) {
        return io->weight;
}

static const struct {
        const char *name;
        uint64_t (*value)(const struct io_limit *io);
} io_properties[] = {
        { "IOReadBandwidthMax", read_bps }, { "IOWriteBandwidthMax", write_bps },
        { "IOReadIOPSMax", read_iops },     { "IOWriteIOPSMax", write_iops },
        { "IODeviceWeight", weight },
};

static int append_io_property(sd_bus_message *m, const struct unit_context *c, size_t k) {
        bool open = false;

        for (size_t i = 0; i < c->n_io; i++) {
                uint64_t value = io_properties[k].value(c->io + i);
                if (!*c->io[i].path || value == 0)
                        continue;
                if (!open) {
                        TRY(property_open(m, io_properties[k].name, "a(st)"));
                        TRY(sd_bus_message_open_container(m, 'a', "(st)"));
                        open = true;
                }
                TRY(sd_bus_message_open_container(m, 'r', "st"));
                TRY(property_text(m, c->io[i].path));
                TRY(sd_bus_message_append(m, "t", value));
                TRY(sd_bus_message_close_container(m));
        }
        if (!open)
                return 0;
        TRY(sd_bus_message_close_container(m));
        return property_close(m);
}

static int append_io(sd_bus_message *m, const struct unit_context *c) {
        for (size_t i = 0; i < c->n_io; i++)
                if (!*c->io[i].path && c->io[i].weight > 0)
                        TRY(property_u64(m, "IOWeight", c->io[i].weight));
        for (size_t k = 0; k < ELEMENTSOF(io_properties); k++)
                TRY(append_io_property(m, c, k));
        return 0;
}

/* ---- ports ---- */

/* Of the range that masterd grants from, those that this executor was granted; what lies outside the range is
 * anybody's. Any family, any protocol. */
static int append_ports(sd_bus_message *m, const struct start_order *o, const struct unit_context *c) {
        if (!c->inventory || c->inventory->port_first == 0)
                return 0;
        if (c->pins) {
                TRY(property_open(m, "BPFProgram", "a(ss)"));
                TRY(sd_bus_message_open_container(m, 'a', "(ss)"));
                TRY(property_pair(m, "bind4", c->pins->bind4));
                TRY(property_pair(m, "bind6", c->pins->bind6));
                TRY(sd_bus_message_close_container(m));
                TRY(property_close(m));
        }
        TRY(property_open(m, "SocketBindAllow", "a(iiqq)"));
        TRY(sd_bus_message_open_container(m, 'a', "(iiqq)"));
        for (size_t i = 0; i < o->n_ports; i++)
                TRY(sd_bus_message_append(m, "(iiqq)", 0, 0, (uint16_t)1, o->ports[i]));
        TRY(sd_bus_message_close_container(m));
        TRY(property_close(m));
        return sd_bus_message_append(m, "(sv)", "SocketBindDeny", "a(iiqq)", 1, 0, 0,
                                     (uint16_t)(c->inventory->port_last - c->inventory->port_first + 1),
                                     c->inventory->port_first);
}

/* ---- shared memory ---- */

static int append_shm(sd_bus_message *m, const struct unit_context *c) {
        char *unit[] = { NULL, NULL };

        if (!c->shm)
                return 0;
        unit[0] = (char *)c->shm->unit;
        TRY(property_strings(m, "Requires", unit));
        TRY(property_strings(m, "After", unit));
        TRY(property_open(m, "BindPaths", "a(ssbt)"));
        TRY(sd_bus_message_open_container(m, 'a', "(ssbt)"));
        TRY(sd_bus_message_open_container(m, 'r', "ssbt"));
        TRY(property_text(m, c->shm->path));
        TRY(property_text(m, "/dev/shm"));
        TRY(sd_bus_message_append(m, "bt", 0, UINT64_C(0)));
        TRY(sd_bus_message_close_container(m));
        TRY(sd_bus_message_close_container(m));
        return property_close(m);
}

/* ---- a unit ---- */

/* Both, or a program could not use what its role asks for. */
static int append_rlimit(sd_bus_message *m, const char *hard, const char *soft, uint64_t value) {
        if (value == 0)
                return 0;
        TRY(property_u64(m, hard, value));
        return property_u64(m, soft, value);
}

static int append_memory(sd_bus_message *m, uint64_t memory_max, uint64_t memory_high) {
        if (memory_max > 0) {
                TRY(property_u64(m, "MemoryMax", memory_max));
                TRY(property_u64(m, "MemorySwapMax", 0));
        }
        return memory_high > 0 ? property_u64(m, "MemoryHigh", memory_high) : 0;
}

int limits_append(sd_bus_message *m, const struct start_order *o, const struct unit_context *c) {
        uint64_t tasks = o->tasks_max;

        TRY(property_bool(m, "CPUAccounting", true));
        TRY(property_bool(m, "MemoryAccounting", true));
        TRY(property_bool(m, "IOAccounting", true));
        if (o->cpu_usec_per_sec > 0)
                TRY(property_u64(m, "CPUQuotaPerSecUSec", o->cpu_usec_per_sec));
        if (o->extra.cpu_weight > 0)
                TRY(property_u64(m, "CPUWeight", o->extra.cpu_weight));
        TRY(append_memory(m, o->memory_max, o->extra.memory_high));
        TRY(append_cpus(m, o, c));
        TRY(append_numa(m, o, c));
        /* Whatever a role asks for, the host keeps some for itself. */
        if (c->tasks_bound > 0)
                tasks = tasks > 0 ? MIN(tasks, c->tasks_bound) : c->tasks_bound;
        if (tasks > 0)
                TRY(property_u64(m, "TasksMax", tasks));
        TRY(append_io(m, c));
        TRY(append_ports(m, o, c));
        if (o->extra.open_files == 0)
                TRY(open_files_append(m, &c->open_files));
        TRY(append_rlimit(m, "LimitNOFILE", "LimitNOFILESoft", o->extra.open_files));
        TRY(append_rlimit(m, "LimitMEMLOCK", "LimitMEMLOCKSoft", o->extra.locked_memory));
        TRY(append_shm(m, c));
        if (o->runtime_max_usec > 0)
                TRY(property_u64(m, "RuntimeMaxUSec", o->runtime_max_usec));
        return 0;
}

/* What 0 stands for where a limit is taken away. */
static uint64_t or_infinity(uint64_t value) {
        return value > 0 ? value : UINT64_MAX;
}

int limits_build(sd_bus_message *m, const char *unit, const struct unit_limits *limits) {
        TRY(sd_bus_message_append(m, "sb", unit, 1)); /* for as long as the unit lives */
        TRY(sd_bus_message_open_container(m, 'a', "(sv)"));
        TRY(property_u64(m, "CPUQuotaPerSecUSec", or_infinity(limits->cpu_usec_per_sec)));
        TRY(property_u64(m, "MemoryMax", or_infinity(limits->memory_max)));
        TRY(property_u64(m, "MemorySwapMax", limits->memory_max > 0 ? 0 : UINT64_MAX));
        if (limits->has_more) {
                TRY(property_u64(m, "MemoryHigh", or_infinity(limits->memory_high)));
                TRY(property_u64(m, "CPUWeight", or_infinity(limits->cpu_weight)));
                if (limits->tasks_max > 0)
                        TRY(property_u64(m, "TasksMax", limits->tasks_max));
        }
        return sd_bus_message_close_container(m);
}

/* ---- a job's slice ---- */

/* The kernel charges a slice for what it needs to keep its units apart. Without some room for that, an
 * executor that reaches its own limit would be found at the slice's, where another one may be killed in its
 * place. */
#define SLICE_SLACK (UINT64_C(16) << 20)

static uint64_t slice_memory(const struct slice_limits *limits) {
        return limits->memory_max > 0 ? limits->memory_max + SLICE_SLACK : 0;
}

int slice_build(sd_bus_message *m, uint32_t job, const struct slice_limits *limits) {
        char slice[UNIT_NAME_MAX], text[64];

        TRY(property_unit_begin(m, job_slice_name(job, slice)));
        snprintf(text, sizeof(text), "Primus job %u", job);
        TRY(property_string(m, "Description", text));
        TRY(append_memory(m, slice_memory(limits), 0));
        if (limits->cpu_usec_per_sec > 0)
                TRY(property_u64(m, "CPUQuotaPerSecUSec", limits->cpu_usec_per_sec));
        if (limits->cpu_weight > 0)
                TRY(property_u64(m, "CPUWeight", limits->cpu_weight));
        if (limits->tasks_max > 0)
                TRY(property_u64(m, "TasksMax", limits->tasks_max));
        return property_unit_end(m);
}

int slice_update_build(sd_bus_message *m, uint32_t job, const struct slice_limits *limits) {
        char slice[UNIT_NAME_MAX];

        TRY(sd_bus_message_append(m, "sb", job_slice_name(job, slice), 1));
        TRY(sd_bus_message_open_container(m, 'a', "(sv)"));
        TRY(property_u64(m, "MemoryMax", or_infinity(slice_memory(limits))));
        TRY(property_u64(m, "MemorySwapMax", limits->memory_max > 0 ? 0 : UINT64_MAX));
        TRY(property_u64(m, "CPUQuotaPerSecUSec", or_infinity(limits->cpu_usec_per_sec)));
        TRY(property_u64(m, "CPUWeight", or_infinity(limits->cpu_weight)));
        TRY(property_u64(m, "TasksMax", or_infinity(limits->tasks_max)));
        return sd_bus_message_close_container(m);
}
