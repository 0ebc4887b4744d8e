/* SPDX-License-Identifier: Apache-2.0 */
/* StartHook. Hooks are the site's programs and root's, and go by what their environment says: they remove
 * below $PRIMUS_WORK, and do things as $PRIMUS_UID. Invariant: a hook is one of those that are named here,
 * and is told of a job only what is so on this host. */
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/parse.h"
#include "lib/base/strv.h"
#include "lib/base/try.h"
#include "lib/base/unitname.h"
#include "lib/unit/files.h"
#include "lib/unit/ours.h"
#include "starter/calls/starter.h"
#include "starter/unit/hook-unit.h"

#define TIMEOUT_USEC_MAX (UINT64_C(7) * 24 * 3600 * USEC_PER_SEC)

enum variable {
        VARIABLE_NODE,
        VARIABLE_JOB,
        VARIABLE_UID,
        VARIABLE_WORK,
        _VARIABLE_MAX
};

static const char *const variables[_VARIABLE_MAX] = {
        [VARIABLE_NODE] = "PRIMUS_NODE=",
        [VARIABLE_JOB] = "PRIMUS_JOB=",
        [VARIABLE_UID] = "PRIMUS_UID=",
        [VARIABLE_WORK] = "PRIMUS_WORK=",
};

/* What each hook is told: the first of the variables, and no others. */
static const struct {
        const char *name;
        size_t told;
} hooks[] = {
        { "prolog", _VARIABLE_MAX },
        { "epilog", _VARIABLE_MAX },
        { "health", VARIABLE_NODE + 1 },
};

/* The values, which point into the list. -EBADMSG: another variable, one twice, one that is missing. */
static int find_values(char *const *list, size_t told, const char *ret[static _VARIABLE_MAX]) {
        size_t n = 0;

        for (; list && *list; list++, n++) {
                size_t i = 0;

                while (i < told && strncmp(*list, variables[i], strlen(variables[i])) != 0)
                        i++;
                if (i == told || ret[i])
                        return -EBADMSG;
                ret[i] = *list + strlen(variables[i]);
        }
        return n == told ? 0 : -EBADMSG;
}

/* As shells and their programs read it too, some of which take a 0 in front for octal. */
static bool read_number(const char *text, uint32_t *ret) {
        return (text[0] != '0' || !text[1]) && parse_u32(text, 0, UINT32_MAX, ret) >= 0;
}

/* The directory is that job's and that user's; where there is none (an administrator has removed it), the
 * host serves that user. */
static bool job_is_so(const struct connection *c, const char *const *values) {
        const struct starter *s = c->starter;
        size_t prefix = strlen(s->root) + strlen(WORK_DIR "/");
        const char *work = values[VARIABLE_WORK];
        _cleanup_free_ char *path = NULL;
        uint32_t job, uid, number, owner;
        char why[SERVE_WHY_MAX];
        sd_id128_t job_uid;

        if (!read_number(values[VARIABLE_JOB], &number) || !read_number(values[VARIABLE_UID], &uid) ||
            strlen(work) <= prefix || work_name_parse(work + prefix, &job, &job_uid) < 0 || job != number)
                return false;
        path = work_path(s->root, job, job_uid);
        if (!path || strcmp(path, work) != 0)
                return false;
        owner = work_owner(s->root, job, job_uid);
        return owner > 0 ? owner == uid : !lookup_refuses(s->lookup, uid, c->node, why);
}

static bool may_be_told(const struct connection *c, const char *name, char *const *list) {
        const char *values[_VARIABLE_MAX] = {};
        size_t i = 0;

        while (i < ELEMENTSOF(hooks) && strcmp(hooks[i].name, name) != 0)
                i++;
        if (i == ELEMENTSOF(hooks) || !c->node || find_values(list, hooks[i].told, values) < 0 ||
            strcmp(values[VARIABLE_NODE], c->node) != 0)
                return false;
        return hooks[i].told <= VARIABLE_JOB || job_is_so(c, values);
}

int starter_method_hook(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        _cleanup_(strings_free_p) char **environment = NULL;
        struct connection *c = userdata;
        const char *unit, *name;
        uint64_t timeout;
        int output, r = sd_bus_message_read(call, "ss", &unit, &name);

        if (r > 0)
                r = sd_bus_message_read_strv(call, &environment);
        if (r >= 0)
                r = sd_bus_message_read(call, "th", &timeout, &output);
        if (r <= 0 || !hook_unit_name_valid(unit) || !may_be_told(c, name, environment) || timeout == 0 ||
            timeout > TIMEOUT_USEC_MAX)
                return starter_malformed(r, error);
        TRY(relay_message(c, "StartTransientUnit", &m));
        TRY(hook_unit_build(m, unit, name, environment, timeout, output));
        return relay_job(c, call, m, error);
}
