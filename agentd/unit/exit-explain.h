/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "lib/wire/messages.h"

/* One sentence for an exit status by which systemd says that it could not run the command (200 ... 243),
 * allocated; "" for other ends. Texts may be NULL where they are no longer known. */
char *exit_explain(const struct exit_report *e, const char *node, const char *command, const char *directory,
                   uint32_t uid);
