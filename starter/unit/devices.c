/* SPDX-License-Identifier: Apache-2.0 */
/* Start order -> device rules. Invariant: every unit of a job is closed, on hosts without GPUs too: what
 * appears there later (a driver that is loaded, a GPU that is plugged in) is nobody's who was not given it.
 *
 * What "closed" leaves open, by systemd.resource-control(5) and its source: null, zero, full, random,
 * urandom, tty, ptmx and pts. /dev/shm is a file system. Beyond these, trainers use fuse (data that is
 * mounted from within a user namespace); /dev/fuse gives nothing to who may not mount.
 *
 * The rules are systemd's properties, never the cgroup's own: what is put there behind systemd's back is gone
 * with the next daemon-reload. */
#include "starter/unit/devices.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/try.h"
#include "starter/unit/property.h"

static const char *const common_nodes[] = { "/dev/fuse", NULL };

/* What every user of a GPU of that vendor opens. The driver of AMD asks the cgroup about the GPU's own
 * render node also where kfd is used; NVIDIA's takes GPUs by their node. nvidia-uvm is made with the first
 * use of CUDA, maybe after this unit began: its major number is allowed as well, by which there is nothing
 * but it and its tools. */
static const char *const nvidia_nodes[] = { "/dev/nvidiactl",      "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools",
                                            "/dev/nvidia-modeset", "char-nvidia-uvm", NULL };
static const char *const amd_nodes[] = { "/dev/kfd", NULL };
static const char *const rdma_nodes[] = { "char-infiniband_verbs", "/dev/infiniband/rdma_cm", NULL };

static int append_nodes(sd_bus_message *m, const char *const *nodes) {
        for (; *nodes; nodes++)
                TRY(property_pair(m, *nodes, "rw"));
        return 0;
}

/* The nodes of one GPU: its own, and of a part of one those of the parts. */
static int append_gpu(sd_bus_message *m, const struct gpu_info *g, bool *nvidia, bool *amd) {
        _cleanup_free_ char *nodes = strdup(g->nodes);
        char *save;

        if (!nodes)
                return -ENOMEM;
        for (char *n = strtok_r(nodes, " ", &save); n; n = strtok_r(NULL, " ", &save)) {
                TRY(property_pair(m, n, "rw"));
                *nvidia |= strncmp(n, "/dev/nvidia", 11) == 0;
                *amd |= strncmp(n, "/dev/dri", 8) == 0;
        }
        return 0;
}

static int append_gpus(sd_bus_message *m, char *const *gpus, const struct inventory *inventory) {
        bool nvidia = false, amd = false;

        for (; gpus && *gpus; gpus++) {
                const struct gpu_info *gpu = inventory_find_gpu(inventory, *gpus, NULL);

                if (gpu)
                        TRY(append_gpu(m, gpu, &nvidia, &amd));
        }
        if (nvidia)
                TRY(append_nodes(m, nvidia_nodes));
        return amd ? append_nodes(m, amd_nodes) : 0;
}

static int open_allow(sd_bus_message *m) {
        TRY(property_open(m, "DeviceAllow", "a(ss)"));
        return sd_bus_message_open_container(m, 'a', "(ss)");
}

static int close_allow(sd_bus_message *m) {
        TRY(sd_bus_message_close_container(m));
        return property_close(m);
}

static int append_allow(sd_bus_message *m, char *const *gpus, const struct inventory *inventory, bool rdma) {
        TRY(open_allow(m));
        TRY(append_nodes(m, common_nodes));
        TRY(append_gpus(m, gpus, inventory));
        if (rdma)
                TRY(append_nodes(m, rdma_nodes));
        return close_allow(m);
}

int devices_append_none(sd_bus_message *m) {
        return property_string(m, "DevicePolicy", "closed");
}

int devices_append(sd_bus_message *m, const struct start_order *o, const struct unit_context *c,
                   char **ret_why) {
        for (char **g = o->gpus; g && *g; g++)
                if (!inventory_find_gpu(c->inventory, *g, NULL))
                        return asprintf(ret_why, "host %s has no GPU %s", c->node, *g) < 0 ? -ENOMEM
                                                                                           : -EINVAL;
        TRY(devices_append_none(m));
        TRY(append_allow(m, o->gpus, c->inventory, o->extra.rdma > 0));
        /* The adapter reads and writes memory that is locked for it; what that may be the memory limit says,
         * to which locked memory is charged like any other. */
        return o->extra.rdma ? property_u64(m, "LimitMEMLOCK", UINT64_MAX) : 0;
}

int devices_build(sd_bus_message *m, const char *unit, char *const *gpus, const struct inventory *inventory,
                  bool rdma) {
        TRY(sd_bus_message_append(m, "sb", unit, 1));
        TRY(sd_bus_message_open_container(m, 'a', "(sv)"));
        TRY(open_allow(m)); /* an empty list takes back what there was; both are one change to systemd */
        TRY(close_allow(m));
        TRY(append_allow(m, gpus, inventory, rdma));
        return sd_bus_message_close_container(m);
}
