/* SPDX-License-Identifier: Apache-2.0 */
/* The public identity of an executor. Invariant: what identity_names has is the host's own word, and neither
 * the order nor the user replaces it. */
#include "lib/unit/identity.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/names.h"
#include "lib/base/parse.h"
#include "lib/base/strv.h"
#include "lib/base/try.h"
#include "lib/base/utf8.h"
#include "lib/unit/files.h"

static const char *const kind_names[_ORDER_KIND_MAX] = {
        [ORDER_TRAINER] = "trainer",
        [ORDER_FEED] = "feed",
        [ORDER_SCAN] = "scan",
};

/* The variables agentd writes itself; the order's own identity may add others, never replace these. */
static const char *const identity_names[] = {
        "PRIMUS_JOB",   "PRIMUS_JOB_UID", "PRIMUS_ROLE",       "PRIMUS_INDEX",        "PRIMUS_ATTEMPT",
        "PRIMUS_NODE",  "PRIMUS_TERM",    "PRIMUS_KIND",       "PRIMUS_ON_PARTITION", "PRIMUS_GRACE_USEC",
        "PRIMUS_OWNER", "PRIMUS_SOCKET",  "PRIMUS_ACK",        "PRIMUS_PIPE_SIZE",    "PRIMUS_CPUS",
        "PRIMUS_GPUS",  "PRIMUS_RDMA",    "PRIMUS_START_USEC", "PRIMUS_RUNTIME_USEC",
};

/* What systemd sets for the processes of a unit, and what primus-executor goes by. An environment file would
 * override it, for primus-exit too.
 */
static const char *const reserved_names[] = {
        "SERVICE_RESULT",  "EXIT_CODE",        "EXIT_STATUS",   "INVOCATION_ID", "JOURNAL_STREAM",
        "MAINPID",         "NOTIFY_SOCKET",    "WATCHDOG_USEC", "WATCHDOG_PID",  "LISTEN_FDS",
        "LISTEN_PID",      "LISTEN_FDNAMES",   "PRIMUS_INPUT",  "PRIMUS_EPOCH",  "PRIMUS_RENDEZVOUS_FILE",
        "PRIMUS_PROGRESS", "PRIMUS_DIRECTORY", "PRIMUS_WORK",
};

static bool is_name(const char *entry, const char *name) {
        size_t l = strlen(name);

        return strncmp(entry, name, l) == 0 && entry[l] == '=';
}

static bool is_any(const char *entry, const char *const *names, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (is_name(entry, names[i]))
                        return true;
        return false;
}

bool identity_owns(const char *entry, char *const *identity) {
        if (is_any(entry, identity_names, ELEMENTSOF(identity_names)) ||
            is_any(entry, reserved_names, ELEMENTSOF(reserved_names)))
                return true;
        for (char *const *i = identity; i && *i; i++) {
                const char *equals = strchr(*i, '=');
                if (equals && strncmp(entry, *i, (size_t)(equals - *i) + 1) == 0)
                        return true;
        }
        return false;
}

uint64_t start_max(const struct start_order *o) {
        return strcmp(o->extra.ready, "notify") == 0 ? o->extra.ready_timeout_usec : 0;
}

int unit_identity(const struct start_order *o, const char *node, uint64_t term, char ***ret) {
        _cleanup_(strings_free_p) char **s =
                calloc(ELEMENTSOF(identity_names) + strings_count(o->identity) + 1, sizeof(char *));
        char hex[SD_ID128_STRING_MAX];
        size_t n = 0;

        if (!s)
                return -ENOMEM;
        TRY(strings_push(s, &n, "PRIMUS_JOB=%u", o->id.job));
        TRY(strings_push(s, &n, "PRIMUS_JOB_UID=%s", sd_id128_to_string(o->id.job_uid, hex)));
        TRY(strings_push(s, &n, "PRIMUS_ROLE=%s", o->id.role));
        TRY(strings_push(s, &n, "PRIMUS_INDEX=%u", o->id.index));
        TRY(strings_push(s, &n, "PRIMUS_ATTEMPT=%u", o->id.attempt));
        TRY(strings_push(s, &n, "PRIMUS_NODE=%s", node));
        TRY(strings_push(s, &n, "PRIMUS_TERM=%llu", (unsigned long long)term));
        TRY(strings_push(s, &n, "PRIMUS_KIND=%s", kind_names[o->kind]));
        TRY(strings_push(s, &n, "PRIMUS_ON_PARTITION=%s", on_partition_to_string(o->on_partition)));
        TRY(strings_push(s, &n, "PRIMUS_GRACE_USEC=%llu", (unsigned long long)o->grace_usec));
        if (start_max(o) > 0)
                TRY(strings_push(s, &n, "PRIMUS_START_USEC=%llu", (unsigned long long)start_max(o)));
        if (o->runtime_max_usec > 0)
                TRY(strings_push(s, &n, "PRIMUS_RUNTIME_USEC=%llu", (unsigned long long)o->runtime_max_usec));
        TRY(strings_push(s, &n, "PRIMUS_OWNER=%u", o->uid));
        TRY(strings_push(s, &n, "PRIMUS_SOCKET=" FEED_SOCKET));
        if (o->extra.cpus)
                TRY(strings_push(s, &n, "PRIMUS_CPUS=%s", o->extra.cpus));
        if (o->extra.gpus && text_is_setting(o->extra.gpus))
                TRY(strings_push(s, &n, "PRIMUS_GPUS=%s", o->extra.gpus));
        if (o->extra.rdma)
                TRY(strings_push(s, &n, "PRIMUS_RDMA=1"));
        if (o->kind == ORDER_FEED) {
                TRY(strings_push(s, &n, "PRIMUS_ACK=%s", ack_mode_to_string(o->ack)));
                TRY(strings_push(s, &n, "PRIMUS_PIPE_SIZE=%u", o->pipe_size));
        }
        for (char *const *i = o->identity; i && *i; i++)
                if (strncmp(*i, "PRIMUS_", 7) == 0 && text_is_setting(*i) &&
                    !is_any(*i, identity_names, ELEMENTSOF(identity_names)))
                        TRY(strings_push(s, &n, "%s", *i));
        *ret = TAKE_PTR(s);
        return 0;
}

const char *environment_find(char *const *environment, const char *name) {
        for (char *const *e = environment; e && *e; e++)
                if (is_name(*e, name))
                        return *e + strlen(name) + 1;
        return NULL;
}

int unit_identity_parse(char *const *environment, struct unit_identity *ret) {
        const char *uid = environment_find(environment, "PRIMUS_JOB_UID"),
                   *role = environment_find(environment, "PRIMUS_ROLE"),
                   *kind = environment_find(environment, "PRIMUS_KIND"),
                   *partition = environment_find(environment, "PRIMUS_ON_PARTITION");
        const char *ack = environment_find(environment, "PRIMUS_ACK"),
                   *pipe_size = environment_find(environment, "PRIMUS_PIPE_SIZE"),
                   *start_usec = environment_find(environment, "PRIMUS_START_USEC"),
                   *runtime_usec = environment_find(environment, "PRIMUS_RUNTIME_USEC");
        struct unit_identity i = { .kind = _ORDER_KIND_MAX, .on_partition = ON_PARTITION_REPLACE };

        if (!uid || sd_id128_from_string(uid, &i.id.job_uid) < 0 || !role || !role_name_valid(role) ||
            parse_u32(environment_find(environment, "PRIMUS_JOB"), 1, UINT32_MAX, &i.id.job) < 0 ||
            parse_u32(environment_find(environment, "PRIMUS_INDEX"), 0, UINT32_MAX, &i.id.index) < 0 ||
            parse_u32(environment_find(environment, "PRIMUS_ATTEMPT"), 1, UINT32_MAX, &i.id.attempt) < 0 ||
            parse_u32(environment_find(environment, "PRIMUS_OWNER"), 0, UINT32_MAX, &i.uid) < 0 ||
            parse_u64(environment_find(environment, "PRIMUS_TERM"), 0, UINT64_MAX, &i.term) < 0 ||
            parse_u64(environment_find(environment, "PRIMUS_GRACE_USEC"), 0, UINT64_MAX, &i.grace_usec) < 0)
                return -EBADMSG;
        strcpy(i.id.role, role);
        for (int k = 0; k < _ORDER_KIND_MAX; k++)
                if (kind && strcmp(kind, kind_names[k]) == 0)
                        i.kind = k;
        if (i.kind == _ORDER_KIND_MAX)
                return -EBADMSG;
        if (partition) {
                i.on_partition = on_partition_from_string(partition);
                if (i.on_partition < 0)
                        return -EBADMSG;
        }
        if (ack && (i.ack = ack_mode_from_string(ack)) < 0)
                return -EBADMSG;
        if ((start_usec && parse_u64(start_usec, 0, UINT64_MAX, &i.start_max_usec) < 0) ||
            (runtime_usec && parse_u64(runtime_usec, 0, UINT64_MAX, &i.runtime_max_usec) < 0))
                return -EBADMSG;
        if (pipe_size && parse_u32(pipe_size, 0, UINT32_MAX, &i.pipe_size) < 0)
                return -EBADMSG;
        *ret = i;
        return 0;
}

int identity_text_format(char *const *environment, char **ret) {
        _cleanup_free_ char *text = NULL;
        size_t size = 1;
        char *p;

        for (char *const *e = environment; e && *e; e++) {
                if (strchr(*e, '\n'))
                        return -EINVAL;
                size += strlen(*e) + 1;
        }
        if (size > IDENTITY_TEXT_MAX)
                return -E2BIG;
        p = text = malloc(size);
        if (!text)
                return -ENOMEM;
        for (char *const *e = environment; e && *e; e++)
                p = stpcpy(stpcpy(p, *e), "\n");
        *p = 0;
        *ret = TAKE_PTR(text);
        return 0;
}

int identity_text_parse(char *text, struct unit_identity *ret) {
        char *lines[256], *save = NULL;
        size_t n = 0;

        for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
                if (n == ELEMENTSOF(lines) - 1)
                        return -EBADMSG;
                lines[n++] = line;
        }
        lines[n] = NULL;
        return unit_identity_parse(lines, ret);
}
