/* SPDX-License-Identifier: Apache-2.0 */
/* Invariant: what is passed over is walked as it would be read, so a bad message is found here, too. How deep
 * a message may be is sd-bus's to bound. */
#include "lib/wire/skip.h"

#include <errno.h>
#include <string.h>

#include "lib/base/cleanup.h"

bool message_is_container(char type) {
        return type == SD_BUS_TYPE_ARRAY || type == SD_BUS_TYPE_VARIANT || type == SD_BUS_TYPE_STRUCT ||
               type == SD_BUS_TYPE_DICT_ENTRY;
}

bool message_is_numbers(char type, const char *contents) {
        return type == SD_BUS_TYPE_ARRAY && contents[0] && !contents[1] && strchr("ynqiuxtd", contents[0]);
}

static int skip_inside(sd_bus_message *m, char type, const char *contents) {
        int r = sd_bus_message_enter_container(m, type, contents);

        if (r <= 0)
                return r;
        while ((r = message_skip_any(m)) > 0)
                ;
        return r < 0 ? r : sd_bus_message_exit_container(m);
}

int message_skip_any(sd_bus_message *m) {
        const char *contents;
        const void *numbers;
        size_t size;
        char type;
        int r = sd_bus_message_peek_type(m, &type, &contents);

        if (r <= 0)
                return r;
        if (!message_is_container(type))
                r = sd_bus_message_skip(m, (const char[]){ type, 0 });
        else if (message_is_numbers(type, contents))
                r = sd_bus_message_read_array(m, contents[0], &numbers, &size);
        else
                r = skip_inside(m, type, contents);
        return r < 0 ? r : 1;
}

/* Takes the type that stands here off types; -ENXIO: another one is asked for. */
static int take_type(sd_bus_message *m, const char **types) {
        static const char brackets[] = "r()e{}"; /* what sd-bus calls it, how a signature writes it */
        const char *contents, *t = *types, *bracket;
        char type;
        int r = sd_bus_message_peek_type(m, &type, &contents);

        if (r <= 0)
                return r < 0 ? r : -ENXIO;
        bracket =
                type == SD_BUS_TYPE_STRUCT || type == SD_BUS_TYPE_DICT_ENTRY ? strchr(brackets, type) : NULL;
        if (*t++ != (bracket ? bracket[1] : type))
                return -ENXIO;
        if (message_is_container(type) && type != SD_BUS_TYPE_VARIANT) {
                size_t n = strlen(contents);

                if (strncmp(t, contents, n) != 0)
                        return -ENXIO;
                t += n;
        }
        if (bracket && *t++ != bracket[2])
                return -ENXIO;
        *types = t;
        return 0;
}

int message_skip(sd_bus_message *m, const char *types) {
        int r = 0;

        while (r >= 0 && *types) {
                r = take_type(m, &types);
                if (r >= 0)
                        r = message_skip_any(m);
        }
        return MIN(r, 1);
}
