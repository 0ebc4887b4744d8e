/* SPDX-License-Identifier: Apache-2.0 */
/* The state of relay. */
#pragma once

struct manager;

int relay_state_new(struct manager *m); /* -ENOMEM */
/* Logs that are kept, jobs' files, and sessions, in the state directory; an error is logged. */
int relay_open(struct manager *m);
/* Ends all sessions. */
void relay_close_sessions(struct manager *m);
void relay_state_free(struct manager *m);
