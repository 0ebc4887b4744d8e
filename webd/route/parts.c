/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/format.h"
#include "lib/base/try.h"
#include "lib/base/utf8.h"
#include "lib/wire/skip.h"
#include "webd/route/route.h"

static int read_bytes(sd_bus_message *m, enum part_kind kind, json_t **ret) {
        _cleanup_free_ char *text = NULL;
        const void *bytes;
        size_t n;

        TRY(sd_bus_message_read_array(m, 'y', &bytes, &n));
        text = malloc(2 * n + 1);
        if (!text)
                return -ENOMEM;
        if (kind == PART_TEXT)
                utf8_clean(n > 0 ? bytes : "", n, text, n + 1);
        else
                format_hex(bytes, n, text);
        *ret = json_string_nocheck(text);
        return *ret ? 0 : -ENOMEM;
}

static int read_part(sd_bus_message *m, const struct part *p, json_t **ret) {
        switch (p->kind) {
        case PART_OBJECT:
                return json_read_object(m, p->shape, false, ret);
        case PART_LIST:
                return json_read_list(m, p->shape, false, ret);
        case PART_TEXT:
        case PART_HEX:
                return read_bytes(m, p->kind, ret);
        default:
                return json_read_any(m, ret);
        }
}

int parts_read(const struct call *c, sd_bus_message *reply, json_t **ret) {
        _cleanup_(json_decref_p) json_t *o = json_object();

        if (!o)
                return -ENOMEM;
        FOREACH_PART (c, p) {
                json_t *value = NULL;

                if (p->kind == PART_SKIP) {
                        TRY(message_skip_any(reply));
                        continue;
                }
                TRY(read_part(reply, p, &value));
                if (!p->name) {
                        *ret = value;
                        return 0;
                }
                if (json_object_set_new(o, p->name, value) < 0)
                        return -ENOMEM;
        }
        *ret = TAKE_PTR(o);
        return 0;
}

int parts_raw(const struct call *c, sd_bus_message *reply, const char **ret, size_t *ret_size) {
        const void *bytes;

        TRY(sd_bus_message_read_array(reply, 'y', &bytes, ret_size));
        *ret = *ret_size > 0 ? bytes : "";
        return 0;
}
