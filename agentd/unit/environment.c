/* SPDX-License-Identifier: Apache-2.0 */
/* The two environments of an executor. Invariant: what the public one names (identity_names) is agentd's own
 * word, and neither the order nor the user replaces it. */
#include "agentd/unit/environment.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "agentd/unit/private.h"
#include "lib/base/parse.h"
#include "lib/base/unitname.h"
#include "lib/wire/input.h"

/* ---- identity
 * ------------------------------------------------------------------------------------------------------- */

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
        "PRIMUS_PROGRESS", "PRIMUS_DIRECTORY",
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

static bool is_owned(const char *entry, char *const *identity) {
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

/* Appends to a NULL-ended array that has room. */
static int push(char **strings, size_t *n, const char *format, ...) _printf_(3, 4);
static int push(char **strings, size_t *n, const char *format, ...) {
        va_list ap;
        int r;

        va_start(ap, format);
        r = vasprintf(&strings[*n], format, ap);
        va_end(ap);
        if (r < 0) {
                strings[*n] = NULL;
                return -ENOMEM;
        }
        (*n)++;
        return 0;
}

static size_t count(char *const *strings) {
        size_t n = 0;

        while (strings && strings[n])
                n++;
        return n;
}

uint64_t start_max(const struct start_order *o) {
        return strcmp(o->extra.ready, "notify") == 0 ? o->extra.ready_timeout_usec : 0;
}

int unit_identity(const struct start_order *o, const struct unit_context *c, char ***ret) {
        _cleanup_(strings_free_p) char **s =
                calloc(ELEMENTSOF(identity_names) + count(o->identity) + 1, sizeof(char *));
        char hex[SD_ID128_STRING_MAX];
        size_t n = 0;

        if (!s)
                return -ENOMEM;
        TRY(push(s, &n, "PRIMUS_JOB=%u", o->id.job));
        TRY(push(s, &n, "PRIMUS_JOB_UID=%s", sd_id128_to_string(o->id.job_uid, hex)));
        TRY(push(s, &n, "PRIMUS_ROLE=%s", o->id.role));
        TRY(push(s, &n, "PRIMUS_INDEX=%u", o->id.index));
        TRY(push(s, &n, "PRIMUS_ATTEMPT=%u", o->id.attempt));
        TRY(push(s, &n, "PRIMUS_NODE=%s", c->node));
        TRY(push(s, &n, "PRIMUS_TERM=%llu", (unsigned long long)c->term));
        TRY(push(s, &n, "PRIMUS_KIND=%s", kind_names[o->kind]));
        TRY(push(s, &n, "PRIMUS_ON_PARTITION=%s", on_partition_to_string(o->on_partition)));
        TRY(push(s, &n, "PRIMUS_GRACE_USEC=%llu", (unsigned long long)o->grace_usec));
        if (start_max(o) > 0)
                TRY(push(s, &n, "PRIMUS_START_USEC=%llu", (unsigned long long)start_max(o)));
        if (o->runtime_max_usec > 0)
                TRY(push(s, &n, "PRIMUS_RUNTIME_USEC=%llu", (unsigned long long)o->runtime_max_usec));
        TRY(push(s, &n, "PRIMUS_OWNER=%u", o->uid));
        TRY(push(s, &n, "PRIMUS_SOCKET=" FEED_SOCKET));
        if (o->extra.cpus)
                TRY(push(s, &n, "PRIMUS_CPUS=%s", o->extra.cpus));
        if (o->extra.gpus && text_is_setting(o->extra.gpus))
                TRY(push(s, &n, "PRIMUS_GPUS=%s", o->extra.gpus));
        if (o->extra.rdma)
                TRY(push(s, &n, "PRIMUS_RDMA=1"));
        if (o->kind == ORDER_FEED) {
                TRY(push(s, &n, "PRIMUS_ACK=%s", ack_mode_to_string(o->ack)));
                TRY(push(s, &n, "PRIMUS_PIPE_SIZE=%u", o->pipe_size));
        }
        for (char *const *i = o->identity; i && *i; i++)
                if (strncmp(*i, "PRIMUS_", 7) == 0 && text_is_setting(*i) &&
                    !is_any(*i, identity_names, ELEMENTSOF(identity_names)))
                        TRY(push(s, &n, "%s", *i));
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

/* ---- the private environment
 * ---------------------------------------------------------------------------------------- */

const struct gpu_info *inventory_find_gpu(const struct inventory *inventory, const char *uuid,
                                          size_t *ret_index) {
        for (size_t i = 0; inventory && i < inventory->n_gpus; i++)
                if (strcmp(inventory->gpus[i].uuid, uuid) == 0) {
                        if (ret_index)
                                *ret_index = i;
                        return &inventory->gpus[i];
                }
        return NULL;
}

static bool is_amd(const struct gpu_info *g) {
        return strncmp(g->uuid, "kfd-", 4) == 0;
}

/* The position of a GPU among those of its vendor, which is how their drivers count where no uuid is known:
 * NVIDIA's in PCI order, AMD's in that of kfd; the inventory is in both. */
static size_t position(const struct inventory *inventory, const struct gpu_info *gpu) {
        size_t n = 0;

        for (const struct gpu_info *g = inventory->gpus; g < gpu; g++)
                n += is_amd(g) == is_amd(gpu);
        return n;
}

/* A GPU as CUDA or ROCm take it: by its own uuid wherever it has one. ROCm's is GPU- and the 16 digits that
 * kfd calls its unique id. */
static int format_gpu(const struct inventory *inventory, const struct gpu_info *g, char *buf, size_t size) {
        if (strncmp(g->uuid, "GPU-", 4) == 0 || strncmp(g->uuid, "MIG-", 4) == 0)
                return snprintf(buf, size, "%s", g->uuid);
        if (is_amd(g) && strncmp(g->uuid, "kfd-at-", 7) != 0)
                return snprintf(buf, size, "GPU-%s", g->uuid + 4);
        return snprintf(buf, size, "%zu", position(inventory, g));
}

static int visible_gpus(const struct start_order *o, const struct unit_context *c, bool amd, char *buf,
                        size_t size) {
        size_t l = 0;

        buf[0] = 0;
        for (char **g = o->visible_gpus; g && *g; g++) {
                const struct gpu_info *gpu = inventory_find_gpu(c->inventory, *g, NULL);
                char name[LINK_GPU_NAME_MAX + 8];
                int n;

                if (!gpu || is_amd(gpu) != amd)
                        continue;
                n = format_gpu(c->inventory, gpu, name, sizeof(name));
                if (n > 0 && n < (int)sizeof(name))
                        n = snprintf(buf + l, size - l, "%s%s", l ? "," : "", name);
                if (n < 0 || (size_t)n >= size - l)
                        return -E2BIG;
                l += (size_t)n;
        }
        return 0;
}

static bool has_gpus(const struct inventory *inventory, bool amd) {
        for (size_t i = 0; inventory && i < inventory->n_gpus; i++)
                if (is_amd(inventory->gpus + i) == amd)
                        return true;
        return false;
}

/* Also for an executor without GPUs on a host that has some: an empty list is told from none, and CUDA says
 * that there is no GPU instead of stumbling over devices that it may not open. */
static int append_visible(const struct start_order *o, const struct unit_context *c, char **s, size_t *n) {
        char gpus[LINK_GPUS_MAX * 64];

        if (has_gpus(c->inventory, false)) {
                TRY(visible_gpus(o, c, false, gpus, sizeof(gpus)));
                TRY(push(s, n, "CUDA_DEVICE_ORDER=PCI_BUS_ID"));
                TRY(push(s, n, "CUDA_VISIBLE_DEVICES=%s", gpus));
        }
        if (has_gpus(c->inventory, true)) {
                TRY(visible_gpus(o, c, true, gpus, sizeof(gpus)));
                TRY(push(s, n, "ROCR_VISIBLE_DEVICES=%s", gpus));
        }
        return 0;
}

static bool has_secret(const struct start_order *o, const char *name) {
        for (size_t i = 0; i < o->n_secrets; i++)
                if (strcmp(o->secrets[i].name, name) == 0)
                        return true;
        return false;
}

/* At most so many are pushed below. */
#define OWN_VARIABLES_MAX 16u

int unit_environment(const struct start_order *o, const struct unit_context *c, char ***ret) {
        _cleanup_(strings_free_p) char **s = calloc(count(o->env) + OWN_VARIABLES_MAX + 1, sizeof(char *));
        char unit[UNIT_NAME_MAX];
        size_t n = 0;

        if (!s)
                return -ENOMEM;
        executor_unit_name(o->id.job, o->id.role, o->id.index, o->id.attempt, unit);
        if (!environment_find(o->env, "TMPDIR"))
                TRY(push(s, &n, "TMPDIR=%s/tmp", c->work));
        for (char **e = o->env; e && *e; e++)
                if (!is_owned(*e, o->identity))
                        TRY(push(s, &n, "%s", *e));
        /* A user's own word is how one program opts out. */
        if (o->extra.stack_signal > 0 && !environment_find(o->env, "PRIMUS_STACK_SIGNAL")) {
                TRY(push(s, &n, "PRIMUS_STACK_SIGNAL=%u", o->extra.stack_signal));
                TRY(push(s, &n, "PRIMUS_STACKS=%s/tmp", c->work));
        }
        if (o->n_secrets > 0)
                TRY(push(s, &n, "PRIMUS_SECRETS_DIR=" PRIVATE_DIR "/%s/secrets", unit));
        if (o->extra.epoch > 0) {
                TRY(push(s, &n, "PRIMUS_EPOCH=%llu", (unsigned long long)o->extra.epoch));
                TRY(push(s, &n, "PRIMUS_RENDEZVOUS_FILE=" PRIVATE_DIR "/%s/rendezvous", unit));
        }
        if (o->kind != ORDER_SCAN)
                TRY(push(s, &n, "PRIMUS_PROGRESS=" PRIVATE_DIR "/%s/progress", unit));
        if (has_secret(o, INPUT_FILE))
                TRY(push(s, &n, "PRIMUS_INPUT=" PRIVATE_DIR "/%s/secrets/" INPUT_FILE, unit));
        TRY(append_visible(o, c, s, &n));
        TRY(push(s, &n, "PRIMUS_DIRECTORY=%s", c->directory));
        *ret = TAKE_PTR(s);
        return 0;
}
