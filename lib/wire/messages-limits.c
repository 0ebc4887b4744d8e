/* SPDX-License-Identifier: Apache-2.0 */
/* Limits in messages. Invariant: a path that is read is absolute and within LINK_PATH_MAX, or "". */
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/try.h"
#include "lib/wire/messages-parts.h"
#include "lib/wire/skip.h"

/* ---- io ---- */

void io_limits_free(struct io_limit *io, size_t n) {
        for (size_t i = 0; i < n; i++)
                free(io[i].path);
        free(io);
}

int io_limits_append(sd_bus_message *m, const struct io_limit *io, size_t n) {
        int r;

        if (n > LINK_IO_MAX)
                return -E2BIG;
        if ((r = sd_bus_message_open_container(m, 'v', "a" LINK_IO_SIGNATURE)) < 0 ||
            (r = sd_bus_message_open_container(m, 'a', LINK_IO_SIGNATURE)) < 0)
                return r;
        for (size_t i = 0; i < n; i++)
                if ((r = sd_bus_message_append(m, LINK_IO_SIGNATURE, io[i].path ?: "", io[i].read_bps,
                                               io[i].write_bps, io[i].read_iops, io[i].write_iops,
                                               io[i].weight)) < 0)
                        return r;
        r = sd_bus_message_close_container(m);
        return r < 0 ? r : sd_bus_message_close_container(m);
}

static int read_one(sd_bus_message *m, struct io_limit *ret) {
        struct io_limit l = {};
        const char *path;
        int r = sd_bus_message_read(m, LINK_IO_SIGNATURE, &path, &l.read_bps, &l.write_bps, &l.read_iops,
                                    &l.write_iops, &l.weight);

        if (r <= 0)
                return r;
        if ((*path && *path != '/') || strlen(path) > LINK_PATH_MAX)
                return -EBADMSG;
        l.path = strdup(path);
        if (!l.path)
                return -ENOMEM;
        *ret = l;
        return 1;
}

int io_limits_read(sd_bus_message *m, struct io_limit **ret, size_t *ret_n) {
        struct io_limit *list, one;
        size_t n = 0;
        int r;

        if ((r = sd_bus_message_enter_container(m, 'v', "a" LINK_IO_SIGNATURE)) <= 0 ||
            (r = sd_bus_message_enter_container(m, 'a', LINK_IO_SIGNATURE)) <= 0)
                return link_bad(r);
        list = calloc(LINK_IO_MAX, sizeof(*list));
        if (!list)
                return -ENOMEM;
        while ((r = read_one(m, &one)) > 0 && n < LINK_IO_MAX)
                list[n++] = one;
        if (r > 0) { /* one too many */
                free(one.path);
                r = -EBADMSG;
        }
        if (r < 0 || (r = sd_bus_message_exit_container(m)) < 0 ||
            (r = sd_bus_message_exit_container(m)) < 0) {
                io_limits_free(list, n);
                return link_bad(r);
        }
        *ret = list;
        *ret_n = n;
        return 1;
}

/* ---- of units that run ---- */

/* Type u: uint32_t, t: uint64_t. */
static const struct limit_key {
        const char *key;
        char type;
        size_t offset;
} keys[] = {
        { "memoryHigh", 't', offsetof(struct unit_limits, memory_high) },
        { "cpuWeight", 'u', offsetof(struct unit_limits, cpu_weight) },
        { "tasksMax", 'u', offsetof(struct unit_limits, tasks_max) },
        { "jobCpu", 't', offsetof(struct unit_limits, job.cpu_usec_per_sec) },
        { "jobTasks", 't', offsetof(struct unit_limits, job.tasks_max) },
        { "jobWeight", 'u', offsetof(struct unit_limits, job.cpu_weight) },
};

int unit_limits_append(sd_bus_message *m, const struct unit_limits *l) {
        TRY(sd_bus_message_append(m, "bttt", (int)l->check, l->cpu_usec_per_sec, l->memory_max,
                                  l->job.memory_max));
        TRY(sd_bus_message_open_container(m, 'a', "{sv}"));
        for (size_t i = 0; l->has_more && i < ELEMENTSOF(keys); i++) {
                const void *value = (const char *)l + keys[i].offset;
                if (keys[i].type == 't')
                        TRY(sd_bus_message_append(m, "{sv}", keys[i].key, "t", *(const uint64_t *)value));
                else
                        TRY(sd_bus_message_append(m, "{sv}", keys[i].key, "u", *(const uint32_t *)value));
        }
        return sd_bus_message_close_container(m);
}

static int read_key(sd_bus_message *m, const char *key, void *userdata) {
        struct unit_limits *l = userdata;

        for (size_t i = 0; i < ELEMENTSOF(keys); i++) {
                void *value = (char *)l + keys[i].offset;
                if (strcmp(keys[i].key, key) != 0)
                        continue;
                l->has_more = true;
                return keys[i].type == 't' ? sd_bus_message_read(m, "v", "t", (uint64_t *)value)
                                           : sd_bus_message_read(m, "v", "u", (uint32_t *)value);
        }
        return message_skip(m, "v");
}

int unit_limits_read(sd_bus_message *m, struct unit_limits *ret) {
        struct unit_limits l = {};
        int r;

        if ((r = link_read_bool(m, &l.check)) <= 0 ||
            (r = sd_bus_message_read(m, "ttt", &l.cpu_usec_per_sec, &l.memory_max, &l.job.memory_max)) <= 0 ||
            (r = link_read_entries(m, read_key, &l)) < 0 || (r = sd_bus_message_at_end(m, true)) <= 0)
                return link_bad(r);
        *ret = l;
        return 1;
}
