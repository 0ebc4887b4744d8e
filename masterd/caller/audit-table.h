/* SPDX-License-Identifier: Apache-2.0 */
/* Every method on the system bus: whether it changes something, and what of its arguments the journal may
 * have. tests/contracts.py compares it with dbus/org.primus.Master1.xml. */
#pragma once

#include <stddef.h>
#include <systemd/sd-bus.h>

enum audit_class {
        AUDIT_READS,   /* a line when the caller may not */
        AUDIT_CHANGES, /* a line for every call */
        AUDIT_PART,    /* of something that has its line: one of its own when it fails */
        AUDIT_PIECES,  /* "sttay": a line where the second t, the offset, is 0, and when it fails */
};

struct audit_rule {
        const char *interface; /* behind "org.primus.Master1." */
        const char *member;
        enum audit_class class;
        /* Names of the arguments from the first one on; "-" is not shown, of "changes*" (a dictionary) the
         * keys alone. What may hold a secret (environment, configurations, input) is never shown. */
        const char *shown;
};

/* NULL: there is no such method. interface may be NULL. */
const struct audit_rule *audit_rule_find(const char *interface, const char *member);
/* All of them, to the one without a member. */
extern const struct audit_rule audit_rules[];

/* Puts what the rule shows of a call into buf: "reason=because batch=2". The message is rewound. Returns buf.
 */
char *audit_arguments(const struct audit_rule *rule, sd_bus_message *call, char *buf, size_t size);
