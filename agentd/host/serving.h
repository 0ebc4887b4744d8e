/* SPDX-License-Identifier: Apache-2.0 */
/* Whom this host serves (lib/policy/serve.h), where the user database has to be asked: in a thread, for each
 * user at most once a minute, and not waited for longer than ten seconds. */
#pragma once

#include <systemd/sd-event.h>

#include "agentd/executors/units.h"
#include "lib/base/cleanup.h"
#include "lib/policy/serve.h"

struct serving;

/* policy and node stay the caller's. changed: serving_settled() is true now, or what serving_describe() says
 * is another thing, to be told again where they were told before. */
int serving_new(sd_event *event, const struct serve_policy *policy, const char *node,
                void (*changed)(void *userdata), void *userdata, struct serving **ret);
/* Handlers that wait are called. */
void serving_free(struct serving *s);
DEFINE_CLEANUP(struct serving *, serving_free)

/* Calls handler exactly once, maybe at once. Where it cannot be told, the user is not served. */
void serving_ask(struct serving *s, uint32_t uid, serve_handler handler, void *userdata);
/* What is known now: NULL, or why not, in buf. Whom nobody asked for yet counts as served. */
const char *serving_known(struct serving *s, uint32_t uid, char buf[static SERVE_WHY_MAX]);

/* What masterd is told, as far as it is known; names are numbers by then. -ENOMEM. */
int serving_describe(struct serving *s, struct serves_info *ret);
/* It is known by now, or takes too long. */
bool serving_settled(const struct serving *s);
