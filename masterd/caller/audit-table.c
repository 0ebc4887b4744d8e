/* SPDX-License-Identifier: Apache-2.0 */
/* What each method is to the audit. Invariant: of a dictionary whose values may be secret, and of what is not
 * named, nothing is shown. */
#include "masterd/caller/audit-table.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/wire/skip.h"

const struct audit_rule audit_rules[] = {
        { "Manager", "Submit", AUDIT_CHANGES, "- options*" },
        { "Manager", "TrySubmit", AUDIT_READS, "- options*" },
        { "Manager", "ListJobs", AUDIT_READS, NULL },
        { "Manager", "GetJob", AUDIT_READS, NULL },
        { "Manager", "GetElement", AUDIT_READS, NULL },
        { "Manager", "Usage", AUDIT_READS, NULL },
        { "Manager", "ListTelemetry", AUDIT_READS, NULL },
        { "Manager", "ListQueue", AUDIT_READS, NULL },
        { "Manager", "GetJobDefaults", AUDIT_READS, NULL },
        { "Manager", "ListPools", AUDIT_READS, NULL },
        { "Manager", "Changes", AUDIT_READS, NULL },
        { "Manager", "ListNodes", AUDIT_READS, NULL },
        { "Manager", "PutBundle", AUDIT_PIECES, "sha256 size offset" },
        { "Manager", "CreateToken", AUDIT_CHANGES, "options" },
        { "Manager", "ListTokens", AUDIT_READS, NULL },
        { "Manager", "RevokeToken", AUDIT_CHANGES, "id" },
        { "Manager", "SetBanner", AUDIT_CHANGES, "text" },
        { "Manager", "ListProviders", AUDIT_READS, NULL },
        { "Manager", "ListInstances", AUDIT_READS, NULL },
        { "Manager", "PlanInstances", AUDIT_READS, NULL },
        { "Manager", "HoldProvider", AUDIT_CHANGES, "provider held" },
        { "Manager", "HoldInstance", AUDIT_CHANGES, "instance held" },
        { "Manager", "StartInstance", AUDIT_CHANGES, "provider shape" },
        { "Manager", "StopInstance", AUDIT_CHANGES, "instance" },
        /* A token to join with is made; what providers say is in their units' journal. */
        { "Manager", "TakeProviderRequest", AUDIT_CHANGES, "request" },
        { "Manager", "AnswerProviderRequest", AUDIT_CHANGES, "request status -" },
        { "Manager", "RemoveNode", AUDIT_CHANGES, "name" },
        /* It takes the key of the cluster along. */
        { "Manager", "Backup", AUDIT_CHANGES, "options*" },
        { "Manager", "ListSavepoints", AUDIT_READS, NULL },
        { "Manager", "GetSavepoint", AUDIT_READS, "name" },
        { "Manager", "DeleteSavepoint", AUDIT_CHANGES, "name" },
        { "Manager", "ListCheckpoints", AUDIT_READS, NULL },
        { "Manager", "CollectCheckpoints", AUDIT_CHANGES, "job options" },
        { "Manager", "PinCheckpoint", AUDIT_CHANGES, "checkpoint pinned" },
        { "Manager", "ForgetCheckpoint", AUDIT_CHANGES, "checkpoint" },
        { "Manager", "ListModels", AUDIT_READS, NULL },
        { "Manager", "RegisterModel", AUDIT_CHANGES, "name checkpoint options" },
        { "Manager", "EditModel", AUDIT_CHANGES, "name version options" },

        { "Job", "GetStatus", AUDIT_READS, NULL },
        { "Job", "GetConfig", AUDIT_READS, NULL },
        { "Job", "ListExecutors", AUDIT_READS, NULL },
        { "Job", "Telemetry", AUDIT_READS, NULL },
        { "Job", "ListEvents", AUDIT_READS, NULL },
        { "Job", "ReadLog", AUDIT_READS, NULL },
        { "Job", "Kill", AUDIT_CHANGES, "reason" },
        { "Job", "KillWith", AUDIT_CHANGES, "options" },
        { "Job", "Succeed", AUDIT_CHANGES, "reason" },
        { "Job", "Delete", AUDIT_CHANGES, NULL },
        { "Job", "Why", AUDIT_READS, NULL },
        { "Job", "Requeue", AUDIT_CHANGES, "reason" },
        { "Job", "Suspend", AUDIT_CHANGES, NULL },
        { "Job", "Resume", AUDIT_CHANGES, NULL },
        { "Job", "SuspendAs", AUDIT_CHANGES, "mode" },
        { "Job", "ListTasks", AUDIT_READS, NULL },
        { "Job", "ListTrials", AUDIT_READS, NULL },
        { "Job", "ReplaySearch", AUDIT_READS, NULL },
        { "Job", "ListMetrics", AUDIT_READS, NULL },
        { "Job", "ReadMetrics", AUDIT_READS, NULL },
        { "Job", "RetryTask", AUDIT_CHANGES, "task" },
        { "Job", "SkipTask", AUDIT_CHANGES, "task" },
        { "Job", "SteerSource", AUDIT_CHANGES, "source changes" },
        { "Job", "CreateSavepoint", AUDIT_CHANGES, "name options" },
        /* Root of a host reads the stacks of the job's processes and makes them say what they do. */
        { "Job", "Capture", AUDIT_CHANGES, "role index options" },
        /* Asked for again every other second by whoever looks. */
        { "Job", "Trace", AUDIT_READS, "role index kind" },
        { "Job", "OpenArtifacts", AUDIT_READS, "node arguments options*" },
        { "Job", "OpenSession", AUDIT_CHANGES, "role index arguments options*" },
        { "Job", "ReadSession", AUDIT_READS, "session" },
        { "Job", "WriteSession", AUDIT_PART, "session" },
        { "Job", "ResizeSession", AUDIT_PART, "session" },
        { "Job", "CloseSession", AUDIT_PART, "session" },
        { "Job", "Rerun", AUDIT_CHANGES, "options*" },
        { "Job", "Replace", AUDIT_CHANGES, "node" },
        { "Job", "AllowNode", AUDIT_CHANGES, "node" },
        { "Job", "Update", AUDIT_CHANGES, "version changes*" },
        { "Job", "Scale", AUDIT_CHANGES, "version roles" },
        { "Job", "AddRole", AUDIT_CHANGES, "version -" },
        { "Job", "AddSource", AUDIT_CHANGES, "version -" },
        { "Job", "ReplaceSources", AUDIT_CHANGES, "version -" },
        { "Job", "RemoveRole", AUDIT_CHANGES, "version name" },
        { "Job", "RestartRole", AUDIT_CHANGES, "role index batch" },

        { "Node", "DeclareDead", AUDIT_CHANGES, NULL },
        { "Node", "Cordon", AUDIT_CHANGES, "reason" },
        { "Node", "Uncordon", AUDIT_CHANGES, NULL },
        { "Node", "DisableGPU", AUDIT_CHANGES, "gpu reason" },
        { "Node", "EnableGPU", AUDIT_CHANGES, "gpu" },
        { "Node", "Drain", AUDIT_CHANGES, "options" },
        { "Node", "SetLabels", AUDIT_CHANGES, "changes" },
        { "Node", "SetMaintenance", AUDIT_CHANGES, "from to reason" },
        { "Node", "CancelMaintenance", AUDIT_CHANGES, "from" },
        { "Node", "Describe", AUDIT_READS, NULL },
        { "Node", "ListEvents", AUDIT_READS, NULL },
        {},
};

const struct audit_rule *audit_rule_find(const char *interface, const char *member) {
        static const char prefix[] = "org.primus.Master1.";

        if (!interface || !member || strncmp(interface, prefix, strlen(prefix)) != 0)
                return NULL;
        for (const struct audit_rule *r = audit_rules; r->member; r++)
                if (strcmp(r->member, member) == 0 && strcmp(r->interface, interface + strlen(prefix)) == 0)
                        return r;
        return NULL;
}

/* ---- arguments ---- */

struct text {
        char *buf;
        size_t size, n;
};

static _printf_(2, 3) void add(struct text *t, const char *format, ...) {
        va_list ap;
        int n;

        if (t->n + 1 >= t->size)
                return;
        va_start(ap, format);
        n = vsnprintf(t->buf + t->n, t->size - t->n, format, ap);
        va_end(ap);
        if (n > 0)
                t->n += MIN((size_t)n, t->size - t->n - 1);
}

/* One value that is not a container. */
static int add_basic(struct text *t, sd_bus_message *m, char type) {
        union {
                uint8_t y;
                uint16_t q;
                int16_t n;
                uint32_t u;
                int32_t i;
                uint64_t t;
                int64_t x;
                double d;
                int b;
                const char *s;
        } v;
        int r;

        if (type == 'h')
                return message_skip(m, "h");
        r = sd_bus_message_read_basic(m, type, &v);
        if (r <= 0)
                return r;
        switch (type) {
        case 's':
        case 'o':
        case 'g':
                add(t, "%s", v.s);
                break;
        case 'b':
                add(t, "%s", v.b ? "yes" : "no");
                break;
        case 'd':
                add(t, "%g", v.d);
                break;
        case 'y':
                add(t, "%u", v.y);
                break;
        case 'q':
                add(t, "%u", v.q);
                break;
        case 'n':
                add(t, "%d", v.n);
                break;
        case 'u':
                add(t, "%" PRIu32, v.u);
                break;
        case 'i':
                add(t, "%" PRIi32, v.i);
                break;
        case 't':
                add(t, "%" PRIu64, v.t);
                break;
        default:
                add(t, "%" PRIi64, v.x);
        }
        return r;
}

static bool is_basic(char type) {
        return type && strchr("sogbdyqnuitxh", type);
}

/* "ay" as what a program's argument is. */
static int add_bytes(struct text *t, sd_bus_message *m) {
        const void *bytes;
        size_t size;
        int r = sd_bus_message_read_array(m, 'y', &bytes, &size);

        if (r > 0 && size > 0)
                add(t, "%.*s", (int)MIN(size, (size_t)512), (const char *)bytes);
        return r;
}

/* {sv} or {sx} */
static int add_entry(struct text *t, sd_bus_message *m, const char *contents, bool keys) {
        const char *key, *inside;
        char type;
        int r = sd_bus_message_enter_container(m, 'e', contents);

        if (r <= 0)
                return r;
        r = sd_bus_message_read_basic(m, 's', &key);
        if (r < 0)
                return r;
        add(t, "%s", key);
        if (keys)
                r = message_skip(m, contents + 1);
        else if (contents[1] != 'v') {
                add(t, ":");
                r = add_basic(t, m, contents[1]);
        } else {
                r = sd_bus_message_peek_type(m, &type, &inside);
                if (r > 0 && is_basic(*inside) && !inside[1] &&
                    (r = sd_bus_message_enter_container(m, 'v', inside)) > 0) {
                        add(t, ":");
                        r = add_basic(t, m, *inside);
                        if (r >= 0)
                                r = sd_bus_message_exit_container(m);
                } else if (r > 0)
                        r = message_skip(m, "v");
        }
        return r < 0 ? r : sd_bus_message_exit_container(m);
}

static int add_array(struct text *t, sd_bus_message *m, const char *contents, bool keys) {
        char inside[8];
        size_t n = strlen(contents);
        int r;

        if (n >= sizeof(inside) || !(is_basic(*contents) || strcmp(contents, "ay") == 0 ||
                                     strcmp(contents, "{sv}") == 0 || strcmp(contents, "{sx}") == 0))
                return message_skip_any(m);
        r = sd_bus_message_enter_container(m, 'a', contents);
        if (r < 0)
                return r;
        for (bool first = true; r >= 0 && sd_bus_message_at_end(m, false) == 0; first = false) {
                if (t->n + 1 >= t->size)
                        return 0; /* there is no room for more, however many there are */
                add(t, "%s", first ? "" : ",");
                if (*contents == '{') {
                        snprintf(inside, sizeof(inside), "%.*s", (int)(n - 2), contents + 1);
                        r = add_entry(t, m, inside, keys);
                } else
                        r = *contents == 'a' ? add_bytes(t, m) : add_basic(t, m, *contents);
        }
        return r < 0 ? r : sd_bus_message_exit_container(m);
}

static int add_argument(struct text *t, sd_bus_message *m, const char *name, size_t size) {
        bool keys = name[size - 1] == '*';
        size_t before, begun;
        const char *contents;
        char type;
        int r = sd_bus_message_peek_type(m, &type, &contents);

        if (r <= 0)
                return r;
        if (*name == '-')
                return message_skip_any(m) < 0 ? -EBADMSG : 1;
        before = t->n;
        add(t, "%s%.*s=", t->n > 0 ? " " : "", (int)(size - keys), name);
        begun = t->n;
        if (is_basic(type))
                return add_basic(t, m, type);
        r = type == 'a' ? add_array(t, m, contents, keys) : message_skip_any(m);
        if (t->n == begun) /* it is empty */
                t->buf[t->n = before] = 0;
        return r < 0 ? r : 1;
}

char *audit_arguments(const struct audit_rule *rule, sd_bus_message *call, char *buf, size_t size) {
        struct text t = { buf, size, 0 };
        int r = 1;

        *buf = 0;
        for (const char *name = rule->shown; name && *name && r > 0;) {
                size_t n = strcspn(name, " ");

                r = t.n + 1 < t.size ? add_argument(&t, call, name, n) : 0;
                name += n + strspn(name + n, " ");
        }
        (void)sd_bus_message_rewind(call, true);
        return buf;
}
