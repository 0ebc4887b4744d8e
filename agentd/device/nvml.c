/* SPDX-License-Identifier: Apache-2.0 */
/* NVML by dlopen(). The prototypes are ours, written after the documented interface (NVML API reference,
 * docs.nvidia.com/deploy/nvml-api): only what is called here, in the versions that drivers since 2021 have.
 * Invariant: a function that is missing, or that a GPU does not support, leaves GPU_UNKNOWN behind and fails
 * nothing else. */
#include "agentd/device/nvml.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/cgroup-unit.h"
#include "lib/base/file.h"
#include "lib/base/library.h"
#include "lib/base/utf8.h"

#define GPUS_MAX 64u /* of a host */
#define PARTS_MAX 8u /* of a GPU */

enum {
        OK = 0,
        NOT_SUPPORTED = 3,
        INSUFFICIENT_SIZE = 7,
        DRIVER_NOT_LOADED = 9,
        TIMEOUT = 10,
        GPU_IS_LOST = 15,
        RESET_REQUIRED = 16,
};

typedef struct handle *handle_t;
struct pci_info {
        char bus_id_legacy[16];
        unsigned domain, bus, device, device_id, subsystem_id;
        char bus_id[32];
};
struct memory_info {
        unsigned long long total, free, used; /* used: with what the driver keeps for itself */
};
struct memory_info_v2 {
        unsigned version;
        unsigned long long total, reserved, free, used;
};
struct utilization {
        unsigned gpu, memory;
};
struct process_info {
        unsigned pid;
        unsigned long long memory;
        unsigned instance, compute_instance;
};
struct event_data {
        handle_t device;
        unsigned long long type, data;
        unsigned instance, compute_instance;
};
struct field_value {
        unsigned field, scope;
        long long timestamp, latency;
        int type, result;
        union {
                double d;
                unsigned u;
                unsigned long long ull;
        } value;
};

#define MEMORY_VERSION_2 ((unsigned)sizeof(struct memory_info_v2) | 2u << 24)
#define EVENT_XID UINT64_C(8)
#define FIELD_RECOVERY_ACTION 230u
#define P2P_NVLINK 2
#define TOPOLOGY_SWITCHES 20 /* PCIe switches only, no host bridge, between two GPUs */
#define ECC_CORRECTED 0
#define ECC_UNCORRECTED 1
#define ECC_VOLATILE 0

/* name, arguments */
#define FUNCTIONS(X)                                                                                         \
        X(Init_v2, (void))                                                                                   \
        X(Shutdown, (void))                                                                                  \
        X(DeviceGetCount_v2, (unsigned *))                                                                   \
        X(DeviceGetHandleByIndex_v2, (unsigned, handle_t *))                                                 \
        X(DeviceGetUUID, (handle_t, char *, unsigned))                                                       \
        X(DeviceGetName, (handle_t, char *, unsigned))                                                       \
        X(DeviceGetPciInfo_v3, (handle_t, struct pci_info *))                                                \
        X(DeviceGetMinorNumber, (handle_t, unsigned *))                                                      \
        X(DeviceGetMemoryInfo, (handle_t, struct memory_info *))                                             \
        X(DeviceGetMemoryInfo_v2, (handle_t, struct memory_info_v2 *))                                       \
        X(DeviceGetUtilizationRates, (handle_t, struct utilization *))                                       \
        X(DeviceGetPowerUsage, (handle_t, unsigned *))                                                       \
        X(DeviceGetTotalEnergyConsumption, (handle_t, unsigned long long *))                                 \
        X(DeviceGetTemperature, (handle_t, int, unsigned *))                                                 \
        X(DeviceGetTotalEccErrors, (handle_t, int, int, unsigned long long *))                               \
        X(DeviceGetRemappedRows, (handle_t, unsigned *, unsigned *, unsigned *, unsigned *))                 \
        X(DeviceGetPcieReplayCounter, (handle_t, unsigned *))                                                \
        X(DeviceGetCurrentClocksThrottleReasons, (handle_t, unsigned long long *))                           \
        X(DeviceGetFieldValues, (handle_t, int, struct field_value *))                                       \
        X(DeviceGetComputeRunningProcesses_v3, (handle_t, unsigned *, struct process_info *))                \
        X(DeviceGetMigMode, (handle_t, unsigned *, unsigned *))                                              \
        X(DeviceGetMaxMigDeviceCount, (handle_t, unsigned *))                                                \
        X(DeviceGetMigDeviceHandleByIndex, (handle_t, unsigned, handle_t *))                                 \
        X(DeviceGetGpuInstanceId, (handle_t, unsigned *))                                                    \
        X(DeviceGetComputeInstanceId, (handle_t, unsigned *))                                                \
        X(DeviceGetP2PStatus, (handle_t, handle_t, int, int *))                                              \
        X(DeviceGetTopologyCommonAncestor, (handle_t, handle_t, int *))                                      \
        X(EventSetCreate, (void **))                                                                         \
        X(EventSetFree, (void *))                                                                            \
        X(DeviceRegisterEvents, (handle_t, unsigned long long, void *))                                      \
        X(EventSetWait_v2, (void *, struct event_data *, unsigned))

struct nvml {
        void *library;
        bool up;
#define X(name, arguments) int(*name) arguments;
        FUNCTIONS(X)
#undef X
        void *events;
        struct known {
                handle_t handle;
                char uuid[96];
                uint64_t links;
        } known[GPUS_MAX]; /* by index; uuid "" : never seen */
        unsigned n_known;
};

/* A call that counts as not supported where the library does not have it. */
#define CALL(n, name, ...) ((n)->name ? (n)->name(__VA_ARGS__) : NOT_SUPPORTED)

static const struct library_symbol symbols[] = {
#define X(name, arguments) { "nvml" #name, offsetof(struct nvml, name), true },
        FUNCTIONS(X)
#undef X
};

int nvml_open(const char *library, struct nvml **ret, char *why, size_t size) {
        _cleanup_(nvml_close_p) struct nvml *n = calloc(1, sizeof(*n));
        const struct library nvml = {
                .sonames = { library },
                .purpose = "NVML, which comes with NVIDIA's driver",
                .remedy = "install the driver",
                .symbols = symbols,
                .n_symbols = ELEMENTSOF(symbols),
        };
        char error[LIBRARY_ERROR_MAX];
        int r;

        if (!n)
                return -ENOMEM;
        r = library_load(&nvml, n, &n->library, error);
        if (r < 0) {
                snprintf(why, size, "%s", error);
                return r;
        }
        if (!n->Init_v2 || !n->DeviceGetCount_v2 || !n->DeviceGetHandleByIndex_v2 || !n->DeviceGetUUID) {
                snprintf(why, size, "%s lacks nvmlInit_v2 or what finds GPUs: it is too old", library);
                return -EIO;
        }
        r = n->Init_v2();
        if (r != OK) {
                snprintf(why, size,
                         r == DRIVER_NOT_LOADED ? "NVIDIA's driver is not loaded"
                                                : "nvmlInit_v2 of %s fails with error %d",
                         library, r);
                return r == DRIVER_NOT_LOADED ? -ENODEV : -EIO;
        }
        n->up = true;
        *ret = TAKE_PTR(n);
        return 0;
}

void nvml_close(struct nvml *n) {
        if (!n)
                return;
        if (n->events)
                (void)CALL(n, EventSetFree, n->events);
        if (n->up)
                (void)CALL(n, Shutdown);
        library_unload(n->library);
        free(n);
}

/* ---- what there is ---- */

/* "00000000:3B:00.0" -> "0000:3b:00.0", as the kernel writes it. */
static void format_pci(const struct pci_info *p, char *buf, size_t size) {
        snprintf(buf, size, "%04x:%02x:%02x.0", p->domain & 0xffffu, p->bus & 0xffu, p->device & 0x1fu);
}

/* "NVIDIA A100-SXM4-40GB MIG 1g.5gb": the word behind MIG, and what stands before it. */
static void split_name(char *name, char *profile, size_t size) {
        char *mig = strstr(name, " MIG ");

        profile[0] = 0;
        if (!mig)
                return;
        snprintf(profile, size, "%s", mig + strlen(" MIG "));
        *mig = 0;
}

static void clear(struct gpu_state *s) {
        *s = (struct gpu_state){ .instance = UINT32_MAX, .compute_instance = UINT32_MAX };
        for (size_t i = 0; i < _GPU_VALUE_MAX; i++)
                s->values[i] = GPU_UNKNOWN;
}

static void register_events(struct nvml *n, handle_t h) {
        if (!n->events && CALL(n, EventSetCreate, &n->events) != OK)
                n->events = NULL;
        if (n->events)
                (void)CALL(n, DeviceRegisterEvents, h, EVENT_XID, n->events);
}

static bool joined(const struct nvml *n, unsigned i, unsigned k, bool nvlink) {
        int status;

        if (nvlink)
                return CALL(n, DeviceGetP2PStatus, n->known[i].handle, n->known[k].handle, P2P_NVLINK,
                            &status) == OK &&
                       status == 0;
        return CALL(n, DeviceGetTopologyCommonAncestor, n->known[i].handle, n->known[k].handle, &status) ==
                       OK &&
               status <= TOPOLOGY_SWITCHES;
}

/* Asked when a GPU is new: n^2 questions. */
static void find_links(struct nvml *n) {
        uint64_t any = 0;

        for (int nvlink = 1; nvlink >= 0 && !any; nvlink--)
                for (unsigned i = 0; i < n->n_known; i++) {
                        n->known[i].links = 0;
                        for (unsigned k = 0; n->known[i].uuid[0] && k < n->n_known; k++)
                                if (k != i && n->known[k].uuid[0] && joined(n, i, k, nvlink))
                                        n->known[i].links |= UINT64_C(1) << k;
                        any |= n->known[i].links;
                }
}

/* ---- one GPU ---- */

static void read_memory(const struct nvml *n, handle_t h, struct gpu_state *s) {
        struct memory_info_v2 memory = { .version = MEMORY_VERSION_2 };
        struct memory_info older;

        if (CALL(n, DeviceGetMemoryInfo_v2, h, &memory) == OK) {
                s->values[GPU_MEMORY_TOTAL] = memory.total;
                s->values[GPU_MEMORY_USED] = memory.used;
        } else if (CALL(n, DeviceGetMemoryInfo, h, &older) == OK) {
                s->values[GPU_MEMORY_TOTAL] = older.total;
                s->values[GPU_MEMORY_USED] = older.used;
        }
}

static void read_ecc(const struct nvml *n, handle_t h, struct gpu_state *s) {
        unsigned long long count;
        unsigned corrected, uncorrected, pending, failed;

        if (CALL(n, DeviceGetTotalEccErrors, h, ECC_CORRECTED, ECC_VOLATILE, &count) == OK)
                s->values[GPU_ECC_CORRECTED] = count;
        if (CALL(n, DeviceGetTotalEccErrors, h, ECC_UNCORRECTED, ECC_VOLATILE, &count) == OK)
                s->values[GPU_ECC_UNCORRECTED] = count;
        if (CALL(n, DeviceGetRemappedRows, h, &corrected, &uncorrected, &pending, &failed) == OK) {
                s->values[GPU_REMAPPED_CORRECTABLE] = corrected;
                s->values[GPU_REMAPPED_UNCORRECTABLE] = uncorrected;
                s->values[GPU_REMAP_PENDING] = pending > 0;
                s->values[GPU_REMAP_FAILURE] = failed > 0;
        }
}

static void read_condition(const struct nvml *n, handle_t h, struct gpu_state *s) {
        struct field_value field = { .field = FIELD_RECOVERY_ACTION };
        unsigned long long reasons;
        unsigned number;

        if (CALL(n, DeviceGetPcieReplayCounter, h, &number) == OK)
                s->values[GPU_PCIE_REPLAYS] = number;
        if (CALL(n, DeviceGetCurrentClocksThrottleReasons, h, &reasons) == OK)
                s->values[GPU_THROTTLE] = reasons;
        if (CALL(n, DeviceGetFieldValues, h, 1, &field) == OK && field.result == OK)
                s->values[GPU_RECOVERY] = field.value.u;
}

static void read_rates(const struct nvml *n, handle_t h, struct gpu_state *s) {
        struct utilization utilization;
        unsigned long long energy;
        unsigned number;

        if (CALL(n, DeviceGetUtilizationRates, h, &utilization) == OK)
                s->values[GPU_UTILIZATION] = MIN(utilization.gpu, 100u) * 10;
        if (CALL(n, DeviceGetPowerUsage, h, &number) == OK)
                s->values[GPU_POWER_MILLIWATTS] = number;
        if (CALL(n, DeviceGetTotalEnergyConsumption, h, &energy) == OK)
                s->values[GPU_ENERGY_MILLIJOULES] = energy;
        if (CALL(n, DeviceGetTemperature, h, 0, &number) == OK)
                s->values[GPU_TEMPERATURE] = number;
}

/* Who it is that has memory there: of which unit, or else whose and where. */
static void find_process(struct gpu_process *p) {
        _cleanup_free_ char *name = NULL;
        char path[40];
        struct stat st;

        p->uid = UINT32_MAX;
        if (cgroup_unit_of((pid_t)p->pid, p->unit, sizeof(p->unit)) != -ENOENT)
                return;
        snprintf(path, sizeof(path), "/proc/%u", p->pid);
        if (cgroup_path_of((pid_t)p->pid, p->where, sizeof(p->where)) < 0 || stat(path, &st) < 0)
                return;
        p->uid = st.st_uid;
        snprintf(path, sizeof(path), "/proc/%u/comm", p->pid);
        if (read_file(path, 64, &name, NULL) >= 0)
                (void)utf8_clean(name, strcspn(name, "\n"), p->name, sizeof(p->name));
}

static void read_processes(const struct nvml *n, handle_t h, struct gpu_state *s) {
        struct process_info list[GPU_PROCESSES_MAX];
        unsigned count = ELEMENTSOF(list);
        int r = CALL(n, DeviceGetComputeRunningProcesses_v3, h, &count, list);

        if (r != OK)
                return;
        for (unsigned i = 0; i < MIN(count, (unsigned)ELEMENTSOF(list)); i++) {
                struct gpu_process *p = s->processes + s->n_processes++;
                *p = (struct gpu_process){ .pid = list[i].pid, .memory = list[i].memory };
                find_process(p);
        }
}

/* Lost, and not reported as anything else: it was there before. */
static int keep(struct gpu_state *states, size_t n, const struct gpu_state *before, size_t n_before,
                const char *uuid, bool reset) {
        for (size_t i = 0; i < n_before && n < GPU_STATES_MAX; i++)
                if (strcmp(before[i].uuid, uuid) == 0 || strcmp(before[i].parent, uuid) == 0) {
                        states[n] = before[i];
                        states[n].lost = true;
                        states[n].reset_required = reset;
                        states[n++].n_processes = 0;
                }
        return (int)n;
}

static bool read_part(const struct nvml *n, handle_t parent, unsigned k, const struct gpu_state *of,
                      struct gpu_state *s) {
        char name[96] = "";
        handle_t h;

        clear(s);
        if (CALL(n, DeviceGetMigDeviceHandleByIndex, parent, k, &h) != OK ||
            n->DeviceGetUUID(h, s->uuid, sizeof(s->uuid)) != OK ||
            CALL(n, DeviceGetGpuInstanceId, h, &s->instance) != OK ||
            CALL(n, DeviceGetComputeInstanceId, h, &s->compute_instance) != OK)
                return false;
        if (CALL(n, DeviceGetName, h, name, sizeof(name)) == OK)
                split_name(name, s->mig, sizeof(s->mig));
        if (!s->mig[0])
                snprintf(s->mig, sizeof(s->mig), "unknown");
        memcpy(s->model, of->model, sizeof(s->model));
        memcpy(s->pci, of->pci, sizeof(s->pci));
        memcpy(s->parent, of->uuid, sizeof(s->parent));
        s->index = of->index;
        s->minor = of->minor;
        read_memory(n, h, s);
        read_processes(n, h, s);
        return true;
}

static void read_whole(const struct nvml *n, handle_t h, struct gpu_state *s) {
        unsigned mode, pending;
        struct pci_info pci = {};

        if (CALL(n, DeviceGetName, h, s->model, sizeof(s->model)) != OK)
                snprintf(s->model, sizeof(s->model), "NVIDIA GPU");
        if (CALL(n, DeviceGetPciInfo_v3, h, &pci) == OK)
                format_pci(&pci, s->pci, sizeof(s->pci));
        if (CALL(n, DeviceGetMinorNumber, h, &s->minor) != OK)
                s->minor = s->index;
        s->cut = CALL(n, DeviceGetMigMode, h, &mode, &pending) == OK && mode == 1;
        read_memory(n, h, s);
        read_rates(n, h, s);
        read_ecc(n, h, s);
        read_condition(n, h, s);
        if (!s->cut)
                read_processes(n, h, s);
}

/* ---- all of it ---- */

static int compare_pci(const void *a, const void *b) {
        const struct gpu_state *x = a, *y = b;
        int r = strcmp(x->pci, y->pci);

        if (r == 0) /* a GPU, and then its parts, in the order of their instances */
                r = (x->mig[0] != 0) - (y->mig[0] != 0);
        if (r == 0)
                r = (x->instance > y->instance) - (x->instance < y->instance);
        return r ?: (x->compute_instance > y->compute_instance) - (x->compute_instance < y->compute_instance);
}

static size_t read_gpu(struct nvml *n, unsigned index, struct gpu_state *states, size_t count,
                       const struct gpu_state *before, size_t n_before, bool *new) {
        struct known *known = n->known + index;
        struct gpu_state *s = states + count;
        unsigned parts = 0;
        handle_t h = NULL;
        int r = n->DeviceGetHandleByIndex_v2(index, &h);

        clear(s);
        s->index = index;
        if (r == OK)
                r = n->DeviceGetUUID(h, s->uuid, sizeof(s->uuid));
        if (r == GPU_IS_LOST || r == RESET_REQUIRED)
                return known->uuid[0] ? (size_t)keep(states, count, before, n_before, known->uuid,
                                                     r == RESET_REQUIRED)
                                      : count;
        if (r != OK)
                return count;
        if (strcmp(known->uuid, s->uuid) != 0) {
                *known = (struct known){ .handle = h };
                memcpy(known->uuid, s->uuid, sizeof(known->uuid));
                register_events(n, h);
                *new = true;
        }
        known->handle = h;
        read_whole(n, h, s);
        count++;
        if (!s->cut || CALL(n, DeviceGetMaxMigDeviceCount, h, &parts) != OK)
                return count;
        for (unsigned k = 0; k < MIN(parts, PARTS_MAX) && count < GPU_STATES_MAX; k++)
                count += read_part(n, h, k, s, states + count);
        return count;
}

int nvml_read(struct nvml *n, struct gpu_state *states, size_t n_before) {
        _cleanup_free_ struct gpu_state *before = NULL;
        unsigned gpus = 0;
        bool new = false;
        size_t count = 0;

        if (n->DeviceGetCount_v2(&gpus) != OK)
                return -EIO;
        before = calloc(n_before + 1, sizeof(*before));
        if (!before)
                return -ENOMEM;
        memcpy(before, states, n_before * sizeof(*before));
        n->n_known = MIN(gpus, GPUS_MAX);
        for (unsigned i = 0; i < n->n_known && count < GPU_STATES_MAX; i++)
                count = read_gpu(n, i, states, count, before, n_before, &new);
        if (new)
                find_links(n);
        for (size_t i = 0; i < count; i++)
                if (!states[i].mig[0])
                        states[i].links = n->known[states[i].index].links;
        qsort(states, count, sizeof(*states), compare_pci);
        return (int)count;
}

int nvml_wait(struct nvml *n, unsigned msec, struct nvml_event *ret) {
        struct event_data event = { .instance = UINT32_MAX };
        int r;

        if (!n->events || !n->EventSetWait_v2)
                return -EOPNOTSUPP;
        r = n->EventSetWait_v2(n->events, &event, msec);
        if (r != OK || !(event.type & EVENT_XID))
                return r == OK || r == TIMEOUT ? 0 : -EIO;
        *ret = (struct nvml_event){ .xid = (uint32_t)event.data, .instance = event.instance };
        for (unsigned i = 0; i < n->n_known; i++)
                if (n->known[i].handle == event.device)
                        memcpy(ret->uuid, n->known[i].uuid, sizeof(ret->uuid));
        return 1;
}
