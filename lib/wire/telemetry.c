/* SPDX-License-Identifier: Apache-2.0 */
/* Samples of executors on the wire. */
#include "lib/wire/telemetry.h"

#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/wire/messages-parts.h"

static const struct {
        const char *name;
        enum telemetry_kind kind;
} fields[_TELEMETRY_MAX] = {
#define X(field, text, kind) [TELEMETRY_##field] = { text, TELEMETRY_##kind },
        TELEMETRY_FIELDS(X)
#undef X
};

const char *telemetry_field_name(enum telemetry_field f) {
        return f < _TELEMETRY_MAX ? fields[f].name : NULL;
}

enum telemetry_kind telemetry_field_kind(enum telemetry_field f) {
        return fields[f].kind;
}

int telemetry_sample_append(sd_bus_message *m, const struct telemetry_sample *s) {
        int r = sd_bus_message_open_container(m, 'r', LINK_ID_SIGNATURE "at");

        if (r < 0 || (r = executor_id_append(m, &s->id)) < 0 ||
            (r = sd_bus_message_append_array(m, 't', s->values, sizeof(s->values))) < 0)
                return r;
        return sd_bus_message_close_container(m);
}

int telemetry_sample_read(sd_bus_message *m, struct telemetry_sample *ret) {
        struct telemetry_sample s;
        const void *values;
        size_t size;
        int r = sd_bus_message_enter_container(m, 'r', LINK_ID_SIGNATURE "at");

        if (r <= 0)
                return r < 0 ? link_bad(r) : 0;
        if ((r = executor_id_read(m, &s.id)) <= 0)
                return link_bad(r);
        r = sd_bus_message_read_array(m, 't', &values, &size);
        if (r < 0)
                return link_bad(r);
        if ((r = sd_bus_message_exit_container(m)) < 0)
                return link_bad(r);
        telemetry_clear(s.values);
        memcpy(s.values, values, MIN(size, sizeof(s.values)));
        *ret = s;
        return 1;
}

uint64_t telemetry_growth(uint64_t before, uint64_t now) {
        if (before == TELEMETRY_UNKNOWN || now == TELEMETRY_UNKNOWN)
                return TELEMETRY_UNKNOWN;
        return now >= before ? now - before : now;
}
