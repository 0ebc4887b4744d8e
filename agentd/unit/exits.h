/* SPDX-License-Identifier: Apache-2.0 */
/* The exit records in /run/primus/exits: watching, reading. primus-exit writes them
 * (docs/architecture.md). */
#pragma once

#include <stdbool.h>
#include <systemd/sd-event.h>

#include "lib/base/cleanup.h"
#include "lib/unit/files.h"
#include "lib/wire/messages.h"

#define EXIT_RECORD_MAX (16u << 10)

/* Reads the text of a record. -EBADMSG: not a record (a line without '=', an identity that is missing or
 * invalid, a number that is none). Where the result is missing it is "no-record". text is changed.
 * ret->detail is an allocated "". */
int exit_record_parse(char *text, struct exit_report *ret);

struct exits;
/* A record has appeared; report may be taken over by moving it out (zero it then). */
typedef void (*exits_handler)(const char *unit, struct exit_report *report, void *userdata);

/* Watches the directory; records that are there already are reported by exits_scan(). root as in
 * private.h. */
int exits_new(sd_event *event, const char *root, exits_handler handler, void *userdata, struct exits **ret);
void exits_free(struct exits *e);
DEFINE_CLEANUP(struct exits *, exits_free)
int exits_scan(struct exits *e);

bool exits_present(struct exits *e, const char *unit);
/* -ENOENT: there is none; -EBADMSG. */
int exits_read(struct exits *e, const char *unit, struct exit_report *ret);
