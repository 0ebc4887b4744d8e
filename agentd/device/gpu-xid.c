/* SPDX-License-Identifier: Apache-2.0 */
/* Invariant: what a bucket means for the host is said once, in a table of buckets; the table of Xids only
 * says which bucket each is in. */
#include "agentd/device/gpu-xid.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"

/* By "Resolution Bucket (Immediate Action)" of NVIDIA's Xid catalogue for Ampere and newer GPUs, as of
 * October 2025: docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html. Where the catalogue names a
 * procedure instead of a bucket, it is put where that procedure begins: 45   cleanup behind another error,
 * which has an Xid of its own: IGNORE 48   double bit ECC: drain and reset,
 * docs.nvidia.com/health-validation/reference/checks/xid.md 154  says that the recovery action changed, which
 * nvmlDeviceGetFieldValues() is asked for: IGNORE Left out, and so unknown: numbers that the catalogue calls
 * unused, or says nothing to do for. */
static const struct xid xids[] = {
        { 8, XID_RESTART_APP, "GPU stopped processing" },
        { 11, XID_RESTART_APP, "invalid or corrupted push buffer stream" },
        { 13, XID_RESTART_APP, "graphics engine exception" },
        { 25, XID_RESTART_APP, "invalid or illegal push buffer stream" },
        { 31, XID_RESTART_APP, "GPU memory page fault" },
        { 32, XID_RESTART_APP, "invalid or corrupted push buffer stream" },
        { 37, XID_IGNORE, "driver firmware error" },
        { 38, XID_IGNORE, "driver firmware error" },
        { 39, XID_RESTART_APP, "copy engine exception" },
        { 40, XID_RESTART_APP, "copy engine exception" },
        { 41, XID_RESTART_APP, "copy engine exception" },
        { 43, XID_IGNORE, "GPU stopped processing for an application" },
        { 44, XID_IGNORE, "graphics engine fault during context switch" },
        { 45, XID_IGNORE, "preemptive cleanup, due to previous errors" },
        { 46, XID_RESET_GPU, "GPU stopped processing" },
        { 48, XID_RESET_GPU, "double bit ECC error" },
        { 54, XID_CHECK_MECHANICALS, "auxiliary power is not connected to the GPU board" },
        { 60, XID_RESTART_APP, "video processor exception" },
        { 62, XID_RESET_GPU, "internal micro-controller halt" },
        { 63, XID_IGNORE, "a row of GPU memory is to be remapped" },
        { 64, XID_RESET_GPU, "GPU memory remapping failure" },
        { 66, XID_IGNORE, "illegal access by the driver" },
        { 67, XID_IGNORE, "illegal access by the driver" },
        { 68, XID_RESTART_APP, "NVDEC0 exception" },
        { 69, XID_RESTART_APP, "graphics engine class error" },
        { 70, XID_RESTART_APP, "copy engine error" },
        { 71, XID_RESTART_APP, "copy engine error" },
        { 72, XID_RESTART_APP, "copy engine error" },
        { 74, XID_CHECK_NVLINK, "NVLink error" },
        { 75, XID_RESTART_APP, "copy engine error" },
        { 76, XID_RESTART_APP, "copy engine error" },
        { 77, XID_RESTART_APP, "copy engine error" },
        { 78, XID_UPDATE_SOFTWARE, "vGPU start error" },
        { 79, XID_RESTART_HOST, "GPU has fallen off the bus" },
        { 80, XID_RESTART_APP, "corrupted data sent to the GPU" },
        { 82, XID_RESTART_APP, "NVJPG0 error" },
        { 83, XID_RESTART_APP, "NVDEC1 error" },
        { 84, XID_RESTART_APP, "NVDEC2 error" },
        { 85, XID_RESTART_APP, "copy engine error" },
        { 86, XID_RESTART_APP, "OFA exception" },
        { 88, XID_RESTART_APP, "NVDEC3 error" },
        { 89, XID_RESTART_APP, "NVDEC4 error" },
        { 92, XID_IGNORE, "high single-bit ECC error rate" },
        { 93, XID_IGNORE, "InfoROM wear limit exceeded" },
        { 94, XID_RESTART_APP, "contained memory error" },
        { 95, XID_RESET_GPU, "uncontained memory error" },
        { 96, XID_RESTART_APP, "NVDEC5 error" },
        { 97, XID_RESTART_APP, "NVDEC6 error" },
        { 98, XID_RESTART_APP, "NVDEC7 error" },
        { 99, XID_RESTART_APP, "NVJPG1 error" },
        { 100, XID_RESTART_APP, "NVJPG2 error" },
        { 101, XID_RESTART_APP, "NVJPG3 error" },
        { 102, XID_RESTART_APP, "NVJPG4 error" },
        { 103, XID_RESTART_APP, "NVJPG5 error" },
        { 104, XID_RESTART_APP, "NVJPG6 error" },
        { 105, XID_RESTART_APP, "NVJPG7 error" },
        { 106, XID_IGNORE, "SMBPBI test message" },
        { 107, XID_IGNORE, "SMBPBI test message" },
        { 109, XID_RESET_GPU, "context switch timeout" },
        { 110, XID_RESET_GPU, "security fault" },
        { 119, XID_RESET_GPU, "GSP does not answer" },
        { 120, XID_RESET_GPU, "GSP error" },
        { 121, XID_IGNORE, "C2C link error" },
        { 126, XID_RESTART_APP, "copy engine error" },
        { 127, XID_RESTART_APP, "copy engine error" },
        { 128, XID_RESTART_APP, "copy engine error" },
        { 129, XID_RESTART_APP, "copy engine error" },
        { 130, XID_RESTART_APP, "copy engine error" },
        { 131, XID_RESTART_APP, "copy engine error" },
        { 132, XID_RESTART_APP, "copy engine error" },
        { 133, XID_RESTART_APP, "copy engine error" },
        { 134, XID_RESTART_APP, "copy engine error" },
        { 135, XID_RESTART_APP, "copy engine error" },
        { 136, XID_RESET_GPU, "link training failed" },
        { 137, XID_IGNORE, "NVLink privilege error" },
        { 139, XID_RESTART_APP, "OFA1 error" },
        { 140, XID_RESET_GPU, "unrecovered ECC error" },
        { 141, XID_IGNORE, "CUDA fast path error" },
        { 142, XID_CONTACT_SUPPORT, "NVENC3 error" },
        { 143, XID_RESET_GPU, "GPU initialization error" },
        { 144, XID_CHECK_NVLINK, "NVLink error (SAW)" },
        { 145, XID_CHECK_NVLINK, "NVLink error (RLW)" },
        { 146, XID_CHECK_NVLINK, "NVLink error (TLW)" },
        { 147, XID_CHECK_NVLINK, "NVLink error (TREX)" },
        { 148, XID_CHECK_NVLINK, "NVLink error (NVLPW_CTRL)" },
        { 149, XID_CHECK_NVLINK, "NVLink error (NETIR)" },
        { 150, XID_CHECK_NVLINK, "NVLink error (MSE)" },
        { 151, XID_RESTART_HOST, "key rotation error" },
        { 152, XID_IGNORE, "DLA SMMU error" },
        { 153, XID_IGNORE, "DLA timeout" },
        { 154, XID_IGNORE, "the driver's recovery action changed" },
        { 155, XID_RESET_GPU, "NVLink error found by software" },
        { 156, XID_RESET_GPU, "resource retirement" },
        { 157, XID_IGNORE, "resource retirement failure" },
        { 158, XID_RESET_GPU, "GPU fatal timeout" },
        { 159, XID_UPDATE_SOFTWARE, "CHI non-data error" },
        { 160, XID_IGNORE, "channel retirement" },
        { 161, XID_IGNORE, "channel retirement failure" },
};

static const struct {
        enum gpu_severity severity;
        const char *advice;
} actions[_XID_ACTION_MAX] = {
        [XID_IGNORE] = { GPU_FINE, "nothing is to be done" },
        [XID_RESTART_APP] = { GPU_NOTE, "the program is to be started again" },
        [XID_UPDATE_SOFTWARE] = { GPU_WARN, "check driver and firmware" },
        [XID_CHECK_NVLINK] = { GPU_WARN, "check the NVLink connections" },
        [XID_RESET_GPU] = { GPU_DRAIN, "reset the GPU, or restart the host" },
        [XID_RESTART_HOST] = { GPU_DRAIN, "restart the host" },
        [XID_CHECK_MECHANICALS] = { GPU_DRAIN, "check the GPU's power connectors and seat" },
        [XID_CONTACT_SUPPORT] = { GPU_DRAIN, "have the GPU checked by its vendor" },
        [XID_UNKNOWN] = { GPU_WARN, "see NVIDIA's catalogue of Xids" },
};

const struct xid *xid_find(uint32_t number) {
        static const struct xid unknown = { 0, XID_UNKNOWN, "not in the catalogue" };

        for (size_t i = 0; i < ELEMENTSOF(xids); i++)
                if (xids[i].number == number)
                        return xids + i;
        return &unknown;
}

enum gpu_severity xid_severity(const struct xid *x) {
        return actions[x->action].severity;
}

const char *xid_advice(const struct xid *x) {
        return actions[x->action].advice;
}

/* A decimal number at *p, which is moved behind it. */
static bool take_number(const char **p, uint32_t *ret) {
        char *end;
        unsigned long n;

        if (!isdigit((unsigned char)**p))
                return false;
        n = strtoul(*p, &end, 10);
        if (n > UINT32_MAX)
                return false;
        *p = end;
        *ret = (uint32_t)n;
        return true;
}

bool xid_parse_line(const char *line, struct xid_line *ret) {
        static const char head[] = "NVRM: Xid (PCI:";
        const char *p = strstr(line, head), *pid;
        struct xid_line x = {};
        unsigned domain, bus, device;
        size_t l;

        if (!p)
                return false;
        p += strlen(head);
        l = strcspn(p, ")");
        if (p[l] != ')' || sscanf(p, "%4x:%2x:%2x", &domain, &bus, &device) != 3)
                return false;
        snprintf(x.pci, sizeof(x.pci), "%04x:%02x:%02x.0", domain & 0xffffu, bus & 0xffu, device & 0x1fu);
        p += l + 1;
        p += strspn(p, ": ");
        if (!take_number(&p, &x.xid))
                return false;
        pid = strstr(p, "pid="); /* or pid='<unknown>' */
        if (pid && (pid += strlen("pid="), !take_number(&pid, &x.pid)))
                x.pid = 0;
        *ret = x;
        return true;
}
