/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel, the network and agentd say now. Invariant: nothing here waits longer than a few seconds,
 * and nothing needs root. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/timex.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

#include "lib/base/addr.h"
#include "lib/base/clock.h"
#include "lib/base/format.h"
#include "tools/primusctl/bus/fields.h"
#include "tools/primusctl/cli/agent-setting.h"
#include "tools/primusctl/doctor/doctor.h"

#define MASTER_PORT 7747
#define CONNECT_MSEC 3000
#define CALL_USEC (5 * USEC_PER_SEC)
#define HEARD_LATE (10 * USEC_PER_SEC)
#define AGENT "org.primus.Agent1"

/* ---- clock ---- */

static void check_clock(struct findings *f) {
        struct timex t = {};

        if (adjtimex(&t) < 0)
                findings_add(f, FINDING_UNKNOWN, "clock", "timedatectl",
                             "the kernel does not say whether the clock is kept");
        else if (t.status & STA_UNSYNC)
                findings_add(f, FINDING_WARN, "clock",
                             "timedatectl set-ntp yes (package systemd-timesyncd or chrony)",
                             "no time service keeps the clock");
        else
                findings_add(f, FINDING_OK, "clock", NULL, "kept by a time service, to %.1f ms",
                             (double)t.maxerror / 1000);
}

/* ---- names, the master's port ---- */

static int look_up(const char *name, struct addrinfo **ret) {
        const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };

        return getaddrinfo(name, NULL, &hints, ret);
}

static bool is_loopback(const struct sockaddr *sa) {
        if (sa->sa_family == AF_INET)
                return ntohl(((const struct sockaddr_in *)sa)->sin_addr.s_addr) >> 24 == 127;
        return sa->sa_family == AF_INET6 &&
               IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)sa)->sin6_addr);
}

static void check_own_name(struct findings *f) {
        struct addrinfo *list;
        char name[256];
        bool all = true;
        int r;

        if (gethostname(name, sizeof(name)) < 0)
                return;
        r = look_up(name, &list);
        if (r != 0) {
                findings_add(f, FINDING_WARN, "dns", "a line for it in /etc/hosts, or in the DNS",
                             "this host's own name %s is not found: %s", name, gai_strerror(r));
                return;
        }
        for (const struct addrinfo *i = list; i; i = i->ai_next)
                all = all && is_loopback(i->ai_addr);
        freeaddrinfo(list);
        if (all)
                findings_add(f, FINDING_WARN, "dns",
                             "its address in the network instead of 127.0.1.1 in /etc/hosts",
                             "%s is a loopback address: trainers that tell others their host's name (gloo "
                             "without GLOO_SOCKET_IFNAME) are not found",
                             name);
        else
                findings_add(f, FINDING_OK, "dns", NULL, "%s has an address", name);
}

/* 0 when somebody accepts; in the time that is given. */
static int try_connect(const struct sockaddr *sa, socklen_t size) {
        _cleanup_close_ int fd = socket(sa->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        struct pollfd p = { .fd = fd, .events = POLLOUT };
        socklen_t l = sizeof(int);
        int error = 0;

        if (fd < 0)
                return -errno;
        if (connect(fd, sa, size) == 0)
                return 0;
        if (errno != EINPROGRESS)
                return -errno;
        if (poll(&p, 1, CONNECT_MSEC) <= 0)
                return -ETIMEDOUT;
        return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &l) < 0 ? -errno : -error;
}

static void check_reach(struct findings *f, const char *master, struct addrinfo *list, uint16_t port) {
        struct sockaddr_storage ss;
        struct addr a;
        int r = -EHOSTUNREACH;

        for (const struct addrinfo *i = list; i && r < 0; i = i->ai_next)
                if (addr_from_sockaddr(i->ai_addr, &a) >= 0) {
                        a.port = port;
                        r = try_connect((struct sockaddr *)&ss, addr_to_sockaddr(&a, &ss));
                }
        if (r < 0)
                findings_add(f, FINDING_FAIL, "master",
                             "is primus-masterd running there, and does a firewall let port 7747 through?",
                             "%s does not answer on port %u: %s", master, port, strerror(-r));
        else
                findings_add(f, FINDING_OK, "master", NULL, "%s answers on port %u", master, port);
}

static void check_master(struct findings *f) {
        _cleanup_free_ char *master = NULL, *host = NULL;
        struct addrinfo *list;
        uint16_t port;
        int r;

        if (agent_setting("", "Master", &master) < 0) {
                if (doctor_joined("") == JOINED)
                        findings_add(f, FINDING_FAIL, "master",
                                     "Master=HOST in section [Agent] of " PRIMUS_SYSCONFDIR "/agentd.conf",
                                     "no master is set for this host");
                return;
        }
        if (addr_split(master, MASTER_PORT, &host, &port) < 0) {
                findings_add(f, FINDING_FAIL, "master", "Master=HOST or HOST:PORT in agentd.conf",
                             "Master=%s is not an address", master);
                return;
        }
        r = look_up(host, &list);
        if (r != 0) {
                findings_add(f, FINDING_FAIL, "dns", "a line for it in /etc/hosts, or in the DNS",
                             "the master's name %s is not found: %s", host, gai_strerror(r));
                return;
        }
        check_reach(f, host, list, port);
        freeaddrinfo(list);
}

/* ---- agentd ---- */

struct agent {
        struct findings *findings;
        char *node, *master, *refused, *version;
        bool connected;
        uint64_t heard; /* CLOCK_REALTIME; 0: never */
        unsigned n_conditions, n_probes, n_down;
};

static int read_conditions(sd_bus_message *m, void *target) {
        struct agent *a = target;
        const char *kind, *subject, *severity, *text;
        uint64_t since;
        int r = sd_bus_message_enter_container(m, 'v', "a(sssst)");

        if (r >= 0)
                r = sd_bus_message_enter_container(m, 'a', "(sssst)");
        while (r >= 0 &&
               (r = sd_bus_message_read(m, "(sssst)", &kind, &subject, &severity, &text, &since)) > 0) {
                a->n_conditions++;
                findings_add(a->findings,
                             strcmp(severity, "drain") == 0  ? FINDING_FAIL
                             : strcmp(severity, "warn") == 0 ? FINDING_WARN
                                                             : FINDING_OK,
                             "condition", NULL, "%s %s: %s", kind, subject, text);
        }
        if (r >= 0)
                r = sd_bus_message_exit_container(m);
        return r < 0 ? r : sd_bus_message_exit_container(m);
}

/* Rows: program, up, the kernel's refusal. */
static int read_probes(sd_bus_message *m, void *target) {
        struct agent *a = target;
        const char *name, *why;
        int up, r = sd_bus_message_enter_container(m, 'v', "a(sbs)");

        if (r >= 0)
                r = sd_bus_message_enter_container(m, 'a', "(sbs)");
        while (r >= 0 && (r = sd_bus_message_read(m, "(sbs)", &name, &up, &why)) > 0) {
                a->n_probes++;
                if (up)
                        continue;
                a->n_down++;
                findings_add(a->findings, FINDING_WARN, "bpf",
                             strcmp(name, "block") == 0 && strstr(why, "io controller")
                                     ? "as for cgroup: version 2 has that controller"
                                     : "a kernel from 6.1 on with BTF, and CAP_BPF, CAP_PERFMON for "
                                       "primus-agentd.service",
                             "program %s is not loaded: %s", name, why);
        }
        if (r >= 0)
                r = sd_bus_message_exit_container(m);
        return r < 0 ? r : sd_bus_message_exit_container(m);
}

static int read_agent(sd_bus_message *m, struct agent *a) {
        static const struct field fields[] = {
                { "Node", "s", offsetof(struct agent, node), NULL },
                { "Master", "s", offsetof(struct agent, master), NULL },
                { "Refused", "s", offsetof(struct agent, refused), NULL },
                { "Version", "s", offsetof(struct agent, version), NULL },
                { "Connected", "b", offsetof(struct agent, connected), NULL },
                { "Heard", "t", offsetof(struct agent, heard), NULL },
                { "Conditions", "a(sssst)", 0, read_conditions },
                { "Probes", "a(sbs)", 0, read_probes },
        };

        return read_fields(m, fields, ELEMENTSOF(fields), a);
}

static void agent_done(struct agent *a) {
        free(a->node);
        free(a->master);
        free(a->refused);
        free(a->version);
}

static void say_agent(struct findings *f, const struct agent *a) {
        char ago[FORMAT_DURATION_MAX];
        uint64_t age = usec_sub(now_real(), a->heard);

        if (a->refused && *a->refused)
                findings_add(f, FINDING_FAIL, "agent", "journalctl -u primus-agentd",
                             "runs as %s (%s), and is not with masterd at %s: %s", a->node ?: "",
                             a->version ?: "", a->master ?: "", a->refused);
        else if (!a->connected)
                findings_add(f, FINDING_FAIL, "agent", "journalctl -u primus-agentd",
                             "runs as %s, and is not connected to masterd at %s", a->node ?: "",
                             a->master ?: "");
        else if (a->heard > 0 && age > HEARD_LATE)
                findings_add(f, FINDING_WARN, "agent", "journalctl -u primus-agentd",
                             "runs as %s; masterd's last answer came %s ago", a->node ?: "",
                             format_duration(age / USEC_PER_SEC * USEC_PER_SEC, ago, sizeof(ago)));
        else
                findings_add(f, FINDING_OK, "agent", NULL,
                             "runs as %s, connected to masterd at %s; last heartbeat answered %s ago",
                             a->node ?: "", a->master ?: "", format_duration(age, ago, sizeof(ago)));
        if (a->n_probes > 0 && a->n_down == 0)
                findings_add(f, FINDING_OK, "bpf", NULL, "%u programs are loaded", a->n_probes);
        else if (a->n_probes == 0)
                findings_add(f, FINDING_UNKNOWN, "bpf", NULL,
                             "this agent does not say which BPF programs the kernel takes");
        if (a->n_conditions == 0)
                findings_add(f, FINDING_OK, "condition", NULL, "agentd sees nothing wrong with the host");
}

static void check_agent(struct findings *f) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *call = NULL, *reply = NULL;
        _cleanup_(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        _cleanup_(agent_done) struct agent a = { .findings = f };
        int r = sd_bus_open_system(&bus);

        if (r < 0) {
                findings_add(f, FINDING_FAIL, "bus", "apt install dbus; systemctl start dbus",
                             "there is no system bus: %s", strerror(-r));
                return;
        }
        r = sd_bus_message_new_method_call(bus, &call, AGENT, "/org/primus/Agent1",
                                           "org.freedesktop.DBus.Properties", "GetAll");
        if (r >= 0)
                r = sd_bus_message_append(call, "s", AGENT ".Manager");
        if (r >= 0)
                r = sd_bus_message_set_auto_start(call, false);
        if (r >= 0)
                r = sd_bus_call(bus, call, CALL_USEC, &error, &reply);
        if (r >= 0)
                r = read_agent(reply, &a);
        if (r < 0 && doctor_joined("") != JOINED)
                return; /* it starts when the host has joined, which is said */
        if (r < 0) {
                findings_add(f, FINDING_FAIL, "agent",
                             "systemctl enable --now primus-agentd; journalctl -u primus-agentd says why it "
                             "does not start",
                             "primus-agentd does not run here, or does not answer");
                findings_add(f, FINDING_UNKNOWN, "bpf", "start primus-agentd, which tries each",
                             "which BPF programs the kernel takes is agentd's to tell");
                return;
        }
        say_agent(f, &a);
}

void doctor_live(struct findings *f) {
        check_clock(f);
        check_own_name(f);
        check_master(f);
        check_agent(f);
}
