/* SPDX-License-Identifier: Apache-2.0 */
/* Which process listens on a port: /proc/net/tcp names sockets, and the processes that have them open do the
 * rest. Only processes of our own cgroup are looked at. */
#pragma once

#include <stdint.h>
#include <sys/socket.h>

/* The address at which a process of this cgroup listens on that TCP port; one for any address is the
 * loopback. -ECONNREFUSED: none listens there. root: for tests, before /proc ("" in life). cgroup: the path
 * of the cgroup whose processes count, as in /proc/PID/cgroup. */
int listening_find(const char *root, const char *cgroup, uint16_t port, struct sockaddr_storage *ret,
                   socklen_t *ret_size);

/* The path of our own cgroup in systemd's tree, allocated. */
int listening_own_cgroup(const char *root, char **ret);
