/* SPDX-License-Identifier: Apache-2.0 */
/* /run/primus/agent/link: what agentd has to know about its link after a restart of its own on the same boot,
 * and primus-alone where there is no agentd. */
#pragma once

#include <stdint.h>
#include <systemd/sd-id128.h>

struct link_state {
        sd_id128_t cluster;
        uint64_t term;       /* the highest ever followed */
        uint64_t acked_boot; /* CLOCK_BOOTTIME at which the last acknowledged heartbeat was sent; 0: none yet
                              */
        uint64_t lost_usec;  /* masterd's, as of then */
};

/* The boot that PID 1 is of, as primus-starter has found it (starter/files/prepare.c says why it is asked).
 */
int boot_id_read(sd_id128_t *ret);

/* A file of another boot, or none: all 0. */
int link_state_load(const char *root, struct link_state *ret);
int link_state_save(const char *root, const struct link_state *s);

/* When the executors with onPartition=stop have to be stopped, on CLOCK_BOOTTIME: lost minus min(10 s, lost /
 * 3) after the last acknowledged heartbeat was sent. USEC_INFINITY: there is nothing to go by. */
uint64_t link_state_deadline(const struct link_state *s);
/* When primus-alone stops them, if agentd has not: a moment later, and still two thirds of that margin before
 * masterd starts them elsewhere. */
uint64_t link_state_alone(const struct link_state *s);
