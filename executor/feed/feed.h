/* SPDX-License-Identifier: Apache-2.0 */
/* primus-executor --feed: turns granted tasks into bytes on the trainer's standard input, reports how far the
 * trainer has come, and ends as the trainer ends.
 *
 * What the reports mean is the trainer's exit: while it runs, and when it fails, a task counts as far as
 * input.ack says; when it exits 0, all that it has read counts. A trainer that exits 0 before it has read
 * everything (head -n 32) is right to do so: the tasks that it has not read to their ends are handed back,
 * and its status stands. The same holds for a trainer that closes its standard input; its tasks come back
 * when it exits. */
#pragma once

/* Runs the trainer; ends the process as it ended, or returns the exit status of a feed that came to nothing.
 * socket is the path of agentd's socket. */
int feed_run(const char *socket, char *const argv[]);

/* Exit statuses of a feed whose trainer never ran. 126 and 127 (cannot be executed, not found) are as in
 * shells. */
enum {
        FEED_EXIT_INTERNAL = 70,
        FEED_EXIT_REFUSED = 73, /* agentd refuses us */
};
