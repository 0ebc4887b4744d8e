/* SPDX-License-Identifier: Apache-2.0 */
/* Who is at the other end of a unix socket: the process, held by a pidfd so that its number cannot come to
 * mean somebody else, and the executor's unit whose control group it is in. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#define IDENTITY_UNIT_MAX 256

struct identity {
        pid_t pid;
        uid_t uid;
        int pidfd;
};

/* Takes the peer's identity of a fresh connection (SO_PEERPIDFD from Linux 6.5 on, else SO_PEERCRED and
 * pidfd_open) and has the kernel put credentials on every packet (SO_PASSCRED), for the challenge. Caller
 * closes ret->pidfd. */
int identity_open(int fd, struct identity *ret);

/* Whether the process still runs. */
int identity_alive(const struct identity *i);

/* The unit whose control group the process is in, when that is a service in a slice below primus.slice of
 * this host's systemd. 0, -ENOENT: it is elsewhere, or negative errno. The caller looks at identity_alive()
 * afterwards. */
int identity_unit(const struct identity *i, char ret[static IDENTITY_UNIT_MAX]);

/* Pure part of the former: text is /proc/PID/cgroup of the process, init that of PID 1. Works on cgroup v2
 * ("0::PATH") and on hybrid and v1 hosts ("N:name=systemd:PATH"), and where the host's systemd sits in a
 * control group itself. */
int identity_parse_cgroup(const char *text, const char *init, char ret[static IDENTITY_UNIT_MAX]);
