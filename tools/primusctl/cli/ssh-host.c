/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/primusctl/cli/ssh-host.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "lib/base/cleanup.h"

enum {
        HOST_MAX = 512
};

int ssh_host_split(const char *host, char **ret_name, const char **ret_port) {
        _cleanup_free_ char *name = NULL;
        const char *colon = strrchr(host, ':');
        size_t length = strlen(host);

        if (length == 0 || length > HOST_MAX || *host == '-')
                return -EINVAL;
        for (const char *c = host; *c; c++)
                if ((unsigned char)*c <= ' ' || *c == 0x7f || strchr("/\"'\\$`;&|<>()*?", *c))
                        return -EINVAL;
        /* An IPv6 address has colons of its own, and a port only behind brackets. */
        if (colon && strchr(host, ':') != colon && colon[-1] != ']')
                colon = NULL;
        if (colon) {
                size_t digits = strspn(colon + 1, "0123456789");

                if (colon == host || digits == 0 || digits > 5 || colon[1 + digits])
                        return -EINVAL;
                length = colon - host;
        }
        name = strndup(host, length);
        if (!name)
                return -ENOMEM;
        *ret_name = TAKE_PTR(name);
        *ret_port = colon ? colon + 1 : NULL;
        return 0;
}
