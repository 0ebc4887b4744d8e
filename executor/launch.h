/* SPDX-License-Identifier: Apache-2.0 */
/* Becoming a command, in its user's environment: with its PATH, and with its output in a file. */
#pragma once

/* Appends standard output and error to the file (NULL: they stay) and executes argv. Returns only on failure, having said
 * why: systemd's exit status for it, 203 (command) or 209 (output). */
int launch_run(const char *output, char *const argv[]);
