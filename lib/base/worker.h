/* SPDX-License-Identifier: Apache-2.0 */
/* One thread for the few things that may block (a remote file system, name resolution, a big tree to remove),
 * so that agentd's loop never does. Work is done in the order given. */
#pragma once

#include <systemd/sd-event.h>

#include "lib/base/cleanup.h"

struct worker;

/* run is called in the thread and must not log, use the bus or touch shared state; done (may be NULL) is
 * called afterwards in the loop. Both get data, which belongs to the caller; it must live until done. */
typedef void (*worker_function)(void *data);

int worker_new(sd_event *event, struct worker **ret);
/* Waits for the piece in hand, drops the rest (their done is not called). */
void worker_free(struct worker *w);
DEFINE_CLEANUP(struct worker *, worker_free)

/* As worker_new(), for code that is not ours and may want more stack than that gives. */
int worker_new_deep(sd_event *event, struct worker **ret);
/* Leaves the thread alone with the piece in hand, which may never end; when it does, release is called there
 * in place of done. The pieces that are not begun are dropped. */
void worker_abandon(struct worker *w, worker_function release, void *data);

int worker_submit(struct worker *w, worker_function run, worker_function done, void *data);
