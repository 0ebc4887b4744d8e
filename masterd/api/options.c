/* SPDX-License-Identifier: Apache-2.0 */
/* Options of calls. */
#include "masterd/api/options.h"

#include <stdbool.h>
#include <string.h>

#include "lib/base/utf8.h"

int options_each(sd_bus_message *call, option_reader f, void *target, sd_bus_error *error) {
        int r = sd_bus_message_enter_container(call, 'a', "{sv}");

        while (r >= 0 && (r = sd_bus_message_enter_container(call, 'e', "sv")) > 0) {
                const char *key;

                r = sd_bus_message_read_basic(call, 's', &key);
                if (r < 0 || (r = f(call, key, target, error)) < 0)
                        return r;
                r = sd_bus_message_exit_container(call);
        }
        return r < 0 ? r : sd_bus_message_exit_container(call);
}

struct table {
        const char *method, *noun;
        const struct call_option *options;
        void *target;
};

static int read_basic(sd_bus_message *call, const struct call_option *o, void *target) {
        const char type[] = { o->type, 0 };
        void *place = (char *)target + o->offset;
        int r, b;

        if (o->type != 'b')
                return sd_bus_message_read(call, "v", type, place);
        r = sd_bus_message_read(call, "v", type, &b);
        if (r >= 0)
                *(bool *)place = b;
        return r;
}

static int read_entry(sd_bus_message *call, const char *key, void *userdata, sd_bus_error *error) {
        const struct table *t = userdata;

        for (const struct call_option *o = t->options; o->key; o++)
                if (strcmp(o->key, key) == 0)
                        return o->type ? read_basic(call, o, t->target)
                                       : o->read(call, key, t->target, error);
        return sd_bus_error_setf(error, SD_BUS_ERROR_INVALID_ARGS, "%s has no %s '%.*s'", t->method, t->noun,
                                 utf8_fit(key, 64), key);
}

int options_read(sd_bus_message *call, const char *method, const char *noun,
                 const struct call_option *options, void *target, sd_bus_error *error) {
        return options_each(call, read_entry, &(struct table){ method, noun, options, target }, error);
}
