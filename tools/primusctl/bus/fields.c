/* SPDX-License-Identifier: Apache-2.0 */
/* Reads an a{sv} along a table. Invariant: a value of another type than the table has is passed over, as an
 * unknown key is. */
#include "tools/primusctl/bus/fields.h"

#include <stdbool.h>
#include <string.h>

#include "lib/base/cleanup.h"

static int take_string(sd_bus_message *m, const char *type, void *to) {
        char **target = to;
        const char *s;
        char *copy;
        int r;

        r = sd_bus_message_read(m, "v", "s", &s);
        if (r < 0)
                return r;
        copy = strdup(s);
        if (!copy)
                return -ENOMEM;
        free(*target);
        *target = copy;
        return 0;
}

static int take_basic(sd_bus_message *m, const char *type, void *target) {
        return sd_bus_message_read(m, "v", type, target);
}

static int take_bool(sd_bus_message *m, const char *type, void *target) {
        int b, r = sd_bus_message_read(m, "v", type, &b);

        if (r >= 0)
                *(bool *)target = b;
        return r;
}

static int take_bytes(sd_bus_message *m, const char *type, void *to) {
        char **target = to;
        const void *p;
        size_t n;
        char *copy;
        int r;

        r = sd_bus_message_enter_container(m, 'v', "ay");
        if (r >= 0)
                r = sd_bus_message_read_array(m, 'y', &p, &n);
        if (r < 0)
                return r;
        copy = strndup(n > 0 ? p : "", n);
        if (!copy)
                return -ENOMEM;
        free(*target);
        *target = copy;
        return sd_bus_message_exit_container(m);
}

static int take_strv(sd_bus_message *m, const char *type, void *to) {
        char ***target = to;
        char **l = NULL;
        int r = sd_bus_message_enter_container(m, 'v', "as");

        if (r >= 0)
                r = sd_bus_message_read_strv(m, &l);
        if (r < 0)
                return r;
        for (char **p = *target; p && *p; p++)
                free(*p);
        free(*target);
        *target = l;
        return sd_bus_message_exit_container(m);
}

static int take_numbers(sd_bus_message *m, const char *type, void *to) {
        struct number_list *target = to;
        const void *p;
        size_t size;
        uint32_t *copy;
        int r = sd_bus_message_enter_container(m, 'v', "au");

        if (r >= 0)
                r = sd_bus_message_read_array(m, 'u', &p, &size);
        if (r < 0)
                return r;
        copy = malloc(size + 1);
        if (!copy)
                return -ENOMEM;
        if (size > 0)
                memcpy(copy, p, size);
        free(target->items);
        *target = (struct number_list){ copy, size / sizeof(uint32_t) };
        return sd_bus_message_exit_container(m);
}

static int take(sd_bus_message *m, const struct field *f, void *target) {
        static const struct {
                const char *type;
                int (*take)(sd_bus_message *m, const char *type, void *target);
        } takers[] = { { "s", take_string },
                       { "ay", take_bytes },
                       { "as", take_strv },
                       { "au", take_numbers },
                       { "b", take_bool } };

        if (f->read)
                return f->read(m, target);
        for (size_t i = 0; i < ELEMENTSOF(takers); i++)
                if (strcmp(takers[i].type, f->type) == 0)
                        return takers[i].take(m, f->type, target);
        return take_basic(m, f->type, target);
}

int read_fields(sd_bus_message *m, const struct field *fields, size_t n, void *target) {
        int r = sd_bus_message_enter_container(m, 'a', "{sv}");

        if (r < 0)
                return r;
        while ((r = sd_bus_message_enter_container(m, 'e', "sv")) > 0) {
                const struct field *f = NULL;
                const char *key, *contents;

                r = sd_bus_message_read(m, "s", &key);
                if (r >= 0)
                        r = sd_bus_message_peek_type(m, NULL, &contents);
                if (r < 0)
                        return r;
                for (size_t i = 0; i < n; i++)
                        if (strcmp(fields[i].key, key) == 0 && strcmp(fields[i].type, contents) == 0)
                                f = &fields[i];
                r = f ? take(m, f, (char *)target + f->offset) : sd_bus_message_skip(m, "v");
                if (r >= 0)
                        r = sd_bus_message_exit_container(m);
                if (r < 0)
                        return r;
        }
        return r < 0 ? r : sd_bus_message_exit_container(m);
}
