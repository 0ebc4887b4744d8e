/* SPDX-License-Identifier: Apache-2.0 */
/* primus-executor --collect DIRECTORY: what a job has left there, for agentd at the other end of standard
 * input (lib/wire/session.h), as a stream (lib/wire/artifacts.h). Runs as the job's user. */
#pragma once

/* control: the socket. Returns an exit status. */
int collect_run(int control, const char *directory);
