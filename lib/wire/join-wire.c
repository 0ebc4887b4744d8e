/* SPDX-License-Identifier: Apache-2.0 */
/* A request to join, as a stranger has written it. Invariant: no byte behind what is there is read. */
#include "lib/wire/join-wire.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#include "lib/base/names.h"
#include "lib/wire/authority.h"

ssize_t join_request_wanted(const uint8_t *bytes, size_t done) {
        struct join_head head;
        size_t name, csr;

        if (done < sizeof head)
                return sizeof head;
        memcpy(&head, bytes, sizeof head);
        name = be16toh(head.name_size);
        csr = be16toh(head.csr_size);
        explicit_bzero(&head, sizeof head);
        if (name == 0 || name > JOIN_NAME_MAX || csr == 0 || csr > LINK_CSR_MAX)
                return -EBADMSG;
        return (ssize_t)(sizeof head + name + csr);
}

int join_request_split(const uint8_t *bytes, size_t size, struct join_head *ret_head,
                       char ret_name[static JOIN_NAME_MAX + 1], const char **ret_csr, size_t *ret_csr_size) {
        ssize_t want = join_request_wanted(bytes, size);
        size_t name_size;

        if (want < 0 || (size_t)want != size || size < sizeof *ret_head)
                return -EBADMSG;
        memcpy(ret_head, bytes, sizeof *ret_head);
        name_size = be16toh(ret_head->name_size);
        memcpy(ret_name, bytes + sizeof *ret_head, name_size);
        ret_name[name_size] = '\0';
        if (strlen(ret_name) != name_size || !node_name_valid(ret_name) ||
            strcmp(ret_name, AUTHORITY_MASTER_NAME) == 0)
                return -EINVAL;
        *ret_csr = (const char *)bytes + sizeof *ret_head + name_size;
        *ret_csr_size = be16toh(ret_head->csr_size);
        return 0;
}
