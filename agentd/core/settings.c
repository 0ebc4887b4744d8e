/* SPDX-License-Identifier: Apache-2.0 */
/* agentd's settings, as a table. */
#include "agentd/core/settings.h"

#include <stddef.h>
#include <string.h>
#include <sysexits.h>
#include <syslog.h>

#include "agentd/cgroup/pressure.h"
#include "agentd/metrics/server.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/conf.h"
#include "lib/base/labels.h"
#include "lib/base/names.h"
#include "lib/base/parse.h"
#include "lib/base/strv.h"
#include "lib/unit/ports-range.h"

#define LABELS_MAX 64u
#define LISTEN_MAX 8u
#define METRICS_LISTEN "127.0.0.1:7748"

static int parse_address(const char *value, void *target, const char **ret_why) {
        *ret_why = "expected a numeric address";
        return addr_parse(value, 0, target);
}

static int parse_ports(const char *value, void *target, const char **ret_why) {
        struct port_range *range = target;

        *ret_why = "expected FIRST-LAST with ports from 1024 to 65535";
        return port_range_parse(value, &range->first, &range->last);
}

static int parse_level(const char *value, void *target, const char **ret_why) {
        static const char *const names[] = {
                [LOG_ERR] = "err",   [LOG_WARNING] = "warning", [LOG_NOTICE] = "notice",
                [LOG_INFO] = "info", [LOG_DEBUG] = "debug",
        };

        *ret_why = "expected err, warning, notice, info or debug";
        for (int i = LOG_ERR; i <= LOG_DEBUG; i++)
                if (strcmp(value, names[i]) == 0) {
                        *(int *)target = i;
                        return 0;
                }
        return -EINVAL;
}

static int parse_node_name(const char *value, void *target, const char **ret_why) {
        *ret_why = "expected a host name in lower case";
        return node_name_valid(value) ? conf_parse_string(value, target, ret_why) : -EINVAL;
}

/* "10% 10G": the smaller of the two is what is to be left; one alone counts alone. */
static int parse_room(const char *value, void *target, const char **ret_why) {
        struct room room = { .percent = 100, .bytes = UINT64_MAX };
        _cleanup_free_ char *copy = strdup(value);
        char *save = NULL;
        unsigned n = 0;

        *ret_why = "expected what is to be left, such as: 10% 10G";
        if (!copy)
                return -ENOMEM;
        for (char *word = strtok_r(copy, " \t", &save); word; word = strtok_r(NULL, " \t", &save), n++) {
                size_t l = strlen(word);
                int r;
                if (word[l - 1] == '%') {
                        word[l - 1] = 0;
                        r = parse_u32(word, 0, 100, &room.percent);
                } else
                        r = parse_size(word, &room.bytes);
                if (r < 0)
                        return r;
        }
        if (n < 1 || n > 2)
                return -EINVAL;
        *(struct room *)target = room;
        return 0;
}

static bool label_valid(const char *word) {
        return label_check(word, NULL) >= 0;
}

static int parse_labels(const char *value, void *target, const char **ret_why) {
        *ret_why = "expected up to 64 labels, such as: rack=r7 switch=s2 ssd";
        return conf_parse_words(value, LABELS_MAX, label_valid, target);
}

static int parse_window(const char *value, void *target, const char **ret_why) {
        uint64_t usec;

        *ret_why = "expected a time from 500ms to 10s";
        if (conf_parse_duration(value, &usec, ret_why) < 0 ||
            !pressure_options_valid(&(struct pressure_options){ .window_usec = usec }))
                return -EINVAL;
        *(uint64_t *)target = usec;
        return 0;
}

/* Looking for what is old is not done without a pause. */
static int parse_keep(const char *value, void *target, const char **ret_why) {
        uint64_t usec;

        *ret_why = "expected a time of at least 5s, such as: 7d";
        if (conf_parse_duration(value, &usec, ret_why) < 0 || usec < 5 * USEC_PER_SEC)
                return -EINVAL;
        *(uint64_t *)target = usec;
        return 0;
}

/* "no": none. */
static int parse_listen(const char *value, void *target, const char **ret_why) {
        *ret_why = "expected up to 8 addresses ADDRESS:PORT or /PATH of a socket, or \"no\"";
        return conf_parse_words(strcmp(value, "no") == 0 ? "" : value, LISTEN_MAX, metrics_address_valid,
                                target);
}

static const struct conf_key keys[] = {
        { "Agent", "Master", conf_parse_string, offsetof(struct settings, master), false, "" },
        { "Agent", "NodeName", parse_node_name, offsetof(struct settings, node_name), false, "" },
        { "Agent", "Address", parse_address, offsetof(struct settings, address), true, "" },
        { "Agent", "AllowRoot", conf_parse_bool, offsetof(struct settings, serve.allow_root), true, "no" },
        { "Agent", "MinUid", serve_parse_min_uid, offsetof(struct settings, serve.min_uid), true, "1000" },
        { "Agent", "AllowUsers", serve_parse_names, offsetof(struct settings, serve.allow_users), true, "" },
        { "Agent", "AllowGroups", serve_parse_names, offsetof(struct settings, serve.allow_groups), true,
          "" },
        { "Agent", "DenyUsers", serve_parse_names, offsetof(struct settings, serve.deny_users), true, "" },
        { "Agent", "HideManagers", conf_parse_bool, offsetof(struct settings, hide_managers), true, "yes" },
        { "Agent", "Relay", conf_parse_bool, offsetof(struct settings, relay), true, "yes" },
        { "Agent", "OpenFiles", conf_parse_u32, offsetof(struct settings, open_files), false, "65536" },
        { "Agent", "Ports", parse_ports, offsetof(struct settings, ports), false, "23000-27999" },
        { "Agent", "MemoryReserve", conf_parse_size, offsetof(struct settings, memory_reserve), false,
          "256M" },
        { "Agent", "Memory", conf_parse_size, offsetof(struct settings, memory), false, "" },
        { "Agent", "CPUs", conf_parse_u32, offsetof(struct settings, cpus), false, "" },
        { "Agent", "Labels", parse_labels, offsetof(struct settings, labels), false, "" },
        { "Agent", "GPUMemory", conf_parse_size, offsetof(struct settings, gpu_memory), false, "" },
        { "Agent", "HealthSec", conf_parse_duration, offsetof(struct settings, health_usec), false, "5min" },
        { "Agent", "HookSec", conf_parse_duration, offsetof(struct settings, hook_usec), false, "1min" },
        { "Agent", "ExecutorsPerUserMax", conf_parse_u32, offsetof(struct settings, user_max), false,
          "1024" },
        { "Agent", "ArtifactsKeepSec", parse_keep, offsetof(struct settings, artifacts_usec), false, "7d" },
        { "Agent", "ArtifactsMax", conf_parse_size, offsetof(struct settings, artifacts_max), false, "100G" },
        { "Agent", "UnkillableSec", conf_parse_duration, offsetof(struct settings, unkillable_usec), false,
          "1min" },
        { "Agent", "Interfaces", conf_parse_string, offsetof(struct settings, watch.interfaces), false, "" },
        { "Agent", "RendezvousInterface", conf_parse_string,
          offsetof(struct settings, watch.rendezvous_interface), false, "" },
        { "Agent", "Disks", conf_parse_string, offsetof(struct settings, watch.disks), false, "" },
        { "Agent", "DiskWarn", parse_room, offsetof(struct settings, watch.disk_warn), false, "10% 10G" },
        { "Agent", "DiskDrain", parse_room, offsetof(struct settings, watch.disk_drain), false, "2% 1G" },
        { "Agent", "ClockSkewSec", conf_parse_duration, offsetof(struct settings, watch.clock_skew_usec),
          false, "1s" },
        { "Agent", "ClockKeptSec", conf_parse_duration, offsetof(struct settings, watch.clock_kept_usec),
          false, "10min" },
        { "Agent", "ConditionSettleSec", conf_parse_duration,
          offsetof(struct settings, condition_settle_usec), false, "30s" },
        { "Agent", "TelemetrySec", conf_parse_duration, offsetof(struct settings, telemetry_usec), false,
          "5s" },
        { "Agent", "MetricsJobs", conf_parse_bool, offsetof(struct settings, metrics_jobs), true, "no" },
        { "Agent", "MetricsListen", parse_listen, offsetof(struct settings, metrics_listen), true,
          "127.0.0.1:7748" },
        { "Agent", "PressureWindowSec", parse_window, offsetof(struct settings, pressure_window_usec), false,
          "2s" },
        { "Agent", "MemoryPressureSec", conf_parse_duration, offsetof(struct settings, memory_pressure_usec),
          false, "400ms" },
        { "Agent", "IOPressureSec", conf_parse_duration, offsetof(struct settings, io_pressure_usec), false,
          "1500ms" },
        { "Agent", "LogLevel", parse_level, offsetof(struct settings, log_level), false, "info" },
        { NULL },
};

void settings_done(struct settings *s) {
        free(s->master);
        free(s->node_name);
        free(s->watch.interfaces);
        free(s->watch.rendezvous_interface);
        free(s->watch.disks);
        strings_free(s->labels);
        strings_free(s->metrics_listen);
        serve_policy_done(&s->serve);
        *s = (struct settings){ 0 };
}

static int load_files(const char *root, struct settings *ret, struct conf_report *report) {
        struct settings s = { .ports = { 23000, 27999 },
                              .health_usec = 300 * USEC_PER_SEC,
                              .user_max = 1024,
                              .hide_managers = true,
                              .relay = true,
                              .open_files = 65536,
                              .hook_usec = 60 * USEC_PER_SEC,
                              .artifacts_usec = 7 * 24 * 3600 * USEC_PER_SEC,
                              .artifacts_max = UINT64_C(100) << 30,
                              .unkillable_usec = 60 * USEC_PER_SEC,
                              .watch.disk_warn = { 10, UINT64_C(10) << 30 },
                              .watch.disk_drain = { 2, UINT64_C(1) << 30 },
                              .watch.clock_skew_usec = USEC_PER_SEC,
                              .watch.clock_kept_usec = 600 * USEC_PER_SEC,
                              .condition_settle_usec = 30 * USEC_PER_SEC,
                              .telemetry_usec = 5 * USEC_PER_SEC,
                              .pressure_window_usec = 2 * USEC_PER_SEC,
                              .memory_pressure_usec = 400 * USEC_PER_MSEC,
                              .io_pressure_usec = 1500 * USEC_PER_MSEC,
                              .log_level = -1 };
        const char *why;
        int r = parse_listen(METRICS_LISTEN, &s.metrics_listen, &why);

        if (r < 0 || (r = conf_load_groups(root, "agentd.conf", keys, NULL, &s, report)) < 0) {
                settings_done(&s);
                return r;
        }
        serve_policy_complete(&s.serve, root);
        /* More than all of a window is never reached. */
        s.memory_pressure_usec = MIN(s.memory_pressure_usec, s.pressure_window_usec);
        s.io_pressure_usec = MIN(s.io_pressure_usec, s.pressure_window_usec);
        *ret = s;
        return 0;
}

int settings_load(const char *root, struct settings *ret) {
        return load_files(root, ret, NULL);
}

int settings_command(FILE *f) {
        _cleanup_(conf_report_done) struct conf_report report = {};
        _cleanup_(settings_done) struct settings s = {};
        int r = load_files("", &s, &report);

        if (f)
                conf_show(f, keys, NULL, &report);
        return r < 0 ? EX_CONFIG : report.warnings > 0;
}
