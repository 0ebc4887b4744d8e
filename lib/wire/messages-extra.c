/* SPDX-License-Identifier: Apache-2.0 */
/* The a{sv} of a Start, along one table. Invariant: what is zero is not sent, and what is not sent is zero.
 */
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/try.h"
#include "lib/wire/messages-parts.h"
#include "lib/wire/skip.h"

/* Type u: uint32_t, t: uint64_t, s: char * (allocated, of size bytes at the most; 0: LINK_PATH_MAX), S: char
 * [size], i: io. */
static const struct extra_key {
        const char *key;
        char type;
        size_t offset, size;
} keys[] = {
        { "ready", 'S', offsetof(struct start_extra, ready), sizeof(((struct start_extra *)NULL)->ready) },
        { "readyPort", 'u', offsetof(struct start_extra, ready_port), 0 },
        { "readyFile", 's', offsetof(struct start_extra, ready_file), 0 },
        { "epoch", 't', offsetof(struct start_extra, epoch), 0 },
        { "rendezvous", 'u', offsetof(struct start_extra, n_rendezvous), 0 },
        { "readyTimeout", 't', offsetof(struct start_extra, ready_timeout_usec), 0 },
        { "watchdog", 't', offsetof(struct start_extra, watchdog_usec), 0 },
        { "cpus", 's', offsetof(struct start_extra, cpus), 0 },
        { "gpus", 's', offsetof(struct start_extra, gpus), LINK_GPUS_MAX *(LINK_GPU_NAME_MAX + 1) },
        { "rdma", 'u', offsetof(struct start_extra, rdma), 0 },
        { "stackSignal", 'u', offsetof(struct start_extra, stack_signal), 0 },
        { "memoryHigh", 't', offsetof(struct start_extra, memory_high), 0 },
        { "lockedMemory", 't', offsetof(struct start_extra, locked_memory), 0 },
        { "jobCpu", 't', offsetof(struct start_extra, job_cpu), 0 },
        { "jobTasks", 't', offsetof(struct start_extra, job_tasks), 0 },
        { "jobShm", 't', offsetof(struct start_extra, job_shm), 0 },
        { "cpuWeight", 'u', offsetof(struct start_extra, cpu_weight), 0 },
        { "jobWeight", 'u', offsetof(struct start_extra, job_weight), 0 },
        { "openFiles", 'u', offsetof(struct start_extra, open_files), 0 },
        { "numa", 'S', offsetof(struct start_extra, numa), sizeof(((struct start_extra *)NULL)->numa) },
        { "delegate", 'u', offsetof(struct start_extra, delegate), 0 },
        { "io", 'i', 0, 0 },
};

static int append_string(sd_bus_message *m, const char *key, const char *value) {
        return value && *value ? sd_bus_message_append(m, "{sv}", key, "s", value) : 0;
}

static int append_io(sd_bus_message *m, const char *key, const struct start_extra *x) {
        if (x->n_io == 0)
                return 0;
        TRY(sd_bus_message_open_container(m, 'e', "sv"));
        TRY(sd_bus_message_append_basic(m, 's', key));
        TRY(io_limits_append(m, x->io, x->n_io));
        return sd_bus_message_close_container(m);
}

static int append_key(sd_bus_message *m, const struct extra_key *k, const struct start_extra *x) {
        const void *target = (const char *)x + k->offset;

        switch (k->type) {
        case 'u':
                return *(const uint32_t *)target > 0
                               ? sd_bus_message_append(m, "{sv}", k->key, "u", *(const uint32_t *)target)
                               : 0;
        case 't':
                return *(const uint64_t *)target > 0
                               ? sd_bus_message_append(m, "{sv}", k->key, "t", *(const uint64_t *)target)
                               : 0;
        case 's':
                return append_string(m, k->key, *(char *const *)target);
        case 'i':
                return append_io(m, k->key, x);
        default:
                return append_string(m, k->key, target);
        }
}

int start_extra_append(sd_bus_message *m, const struct start_extra *x) {
        int r = sd_bus_message_open_container(m, 'a', "{sv}");

        for (size_t i = 0; r >= 0 && i < ELEMENTSOF(keys); i++)
                r = append_key(m, keys + i, x);
        return r < 0 ? r : sd_bus_message_close_container(m);
}

static const struct extra_key *find_key(const char *key) {
        for (size_t i = 0; i < ELEMENTSOF(keys); i++)
                if (strcmp(keys[i].key, key) == 0)
                        return keys + i;
        return NULL;
}

static int read_key(sd_bus_message *m, const char *key, void *userdata) {
        const struct extra_key *k = find_key(key);
        struct start_extra *x = userdata;
        const char *text;
        void *target;
        int r;

        if (!k)
                return message_skip(m, "v");
        target = (char *)x + k->offset;
        if (k->type == 'u')
                return sd_bus_message_read(m, "v", "u", (uint32_t *)target);
        if (k->type == 't')
                return sd_bus_message_read(m, "v", "t", (uint64_t *)target);
        if (k->type == 'i') {
                if (x->io)
                        return -EBADMSG;
                return io_limits_read(m, &x->io, &x->n_io);
        }
        r = sd_bus_message_read(m, "v", "s", &text);
        if (r < 0)
                return r;
        if (k->type == 'S') {
                if (strlen(text) >= k->size)
                        return -EBADMSG;
                memcpy(target, text, strlen(text) + 1);
                return 1;
        }
        if (strlen(text) > (k->size > 0 ? k->size : LINK_PATH_MAX))
                return -EBADMSG;
        free(*(char **)target);
        *(char **)target = strdup(text);
        return *(char **)target ? 1 : -ENOMEM;
}

int start_extra_read(sd_bus_message *m, struct start_extra *ret) {
        _cleanup_(start_extra_done) struct start_extra x = {};
        int r = link_read_entries(m, read_key, &x);

        if (r < 0)
                return r;
        *ret = x;
        x = (struct start_extra){};
        return 1;
}

void start_extra_done(struct start_extra *x) {
        free(x->ready_file);
        free(x->cpus);
        free(x->gpus);
        io_limits_free(x->io, x->n_io);
        *x = (struct start_extra){};
}
