/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of the join protocol, both sides; numbers big-endian. Not for use outside lib/wire.
 * request: id[8] secret[16] u16 name length, u16 CSR length, name, CSR
 * reply:   u8 status, 3 zero bytes, u32 length 1, u32 length 2; granted: certificate, CA; refused: reason,
 * nothing */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "lib/wire/messages.h"

#define JOIN_NAME_MAX 64u
#define JOIN_PEM_MAX (16u << 10)
#define JOIN_WHY_MAX 512u

struct join_head {
        uint8_t id[8];
        uint8_t secret[16];
        uint16_t name_size;
        uint16_t csr_size;
};
_Static_assert(sizeof(struct join_head) == 28, "the head has no holes");

#define JOIN_REQUEST_MAX (sizeof(struct join_head) + JOIN_NAME_MAX + LINK_CSR_MAX)

/* How many bytes a request has in all, as far as the first done of them tell; -EBADMSG: it is none. bytes may
 * be NULL where done is 0. */
ssize_t join_request_wanted(const uint8_t *bytes, size_t done);
/* Takes a whole one apart; the certificate request points into it. -EINVAL: the name is not one that a node
 * may have. */
int join_request_split(const uint8_t *bytes, size_t size, struct join_head *ret_head,
                       char ret_name[static JOIN_NAME_MAX + 1], const char **ret_csr, size_t *ret_csr_size);

enum join_status {
        JOIN_GRANTED,
        JOIN_REFUSED
};

struct join_reply {
        uint8_t status;
        uint8_t zero[3];
        uint32_t size[2];
};
_Static_assert(sizeof(struct join_reply) == 12, "the head has no holes");
