/* SPDX-License-Identifier: Apache-2.0 */
/* What both readers of the journal need: opening it, an entry as text, and a point in time up to which
 * everything that was printed is in it.
 *
 * Both run in threads of their own. Reading maps files that may have to come from a busy disk, seeking
 * bisects every journal file of the host, and a page of 256 KiB is thousands of entries: milliseconds to a
 * second, which agentd's loop (heartbeats, starts) does not have. An sd_journal is used by the thread that
 * opened it alone. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-journal.h>

/* Bytes that grow. */
struct log_buffer {
        char *data;
        size_t size, allocated;
};
int log_buffer_append(struct log_buffer *b, const void *data, size_t size);
void log_buffer_done(struct log_buffer *b);

/* After so many entries a reader closes its journal and opens it anew (1 to 2 ms), since sd-journal keeps
 * every page that was read mapped, and those count as agentd's memory. */
#define JOURNAL_ENTRIES_MAX 8192u

/* Opens the host's journal, or (for tests) the one in directory; no limit on the size of fields. */
int journal_open(const char *directory, sd_journal **ret);

/* Appends the current entry's message and a newline; no newline where journald itself cut the line because it
 * was too long (the rest follows in the next entry). At most max bytes: what an executor sent to journald's
 * own socket may be as large as it likes, and is cut. Returns bytes appended (0: the entry has no message),
 * or negative errno. */
int journal_append_entry(sd_journal *j, struct log_buffer *b, size_t max);

/* Which journal file the current entry of a unit is in, as far as its neighbour can tell: a file has each
 * field of equal content once, so two entries of one unit that follow each other in one file name their unit
 * at the same address. NULL: the entry has no unit. */
const void *journal_mark(sd_journal *j);

/* Whether b, which follows a, is a once more: when a file turns out to be full while an entry is being added,
 * journald adds it again to the next one, with the same times and content under another sequence number.
 * Equal lines printed at once have the same times too, but are in the same file. mark_a is NULL when a's file
 * is gone. */
bool journal_repeated(const char *cursor_a, const void *mark_a, const char *cursor_b, const void *mark_b);

#define JOURNAL_SYNC_MAX (5 * USEC_PER_SEC)   /* a reader of logs gives it so long to answer */
#define JOURNAL_SETTLE_MAX (2 * USEC_PER_SEC) /* where it cannot be asked, silence for so long is the end */
#define JOURNAL_DEAF_MAX                                                                                     \
        (60 * USEC_PER_SEC) /* and so long it may not come to it, nor write a line of theirs, and is asked   \
                               again */

/* Waits until journald has written all that was printed or logged before the call: what a service printed is
 * in its stream's buffer until journald gets to it, also after the service has ended. journald's Synchronize
 * answers when nothing is queued any more, and takes the call from root alone: it goes there by way of
 * primus-starter, on a connection of the calling thread's. starter_socket NULL: the host's. 0, or negative
 * errno (-ETIMEDOUT). */
int journal_sync(const char *starter_socket, uint64_t timeout_usec);
