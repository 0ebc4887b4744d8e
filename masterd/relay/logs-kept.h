/* SPDX-License-Identifier: Apache-2.0 */
/* The kept end of an attempt's log: STATE/logs/JOB/ROLE-INDEX.ATTEMPT, a ring of LOG_KEPT_MAX bytes behind a
 * small header. Byte X of the log lies at X modulo the ring's size, so appending writes what is new and
 * nothing else. Blocking file I/O: for the thread of masterd/relay/logs-worker.h. dir_fd is STATE/logs. Files
 * carry the job's uid, so a number that is given out twice shows nobody's log. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "lib/wire/messages.h"

/* Appends bytes [offset, offset + size) of the log. What is there already is skipped; a gap starts the kept
 * part anew. */
int kept_append(int dir_fd, const struct executor_id *id, uint64_t offset, const void *bytes, size_t size);

/* Reads everything kept from offset from on (or from the first byte that is kept, where that is later);
 * allocates *ret (NULL where there is nothing). tail > 0: only the last tail bytes of it. A start that is not
 * the one asked for is moved to the beginning of a line. *ret_start: offset of the first byte returned.
 * -ENOENT: nothing is kept. */
int kept_read(int dir_fd, const struct executor_id *id, uint64_t from, uint64_t tail, char **ret,
              size_t *ret_size, uint64_t *ret_start);

/* Removes everything of a job. */
int kept_forget(int dir_fd, uint32_t job);
