/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of jobs' objects: who looks (the job's "visible" decides, masterd/core/sight.h) and who controls (its
 * owner, root, and whom polkit grants the action). A refusal says whose job it is and whom to ask. */
#pragma once

#include <stdbool.h>

#include "masterd/caller/caller.h"
#include "masterd/core/listeners.h"

struct manager;
struct job;

/* Runs work (a caller_handler; userdata is the manager) when m's sender may look at the job. masked (may be
 * NULL: work) runs in its place for who is neither the owner, nor root, nor granted by polkit to control it.
 * action: polkit's by which one may look as well. Both return like a method handler. */
int api_look(struct job *j, sd_bus_message *call, const char *action, caller_handler work,
             caller_handler masked, sd_bus_error *error);
/* The same of what changes the job, or acts on its processes. */
int api_control(struct job *j, sd_bus_message *call, const char *action, caller_handler work,
                sd_bus_error *error);

/* For lists, whose work begins with it: 0 when all is known that api_sees() needs, or will be; otherwise what
 * work returns: it will be run once more when more is known. Part of the caller's turn. */
int api_know(struct manager *m, sd_bus_message *call, uint32_t uid, caller_handler work);
/* Whether that user may look at the job, as far as it is known now; waits for nothing. */
bool api_sees(struct manager *m, uint32_t uid, const struct job *j);

/* "visible" s and "visibleTo" s (in words) of a dictionary that is open. */
int api_append_visible(sd_bus_message *reply, struct manager *m, const struct job *j);
