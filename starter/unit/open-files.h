/* SPDX-License-Identifier: Apache-2.0 */
/* How many files a process may have open where its role does not say: as systemd has it for every service,
 * with the soft limit raised to what this host's agentd.conf says, within the hard one. systemd's soft limit
 * is 1024, for programs that call select(); a trainer with some workers has more pipes, sockets and shared
 * memory than that, and none of them selects beyond it. */
#pragma once

#include <stdint.h>
#include <systemd/sd-bus.h>

struct open_files {
        uint64_t soft, hard; /* 0, 0: systemd's own */
};

/* soft and hard are systemd's. Neither is ever less than these. */
struct open_files open_files_decide(uint32_t at_least, uint64_t soft, uint64_t hard);
/* Asks systemd, and waits for its answer: before the loop, where nobody waits for the program yet. */
int open_files_ask(sd_bus *systemd, uint32_t at_least, struct open_files *ret);
/* Appends the properties to an array of (sv) that is open. */
int open_files_append(sd_bus_message *m, const struct open_files *f);
