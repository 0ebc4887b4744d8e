/* SPDX-License-Identifier: Apache-2.0 */
/* Names of units and slices. Invariant: role names hold no '-' (lib/base/names.h), so distinct executors have
 * distinct names. */
#include "lib/base/unitname.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/names.h"

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

char *session_unit_name(uint32_t job, const char *role, uint32_t index, uint32_t attempt, uint32_t session,
                        char buf[static SESSION_UNIT_NAME_MAX]) {
        snprintf(buf, SESSION_UNIT_NAME_MAX, "primus-session-%u-%s-%u.%u.%u.service", job, role, index,
                 attempt, session);
        return buf;
}

char *get_unit_name(uint32_t job, uint32_t session, char buf[static UNIT_NAME_MAX]) {
        snprintf(buf, UNIT_NAME_MAX, "primus-get-%u.%u.service", job, session);
        return buf;
}

char *job_slice_name(uint32_t job, char buf[static UNIT_NAME_MAX]) {
        snprintf(buf, UNIT_NAME_MAX, "primus-%u.slice", job);
        return buf;
}

char *work_name(uint32_t job, sd_id128_t job_uid, char buf[static WORK_NAME_MAX]) {
        char hex[SD_ID128_STRING_MAX];

        snprintf(buf, WORK_NAME_MAX, "%" PRIu32 "-%.8s", job, sd_id128_to_string(job_uid, hex));
        return buf;
}

int work_name_parse(const char *name, uint32_t *ret_job, sd_id128_t *ret_uid) {
        char hex[9] = "", text[SD_ID128_STRING_MAX], again[WORK_NAME_MAX];
        sd_id128_t uid;
        uint32_t job;

        if (sscanf(name, "%10" SCNu32 "-%8[0-9a-f]", &job, hex) != 2 || strlen(hex) != 8)
                return -EINVAL;
        snprintf(text, sizeof(text), "%s%024d", hex, 0);
        if (sd_id128_from_string(text, &uid) < 0 || strcmp(work_name(job, uid, again), name) != 0)
                return -EINVAL;
        *ret_job = job;
        *ret_uid = uid;
        return 0;
}
