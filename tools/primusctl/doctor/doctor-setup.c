/* SPDX-License-Identifier: Apache-2.0 */
/* How far a host has got on its way into a cluster: installed, joined, reachable. Files only. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/file.h"
#include "tools/primusctl/doctor/doctor.h"

#define FILE_MAX (256u << 10)

static bool exists(const char *root, const char *path) {
        char full[4096];

        return snprintf(full, sizeof(full), "%s%s", root, path) < (int)sizeof(full) &&
               access(full, F_OK) == 0;
}

bool doctor_is_master(const char *root) {
        return exists(root, "/etc/systemd/system/dbus-org.primus.Master1.service");
}

enum joined doctor_joined(const char *root) {
        if (exists(root, PRIMUS_SYSCONFDIR "/node/node.key"))
                return JOINED;
        return exists(root, PRIMUS_LIBEXECDIR "/primus-agentd") ? JOINED_NOT : JOINED_NO_AGENT;
}

static void check_packages(struct findings *f, const char *root) {
        static const struct {
                const char *path, *package, *lack;
                enum finding_grade grade;
        } files[] = {
                { "/usr/bin/dbus-daemon", "dbus", "there is no system bus", FINDING_FAIL },
                { "/usr/lib/polkit-1/polkitd", "polkitd", "users cannot be asked who may see others' jobs",
                  FINDING_WARN },
        };
        static const char *const others[] = { "/usr/bin/dbus-broker", "/usr/libexec/polkitd" };
        bool agent = exists(root, PRIMUS_LIBEXECDIR "/primus-agentd"),
             master = exists(root, PRIMUS_LIBEXECDIR "/primus-masterd"), all = true;

        if (!agent && !master) {
                findings_add(f, FINDING_FAIL, "packages",
                             "apt install ./primus-agent_*.deb   (RPM: dnf install ./primus-agent-*.rpm)",
                             "neither primus-agent nor primus-master is installed: no jobs run here");
                return;
        }
        for (size_t i = 0; i < ELEMENTSOF(files); i++) {
                char help[96];
                if (exists(root, files[i].path) || exists(root, others[i]))
                        continue;
                all = false;
                snprintf(help, sizeof(help), "apt install %s   (RPM: dnf install %s)", files[i].package,
                         i == 1 ? "polkit" : files[i].package);
                findings_add(f, files[i].grade, "packages", help, "%s is missing: %s", files[i].package,
                             files[i].lack);
        }
        if (master && !agent)
                findings_add(f, FINDING_WARN, "packages",
                             "apt install ./primus-agent_*.deb   (RPM: dnf install ./primus-agent-*.rpm), if "
                             "they are to",
                             "primus-master is installed, primus-agent is not: no jobs run on this host");
        else if (all)
                findings_add(f, FINDING_OK, "packages", NULL, "%s",
                             master ? "primus-master, primus-agent" : "primus-agent");
}

/* A host that is not in a cluster yet: what comes next. */
static void check_joined(struct findings *f, const char *root) {
        switch (doctor_joined(root)) {
        case JOINED:
                findings_add(f, FINDING_OK, "joined", NULL,
                             "this host has an identity in " PRIMUS_SYSCONFDIR "/node");
                return;
        case JOINED_NO_AGENT:
                return;
        case JOINED_NOT:
                break;
        }
        if (doctor_is_master(root))
                findings_add(f, FINDING_FAIL, "joined",
                             "systemctl enable --now primus-agentd   (systemctl status primus-first-contact "
                             "says why, where that did not do it)",
                             "this host has a master, and is no node of its cluster");
        else
                findings_add(f, FINDING_FAIL, "joined",
                             "on the master: primusctl token create; here, as root: primusctl join MASTER   "
                             "(or, to make this host one: systemctl enable --now primus-masterd "
                             "primus-agentd)",
                             "this host is not a node of a cluster yet");
}

/* Whether a zone of firewalld names the port. */
static bool firewalld_has(const char *root, const char *port) {
        static const char *const zones[] = { "public",           "home",    "work",
                                             "internal",         "trusted", "FedoraServer",
                                             "FedoraWorkstation" };
        char path[96];

        for (size_t i = 0; i < ELEMENTSOF(zones); i++) {
                _cleanup_free_ char *text = NULL;
                snprintf(path, sizeof(path), "/etc/firewalld/zones/%s.xml", zones[i]);
                if (read_file_below(root, path, FILE_MAX, &text) >= 0 && strstr(text, port))
                        return true;
        }
        return false;
}

/* Rules are root's to read, and what they come to is not said in files: what is known is whether one of the
 * usual firewalls is on. */
static void check_firewall(struct findings *f, const char *root) {
        bool master = doctor_is_master(root);
        _cleanup_free_ char *ufw = NULL, *rules = NULL;

        if (exists(root, "/run/firewalld") || exists(root, "/run/firewalld.pid")) {
                if (firewalld_has(root, "\"23000-27999\"") && (!master || firewalld_has(root, "\"7747\"")))
                        findings_add(f, FINDING_OK, "firewall", NULL, "firewalld lets Primus' ports through");
                else
                        findings_add(f, FINDING_WARN, "firewall",
                                     master ? "firewall-cmd --permanent --add-port=7747/tcp "
                                              "--add-port=23000-27999/tcp; firewall-cmd --reload"
                                            : "firewall-cmd --permanent --add-port=23000-27999/tcp; "
                                              "firewall-cmd --reload",
                                     "firewalld runs, and no zone of it names the ports of Primus%s: jobs on "
                                     "several hosts may not meet",
                                     master ? " (7747 for hosts, 23000-27999 for jobs)"
                                            : " (23000-27999 for jobs)");
                return;
        }
        if (read_file_below(root, "/etc/ufw/ufw.conf", FILE_MAX, &ufw) < 0 || !strstr(ufw, "\nENABLED=yes"))
                return;
        if (read_file_below(root, "/etc/ufw/user.rules", FILE_MAX, &rules) < 0)
                findings_add(f, FINDING_UNKNOWN, "firewall", "sudo primusctl doctor",
                             "ufw is on, and its rules are root's to read");
        else if (strstr(rules, "23000:27999") && (!master || strstr(rules, "7747")))
                findings_add(f, FINDING_OK, "firewall", NULL, "ufw lets Primus' ports through");
        else
                findings_add(
                        f, FINDING_WARN, "firewall",
                        master ? "ufw allow 7747/tcp; ufw allow 23000:27999/tcp"
                               : "ufw allow 23000:27999/tcp",
                        "ufw is on, and no rule of it names the ports of Primus%s: jobs on several hosts "
                        "may not meet",
                        master ? " (7747 for hosts, 23000-27999 for jobs)" : " (23000-27999 for jobs)");
}

void doctor_setup(struct findings *f, const char *root) {
        check_packages(f, root);
        check_joined(f, root);
        check_firewall(f, root);
}
