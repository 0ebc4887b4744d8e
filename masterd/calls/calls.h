/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of people on other hosts. A host's agent hands them on, by a connection of their own, with the uid
 * that the host's kernel says. They come in on a bus inside this process, which has the same objects as the
 * system bus, under names that are no bus's (":far.n2.1.77"), so that whatever answers them need not know.
 *
 * A host speaks for those whom it serves and RelayFrom= allows it; never for root, nor for polkit's. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-bus.h>

struct callers;
struct link;
struct manager;
struct node;

#define CALLS_NAMES_MAX 1024u              /* of one host */
#define CALLS_PATHS_MAX 4096u              /* whose signals it hears; beyond them all */
#define CALLS_MAX 1024u                    /* of one host, that are not answered; */
#define CALLS_BYTES_MAX ((size_t)64 << 20) /* with so many bytes, and one more call */

/* -ENOMEM. */
int calls_new(struct manager *m);
/* All who came by them are gone. */
void calls_end(struct manager *m);
void calls_free(struct manager *m);
/* The bus where objects are to be offered, too. callers outlives the connections of hosts. */
sd_bus *calls_bus(struct manager *m);
void calls_set_callers(struct manager *m, struct callers *callers);

/* Whether that host hands on anybody's calls at all. */
bool calls_welcome(const struct manager *m, const struct node *node);
/* This connection is for the node's calls from now on. Negative: it cannot be. */
int calls_attach(struct link *l);
/* It is gone, and with it who came by it. */
void calls_gone(struct manager *m, struct link *l);

/* On that connection, by that name, calls uid, from inside that job (0: of none); it has left. */
void calls_caller(struct link *l, const char *name, uint32_t uid, uint32_t job);
void calls_caller_gone(struct link *l, const char *name);
/* Somebody there wants the signals of that path ("": all), or wants them no more. */
void calls_listen(struct link *l, const char *path);
void calls_unlisten(struct link *l, const char *path);
