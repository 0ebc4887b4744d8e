/* SPDX-License-Identifier: Apache-2.0 */
/* Options over a configuration. Invariant: what is put into the spec has passed the rule of its key. */
#include "masterd/start-options.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/parse.h"
#include "masterd/spec/array.h"
#include "masterd/spec/valid.h"

#define ERROR_BAD_CONFIG "org.primus.Error.BadConfig"

static void strv_free(char **list) {
        for (char **p = list; p && *p; p++)
                free(*p);
        free(list);
}

void start_options_done(struct start_options *o) {
        strv_free(o->after);
        free(o->array);
        free(o->begin);
        *o = (struct start_options){};
}

static int read_text(sd_bus_message *m, char **target) {
        const char *text;
        int r = sd_bus_message_read(m, "v", "s", &text);

        if (r < 0)
                return r;
        free(*target);
        *target = strdup(text);
        return *target ? 0 : -ENOMEM;
}

static int read_after(sd_bus_message *m, struct start_options *o, sd_bus_error *error) {
        size_t n = 0;
        const char *text;
        int r = sd_bus_message_enter_container(m, 'v', "as");

        if (r >= 0)
                r = sd_bus_message_enter_container(m, 'a', "s");
        if (r < 0)
                return r;
        strv_free(o->after);
        o->after = calloc(AFTER_MAX + 1, sizeof(*o->after));
        if (!o->after)
                return -ENOMEM;
        while ((r = sd_bus_message_read_basic(m, 's', &text)) > 0) {
                if (n == AFTER_MAX)
                        return sd_bus_error_setf(error, SD_BUS_ERROR_INVALID_ARGS,
                                                 "after: at most %u jobs can be waited for", AFTER_MAX);
                if (!(o->after[n++] = strdup(text)))
                        return -ENOMEM;
        }
        if (r >= 0)
                r = sd_bus_message_exit_container(m);
        return r < 0 ? r : sd_bus_message_exit_container(m);
}

int start_options_read(sd_bus_message *m, const char *key, struct start_options *o, sd_bus_error *error) {
        if (strcmp(key, "after") == 0)
                return read_after(m, o, error);
        return read_text(m, strcmp(key, "array") == 0 ? &o->array : &o->begin);
}

static int refuse(sd_bus_error *error, const char *key, const char *value, const char *why) {
        return sd_bus_error_setf(error, ERROR_BAD_CONFIG, "1:1: %s: '%.*s': %s", key, utf8_fit(value, 64),
                                 value, why);
}

static int replace(const char *key, const char *value, bool (*valid)(const char *, const char **),
                   char **target, sd_bus_error *error) {
        const char *why;
        char *copy;

        if (!value)
                return 0;
        if (!valid(value, &why))
                return refuse(error, key, value, why);
        copy = strdup(value);
        if (!copy)
                return -ENOMEM;
        free(*target);
        *target = copy;
        return 0;
}

static int replace_after(char *const *after, struct array_spec *a, sd_bus_error *error) {
        char **copy = calloc(AFTER_MAX + 1, sizeof(*copy));
        size_t n = 0;
        const char *why;
        int r = copy ? 0 : -ENOMEM;

        for (; r >= 0 && after && after[n]; n++)
                if (!valid_after(after[n], &why))
                        r = refuse(error, "after", after[n], why);
                else if (!(copy[n] = strdup(after[n])))
                        r = -ENOMEM;
        if (r < 0) {
                strv_free(copy);
                return r;
        }
        strv_free(a->after);
        a->after = copy;
        a->n_after = n;
        return 0;
}

int start_options_apply(const struct start_options *o, struct job_spec *spec, sd_bus_error *error) {
        struct array_spec *a = &spec->array;
        int r = 0;

        if (o->anew) {
                free(a->begin);
                a->begin = NULL;
        }
        if (o->after || o->anew)
                r = replace_after(o->after, a, error);
        if (r >= 0)
                r = replace("begin", o->begin, valid_begin, &a->begin, error);
        return r < 0 ? r : replace("array", o->array, valid_array, &a->array, error);
}
