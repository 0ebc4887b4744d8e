/* SPDX-License-Identifier: Apache-2.0 */
/* How ranks find each other and prove that they are of one job: over a Unix socket on one host, or TCP and
 * the job's secret. As primus.distributed of Python does it, so that ranks of both meet. Invariant: nothing
 * of a stranger's is read beyond the 52 bytes of its proof. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define SECRET_MIN 16u
#define MEET_WHY_MAX 512u

struct meeting {
        uint32_t rank, size;
        const char *path; /* of a Unix socket, or NULL */
        const char *host; /* rank 0's, with port and secret */
        uint16_t port;
        const uint8_t *secret;
        size_t secret_size;
        uint64_t until; /* microseconds, CLOCK_BOOTTIME */
};

/* Blocks until all are there. In rank 0 peers[] has a connection to each other rank, elsewhere peers[0] one
 * to rank 0; the caller closes what is not negative, also after a failure. -ETIMEDOUT; why is a line for each
 * error. */
int meet_all(const struct meeting *m, int peers[], char why[static MEET_WHY_MAX]);
