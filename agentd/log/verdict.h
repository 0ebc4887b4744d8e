/* SPDX-License-Identifier: Apache-2.0 */
/* What systemd said of a unit's end, for a unit that has left no word of its own: its messages in the
 * journal, which stay when the unit is gone. Blocks: for threads. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct journal_verdict {
        char result[32]; /* systemd's: success, exit-code, signal, oom-kill, ... */
        char code[16];   /* of its main process: exited, killed, dumped */
        int32_t status;
        bool stopped; /* somebody asked for it */
        uint64_t ended_real;
};

/* Of PID 1's messages about the unit of that time or later. 1; 0: there are none of an end. directory: NULL
 * for this host's journal. */
int journal_verdict(const char *directory, const char *unit, uint64_t since_real,
                    struct journal_verdict *ret);
