/* SPDX-License-Identifier: Apache-2.0 */
/* How fast an interface is and can be: ethtool over generic netlink, /sys/class/net where the kernel has none
 * (before 5.6). */
#pragma once

#include <stdint.h>

#include "lib/base/cleanup.h"

struct ethtool;

int ethtool_new(struct ethtool **ret);
void ethtool_free(struct ethtool *e);
DEFINE_CLEANUP(struct ethtool *, ethtool_free)

/* Mbit/s; 0: not known, as of most virtual ones. Asks the driver, which may take it a millisecond. */
void ethtool_speed(struct ethtool *e, int index, const char *name, uint64_t *ret_mbps, uint64_t *ret_max);

/* The fastest of a bitmap of link modes (ETHTOOL_LINK_MODE_*). */
uint64_t ethtool_fastest(const uint32_t *words, unsigned n);
