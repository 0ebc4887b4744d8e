/* SPDX-License-Identifier: Apache-2.0 */
/* Looks after the host's NVIDIA GPUs: what there is, what they do, whether they are well. All calls to the
 * vendor's library are made in a thread that the loop never waits for; one that does not come back is given
 * up, told of, and taken up again when it does. */
#pragma once

#include <systemd/sd-event.h>

#include "agentd/device/gpu-state.h"
#include "agentd/device/gpu-xid.h"
#include "lib/base/cleanup.h"
#include "lib/wire/telemetry-fields.h"

struct gpu_watch;

struct gpu_watch_ops {
        /* Which GPUs there are is known for the first time, or is another than before. */
        void (*inventory)(void *userdata);
        /* All of them were looked at. May be NULL. */
        void (*looked)(void *userdata);
        /* How a GPU is. subject: its uuid, "UUID Xid N" or "nvml". for_usec 0: as long as this is not said
         * otherwise; else it happened, and counts for that long (USEC_INFINITY: until the host restarts). */
        void (*condition)(const char *subject, enum gpu_severity severity, const char *text,
                          uint64_t for_usec, void *userdata);
        /* Something went wrong on a GPU: for whoever runs there. uuids, NULL-ended: it and its parts, or
         * those parts that it is about; none where the library does not know of it. */
        void (*fault)(char *const *uuids, const char *pci, const char *text, void *userdata);
};

struct gpu_watch_options {
        const char *library; /* "libnvidia-ml.so.1" */
        uint64_t look_usec;  /* how often */
        uint64_t hang_usec;  /* after this a call counts as not coming back */
};

int gpu_watch_new(sd_event *event, const struct gpu_watch_options *options, const struct gpu_watch_ops *ops,
                  void *userdata, struct gpu_watch **ret);
/* Does not wait for a call that hangs. */
void gpu_watch_free(struct gpu_watch *w);
DEFINE_CLEANUP(struct gpu_watch *, gpu_watch_free)

/* The first look is over, whatever came of it: ops.inventory was called. */
bool gpu_watch_settled(const struct gpu_watch *w);

/* What was seen last, whole GPUs and parts, in PCI order; 0: no library, no driver, or it hangs since the
 * start. Valid until the loop runs on. */
size_t gpu_watch_devices(const struct gpu_watch *w, const struct gpu_state **ret);

/* GPU fields of an executor: of the GPUs that it was given (uuids by spaces; NULL: none). unit: its name, by
 * which its processes are known on GPUs that it shares. */
void gpu_watch_fill(const struct gpu_watch *w, const char *uuids, const char *unit,
                    uint64_t values[static _TELEMETRY_MAX]);

/* Whether a GPU is in a list of uuids, by spaces. */
bool gpu_listed(const char *uuids, const char *uuid);
/* A process of a user (uid at least min_uid) that is in no unit of Primus and has memory of the GPU, or NULL.
 */
const struct gpu_process *gpu_stray(const struct gpu_state *s, uint32_t min_uid);

/* A line of the kernel's log: an Xid in it counts, unless the library has told of it already. */
void gpu_watch_kmsg(struct gpu_watch *w, const char *line);

/* What of the library there is, for people: "", or why there is none. */
const char *gpu_watch_problem(const struct gpu_watch *w);
