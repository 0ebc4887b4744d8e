/* SPDX-License-Identifier: Apache-2.0 */
/* Options of Submit over the configuration. Invariant: an option can say nothing that its key could not. */
#include "masterd/admit/submit-options.h"

#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/wire/errors.h"

/* The value has this type on the bus, and goes into the key as it is. */
static const struct {
        const char *option, *type, *key;
} options[] = {
        { "queue", "s", "queue" },         { "priority", "i", "priority" },
        { "requeue", "b", "requeue" },     { "preemptible", "b", "preemptible" },
        { "visible", "s", "visible" },     { "signal", "s", "signal" },
        { "timeLimit", "s", "timeLimit" }, { "startWithin", "s", "startWithin" },
        { "after", "as", "after" },        { "begin", "s", "begin" },
        { "array", "s", "array" },         { "waitForHosts", "b", "waitForHosts" },
};

static void json_unref_p(json_t **v) {
        json_decref(*v);
}

static int read_texts(sd_bus_message *m, json_t **ret) {
        _cleanup_(json_unref_p) json_t *array = json_array();
        const char *s;
        int r = sd_bus_message_enter_container(m, 'v', "as");

        if (r >= 0)
                r = sd_bus_message_enter_container(m, 'a', "s");
        while (r >= 0 && (r = sd_bus_message_read_basic(m, 's', &s)) > 0)
                if (json_array_append_new(array, json_string(s)) < 0)
                        return -ENOMEM;
        if (r >= 0)
                r = sd_bus_message_exit_container(m);
        if (r >= 0)
                r = sd_bus_message_exit_container(m);
        if (r >= 0)
                *ret = TAKE_PTR(array);
        return r;
}

static int read_value(sd_bus_message *m, const char *type, json_t **ret) {
        const char *s;
        int32_t i;
        int r, b;

        switch (*type) {
        case 'a':
                r = read_texts(m, ret);
                break;
        case 's':
                r = sd_bus_message_read(m, "v", "s", &s);
                *ret = r >= 0 ? json_string(s) : NULL;
                break;
        case 'i':
                r = sd_bus_message_read(m, "v", "i", &i);
                *ret = r >= 0 ? json_integer(i) : NULL;
                break;
        default:
                r = sd_bus_message_read(m, "v", "b", &b);
                *ret = r >= 0 ? json_boolean(b) : NULL;
        }
        return r < 0 ? r : *ret ? 0 : -ENOMEM;
}

int submit_option_read(sd_bus_message *m, const char *option, json_t **overrides) {
        json_t *v;
        int r;

        for (size_t i = 0; i < ELEMENTSOF(options); i++) {
                if (strcmp(options[i].option, option) != 0)
                        continue;
                r = read_value(m, options[i].type, &v);
                if (r < 0)
                        return r;
                if (!*overrides)
                        *overrides = json_object();
                return json_object_set_new(*overrides, options[i].key, v) < 0 ? -ENOMEM : 1;
        }
        return 0;
}

int submit_options_apply(struct job_spec **spec, const json_t *overrides, sd_bus_error *error) {
        _cleanup_(diagnostics_done) struct diagnostics d = {};
        _cleanup_(json_unref_p) json_t *root = NULL;
        _cleanup_free_ char *text = NULL, *merged = NULL;
        struct job_spec *replaced;
        int r;

        if (!overrides)
                return 0;
        r = spec_effective(*spec, &text);
        if (r < 0)
                return r;
        root = json_loads(text, 0, NULL);
        if (!root || json_object_update(root, (json_t *)overrides) < 0)
                return -ENOMEM;
        merged = json_dumps(root, JSON_COMPACT | JSON_REAL_PRECISION(12));
        if (!merged)
                return -ENOMEM;
        r = spec_load(merged, strlen(merged), &replaced, &d);
        if (r == -EBADMSG) {
                const struct diagnostic *first = diagnostics_first_error(&d);
                return sd_bus_error_setf(
                        error, ERROR_REFUSED, "%s%s%s", first && *first->path ? first->path : "",
                        first && *first->path ? ": " : "",
                        first ? first->message : "the options do not go with the configuration");
        }
        if (r < 0)
                return r;
        spec_free(*spec);
        *spec = replaced;
        return 0;
}
