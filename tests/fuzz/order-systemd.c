/* SPDX-License-Identifier: Apache-2.0 */
/* What the starter may ask of systemd, written down a second time and apart from the code that asks: which
 * methods, units, properties, users, devices, ports and programs. Invariant: a call that is not in these
 * tables is a fault. */
#include "tests/fuzz/order-systemd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/base/cleanup.h"
#include "lib/base/names.h"
#include "lib/base/parse.h"
#include "lib/base/unitname.h"
#include "lib/base/utf8.h"
#include "lib/unit/ours.h"
#include "tests/fuzz/fuzz.h"

#define SERVICE "org.freedesktop.systemd1"
#define OBJECT "/org/freedesktop/systemd1"
#define MANAGER SERVICE ".Manager"

static bool is_in(const char *const *list, const char *text) {
        for (; *list; list++)
                if (strcmp(*list, text) == 0)
                        return true;
        return false;
}

static const char *read_text(sd_bus_message *m) {
        const char *s = NULL;

        MUST(sd_bus_message_read_basic(m, 's', &s) > 0);
        return s;
}

/* ---- properties ---- */

/* Of which nothing but the type is anybody's word. */
static const char *const numbers[] = { "CPUAccounting",
                                       "MemoryAccounting",
                                       "IOAccounting",
                                       "CPUQuotaPerSecUSec",
                                       "CPUWeight",
                                       "MemoryMax",
                                       "MemorySwapMax",
                                       "MemoryHigh",
                                       "AllowedCPUs",
                                       "NUMAPolicy",
                                       "NUMAMask",
                                       "TasksMax",
                                       "IOWeight",
                                       "LimitNOFILE",
                                       "LimitNOFILESoft",
                                       "LimitMEMLOCK",
                                       "LimitMEMLOCKSoft",
                                       "RuntimeMaxUSec",
                                       "TimeoutStartUSec",
                                       "TimeoutStopUSec",
                                       "WatchdogUSec",
                                       "SendSIGKILL",
                                       "NoNewPrivileges",
                                       "PrivateNetwork",
                                       "IgnoreSIGPIPE",
                                       "LogRateLimitIntervalUSec",
                                       "LogRateLimitBurst",
                                       "SyslogLevelPrefix",
                                       "LogExtraFields",
                                       "SocketBindDeny",
                                       "LazyUnmount",
                                       "StandardInputFileDescriptor",
                                       "StandardOutputFileDescriptor",
                                       "StandardErrorFileDescriptor",
                                       NULL };

/* And those whose text has one of these forms. */
static const struct {
        const char *name, *value;
        bool begins; /* that is how it begins */
} texts[] = {
        { "Type", "exec", false },
        { "Type", "notify", false },
        { "Type", "oneshot", false },
        { "Type", "tmpfs", false },
        { "What", "tmpfs", false },
        { "NotifyAccess", "all", false },
        { "CollectMode", "inactive-or-failed", false },
        { "KillMode", "control-group", false },
        { "OOMPolicy", "kill", false },
        { "OOMPolicy", "continue", false },
        { "WorkingDirectory", "/", false },
        { "StandardOutput", "journal", false },
        { "StandardOutput", "null", false },
        { "StandardError", "journal", false },
        { "DevicePolicy", "closed", false },
        { "Description", "Primus job ", true },
        { "Description", "Primus: the site's ", true },
        { "Description", "Artifacts of Primus job ", true },
        { "ProtectSystem", "strict", false },
        { "Description", "Session in Primus job ", true },
        { "Description", "Shared memory of Primus job ", true },
        { "Slice", "primus-", true },
        { "Slice", "primus.slice", false },
        { "Where", "/run/primus/shm/", true },
};

struct asked {
        const struct order_systemd *systemd;
        const char *unit;
        bool has_user, has_exec, is_mount;
};

/* Nobody whom the host does not serve. */
static void check_user(struct asked *a, const char *text) {
        uint32_t uid;

        MUST(parse_u32(text, 0, UINT32_MAX, &uid) >= 0);
        MUST(!policy_refuses_uid(a->systemd->policy, uid) && uid >= a->systemd->policy->serve.min_uid);
        a->has_user = true;
}

static void check_text(struct asked *a, const char *name, const char *text) {
        uint64_t size;
        uint32_t uid;
        int end = 0;

        MUST(text_is_setting(text));
        if (strcmp(name, "User") == 0) {
                check_user(a, text);
                return;
        }
        if (strcmp(name, "SyslogIdentifier") == 0) {
                MUST(role_name_valid(text));
                return;
        }
        if (strcmp(name, "Options") == 0) {
                MUST(sscanf(text, "size=%" SCNu64 ",mode=0700,uid=%u,nosuid,nodev%n", &size, &uid, &end) ==
                             2 &&
                     end > 0 && !text[end]);
                MUST(!policy_refuses_uid(a->systemd->policy, uid));
                a->has_user = true;
                return;
        }
        if (strcmp(name, "Slice") == 0)
                MUST(get_unit_name_valid(a->unit) ? strcmp(text, "primus.slice") == 0 : unit_is_ours(text));
        if (strcmp(name, "Where") == 0)
                a->is_mount = true;
        for (size_t i = 0; i < ELEMENTSOF(texts); i++)
                if (strcmp(texts[i].name, name) == 0 &&
                    (texts[i].begins ? strncmp(text, texts[i].value, strlen(texts[i].value)) == 0
                                     : strcmp(text, texts[i].value) == 0))
                        return;
        fprintf(stderr, "%s: %s=%s\n", a->unit, name, text);
        MUST(false);
}

/* A hook removes below this directory, and what it does as somebody it does as that user. */
static void check_variable(const struct asked *a, const char *text) {
        const char *root = a->systemd->root, *value = strchr(text, '=');

        MUST(strncmp(text, "PRIMUS_", 7) == 0 && value);
        value++;
        if (!hook_unit_name_valid(a->unit))
                return;
        if (strncmp(text, "PRIMUS_WORK=", 12) == 0)
                MUST(strncmp(value, root, strlen(root)) == 0 &&
                     strncmp(value + strlen(root), "/var/lib/primus-agent/work/7-", 29) == 0 &&
                     !strchr(value + strlen(root) + 29, '/'));
        else if (strncmp(text, "PRIMUS_UID=", 11) == 0)
                MUST(*value != '0');
        else
                MUST(strcmp(text, "PRIMUS_JOB=7") == 0 || strcmp(text, "PRIMUS_NODE=n1") == 0);
}

static void check_list(struct asked *a, const char *name, const char *text) {
        static const char *const hidden[] = { "-/run/user", "-/run/dbus", NULL };
        static const char *const delegated[] = { "cpu", "memory", "pids", NULL };

        MUST(text_is_setting(text));
        if (strcmp(name, "Environment") == 0)
                check_variable(a, text);
        else if (strcmp(name, "InaccessiblePaths") == 0)
                MUST(is_in(hidden, text));
        else if (strcmp(name, "DelegateControllers") == 0)
                MUST(a->has_user && is_in(delegated, text));
        else {
                MUST(strcmp(name, "Requires") == 0 || strcmp(name, "After") == 0);
                MUST(unit_is_ours(text) && strncmp(text, "run-primus-shm-", 15) == 0);
        }
}

static void check_exec(struct asked *a, sd_bus_message *m) {
        const char *path = NULL, *argument = NULL;
        int ignore = 1;

        MUST(sd_bus_message_enter_container(m, 'a', "(sasb)") > 0);
        while (sd_bus_message_enter_container(m, 'r', "sasb") > 0) {
                path = read_text(m);
                MUST(strncmp(path, PRIMUS_LIBEXECDIR "/primus-", strlen(PRIMUS_LIBEXECDIR "/primus-")) == 0 &&
                     !strstr(path, ".."));
                MUST(sd_bus_message_enter_container(m, 'a', "s") > 0);
                MUST(strcmp(read_text(m), path) == 0);
                while (sd_bus_message_read_basic(m, 's', &argument) > 0)
                        MUST(utf8_valid(argument, strlen(argument)));
                MUST(sd_bus_message_exit_container(m) >= 0);
                MUST(sd_bus_message_read_basic(m, 'b', &ignore) > 0 && !ignore);
                MUST(sd_bus_message_exit_container(m) >= 0);
                a->has_exec = true;
        }
        MUST(sd_bus_message_exit_container(m) >= 0);
}

static void check_device(const char *node, const char *rights) {
        static const char *const nodes[] = { "/dev/fuse",           "char-infiniband_verbs",
                                             "char-nvidia-uvm",     "/dev/infiniband/rdma_cm",
                                             "/dev/nvidia-modeset", NULL };

        MUST(strcmp(rights, "rw") == 0);
        MUST(is_in(nodes, node) || (policy_devices_valid(node) && !strstr(node, "..")));
}

static void check_ports(const struct asked *a, sd_bus_message *m) {
        uint16_t n, first;
        int family, protocol;

        MUST(sd_bus_message_enter_container(m, 'a', "(iiqq)") > 0);
        while (sd_bus_message_read(m, "(iiqq)", &family, &protocol, &n, &first) > 0)
                MUST(n == 1 && first >= a->systemd->policy->port_first &&
                     first <= a->systemd->policy->port_last);
        MUST(sd_bus_message_exit_container(m) >= 0);
}

static void check_pairs(sd_bus_message *m) {
        const char *first, *second;

        MUST(sd_bus_message_enter_container(m, 'a', "(ss)") > 0);
        while (sd_bus_message_read(m, "(ss)", &first, &second) > 0)
                check_device(first, second);
        MUST(sd_bus_message_exit_container(m) >= 0);
}

static void check_environment_files(const struct asked *a, sd_bus_message *m) {
        const char *path;
        int optional;

        MUST(sd_bus_message_enter_container(m, 'a', "(sb)") > 0);
        while (sd_bus_message_read(m, "(sb)", &path, &optional) > 0)
                MUST(strncmp(path, "/run/primus/x/primus-", 21) == 0 && !strstr(path, "..") && !optional);
        MUST(sd_bus_message_exit_container(m) >= 0);
}

static void check_binds(sd_bus_message *m) {
        const char *from, *to;
        uint64_t flags;
        int optional;

        MUST(sd_bus_message_enter_container(m, 'a', "(ssbt)") > 0);
        while (sd_bus_message_read(m, "(ssbt)", &from, &to, &optional, &flags) > 0)
                MUST(strncmp(from, "/run/primus/shm/", 16) == 0 && !strstr(from, "..") &&
                     strcmp(to, "/dev/shm") == 0 && flags == 0);
        MUST(sd_bus_message_exit_container(m) >= 0);
}

static void check_property(struct asked *a, sd_bus_message *m) {
        const char *name = read_text(m), *contents, *text;
        char type;

        MUST(sd_bus_message_peek_type(m, &type, &contents) > 0 && type == 'v');
        if (is_in(numbers, name) || strncmp(name, "IORead", 6) == 0 || strncmp(name, "IOWrite", 7) == 0 ||
            strcmp(name, "IODeviceWeight") == 0) {
                MUST(strcmp(contents, "s") != 0 && strcmp(contents, "as") != 0);
                MUST(sd_bus_message_skip(m, "v") >= 0);
                return;
        }
        MUST(sd_bus_message_enter_container(m, 'v', contents) > 0);
        if (strcmp(contents, "s") == 0)
                check_text(a, name, read_text(m));
        else if (strcmp(contents, "as") == 0) {
                MUST(sd_bus_message_enter_container(m, 'a', "s") > 0);
                while (sd_bus_message_read_basic(m, 's', &text) > 0)
                        check_list(a, name, text);
                MUST(sd_bus_message_exit_container(m) >= 0);
        } else if (strcmp(name, "ExecStart") == 0 || strcmp(name, "ExecStartPre") == 0)
                check_exec(a, m);
        else if (strcmp(name, "DeviceAllow") == 0)
                check_pairs(m);
        else if (strcmp(name, "EnvironmentFiles") == 0)
                check_environment_files(a, m);
        else if (strcmp(name, "BindPaths") == 0)
                check_binds(m);
        else if (strcmp(name, "SocketBindAllow") == 0)
                check_ports(a, m);
        else {
                fprintf(stderr, "%s: %s (%s)\n", a->unit, name, contents);
                MUST(false);
        }
        MUST(sd_bus_message_exit_container(m) >= 0);
}

static void check_properties(struct asked *a, sd_bus_message *m) {
        MUST(sd_bus_message_enter_container(m, 'a', "(sv)") > 0);
        while (sd_bus_message_enter_container(m, 'r', "sv") > 0) {
                check_property(a, m);
                MUST(sd_bus_message_exit_container(m) >= 0);
        }
        MUST(sd_bus_message_exit_container(m) >= 0);
}

/* ---- methods: each returns whether its answer is a job ---- */

static bool starts_transient(struct order_systemd *s, sd_bus_message *m) {
        struct asked a = { .systemd = s, .unit = read_text(m) };

        MUST(unit_is_ours(a.unit) && strcmp(read_text(m), "fail") == 0);
        check_properties(&a, m);
        MUST(sd_bus_message_skip(m, "a(sa(sv))") >= 0 && sd_bus_message_at_end(m, true) > 0);
        /* What runs at all runs as somebody, except the site's hooks, and these are run by primus-hook. */
        MUST(!a.has_exec || a.has_user || hook_unit_name_valid(a.unit));
        MUST(!a.is_mount || a.has_user);
        return true;
}

static bool starts(struct order_systemd *s, sd_bus_message *m) {
        static const char *const targets[] = { "reboot.target", "poweroff.target", NULL };

        MUST(is_in(targets, read_text(m)));
        return true;
}

static bool stops(struct order_systemd *s, sd_bus_message *m) {
        MUST(unit_is_ours(read_text(m)) && strcmp(read_text(m), "replace") == 0);
        return true;
}

static bool kills(struct order_systemd *s, sd_bus_message *m) {
        const char *unit = read_text(m), *whom = read_text(m);
        int32_t number;

        MUST(executor_unit_name_valid(unit) || session_unit_name_valid(unit));
        MUST(strcmp(whom, "all") == 0 || strcmp(whom, "main") == 0);
        MUST(sd_bus_message_read_basic(m, 'i', &number) > 0 && number > 0 && number < 65);
        return false;
}

static bool freezes(struct order_systemd *s, sd_bus_message *m) {
        MUST(executor_unit_name_valid(read_text(m)));
        return false;
}

static bool sets(struct order_systemd *s, sd_bus_message *m) {
        struct asked a = { .systemd = s, .unit = read_text(m) };
        int runtime;

        MUST(unit_is_ours(a.unit) && sd_bus_message_read_basic(m, 'b', &runtime) > 0 && runtime);
        check_properties(&a, m);
        MUST(!a.has_user && !a.has_exec && !a.is_mount);
        return false;
}

static bool reverts(struct order_systemd *s, sd_bus_message *m) {
        const char *name;

        MUST(sd_bus_message_enter_container(m, 'a', "s") > 0);
        while (sd_bus_message_read_basic(m, 's', &name) > 0)
                MUST(slice_name_valid(name));
        return false;
}

static const struct {
        const char *name;
        bool (*call)(struct order_systemd *s, sd_bus_message *m);
} methods[] = {
        { "StartTransientUnit", starts_transient },
        { "StartUnit", starts },
        { "StopUnit", stops },
        { "KillUnit", kills },
        { "FreezeUnit", freezes },
        { "ThawUnit", freezes },
        { "SetUnitProperties", sets },
        { "RevertUnitFiles", reverts },
};

static int answer(struct order_systemd *s, sd_bus_message *m, bool job) {
        char path[64];

        if (s->refuses)
                return sd_bus_reply_method_errorf(m, SERVICE ".UnitExists", "Unit exists");
        if (!job)
                return sd_bus_reply_method_return(m, NULL);
        snprintf(path, sizeof(path), OBJECT "/job/%u", ++s->jobs);
        MUST(sd_bus_reply_method_return(m, "o", path) >= 0);
        return s->lasts ? 1
                        : sd_bus_emit_signal(s->server, OBJECT, MANAGER, "JobRemoved", "uoss", s->jobs, path,
                                             "x", "done");
}

static int on_message(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        struct order_systemd *s = userdata;
        size_t i = 0;

        if (!sd_bus_message_is_method_call(m, NULL, NULL))
                return 0;
        MUST(sd_bus_message_is_method_call(m, MANAGER, NULL));
        while (i < ELEMENTSOF(methods) && !sd_bus_message_is_method_call(m, MANAGER, methods[i].name))
                i++;
        MUST(i < ELEMENTSOF(methods));
        MUST(answer(s, m, methods[i].call(s, m)) >= 0);
        return 1;
}

void order_systemd_new(struct order_systemd *s, const char *root, const struct policy *policy) {
        sd_id128_t id = SD_ID128_MAKE(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16);
        int fds[2];

        *s = (struct order_systemd){ .root = root, .policy = policy };
        MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) == 0);
        MUST(sd_bus_new(&s->server) >= 0 && sd_bus_set_fd(s->server, fds[0], fds[0]) >= 0 &&
             sd_bus_set_server(s->server, true, id) >= 0 && sd_bus_negotiate_fds(s->server, true) >= 0 &&
             sd_bus_set_trusted(s->server, true) >= 0 && sd_bus_start(s->server) >= 0 &&
             sd_bus_add_filter(s->server, NULL, on_message, s) >= 0);
        MUST(sd_bus_new(&s->client) >= 0 && sd_bus_set_fd(s->client, fds[1], fds[1]) >= 0 &&
             sd_bus_negotiate_fds(s->client, true) >= 0 && sd_bus_start(s->client) >= 0);
}

void order_systemd_done(struct order_systemd *s) {
        sd_bus_close_unref(s->client);
        sd_bus_close_unref(s->server);
}
