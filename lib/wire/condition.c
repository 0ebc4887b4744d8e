/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions on the wire. Invariant: what was read is within its bounds, and one line. */
#include "lib/wire/condition.h"

#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/try.h"
#include "lib/wire/messages-parts.h"

static const char *const kinds[_CONDITION_KIND_MAX] = {
        [CONDITION_LINK] = "link",   [CONDITION_LINK_SPEED] = "link-speed",
        [CONDITION_CLOCK] = "clock", [CONDITION_DISK] = "disk",
        [CONDITION_GPU] = "gpu",     [CONDITION_KERNEL] = "kernel",
};
static const char *const severities[_CONDITION_SEVERITY_MAX] = {
        [CONDITION_FINE] = "fine",
        [CONDITION_NOTE] = "note",
        [CONDITION_WARN] = "warn",
        [CONDITION_DRAIN] = "drain",
};

static int find_text(const char *const *list, size_t n, const char *s) {
        for (size_t i = 0; i < n; i++)
                if (strcmp(list[i], s) == 0)
                        return (int)i;
        return -EINVAL;
}

const char *condition_kind_to_string(enum condition_kind k) {
        return k >= 0 && k < _CONDITION_KIND_MAX ? kinds[k] : NULL;
}

enum condition_kind condition_kind_from_string(const char *s) {
        return (enum condition_kind)find_text(kinds, ELEMENTSOF(kinds), s);
}

const char *condition_severity_to_string(enum condition_severity s) {
        return s >= 0 && s < _CONDITION_SEVERITY_MAX ? severities[s] : NULL;
}

enum condition_severity condition_severity_from_string(const char *s) {
        return (enum condition_severity)find_text(severities, ELEMENTSOF(severities), s);
}

int host_condition_append(sd_bus_message *m, const struct host_condition *c) {
        const char *kind = condition_kind_to_string(c->kind);

        if (!kind || !condition_severity_to_string(c->severity))
                return -EINVAL;
        TRY(sd_bus_message_open_container(m, 'r', "ssust"));
        TRY(sd_bus_message_append_basic(m, 's', kind));
        TRY(link_append_text(m, c->subject, CONDITION_SUBJECT_MAX));
        TRY(sd_bus_message_append(m, "u", (uint32_t)c->severity));
        TRY(link_append_text(m, c->text, CONDITION_TEXT_MAX));
        TRY(sd_bus_message_append(m, "t", c->since_real));
        return sd_bus_message_close_container(m);
}

int host_condition_read(sd_bus_message *m, struct host_condition *ret) {
        struct host_condition c;
        const char *kind;
        uint32_t severity;
        int r = sd_bus_message_enter_container(m, 'r', "ssust");

        if (r == 0)
                return 0;
        if (r < 0 || (r = sd_bus_message_read(m, "s", &kind)) <= 0 ||
            (r = link_read_text_into(m, c.subject, sizeof(c.subject))) <= 0 ||
            (r = sd_bus_message_read(m, "u", &severity)) <= 0 ||
            (r = link_read_text_into(m, c.text, sizeof(c.text))) <= 0 ||
            (r = sd_bus_message_read(m, "t", &c.since_real)) <= 0 ||
            (r = sd_bus_message_exit_container(m)) < 0)
                return link_bad(r);
        if (severity >= _CONDITION_SEVERITY_MAX || !*c.subject)
                return -EBADMSG;
        c.kind = condition_kind_from_string(kind);
        c.severity = (enum condition_severity)severity;
        *ret = c;
        return 1;
}
