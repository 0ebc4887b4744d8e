/* SPDX-License-Identifier: Apache-2.0 */
/* Invariant: a call is answered once. */
#include "masterd/caller/reply.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/try.h"

#define ROW_MAX 64

static int new_array(sd_bus_message *call, const char *type, sd_bus_message **ret) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;

        TRY(sd_bus_message_new_method_return(call, &reply));
        TRY(sd_bus_message_open_container(reply, 'a', type));
        *ret = TAKE_PTR(reply);
        return 0;
}

int reply_list_new(sd_bus_message *call, const char *row, sd_bus_message **ret) {
        char type[ROW_MAX];

        snprintf(type, sizeof(type), "(%s)", row);
        return new_array(call, type, ret);
}

int reply_dicts_new(sd_bus_message *call, sd_bus_message **ret) {
        return new_array(call, "a{sv}", ret);
}

int reply_list_send(sd_bus_message *reply, int r) {
        if (r >= 0)
                r = sd_bus_message_close_container(reply);
        if (r >= 0)
                r = reply_send(reply);
        sd_bus_message_unref(reply);
        return r;
}

void reply_list_answer(sd_bus_message *call, sd_bus_message *reply, int r) {
        r = reply_list_send(reply, r);
        if (r < 0)
                (void)reply_failed(call, r, NULL);
        sd_bus_message_unref(call);
}

int reply_bytes(sd_bus_message *call, const void *bytes, size_t size) {
        sd_bus_message *reply = NULL;
        int r = sd_bus_message_new_method_return(call, &reply);

        if (r >= 0)
                r = sd_bus_message_append_array(reply, 'y', bytes, size);
        if (r >= 0)
                r = reply_send(reply);
        sd_bus_message_unref(reply);
        return r;
}

int reply_open_key(sd_bus_message *m, const char *key, const char *type) {
        int r = sd_bus_message_open_container(m, 'e', "sv");

        if (r >= 0)
                r = sd_bus_message_append_basic(m, 's', key);
        return r < 0 ? r : sd_bus_message_open_container(m, 'v', type);
}

int reply_close_key(sd_bus_message *m) {
        int r = sd_bus_message_close_container(m);

        return r < 0 ? r : sd_bus_message_close_container(m);
}

int reply_open_array(sd_bus_message *m, const char *key, const char *type) {
        int r = reply_open_key(m, key, type);

        return r < 0 ? r : sd_bus_message_open_container(m, 'a', type + 1);
}

int reply_close_array(sd_bus_message *m) {
        int r = sd_bus_message_close_container(m);

        return r < 0 ? r : reply_close_key(m);
}

int reply_append_words(sd_bus_message *m, const char *text, const char *separators) {
        _cleanup_free_ char *words = strdup(text ? text : "");
        char *save = NULL;
        int r = words ? sd_bus_message_open_container(m, 'a', "s") : -ENOMEM;

        for (char *w = words ? strtok_r(words, separators, &save) : NULL; r >= 0 && w;
             w = strtok_r(NULL, separators, &save))
                r = sd_bus_message_append_basic(m, 's', w);
        return r < 0 ? r : sd_bus_message_close_container(m);
}
