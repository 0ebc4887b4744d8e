/* SPDX-License-Identifier: Apache-2.0 */
/* The private environment of an executor. Invariant: it replaces no variable of the public one, nor of
 * systemd's. */
#include "starter/unit/environment.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/strv.h"
#include "lib/base/try.h"
#include "lib/base/unitname.h"
#include "lib/unit/files.h"
#include "lib/unit/identity.h"
#include "lib/wire/input.h"

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
                TRY(strings_push(s, n, "CUDA_DEVICE_ORDER=PCI_BUS_ID"));
                TRY(strings_push(s, n, "CUDA_VISIBLE_DEVICES=%s", gpus));
        }
        if (has_gpus(c->inventory, true)) {
                TRY(visible_gpus(o, c, true, gpus, sizeof(gpus)));
                TRY(strings_push(s, n, "ROCR_VISIBLE_DEVICES=%s", gpus));
        }
        return 0;
}

static bool has_secret(const struct start_order *o, const char *name) {
        for (size_t i = 0; i < o->n_secrets; i++)
                if (strcmp(o->secrets[i].name, name) == 0)
                        return true;
        return false;
}

/* Has a sitecustomize, by which every Python says where it is when it is asked. */
#define PYTHON_DIRECTORY PRIMUS_LIBEXECDIR "/python"

/* At most so many are pushed below. */
#define OWN_VARIABLES_MAX 21u

int unit_environment(const struct start_order *o, const struct unit_context *c, char ***ret) {
        _cleanup_(strings_free_p) char **s =
                calloc(strings_count(o->env) + OWN_VARIABLES_MAX + 1, sizeof(char *));
        char unit[UNIT_NAME_MAX];
        const bool asked = o->extra.stack_signal > 0 && o->kind != ORDER_SCAN &&
                           !environment_find(o->env, "PRIMUS_STACK_SIGNAL");
        size_t n = 0;

        if (!s)
                return -ENOMEM;
        executor_unit_name(o->id.job, o->id.role, o->id.index, o->id.attempt, unit);
        if (!environment_find(o->env, "TMPDIR"))
                TRY(strings_push(s, &n, "TMPDIR=%s/tmp", c->work));
        /* What Python has not written yet is lost with a program that is killed. */
        if (o->kind != ORDER_SCAN && !environment_find(o->env, "PYTHONUNBUFFERED"))
                TRY(strings_push(s, &n, "PYTHONUNBUFFERED=1"));
        for (char **e = o->env; e && *e; e++)
                if (!identity_owns(*e, o->identity) && !(asked && strncmp(*e, "PYTHONPATH=", 11) == 0))
                        TRY(strings_push(s, &n, "%s", *e));
        /* A user's own word is how one program opts out. */
        if (asked) {
                const char *path = environment_find(o->env, "PYTHONPATH");

                TRY(strings_push(s, &n, "PYTHONPATH=" PYTHON_DIRECTORY "%s%s", path && *path ? ":" : "",
                                 path ?: ""));
                TRY(strings_push(s, &n, "PRIMUS_STACK_SIGNAL=%u", o->extra.stack_signal));
                TRY(strings_push(s, &n, "PRIMUS_STACKS=%s/tmp", c->work));
        }
        if (o->n_secrets > 0)
                TRY(strings_push(s, &n, "PRIMUS_SECRETS_DIR=" PRIVATE_DIR "/%s/secrets", unit));
        if (o->extra.epoch > 0) {
                TRY(strings_push(s, &n, "PRIMUS_EPOCH=%llu", (unsigned long long)o->extra.epoch));
                TRY(strings_push(s, &n, "PRIMUS_RENDEZVOUS_FILE=" PRIVATE_DIR "/%s/rendezvous", unit));
        }
        if (o->kind != ORDER_SCAN)
                TRY(strings_push(s, &n, "PRIMUS_PROGRESS=" PRIVATE_DIR "/%s/progress", unit));
        if (has_secret(o, INPUT_FILE))
                TRY(strings_push(s, &n, "PRIMUS_INPUT=" PRIVATE_DIR "/%s/secrets/" INPUT_FILE, unit));
        TRY(append_visible(o, c, s, &n));
        if (o->kind != ORDER_SCAN && c->artifacts)
                TRY(strings_push(s, &n, "PRIMUS_ARTIFACTS=%s/%s-%u", c->artifacts, o->id.role, o->id.index));
        if (o->kind != ORDER_SCAN)
                TRY(strings_push(s, &n, "PRIMUS_WORK=%s", c->work));
        TRY(strings_push(s, &n, "PRIMUS_DIRECTORY=%s", c->directory));
        *ret = TAKE_PTR(s);
        return 0;
}
