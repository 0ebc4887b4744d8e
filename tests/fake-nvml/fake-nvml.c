/* SPDX-License-Identifier: Apache-2.0 */
/* A libnvidia-ml.so.1 without NVIDIA. It shows what is in a file, which it reads anew with every call: GPUs
 * come, go, are cut, fail, and hang while the program that looks at them runs. The file is $FAKE_NVML, else
 * /run/fake-nvml. Its lines, in any order:
 *
 *     gpu 0 uuid=GPU-… name=NVIDIA_H100_80GB_HBM3 pci=0000:3b:00 minor=0 memory=85520809984
 *         used=0 reserved=0 utilization=50 power=250000 energy=1 temperature=45 corrected=0 uncorrected=0
 *         rows=0,0 pending=0 failed=0 replays=0 throttle=0 recovery=0 mig=1 lost=1 reset=1
 *     part 0 gi=1 ci=0 uuid=MIG-… profile=1g.10gb memory=10000000000      of GPU 0, which has mig=1
 *     process 0 pid=1234 memory=1000000
 *     link 0 1            joined by NVLink
 *     switch 0 1          joined by a PCIe switch
 *     xid 0 79            an event; again whenever the number of xid lines grows
 *     hang                every call waits until this line is gone
 *     absent              nvmlInit finds no driver
 *
 * An underscore in a name is a space. What is left out of a line is not supported. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GPUS_MAX 16
#define PARTS_MAX 7
#define PROCESSES_MAX 8
#define EVENTS_MAX 64

enum {
        OK = 0,
        INVALID_ARGUMENT = 2,
        NOT_SUPPORTED = 3,
        NOT_FOUND = 6,
        INSUFFICIENT_SIZE = 7,
        DRIVER_NOT_LOADED = 9,
        TIMEOUT = 10,
        GPU_IS_LOST = 15,
        RESET_REQUIRED = 16,
        VERSION_MISMATCH = 25,
};

/* What is not said is -1. */
struct values {
        long long minor, memory, used, reserved, utilization, power, energy, temperature, corrected,
                uncorrected, pending, failed, replays, throttle, recovery, mig, lost, reset, gi, ci, pid;
};

struct handle {
        bool there;
        char uuid[80], name[80], pci[24], profile[24], rows[24];
        struct values v;
        struct handle *parts;
        unsigned n_parts;
        struct values processes[PROCESSES_MAX];
        unsigned n_processes;
        uint64_t nvlinks, switches;
};

static struct handle gpus[GPUS_MAX], parts[GPUS_MAX][PARTS_MAX];
static struct { unsigned gpu, xid; } events[EVENTS_MAX];
static unsigned n_events, n_told;
static bool hang, absent, registered[GPUS_MAX];

static const struct {
        const char *name;
        size_t offset;
} keys[] = {
#define K(name)                                                                                              \
        { #name, offsetof(struct values, name) }
        K(minor),       K(memory),    K(used),        K(reserved), K(utilization), K(power),   K(energy),
        K(temperature), K(corrected), K(uncorrected), K(pending),  K(failed),      K(replays), K(throttle),
        K(recovery),    K(mig),       K(lost),        K(reset),    K(gi),          K(ci),      K(pid),
#undef K
};

static void take_word(struct handle *h, struct values *v, char *word) {
        char *value = strchr(word, '=');

        if (!value)
                return;
        *value++ = 0;
        if (strcmp(word, "uuid") == 0)
                snprintf(h->uuid, sizeof(h->uuid), "%s", value);
        else if (strcmp(word, "pci") == 0)
                snprintf(h->pci, sizeof(h->pci), "%s", value);
        else if (strcmp(word, "rows") == 0)
                snprintf(h->rows, sizeof(h->rows), "%s", value);
        else if (strcmp(word, "profile") == 0)
                snprintf(h->profile, sizeof(h->profile), "%s", value);
        else if (strcmp(word, "name") == 0) {
                snprintf(h->name, sizeof(h->name), "%s", value);
                for (char *p = h->name; *p; p++)
                        if (*p == '_')
                                *p = ' ';
        }
        for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
                if (strcmp(word, keys[i].name) == 0) {
                        long long n = atoll(value);
                        memcpy((char *)v + keys[i].offset, &n, sizeof(n));
                }
}

static void clear(struct handle *h) {
        memset(h, 0, sizeof(*h));
        memset(&h->v, 0xff, sizeof(h->v));
}

static void take_line(char *line) {
        char *save = NULL, *what = strtok_r(line, " \t\n", &save), *number, *word;
        struct handle *g, *h;
        struct values *v;

        if (!what || *what == '#')
                return;
        hang |= strcmp(what, "hang") == 0;
        absent |= strcmp(what, "absent") == 0;
        number = strtok_r(NULL, " \t\n", &save);
        if (!number || atoi(number) < 0 || atoi(number) >= GPUS_MAX)
                return;
        g = h = gpus + atoi(number);
        v = &g->v;
        if (strcmp(what, "gpu") == 0)
                g->there = true;
        else if (strcmp(what, "part") == 0 && g->n_parts < PARTS_MAX) {
                g->parts = parts[g - gpus];
                h = g->parts + g->n_parts++;
                clear(h);
                h->there = true;
                v = &h->v;
        } else if (strcmp(what, "process") == 0 && g->n_processes < PROCESSES_MAX) {
                v = g->processes + g->n_processes++;
                memset(v, 0xff, sizeof(*v));
        } else if (strcmp(what, "link") == 0 || strcmp(what, "switch") == 0 || strcmp(what, "xid") == 0) {
                unsigned k;
                word = strtok_r(NULL, " \t\n", &save);
                if (!word)
                        return;
                k = (unsigned)atoi(word);
                if (*what == 'x') {
                        if (n_events < EVENTS_MAX) {
                                events[n_events].gpu = (unsigned)(g - gpus);
                                events[n_events++].xid = k;
                        }
                } else if (k < GPUS_MAX) {
                        *(*what == 'l' ? &g->nvlinks : &g->switches) |= UINT64_C(1) << k;
                        *(*what == 'l' ? &gpus[k].nvlinks : &gpus[k].switches) |= UINT64_C(1)
                                                                                  << (unsigned)(g - gpus);
                }
                return;
        } else
                return;
        while ((word = strtok_r(NULL, " \t\n", &save)))
                take_word(h, v, word);
}

static void read_file(void) {
        const char *path = getenv("FAKE_NVML");
        char line[1024];
        FILE *f = fopen(path ? path : "/run/fake-nvml", "re");

        hang = absent = false;
        n_events = 0;
        for (unsigned i = 0; i < GPUS_MAX; i++)
                clear(gpus + i);
        if (!f) {
                absent = true;
                return;
        }
        while (fgets(line, sizeof(line), f))
                take_line(line);
        fclose(f);
}

/* At the beginning of every call. */
static void look(void) {
        for (;;) {
                read_file();
                if (!hang)
                        return;
                usleep(50000);
        }
}

/* The state of a GPU that can be asked. */
static int check(struct handle *h) {
        look();
        if (!h || !h->there)
                return INVALID_ARGUMENT;
        return h->v.lost > 0 ? GPU_IS_LOST : h->v.reset > 0 ? RESET_REQUIRED : OK;
}

#define PUBLIC __attribute__((visibility("default")))
#define ASK(field, type)                                                                                     \
        int r = check(h);                                                                                    \
        if (r == OK && h->v.field < 0)                                                                       \
                r = NOT_SUPPORTED;                                                                           \
        if (r == OK)                                                                                         \
                *ret = (type)h->v.field;                                                                     \
        return r

int PUBLIC nvmlInit_v2(void);
int nvmlInit_v2(void) {
        look();
        return absent ? DRIVER_NOT_LOADED : OK;
}

int PUBLIC nvmlShutdown(void);
int nvmlShutdown(void) {
        return OK;
}

int PUBLIC nvmlDeviceGetCount_v2(unsigned *ret);
int nvmlDeviceGetCount_v2(unsigned *ret) {
        look();
        *ret = 0;
        for (unsigned i = 0; i < GPUS_MAX; i++)
                if (gpus[i].there)
                        *ret = i + 1;
        return absent ? DRIVER_NOT_LOADED : OK;
}

int PUBLIC nvmlDeviceGetHandleByIndex_v2(unsigned index, struct handle **ret);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, struct handle **ret) {
        int r = index < GPUS_MAX ? check(gpus + index) : INVALID_ARGUMENT;

        if (r == OK)
                *ret = gpus + index;
        return r;
}

static int text(struct handle *h, const char *from, char *buf, unsigned size) {
        int r = check(h);

        if (r == OK)
                snprintf(buf, size, "%s", from);
        return r;
}

int PUBLIC nvmlDeviceGetUUID(struct handle *h, char *buf, unsigned size);
int nvmlDeviceGetUUID(struct handle *h, char *buf, unsigned size) {
        return text(h, h->uuid, buf, size);
}

int PUBLIC nvmlDeviceGetName(struct handle *h, char *buf, unsigned size);
int nvmlDeviceGetName(struct handle *h, char *buf, unsigned size) {
        int r = check(h);

        if (r != OK)
                return r;
        if (!h->profile[0])
                return text(h, h->name, buf, size);
        for (unsigned i = 0; i < GPUS_MAX; i++)
                if (h >= parts[i] && h < parts[i] + PARTS_MAX)
                        snprintf(buf, size, "%s MIG %s", gpus[i].name, h->profile);
        return OK;
}

struct pci_info {
        char legacy[16];
        unsigned domain, bus, device, id, subsystem;
        char bus_id[32];
};
int PUBLIC nvmlDeviceGetPciInfo_v3(struct handle *h, struct pci_info *ret);
int nvmlDeviceGetPciInfo_v3(struct handle *h, struct pci_info *ret) {
        int r = check(h);

        memset(ret, 0, sizeof(*ret));
        if (r == OK && sscanf(h->pci, "%x:%x:%x", &ret->domain, &ret->bus, &ret->device) != 3)
                r = NOT_SUPPORTED;
        return r;
}

int PUBLIC nvmlDeviceGetMinorNumber(struct handle *h, unsigned *ret);
int nvmlDeviceGetMinorNumber(struct handle *h, unsigned *ret) {
        ASK(minor, unsigned);
}

static unsigned long long said(long long n) {
        return n < 0 ? 0 : (unsigned long long)n;
}

struct memory_info_v2 {
        unsigned version;
        unsigned long long total, reserved, free, used;
};
int PUBLIC nvmlDeviceGetMemoryInfo_v2(struct handle *h, struct memory_info_v2 *ret);
int nvmlDeviceGetMemoryInfo_v2(struct handle *h, struct memory_info_v2 *ret) {
        int r = check(h);

        if (r == OK && ret->version != (sizeof(*ret) | 2u << 24))
                r = VERSION_MISMATCH;
        /* Drivers before 510 do not have it: this stands in for one where nothing is said to be reserved. */
        if (r == OK && (h->v.memory < 0 || h->v.reserved < 0))
                r = NOT_SUPPORTED;
        if (r != OK)
                return r;
        ret->total = said(h->v.memory);
        ret->reserved = said(h->v.reserved);
        ret->used = said(h->v.used);
        ret->free = ret->total - ret->reserved - ret->used;
        return OK;
}

int PUBLIC nvmlDeviceGetMemoryInfo(struct handle *h, unsigned long long ret[3]);
int nvmlDeviceGetMemoryInfo(struct handle *h, unsigned long long ret[3]) {
        int r = check(h);

        if (r == OK && h->v.memory < 0)
                r = NOT_SUPPORTED;
        if (r != OK)
                return r;
        ret[0] = said(h->v.memory);
        ret[2] = said(h->v.used) + said(h->v.reserved);
        ret[1] = ret[0] - ret[2];
        return OK;
}

int PUBLIC nvmlDeviceGetUtilizationRates(struct handle *h, unsigned ret[2]);
int nvmlDeviceGetUtilizationRates(struct handle *h, unsigned ret[2]) {
        ret[1] = 0;
        ASK(utilization, unsigned);
}

int PUBLIC nvmlDeviceGetPowerUsage(struct handle *h, unsigned *ret);
int nvmlDeviceGetPowerUsage(struct handle *h, unsigned *ret) {
        ASK(power, unsigned);
}

int PUBLIC nvmlDeviceGetTotalEnergyConsumption(struct handle *h, unsigned long long *ret);
int nvmlDeviceGetTotalEnergyConsumption(struct handle *h, unsigned long long *ret) {
        ASK(energy, unsigned long long);
}

int PUBLIC nvmlDeviceGetTemperature(struct handle *h, int sensor, unsigned *ret);
int nvmlDeviceGetTemperature(struct handle *h, int sensor, unsigned *ret) {
        ASK(temperature, unsigned);
}

int PUBLIC nvmlDeviceGetTotalEccErrors(struct handle *h, int type, int counter, unsigned long long *ret);
int nvmlDeviceGetTotalEccErrors(struct handle *h, int type, int counter, unsigned long long *ret) {
        if (type == 0) {
                ASK(corrected, unsigned long long);
        }
        ASK(uncorrected, unsigned long long);
}

int PUBLIC nvmlDeviceGetRemappedRows(struct handle *h, unsigned *c, unsigned *u, unsigned *pending,
                                     unsigned *failed);
int nvmlDeviceGetRemappedRows(struct handle *h, unsigned *c, unsigned *u, unsigned *pending,
                              unsigned *failed) {
        int r = check(h);

        if (r == OK && sscanf(h->rows, "%u,%u", c, u) != 2)
                r = NOT_SUPPORTED;
        if (r == OK) {
                *pending = h->v.pending > 0;
                *failed = h->v.failed > 0;
        }
        return r;
}

int PUBLIC nvmlDeviceGetPcieReplayCounter(struct handle *h, unsigned *ret);
int nvmlDeviceGetPcieReplayCounter(struct handle *h, unsigned *ret) {
        ASK(replays, unsigned);
}

int PUBLIC nvmlDeviceGetCurrentClocksThrottleReasons(struct handle *h, unsigned long long *ret);
int nvmlDeviceGetCurrentClocksThrottleReasons(struct handle *h, unsigned long long *ret) {
        ASK(throttle, unsigned long long);
}

struct field_value {
        unsigned field, scope;
        long long timestamp, latency;
        int type, result;
        unsigned long long value;
};
int PUBLIC nvmlDeviceGetFieldValues(struct handle *h, int n, struct field_value *values);
int nvmlDeviceGetFieldValues(struct handle *h, int n, struct field_value *values) {
        int r = check(h);

        for (int i = 0; r == OK && i < n; i++) {
                values[i].result = values[i].field == 230 && h->v.recovery >= 0 ? OK : NOT_SUPPORTED;
                values[i].value = (unsigned long long)h->v.recovery;
        }
        return r;
}

struct process_info {
        unsigned pid;
        unsigned long long memory;
        unsigned instance, compute_instance;
};
int PUBLIC nvmlDeviceGetComputeRunningProcesses_v3(struct handle *h, unsigned *n, struct process_info *list);
int nvmlDeviceGetComputeRunningProcesses_v3(struct handle *h, unsigned *n, struct process_info *list) {
        int r = check(h);

        if (r == OK && *n < h->n_processes)
                r = INSUFFICIENT_SIZE;
        for (unsigned i = 0; r == OK && i < h->n_processes; i++)
                list[i] = (struct process_info){ (unsigned)h->processes[i].pid,
                                                 (unsigned long long)h->processes[i].memory, UINT32_MAX,
                                                 UINT32_MAX };
        *n = h->n_processes;
        return r;
}

/* ---- MIG ---- */

int PUBLIC nvmlDeviceGetMigMode(struct handle *h, unsigned *ret, unsigned *pending);
int nvmlDeviceGetMigMode(struct handle *h, unsigned *ret, unsigned *pending) {
        *pending = 0;
        ASK(mig, unsigned);
}

int PUBLIC nvmlDeviceGetMaxMigDeviceCount(struct handle *h, unsigned *ret);
int nvmlDeviceGetMaxMigDeviceCount(struct handle *h, unsigned *ret) {
        *ret = PARTS_MAX;
        return check(h);
}

int PUBLIC nvmlDeviceGetMigDeviceHandleByIndex(struct handle *h, unsigned index, struct handle **ret);
int nvmlDeviceGetMigDeviceHandleByIndex(struct handle *h, unsigned index, struct handle **ret) {
        int r = check(h);

        if (r == OK && index >= h->n_parts)
                r = NOT_FOUND;
        if (r == OK)
                *ret = h->parts + index;
        return r;
}

int PUBLIC nvmlDeviceGetGpuInstanceId(struct handle *h, unsigned *ret);
int nvmlDeviceGetGpuInstanceId(struct handle *h, unsigned *ret) {
        ASK(gi, unsigned);
}

int PUBLIC nvmlDeviceGetComputeInstanceId(struct handle *h, unsigned *ret);
int nvmlDeviceGetComputeInstanceId(struct handle *h, unsigned *ret) {
        ASK(ci, unsigned);
}

/* ---- topology ---- */

int PUBLIC nvmlDeviceGetP2PStatus(struct handle *a, struct handle *b, int index, int *ret);
int nvmlDeviceGetP2PStatus(struct handle *a, struct handle *b, int index, int *ret) {
        int r = check(a);

        *ret = a->nvlinks >> (b - gpus) & 1 ? 0 : 5;
        return r;
}

int PUBLIC nvmlDeviceGetTopologyCommonAncestor(struct handle *a, struct handle *b, int *ret);
int nvmlDeviceGetTopologyCommonAncestor(struct handle *a, struct handle *b, int *ret) {
        int r = check(a);

        *ret = a->switches >> (b - gpus) & 1 ? 10 : 50;
        return r;
}

/* ---- events ---- */

int PUBLIC nvmlEventSetCreate(void **ret);
int nvmlEventSetCreate(void **ret) {
        look();
        n_told = n_events; /* those from before are over */
        *ret = &n_told;
        return OK;
}

int PUBLIC nvmlEventSetFree(void *set);
int nvmlEventSetFree(void *set) {
        return OK;
}

int PUBLIC nvmlDeviceRegisterEvents(struct handle *h, unsigned long long types, void *set);
int nvmlDeviceRegisterEvents(struct handle *h, unsigned long long types, void *set) {
        int r = check(h);

        if (r == OK)
                registered[h - gpus] = true;
        return r;
}

struct event_data {
        struct handle *device;
        unsigned long long type, data;
        unsigned instance, compute_instance;
};
int PUBLIC nvmlEventSetWait_v2(void *set, struct event_data *ret, unsigned msec);
int nvmlEventSetWait_v2(void *set, struct event_data *ret, unsigned msec) {
        for (unsigned waited = 0;; waited += 50) {
                look();
                if (n_told > n_events)
                        n_told = n_events; /* the file was written anew */
                if (n_told < n_events && registered[events[n_told].gpu]) {
                        *ret = (struct event_data){ gpus + events[n_told].gpu, 8, events[n_told].xid,
                                                    UINT32_MAX, UINT32_MAX };
                        n_told++;
                        return OK;
                }
                if (waited >= msec)
                        return TIMEOUT;
                usleep(50000);
        }
}
