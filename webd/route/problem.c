/* SPDX-License-Identifier: Apache-2.0 */
#include "webd/route/problem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-bus.h>

#include "lib/base/cleanup.h"
#include "lib/json/shape.h"
#include "lib/wire/errors.h"

static const struct known {
        const char *name;
        unsigned status;
        const char *title;
} known[] = {
        { ERROR_BAD_CONFIG, 422, "The configuration is wrong" },
        { ERROR_BAD_BUNDLE, 422, "The job's files are wrong" },
        { ERROR_BUSY, 503, "Too much is under way" },
        { ERROR_CONFLICT, 409, "Somebody was faster" },
        { ERROR_NOT_FOUND, 404, "There is none" },
        { ERROR_NO_SUCH_JOB, 404, "There is no such job" },
        { ERROR_NO_SUCH_NODE, 404, "There is no such host" },
        { ERROR_REFUSED, 409, "It cannot be done now" },
        { SD_BUS_ERROR_INVALID_ARGS, 400, "The request is wrong" },
        { SD_BUS_ERROR_UNKNOWN_OBJECT, 404, "There is none" },
        { SD_BUS_ERROR_ACCESS_DENIED, 403, "You may not" },
        { SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED, 403, "You may not" },
        { SD_BUS_ERROR_LIMITS_EXCEEDED, 503, "Too much is under way" },
        { SD_BUS_ERROR_NO_REPLY, 504, "masterd does not answer" },
        { SD_BUS_ERROR_TIMEOUT, 504, "masterd does not answer" },
        { SD_BUS_ERROR_SERVICE_UNKNOWN, 502, "masterd does not run" },
        { SD_BUS_ERROR_NAME_HAS_NO_OWNER, 502, "masterd does not run" },
        { SD_BUS_ERROR_DISCONNECTED, 502, "There is no bus" },
        { "org.freedesktop.systemd1.UnitMasked", 502, "masterd does not run" },
        { "org.freedesktop.DBus.Error.Spawn.ChildExited", 502, "masterd does not run" },
};

static json_t *problem(const char *type, const char *title, unsigned status, const char *detail) {
        return json_pack("{s:s, s:s, s:i, s:s}", "type", type, "title", title, "status", (int)status,
                         "detail", detail);
}

json_t *problem_new(unsigned status, const char *detail) {
        return json_pack("{s:s, s:i, s:s}", "type", "about:blank", "status", (int)status, "detail", detail);
}

/* "3:14: role[0].num: …", as masterd says where a configuration is wrong. */
static int add_position(json_t *o, const char *message) {
        unsigned line, column;
        int n = 0;

        if (sscanf(message, "%9u:%9u: %n", &line, &column, &n) != 2 || n == 0)
                return 0;
        if (json_object_set_new(o, "line", json_integer(line)) < 0 ||
            json_object_set_new(o, "column", json_integer(column)) < 0)
                return -ENOMEM;
        return 0;
}

json_t *problem_of_error(const char *name, const char *message, bool if_match, unsigned *ret_status) {
        struct known k = { name, 500, "It failed" };
        char type[128] = "about:blank";
        _cleanup_(json_decref_p) json_t *o = NULL;

        for (size_t i = 0; i < ELEMENTSOF(known); i++)
                if (strcmp(known[i].name, name) == 0)
                        k = known[i];
        if (if_match && strcmp(name, ERROR_CONFLICT) == 0)
                k.status = 412;
        if (error_is_primus(name))
                snprintf(type, sizeof(type), "urn:primus:error:%s", name + strlen("org.primus.Error."));
        o = problem(type, k.title, k.status, message);
        if (!o || (strcmp(name, ERROR_BAD_CONFIG) == 0 && add_position(o, message) < 0))
                return NULL;
        *ret_status = k.status;
        return TAKE_PTR(o);
}
