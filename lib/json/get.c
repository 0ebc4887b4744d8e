/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/json/get.h"

#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>

const char *json_get_text(const json_t *o, const char *name) {
        return json_string_value(json_object_get(o, name)) ?: "";
}

uint64_t json_get_number(const json_t *o, const char *name) {
        return (uint64_t)json_integer_value(json_object_get(o, name));
}

double json_get_real(const json_t *o, const char *name) {
        return json_number_value(json_object_get(o, name));
}

bool json_get_flag(const json_t *o, const char *name) {
        return json_is_true(json_object_get(o, name));
}

/* Lists have few users, often one after the other's rows: a look-up may read a file, or ask a server. */
const char *json_user_name(uint32_t uid, char buf[static JSON_USER_MAX]) {
        static _Thread_local char latest[JSON_USER_MAX];
        static _Thread_local uint32_t latest_uid;
        const struct passwd *pw;

        if (*latest && latest_uid == uid)
                return memcpy(buf, latest, JSON_USER_MAX);
        pw = getpwuid(uid);
        if (pw)
                snprintf(buf, JSON_USER_MAX, "%s", pw->pw_name);
        else
                snprintf(buf, JSON_USER_MAX, "%" PRIu32, uid);
        memcpy(latest, buf, JSON_USER_MAX);
        latest_uid = uid;
        return buf;
}
