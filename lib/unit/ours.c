/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/unit/ours.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/parse.h"
#include "lib/base/unitname.h"
#include "lib/unit/shm.h"

#define SESSION_PREFIX "primus-session-"
#define SUFFIX ".service"

static bool has_suffix(const char *name, const char *suffix) {
        size_t l = strlen(name), s = strlen(suffix);

        return l > s && strcmp(name + l - s, suffix) == 0;
}

/* An executor's name and the session's number: what is left without the last number is the former's. */
bool session_unit_name_valid(const char *name) {
        char executor[SESSION_UNIT_NAME_MAX];
        size_t prefix = strlen(SESSION_PREFIX);
        uint32_t number;
        char *dot;

        if (strlen(name) >= SESSION_UNIT_NAME_MAX || strncmp(name, SESSION_PREFIX, prefix) != 0 ||
            !has_suffix(name, SUFFIX))
                return false;
        snprintf(executor, sizeof(executor), "primus-%s", name + prefix);
        executor[strlen(executor) - strlen(SUFFIX)] = 0;
        dot = strrchr(executor, '.');
        if (!dot || parse_u32(dot + 1, 0, UINT32_MAX, &number) < 0)
                return false;
        strcpy(dot, SUFFIX); /* in the place of what was cut off, and no longer */
        return executor_unit_name_valid(executor);
}

bool get_unit_name_valid(const char *name) {
        char job[11] = "", session[11] = "", again[UNIT_NAME_MAX];
        uint32_t j, s;

        return sscanf(name, "primus-get-%10[0-9].%10[0-9].service", job, session) == 2 &&
               parse_u32(job, 1, UINT32_MAX, &j) >= 0 && parse_u32(session, 0, UINT32_MAX, &s) >= 0 &&
               strcmp(get_unit_name(j, s, again), name) == 0;
}

bool hook_unit_name_valid(const char *name) {
        static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789.-";
        size_t prefix = strlen(HOOK_UNIT_PREFIX);

        return strlen(name) < UNIT_NAME_MAX && strncmp(name, HOOK_UNIT_PREFIX, prefix) == 0 &&
               has_suffix(name, SUFFIX) && strspn(name + prefix, letters) == strlen(name + prefix);
}

bool slice_name_valid(const char *name) {
        char number[11] = "", slice[UNIT_NAME_MAX];
        uint32_t n;

        return sscanf(name, "primus-%10[0-9].slice", number) == 1 &&
               parse_u32(number, 1, UINT32_MAX, &n) >= 0 && strcmp(job_slice_name(n, slice), name) == 0;
}

bool unit_is_ours(const char *name) {
        struct shm_names names;

        return executor_unit_name_valid(name) || session_unit_name_valid(name) || get_unit_name_valid(name) ||
               hook_unit_name_valid(name) || slice_name_valid(name) || shm_unit_parse(name, &names);
}
