/* SPDX-License-Identifier: Apache-2.0 */
/* The site's hooks on this host (prolog, epilog, health): each run is a transient unit of its own, with a
 * time limit, whose output is logged line by line. At most HOOKS_MAX run at a time, the others wait. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "agentd/unit/systemd.h"
#include "lib/base/cleanup.h"

#define HOOKS_MAX 8u
#define HOOK_TEXT_MAX 256u

struct hooks;

/* How it went, once, unless hooks_free() comes first. text: why it failed, its last line of output where it
 * said one; valid during the call. */
typedef void (*hook_handler)(bool ok, const char *text, void *userdata);

/* systemd stays the caller's, and goes first. timeout_usec: for each. */
int hooks_new(sd_event *event, struct systemd *systemd, uint64_t timeout_usec, struct hooks **ret);
void hooks_free(struct hooks *h);
DEFINE_CLEANUP(struct hooks *, hooks_free)

/* Whether the site has a hook of that name. */
bool hooks_present(const char *name);
/* instance: what the unit's name has behind the hook's, letters, digits and dashes; env: NULL-ended
 * NAME=VALUE, which everybody on the host may read. job: for the log, 0: none. */
int hooks_run(struct hooks *h, const char *name, const char *instance, char *const *env, uint32_t job,
              hook_handler handler, void *userdata);

/* systemd has ended a job of that unit; true: it was a hook's. */
bool hooks_job_removed(struct hooks *h, const char *unit, const char *result);
/* A unit that an earlier agentd left behind: nobody waits for it. */
bool hooks_stale(const char *unit);
