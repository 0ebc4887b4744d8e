/* SPDX-License-Identifier: Apache-2.0 */
/* Who may do what: the owner of a thing and root, and beyond them those whom polkit grants the action. */
#pragma once

#include "masterd/caller/caller.h"

#define OWNER_NONE UINT32_MAX           /* nobody owns it: root and polkit only */
#define OWNER_ANOTHER (UINT32_MAX - 1u) /* somebody else than the caller does, which was found out before */

#define ACTION_MANAGE_JOBS "org.primus.manage-jobs"
/* manage-jobs implies both, and see-logs see-jobs: dbus/org.primus.policy. */
#define ACTION_SEE_JOBS "org.primus.see-jobs"
#define ACTION_SEE_LOGS "org.primus.see-logs"
#define ACTION_MANAGE_SESSIONS "org.primus.manage-sessions"
#define ACTION_MANAGE_NODES "org.primus.manage-nodes"

/* What a refusal says in place of "Only the owner and root ..."; copied. */
int authorize_saying(struct callers *c, sd_bus_message *m, uint32_t owner, const char *action,
                     const char *refusal, caller_handler handler, void *userdata,
                     void (*destroy)(void *userdata), sd_bus_error *ret_error);

/* Runs the handler (see caller_handler) when m's sender may: at once where that is known, and then returns
 * what the handler returned; otherwise later, and returns 1. Who may not gets AccessDenied (or
 * InteractiveAuthorizationRequired) with a sentence that says who may. owner: uid or one of those. action
 * must be a string constant. destroy (may be NULL) is called with userdata behind the handler, or instead of
 * it. */
int authorize(struct callers *c, sd_bus_message *m, uint32_t owner, const char *action,
              caller_handler handler, void *userdata, void (*destroy)(void *userdata),
              sd_bus_error *ret_error);
