/* SPDX-License-Identifier: Apache-2.0 */
/* Lines for the journal about who did what. Invariant: no byte of a value is outside printable ASCII, and a
 * message has nothing that is not in a field too. */
#include "lib/base/audit.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>

#include "lib/base/log.h"

char *audit_clean(const char *s, char *buf, size_t size) {
        size_t n = 0;

        for (; *s; s++) {
                unsigned char c = (unsigned char)*s;
                bool plain = c >= 0x20 && c < 0x7f && c != '\\';

                if (n + (plain ? 1 : 4) + 4 > size) {
                        memcpy(buf + n, "...", 3);
                        n += 3;
                        break;
                }
                if (plain)
                        buf[n++] = (char)c;
                else
                        n += (size_t)snprintf(buf + n, 5, "\\x%02x", c);
        }
        buf[n] = 0;
        return buf;
}

struct fields {
        struct log_field list[LOG_FIELDS_MAX];
        char values[LOG_FIELDS_MAX][AUDIT_TEXT_MAX];
        size_t n;
};

/* Returns the value as it stands in the line; "": it is left out. */
static const char *text(struct fields *f, const char *name, const char *value) {
        if (!value || !*value)
                return "";
        f->list[f->n] = (struct log_field){ name, audit_clean(value, f->values[f->n], AUDIT_TEXT_MAX) };
        return f->list[f->n++].value;
}

static void put_number(struct fields *f, const char *name, uint64_t value) {
        char digits[24];

        snprintf(digits, sizeof(digits), "%" PRIu64, value);
        (void)text(f, name, digits);
}

static void who(const struct audit_line *l, const char *unit, const char *from, char *buf, size_t size) {
        char pid[32] = "";

        if (l->pid > 0)
                snprintf(pid, sizeof(pid), ", pid %u", l->pid);
        if (l->uid == AUDIT_NO_UID)
                snprintf(buf, size, "%s", l->address ? "a stranger" : "somebody unknown");
        else
                snprintf(buf, size, "uid %u%s%s%s%s%s", l->uid, pid, *unit ? " in " : "", unit,
                         *from ? " on " : "", from);
}

void audit_write(const struct audit_line *l) {
        _cleanup_free_ struct fields *f = calloc(1, sizeof(*f));
        const char *method, *object, *arguments, *unit, *permission, *result, *address, *from;
        _cleanup_free_ char *message = NULL;
        char caller[64 + 2 * AUDIT_TEXT_MAX];
        bool good = !l->result || strcmp(l->result, "ok") == 0;
        int r;

        if (!f) {
                log_oom();
                return;
        }
        (void)text(f, "PRIMUS_AUDIT", "1");
        (void)text(f, "PRIMUS_AUDIT_WHAT", l->what);
        method = text(f, "PRIMUS_AUDIT_METHOD", l->method);
        object = text(f, "PRIMUS_AUDIT_OBJECT", l->object);
        arguments = text(f, "PRIMUS_AUDIT_ARGUMENTS", l->arguments);
        unit = text(f, "PRIMUS_AUDIT_UNIT", l->unit);
        from = text(f, "PRIMUS_AUDIT_FROM", l->from);
        permission = text(f, "PRIMUS_AUDIT_PERMISSION", l->permission);
        (void)text(f, "PRIMUS_AUDIT_ACTION", l->action);
        result = text(f, "PRIMUS_AUDIT_RESULT", l->result);
        address = text(f, "PRIMUS_AUDIT_ADDRESS", l->address);
        (void)text(f, "PRIMUS_AUDIT_TOKEN", l->token);
        (void)text(f, "PRIMUS_NODE", l->node);
        (void)text(f, "PRIMUS_ROLE", l->role);
        if (l->uid != AUDIT_NO_UID)
                put_number(f, "PRIMUS_AUDIT_UID", l->uid);
        if (l->for_uid != AUDIT_NO_UID)
                put_number(f, "PRIMUS_AUDIT_FOR_UID", l->for_uid);
        if (l->pid > 0)
                put_number(f, "PRIMUS_AUDIT_PID", l->pid);
        if (l->at_real > 0)
                put_number(f, "PRIMUS_AUDIT_AT", l->at_real);
        if (l->suppressed > 0)
                put_number(f, "PRIMUS_AUDIT_SUPPRESSED", l->suppressed);
        if (l->job > 0)
                put_number(f, "PRIMUS_JOB", l->job);
        if (l->role)
                put_number(f, "PRIMUS_INDEX", l->index);

        who(l, unit, from, caller, sizeof(caller));
        if (l->suppressed > 0)
                r = asprintf(&message, "Audit: %" PRIu64 " more refusals of %s have no line of their own",
                             l->suppressed, caller);
        else
                r = asprintf(&message, "Audit: %s%s%s by %s%s%s%s%s%s: %s%s%s", method, *object ? " of " : "",
                             object, caller, *address ? " at " : "", address, *permission ? " (" : "",
                             permission, *permission ? ")" : "", *result ? result : "ok",
                             *arguments ? "; " : "", arguments);
        if (r < 0) {
                message = NULL;
                log_oom();
                return;
        }
        log_with_fields(good && l->suppressed == 0 ? LOG_INFO : LOG_NOTICE, message, f->list, f->n);
}
