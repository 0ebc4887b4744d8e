/* SPDX-License-Identifier: Apache-2.0 */
/* A store that nobody has open: what is in it, a copy of it, and what makes a copy of the past fit to go on
 * from. */
#pragma once

#include <stdint.h>
#include <systemd/sd-id128.h>

/* Left free behind the last job that a restored store knows. Agents, which know of higher numbers, are not
 * asked: numbers are finite, and one bad host could use them up. Elements of arrays have numbers too, so
 * there may be many. */
#define STORE_JOB_GAP 100000u

struct store_summary {
        int64_t version; /* of the store's shape */
        sd_id128_t cluster;
        uint64_t term;
        uint32_t last_job;
        uint32_t nodes, active_jobs;
        uint32_t active_with_files; /* of them those that came with files: they cannot start without their
                                       bundle */
};

/* The shape that this program writes, and the newest that it can read. */
int64_t store_version(void);

/* Reads it through, every page, and fills in the summary. It is not changed (a write-ahead log beside it is
 * moved into it). -EMEDIUMTYPE: not a store of Primus, or one without a cluster; -EPROTONOSUPPORT: newer than
 * this program, *ret is filled; -EUCLEAN: damaged; -EBUSY: in use. */
int store_summarize(const char *path, struct store_summary *ret);

/* Takes the lock that masterd takes, creating an empty database (mode 0600) where there is none, and keeps it
 * as long as the descriptor is open; nothing is written. -EBUSY: a masterd runs. */
int store_lock(const char *path, int *ret_fd);

/* Copies a database that no masterd has open to a new file (mode 0600). -EBUSY: one has. */
int store_copy_idle(const char *from, const char *to);

/* Makes a copy of the past fit to go on from: its next term is above term, its next job's number above
 * last_job, and tokens are forgotten, since those that were spent would be good again. Durable when it
 * returns. */
int store_revive(const char *path, uint64_t term, uint32_t last_job);

/* What store_revive() is to be given for a summary: a term above all that agents can have seen, whatever
 * masterd did since the copy was made, and a number behind all that can have been given out. */
uint64_t store_revived_term(const struct store_summary *s, uint64_t now_real);
uint32_t store_revived_job(const struct store_summary *s, uint64_t copied_real, uint64_t now_real);
