/* SPDX-License-Identifier: Apache-2.0 */
/* Who may connect: agentd's user, by the kernel's word. */
#pragma once

#include "starter/calls/starter.h"

#define CONNECTIONS_MAX 8u
/* That wait to be read by one connection: far more than an agentd asks for in one go. */
#define ANSWERS_MAX 16384u

struct server;
/* fd: a listening socket, AF_UNIX and SOCK_STREAM; stays the caller's. */
int server_new(struct starter *starter, int fd, struct server **ret);
void server_free(struct server *s);
DEFINE_CLEANUP(struct server *, server_free)
