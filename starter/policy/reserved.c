/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's own use of ports. */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/file.h"
#include "lib/base/log.h"
#include "starter/policy/policy.h"

#define RESERVED_PORTS "/proc/sys/net/ipv4/ip_local_reserved_ports"
#define LOCAL_PORTS "/proc/sys/net/ipv4/ip_local_port_range"

/* Whether it would at all: its own range for connections is above 32767, unless somebody has changed that. */
static bool hands_out(const struct policy *p) {
        _cleanup_free_ char *text = NULL;
        unsigned first, last;

        return read_file(LOCAL_PORTS, 64, &text, NULL) < 0 || sscanf(text, "%u %u", &first, &last) != 2 ||
               (p->port_first <= last && first <= p->port_last);
}

void ports_reserve(const struct policy *p) {
        _cleanup_free_ char *old = NULL, *text = NULL;
        char range[32];
        _cleanup_close_ int fd = -EBADF;
        int r;

        snprintf(range, sizeof(range), "%u-%u", p->port_first, p->port_last);
        r = read_file(RESERVED_PORTS, 64 << 10, &old, NULL);
        if (r >= 0) {
                old[strcspn(old, "\n")] = 0;
                if (strstr(old, range))
                        return;
                if (asprintf(&text, "%s%s%s", old, *old ? "," : "", range) < 0) {
                        log_oom();
                        return;
                }
                fd = open(RESERVED_PORTS, O_WRONLY | O_CLOEXEC);
                r = fd < 0 ? -errno : write_all(fd, text, strlen(text));
        }
        if (r < 0)
                log_full(hands_out(p) ? LOG_NOTICE : LOG_DEBUG, r, NULL,
                         "Cannot reserve ports %s in net.ipv4.ip_local_reserved_ports; a connection may take "
                         "one",
                         range);
}
