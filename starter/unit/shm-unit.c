/* SPDX-License-Identifier: Apache-2.0 */
/* Shared memory of jobs as mount units. */
#include "starter/unit/shm-unit.h"

#include <inttypes.h>
#include <stdio.h>

#include "lib/base/try.h"
#include "starter/unit/property.h"

int shm_build(sd_bus_message *m, const struct shm_names *names, uint32_t job, uint64_t size, uint32_t uid) {
        char text[96];

        TRY(property_unit_begin(m, names->unit));
        snprintf(text, sizeof(text), "Shared memory of Primus job %u", job);
        TRY(property_string(m, "Description", text));
        TRY(property_string(m, "What", "tmpfs"));
        TRY(property_string(m, "Where", names->path));
        TRY(property_string(m, "Type", "tmpfs"));
        snprintf(text, sizeof(text), "size=%" PRIu64 ",mode=0700,uid=%u,nosuid,nodev", size, uid);
        TRY(property_string(m, "Options", text));
        TRY(property_string(m, "CollectMode", "inactive-or-failed"));
        TRY(property_bool(m, "LazyUnmount", true)); /* it goes, whoever looks into it */
        return property_unit_end(m);
}
