/* SPDX-License-Identifier: Apache-2.0 */
/* The searcher of a search: the executor of its role "searcher", an element of the array that is no trial.
 * What it asks for is recorded as what its trials say is, and then done; what it asks for again is done
 * already. While nobody listens, trials go on, and no others begin. */
#pragma once

#include <systemd/sd-bus.h>

#include "lib/wire/messages.h"

struct job;
struct manager;
struct node;

/* An executor asks; call is answered when what follows is on disk, one for events when there are some. 1: it
 * will be; or a negative errno with an error set. */
int searcher_asks(struct manager *m, const struct node *node, sd_bus_message *call,
                  const struct search_question *q, sd_bus_error *error);
/* Something has happened to a trial, and is to be on disk: whoever waits for it is told. */
void searcher_tell(struct manager *m, const struct job *array);
/* The search has ended, or the manager goes (NULL): nobody is to be told any more. */
void searcher_forget(struct manager *m, const struct job *array);
