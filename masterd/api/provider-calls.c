/* SPDX-License-Identifier: Apache-2.0 */
/* org.primus.Master1.Manager: hosts by demand. Anybody may look; what changes something, and what the units
 * of providers ask and say, is for root and whom polkit lets manage nodes. */
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/log.h"
#include "lib/base/try.h"
#include "lib/base/utf8.h"
#include "lib/wire/errors.h"
#include "masterd/api/api.h"
#include "masterd/api/job-calls.h"
#include "masterd/caller/authorize.h"
#include "masterd/caller/reply.h"
#include "masterd/core/manager.h"
#include "masterd/providers/providers.h"

/* ---- looking ---- */

static int list_providers(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        struct manager *m = userdata;
        sd_bus_message *reply = NULL;
        int r = reply_dicts_new(call, &reply);

        for (struct provider *p = providers_next(m, NULL); p && r >= 0; p = providers_next(m, p))
                r = providers_append(reply, p);
        return reply_list_send(reply, r);
}

static int list_instances(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        struct manager *m = userdata;
        sd_bus_message *reply = NULL;
        int r = reply_dicts_new(call, &reply);

        for (struct provider *p = providers_next(m, NULL); p && r >= 0; p = providers_next(m, p))
                for (struct instance *i = providers_next_instance(p, NULL); i && r >= 0;
                     i = providers_next_instance(p, i))
                        r = providers_append_instance(reply, i);
        return reply_list_send(reply, r);
}

static int plan_instances(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        sd_bus_message *reply = NULL;
        int r = reply_dicts_new(call, &reply);

        r = r < 0 ? r : providers_append_plan(userdata, reply);
        return reply_list_send(reply, r);
}

int api_on_list_providers(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        return api_with_caller(userdata, call, list_providers, error);
}

int api_on_list_instances(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        return api_with_caller(userdata, call, list_instances, error);
}

/* It names jobs of everybody. */
int api_on_plan_instances(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        return api_with_permission(userdata, call, OWNER_NONE, ACTION_MANAGE_NODES, plan_instances, error);
}

/* ---- changing ---- */

static int find_provider(struct manager *m, const char *name, struct provider **ret, sd_bus_error *error) {
        *ret = providers_find(m, name);
        return *ret ? 0
                    : sd_bus_error_setf(error, ERROR_NOT_FOUND, "There is no provider '%.*s'",
                                        utf8_fit(name, 64), name);
}

static int find_instance(struct manager *m, const char *name, struct instance **ret, sd_bus_error *error) {
        *ret = providers_find_instance(m, name);
        return *ret ? 0
                    : sd_bus_error_setf(error, ERROR_NOT_FOUND, "No provider has made a host '%.*s'",
                                        utf8_fit(name, 64), name);
}

static int hold_provider(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        struct provider *p;
        const char *name;
        int held;

        TRY(sd_bus_message_read(call, "sb", &name, &held));
        TRY(find_provider(userdata, name, &p, error));
        log_notice("Provider %s is %s by uid %u", name, held ? "held" : "released", uid);
        providers_hold(userdata, p, held);
        return manager_answer_later(userdata, call, "");
}

static int hold_instance(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        struct instance *i;
        const char *name;
        int held;

        TRY(sd_bus_message_read(call, "sb", &name, &held));
        TRY(find_instance(userdata, name, &i, error));
        providers_hold_instance(userdata, i, held);
        return manager_answer_later(userdata, call, "");
}

static int start_instance(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        char why[PROVIDERS_WHY_MAX];
        const char *name, *shape;
        struct provider *p;
        int r;

        TRY(sd_bus_message_read(call, "ss", &name, &shape));
        TRY(find_provider(userdata, name, &p, error));
        r = providers_up(userdata, p, shape, uid, why);
        if (r == -ENOMEM || r == -EIO)
                return r;
        return r < 0 ? sd_bus_error_set(error, r == -ENOENT ? ERROR_NOT_FOUND : ERROR_REFUSED, why)
                     : manager_answer_later(userdata, call, "");
}

static int stop_instance(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        struct instance *i;
        const char *name;

        TRY(sd_bus_message_read_basic(call, 's', &name));
        TRY(find_instance(userdata, name, &i, error));
        TRY(providers_down(userdata, i, uid));
        return manager_answer_later(userdata, call, "");
}

int api_on_hold_provider(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        return api_with_permission(userdata, call, OWNER_NONE, ACTION_MANAGE_NODES, hold_provider, error);
}

int api_on_hold_instance(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        return api_with_permission(userdata, call, OWNER_NONE, ACTION_MANAGE_NODES, hold_instance, error);
}

int api_on_start_instance(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        return api_with_permission(userdata, call, OWNER_NONE, ACTION_MANAGE_NODES, start_instance, error);
}

int api_on_stop_instance(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        return api_with_permission(userdata, call, OWNER_NONE, ACTION_MANAGE_NODES, stop_instance, error);
}

/* ---- of the units of providers ---- */

static int no_request(const char *name, sd_bus_error *error) {
        return sd_bus_error_setf(error, ERROR_NOT_FOUND, "Nobody asks a provider for '%.*s' (any more)",
                                 utf8_fit(name, 96), name);
}

/* It has a join token in it. */
static int take_request(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        sd_bus_message *reply = NULL;
        char *text = NULL;
        const char *name;
        uint64_t usec;
        int r;

        TRY(sd_bus_message_read_basic(call, 's', &name));
        r = providers_take(userdata, name, &text, &usec);
        if (r == -ENOENT)
                return no_request(name, error);
        r = r < 0 ? r : sd_bus_message_new_method_return(call, &reply);
        r = r < 0 ? r : sd_bus_message_append(reply, "ts", usec, text);
        if (text)
                explicit_bzero(text, strlen(text));
        free(text);
        if (r < 0) {
                sd_bus_message_unref(reply);
                return r;
        }
        (void)sd_bus_message_sensitive(reply);
        return manager_reply_later(userdata, reply);
}

static int answer_request(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        const char *name, *output;
        int32_t status;
        int r;

        TRY(sd_bus_message_read(call, "sis", &name, &status, &output));
        r = strlen(output) > PROVIDERS_OUTPUT_MAX ? -E2BIG : providers_finish(userdata, name, status, output);
        if (r == -ENOENT)
                return no_request(name, error);
        return r < 0 ? r : reply_return(call, "");
}

int api_on_take_provider_request(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        return api_with_permission(userdata, call, OWNER_NONE, ACTION_MANAGE_NODES, take_request, error);
}

int api_on_answer_provider_request(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        return api_with_permission(userdata, call, OWNER_NONE, ACTION_MANAGE_NODES, answer_request, error);
}
