/* SPDX-License-Identifier: Apache-2.0 */
/* Names of units and slices. Invariant: role names hold no '-' (lib/base/parse.h), so distinct executors have
 * distinct names. */
#include "lib/base/unitname.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/parse.h"

char *executor_unit_name(uint32_t job, const char *role, uint32_t index, uint32_t attempt,
                         char buf[static UNIT_NAME_MAX]) {
        snprintf(buf, UNIT_NAME_MAX, "primus-%u-%s-%u.%u.service", job, role, index, attempt);
        return buf;
}

bool executor_unit_name_valid(const char *name) {
        static const char digits[] = "0123456789";
        char role[UNIT_NAME_MAX];
        size_t n;

        if (strlen(name) >= UNIT_NAME_MAX || strncmp(name, "primus-", 7) != 0)
                return false;
        name += 7;
        n = strspn(name, digits);
        if (n == 0 || name[n] != '-')
                return false;
        name += n + 1;
        n = strcspn(name, "-");
        memcpy(role, name, n);
        role[n] = 0;
        if (!role_name_valid(role) || name[n] != '-')
                return false;
        name += n + 1;
        n = strspn(name, digits);
        if (n == 0 || name[n] != '.')
                return false;
        name += n + 1;
        n = strspn(name, digits);
        return n > 0 && strcmp(name + n, ".service") == 0;
}

char *job_slice_name(uint32_t job, char buf[static UNIT_NAME_MAX]) {
        snprintf(buf, UNIT_NAME_MAX, "primus-%u.slice", job);
        return buf;
}
