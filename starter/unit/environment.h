/* SPDX-License-Identifier: Apache-2.0 */
/* The private environment of an executor: what the user gave, which goes into a file of its own, and what the
 * host adds. Pure. */
#pragma once

#include <stdint.h>

#include "lib/base/strv.h"
#include "lib/unit/shm.h"
#include "lib/wire/messages.h"
#include "starter/files/ports.h"
#include "starter/unit/open-files.h"

struct unit_context {
        const char *node; /* this host's name */
        uint64_t term;
        const struct inventory *inventory; /* for the device nodes of GPUs */
        const char *directory;   /* where the commands run: the order's cwd or the job's work directory */
        const char *work;        /* the job's work directory */
        const char *artifacts;   /* the job's directory of them, or NULL */
        const char *bundle;      /* path of the bundle to unpack, or NULL */
        const char *shared_cpus; /* of an order without CPUs of its own: a list, or NULL for all */
        /* What the host makes of the order's limits (starter/unit/host.h). */
        const struct io_limit *io; /* paths are devices, or "" */
        size_t n_io;
        uint64_t numa_nodes;           /* a bit for each that its CPUs are in; 0: all, or not known */
        uint64_t tasks_bound;          /* more than so many no executor gets; 0: not known */
        const struct ports_pins *pins; /* what keeps it from the ports of others, beside SocketBindDeny= */
        bool hide_managers;            /* starter/unit/hide.h */
        struct open_files open_files;  /* where the order does not say */
        const struct shm_names *shm;   /* what is /dev/shm to it, or NULL: the host's */
};

/* The variables of the private environment file: the order's, without names that agentd and systemd own, and
 * TMPDIR, PYTHONUNBUFFERED, PYTHONPATH (before the order's), PRIMUS_STACK_SIGNAL and PRIMUS_STACKS (where
 * programs write stacks), PRIMUS_SECRETS_DIR, PRIMUS_PROGRESS, PRIMUS_WORK, PRIMUS_DIRECTORY (where the
 * launcher goes, and does not pass on), PRIMUS_INPUT (where the order brings INPUT_FILE),
 * CUDA_VISIBLE_DEVICES, ROCR_VISIBLE_DEVICES. NULL-ended, free with strings_free().
 */
int unit_environment(const struct start_order *o, const struct unit_context *context, char ***ret);

/* NULL: the host has none of that uuid. ret_index may be NULL. */
const struct gpu_info *inventory_find_gpu(const struct inventory *inventory, const char *uuid,
                                          size_t *ret_index);
