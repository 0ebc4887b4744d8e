/* SPDX-License-Identifier: Apache-2.0 */
/* What executors may use: the schema, and rules between its keys and others. Invariant: what is accepted,
 * systemd takes; which devices a host has, its agent says. */
#include "masterd/spec/schema-limits.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "lib/base/format.h"
#include "masterd/spec/check.h"
#include "masterd/spec/valid.h"

static const struct key io_keys[] = {
        { "path", KEY_TEXT, AT(io_spec, path), RANGE(1, SPEC_PATH_MAX), .valid = valid_directory },
        { "readMBps", KEY_SCALED, AT(io_spec, read_bps), RANGE(0, SPEC_IO_MBPS_MAX), .scale = 1000000 },
        { "writeMBps", KEY_SCALED, AT(io_spec, write_bps), RANGE(0, SPEC_IO_MBPS_MAX), .scale = 1000000 },
        { "readIops", KEY_U32, AT(io_spec, read_iops), RANGE(0, SPEC_IOPS_MAX) },
        { "writeIops", KEY_U32, AT(io_spec, write_iops), RANGE(0, SPEC_IOPS_MAX) },
        { "weight", KEY_U32, AT(io_spec, weight), RANGE(0, SPEC_WEIGHT_CGROUP_MAX) },
};
const struct schema io_schema = SCHEMA(io_keys);

static struct place place_in(size_t i, const char *key) {
        struct place p = place_of("role");

        place_push(&p, NULL, i);
        place_push(&p, key, 0);
        return p;
}

static struct place place_in_io(size_t i, size_t k) {
        struct place p = place_in(i, "io");

        place_push(&p, NULL, k);
        return p;
}

static int check_io(struct reader *r, const struct limits_spec *l, size_t i, size_t k) {
        const struct io_spec *io = &l->io[k];
        bool rates = io->read_bps > 0 || io->write_bps > 0 || io->read_iops > 0 || io->write_iops > 0;

        if (!rates && io->weight == 0)
                return report_at(r, place_in_io(i, k),
                                 "limits nothing: give readMBps, writeMBps, readIops, writeIops or weight");
        if (!io->path && rates)
                return report_at(r, place_in_io(i, k),
                                 "path is missing: a rate is of one device; give the device (/dev/nvme0n1) "
                                 "or a directory on it (only weight may stand without)");
        for (size_t other = 0; other < k; other++)
                if (strcmp(l->io[other].path ?: "", io->path ?: "") == 0)
                        return report_at(r, place_in_io(i, k), "is for the same path as io[%zu]", other);
        return 0;
}

static int check_role(struct reader *r, const struct role_spec *role, size_t i) {
        const struct limits_spec *l = &role->limits;
        char limit[FORMAT_SIZE_MAX];
        int q = 0;

        if (role->memory > 0 && l->memory_high > role->memory)
                return report_at(r, place_in(i, "memoryHighMb"),
                                 "must not be more than memoryMb (%" PRIu64
                                 "): at that limit the executor is killed before it is slowed",
                                 role->memory >> 20);
        if (role->memory > 0 && l->locked_memory > role->memory)
                return report_at(r, place_in(i, "lockedMemoryMb"),
                                 "must not be more than memoryMb (%s): locked memory is part of it",
                                 format_size(role->memory, limit, sizeof(limit)));
        if (role->memory > 0 && role->placement.shm > role->memory)
                return report_at(r, place_in(i, "shmMb"),
                                 "must not be more than memoryMb (%s): what is in /dev/shm is part of it",
                                 format_size(role->memory, limit, sizeof(limit)));
        if (l->cpu_weight > 0 && role->placement.cpu_policy == CPU_EXCLUSIVE)
                return report_at(r, place_in(i, "cpuWeight"),
                                 "has nothing to weigh: with cpuPolicy exclusive nobody else is on the CPUs");
        for (size_t k = 0; k < l->n_io && q == 0; k++)
                q = check_io(r, l, i, k);
        return q;
}

int check_limits(struct reader *r, const struct job_spec *s) {
        int q = 0;

        for (size_t i = 0; i < s->n_roles && q >= 0; i++)
                q = check_role(r, &s->roles[i], i);
        return q < 0 ? q : 0;
}
