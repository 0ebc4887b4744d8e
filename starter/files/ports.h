/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps an executor from the ports that other jobs were granted, where systemd cannot: SocketBindDeny= needs
 * a systemd that was built with its BPF framework, which Debian's is not. A small program for each executor
 * is pinned below /sys/fs/bpf/primus, and systemd attaches it to the unit's cgroup (BPFProgram=), also again
 * after a daemon-reload; so the pins stay as long as the unit does, and no longer. */
#pragma once

#include <linux/bpf.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/unitname.h"

#define PORTS_PIN_DIR "/sys/fs/bpf/primus"
#define PORTS_INSTRUCTIONS_MAX 256u

struct ports_pins {
        char bind4[sizeof(PORTS_PIN_DIR) + UNIT_NAME_MAX + 8],
                bind6[sizeof(PORTS_PIN_DIR) + UNIT_NAME_MAX + 8];
};

/* The instructions: any port outside first ... last, and the granted ones, may be bound to. Returns how many;
 * -E2BIG. */
int ports_program(uint16_t first, uint16_t last, const uint16_t *granted, size_t n,
                  struct bpf_insn ret[static PORTS_INSTRUCTIONS_MAX]);

/* Loads and pins it for the unit. < 0: nothing is pinned; the kernel, or what agentd may do, does not allow
 * it. */
int ports_pin(const char *unit, uint16_t first, uint16_t last, const uint16_t *granted, size_t n,
              struct ports_pins *ret);
void ports_unpin(const char *unit);
/* Takes away the pins of units that have no private directory any more. */
void ports_sweep_stale(void);
