/* SPDX-License-Identifier: Apache-2.0 */
/* Turns a start order into the arguments of systemd's StartTransientUnit: what a unit of Primus looks like is
 * decided here and nowhere else. Pure: no bus, no file, no clock. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-bus.h>

#include "agentd/unit/enforce.h"
#include "agentd/unit/environment.h"
#include "lib/wire/messages.h"

/* The least TimeoutStopUSec= of a unit. */
#define UNIT_STOP_USEC_MIN UINT64_C(5000000)

/* Appends (s name, s mode, a(sv) properties, a(sa(sv)) auxiliary units) to m. -EINVAL with *ret_why
 * (allocated, one sentence for people) where systemd could not take the order: an argument that is not UTF-8,
 * a GPU that is not there. */
int unit_build(sd_bus_message *m, const struct start_order *o, const struct unit_context *context,
               char **ret_why);

/* Expands %j %r %i %a %n %% of an output pattern; a relative one is below directory, or stays so where that
 * is NULL. -EINVAL: an unknown letter. */
int output_expand(const char *pattern, const struct executor_id *id, const char *node, const char *directory,
                  char **ret);

/* One sentence for an exit status by which systemd says that it could not run the command (200 ... 243),
 * allocated; "" for other ends. Texts may be NULL where they are no longer known. */
char *exit_explain(const struct exit_report *e, const char *node, const char *command, const char *directory,
                   uint32_t uid);
