/* SPDX-License-Identifier: Apache-2.0 */
/* What primus_progress() shares with those who wait: somebody who waits for data is not hung, so the watchdog
 * is fed meanwhile; but only where the program feeds it by primus_progress() otherwise. */
#pragma once

/* How long to wait before progress_waiting(): milliseconds, -1 for ever. */
int progress_wait_msec(void);
void progress_waiting(void);
