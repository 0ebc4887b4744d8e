/* SPDX-License-Identifier: Apache-2.0 */
/* The logs of an array are its elements'. Each of them is a job with a watch and a logstream of its own; at
 * most ARRAYLOGS_WINDOW of them at a time, because each takes places of the bus. Nothing is left out by that:
 * who comes later is read from its beginning. */
#pragma once

#include "tools/primusctl/commands/logstream.h"

#define ARRAYLOGS_WINDOW 32u

struct arraylogs;

/* Shows the elements of the array through view, which has to be one with prefixes: "[INDEX] ROLE/INDEX | ".
 * With options->follow until the array has ended, as they run; else element by element, by index, and of each
 * its latest run. done: everything that was asked for has been shown. A failure ends the event loop. */
int arraylogs_new(struct cli *c, sd_event *event, const struct job_ref *array,
                  const struct logstream_options *options, struct logview *view, void (*done)(void *userdata),
                  void *userdata, struct arraylogs **ret);
void arraylogs_free(struct arraylogs *a);
DEFINE_CLEANUP(struct arraylogs *, arraylogs_free)

bool arraylogs_done(const struct arraylogs *a);
/* Attempts of which something could be shown. */
size_t arraylogs_shown(const struct arraylogs *a);
