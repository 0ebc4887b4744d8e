/* SPDX-License-Identifier: Apache-2.0 */
/* How a host is, beyond that it is there: conditions, each of a kind and a subject ("link eth1", "disk /var")
 * with a severity. agentd says them one by one when they change, HostCondition((ssust) condition, a{sv}), and
 * all of them with each registration (its a{sv}, key "conditions" a(ssust)): kind, subject, severity, text,
 * since (CLOCK_REALTIME usec). */
#pragma once

#include <stdint.h>
#include <systemd/sd-bus.h>

enum condition_kind {
        CONDITION_LINK, /* a network interface that was up is not, or comes and goes, or damages packets */
        CONDITION_LINK_SPEED, /* it is slower than it can be, or was */
        CONDITION_CLOCK,      /* the wall clock differs from masterd's, or nobody sets it */
        CONDITION_DISK,       /* a file system that jobs need is (nearly) full, or read-only */
        CONDITION_GPU,
        CONDITION_KERNEL, /* what the kernel complained of */
        _CONDITION_KIND_MAX,
        _CONDITION_KIND_INVALID = -22,
};
/* "link", "link-speed", "clock", "disk", "gpu", "kernel". */
const char *condition_kind_to_string(enum condition_kind k);
enum condition_kind condition_kind_from_string(const char *s);

/* What the agent thinks that it is worth; what is made of it at most is masterd.conf's to say. */
enum condition_severity {
        CONDITION_FINE,
        CONDITION_NOTE,
        CONDITION_WARN,
        CONDITION_DRAIN, /* the host should get nothing new until it is better */
        _CONDITION_SEVERITY_MAX,
        _CONDITION_SEVERITY_INVALID = -22,
};
/* "fine", "note", "warn", "drain". */
const char *condition_severity_to_string(enum condition_severity s);
enum condition_severity condition_severity_from_string(const char *s);

#define CONDITION_SUBJECT_MAX 64u
#define CONDITION_TEXT_MAX 256u
#define CONDITIONS_MAX 96u /* of one host */
#define CONDITION_SIGNATURE "(ssust)"

struct host_condition {
        enum condition_kind kind;
        char subject[CONDITION_SUBJECT_MAX + 1];
        enum condition_severity severity;
        char text[CONDITION_TEXT_MAX + 1];
        uint64_t since_real;
};

/* As lib/wire/messages.h has it. A kind that this program does not know is read as _CONDITION_KIND_INVALID.
 */
int host_condition_append(sd_bus_message *m, const struct host_condition *c);
int host_condition_read(sd_bus_message *m, struct host_condition *ret);
