/* SPDX-License-Identifier: Apache-2.0 */
/* NVIDIA's Xid errors: what each is, and what NVIDIA says is to be done. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How much something matters to the host; the same order as a host's conditions have. */
enum gpu_severity {
        GPU_FINE,
        GPU_NOTE,
        GPU_WARN,
        GPU_DRAIN, /* nothing new should be placed here */
};

/* Buckets of NVIDIA's Xid catalogue ("Resolution Bucket (Immediate Action)"). */
enum xid_action {
        XID_IGNORE,
        XID_RESTART_APP,
        XID_UPDATE_SOFTWARE, /* UPDATE_SWFW, CHECK_UVM */
        XID_CHECK_NVLINK,    /* WORKFLOW_NVLINK_ERR, WORKFLOW_NVLINK5_ERR */
        XID_RESET_GPU,
        XID_RESTART_HOST, /* RESTART_BM, RESTART_VM */
        XID_CHECK_MECHANICALS,
        XID_CONTACT_SUPPORT,
        XID_UNKNOWN, /* not in the catalogue, or there as unused */
        _XID_ACTION_MAX
};

struct xid {
        uint32_t number;
        enum xid_action action;
        const char *text; /* what it is */
};

/* Never NULL: one that is not in the table is an unknown one. */
const struct xid *xid_find(uint32_t number);
enum gpu_severity xid_severity(const struct xid *x);
/* What is to be done, for people: "reset the GPU". */
const char *xid_advice(const struct xid *x);

/* Reads a line of the kernel's log, such as
 * "NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, name=python3, GPU has fallen off the bus.". False: it is none.
 * pci is "0000:3b:00.0"; pid 0: not said. */
struct xid_line {
        char pci[16];
        uint32_t xid, pid;
};
bool xid_parse_line(const char *line, struct xid_line *ret);
