/* SPDX-License-Identifier: Apache-2.0 */
/* The node on masterd's own host. Its agent reaches masterd over loopback, and executors elsewhere would be
 * told to meet its executors at 127.0.0.1: they are told the address at which their own hosts reach masterd.
 */
#pragma once

#include "lib/base/addr.h"

struct manager;
struct node;

/* Where other hosts reach a node that reports this address: another one only where it reports loopback. */
struct addr ownhost_address(const struct manager *m, const struct node *node, const struct addr *reported);

/* A node has registered: its connection may tell at which address this host is reached, and then the node of
 * this host has that one from now on, for the jobs that run too. */
void ownhost_registered(struct manager *m, struct node *node);
