/* SPDX-License-Identifier: Apache-2.0 */
/* What the administrators have to say to everybody: one line, kept in the store. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/log.h"
#include "lib/base/utf8.h"
#include "masterd/api/api-parts.h"
#include "masterd/api/api.h"
#include "masterd/caller/authorize.h"
#include "masterd/core/manager.h"
#include "masterd/core/notices.h"

#define KEY "banner"

/* It is on disk. */
static void show_banner(struct manager *m, void *data) {
        snprintf(m->api->banner, sizeof(m->api->banner), "%s", (const char *)data);
        free(data);
        notice_properties(m, MASTER_PATH, MASTER_MANAGER, "Banner", NULL);
}

static int set_banner(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        struct manager *m = userdata;
        sd_bus_message *reply = NULL;
        const char *text;
        char *copy;
        int r = sd_bus_message_read_basic(call, 's', &text);

        if (r < 0)
                return r;
        if (strlen(text) >= sizeof(m->api->banner) || !text_is_line(text))
                return sd_bus_error_setf(error, SD_BUS_ERROR_INVALID_ARGS,
                                         "text: one line of at most %zu bytes", sizeof(m->api->banner) - 1);
        r = sd_bus_message_new_method_return(call, &reply);
        if (r < 0)
                return r;
        copy = strdup(text);
        if (!copy) {
                sd_bus_message_unref(reply);
                return -ENOMEM;
        }
        store_set_meta(m->store, KEY, text, strlen(text));
        manager_touch(m);
        log_notice("Banner by uid %u: %s", uid, *text ? text : "none");
        r = manager_effect(m, show_banner, copy);
        if (r < 0) {
                sd_bus_message_unref(reply);
                return r;
        }
        return manager_reply_later(m, reply);
}

int api_on_set_banner(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        return api_with_permission(userdata, call, OWNER_NONE, ACTION_MANAGE_NODES, set_banner, error);
}

int api_get_banner(sd_bus *bus, const char *path, const char *interface, const char *property,
                   sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        const struct manager *m = userdata;

        return sd_bus_message_append(reply, "s", m->api->banner);
}

int api_load_banner(struct manager *m) {
        _cleanup_free_ void *data = NULL;
        size_t size;
        int r = store_load_meta(m->store, KEY, &data, &size);

        if (r == -ENOENT)
                return 0;
        if (r < 0)
                return r;
        if (size >= sizeof(m->api->banner) || !text_is_line(data))
                return -EUCLEAN;
        memcpy(m->api->banner, data, size + 1); /* there is a NUL behind it */
        return 0;
}
