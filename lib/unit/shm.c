/* SPDX-License-Identifier: Apache-2.0 */
/* Names of the shared memory of jobs. Invariant: a name that is parsed is exactly one that shm_names()
 * makes. */
#include "lib/unit/shm.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define UNIT_PREFIX "run-primus-shm-"
#define UNIT_SUFFIX ".mount"

static void name(const char *entry, struct shm_names *ret) {
        snprintf(ret->path, sizeof(ret->path), SHM_DIR "/%s", entry);
        snprintf(ret->unit, sizeof(ret->unit), UNIT_PREFIX "%s" UNIT_SUFFIX, entry);
}

/* A dot between the two: a dash would be escaped in the unit's name. */
void shm_names(uint32_t job, sd_id128_t job_uid, struct shm_names *ret) {
        char hex[SD_ID128_STRING_MAX], entry[32];

        snprintf(entry, sizeof(entry), "%u.%.8s", job, sd_id128_to_string(job_uid, hex));
        name(entry, ret);
}

bool shm_entry_parse(const char *entry, struct shm_names *ret) {
        size_t digits = strspn(entry, "0123456789");

        if (digits == 0 || digits > 10 || entry[digits] != '.' ||
            strspn(entry + digits + 1, "0123456789abcdef") != 8 || entry[digits + 9])
                return false;
        name(entry, ret);
        return true;
}

bool shm_unit_parse(const char *unit, struct shm_names *ret) {
        char entry[32];
        size_t l = strlen(unit), head = strlen(UNIT_PREFIX), tail = strlen(UNIT_SUFFIX);

        if (l <= head + tail || l - head - tail >= sizeof(entry) || strncmp(unit, UNIT_PREFIX, head) != 0 ||
            strcmp(unit + l - tail, UNIT_SUFFIX) != 0)
                return false;
        memcpy(entry, unit + head, l - head - tail);
        entry[l - head - tail] = 0;
        return shm_entry_parse(entry, ret);
}
