/* SPDX-License-Identifier: Apache-2.0 */
/* Options of the link's sockets; not for use outside lib/wire. */
#pragma once

/* Small messages leave at once, and an unplugged cable is noticed within 25 s. Failures are ignored: without
 * an option the connection still works. */
void tcp_set_options(int fd);
