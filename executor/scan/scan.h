/* SPDX-License-Identifier: Apache-2.0 */
/* primus-executor --scan: lists a data source, as the job's user, to agentd. Entries come in an order that
 * the next scan repeats, so that the last one sent is a cursor to go on from; nothing is held in memory but
 * one directory's (page's, topic's) names.
 *
 * Files: as Hadoop's input formats do, it takes the files that lie directly in the directories that the
 * pattern names (or the files it names), leaves out names that begin with '.' or '_' (_SUCCESS, .part-0.crc),
 * and does not descend. In the order of directories, then of names, bytewise.
 * With a time range, the pattern is looked at for one day or hour after the other; what is not there yet is
 * waited for, in order. Without one, what is not there is an error, unless there are success markers. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/wire/input.h"
#include "lib/wire/tasks.h"

struct scan_request {
        const struct input_source *source;
        uint64_t poll_usec; /* between looks at what is waited for */
        const char *after;  /* path of the last entry that is known; NULL: from the start */
        uint64_t batch;     /* of that entry */
};

/* Where entries go. Each answers 0, or a negative errno that ends the scan as it is. */
struct scan_sink {
        int (*entry)(struct scan_sink *s, const struct scan_entry *e);
        /* What is still to come is of that batch or later. */
        int (*passed)(struct scan_sink *s, uint64_t batch);
        /* Sleeps; waiting_for ("": nothing that a person would call waiting) is not there yet. */
        int (*wait)(struct scan_sink *s, const char *waiting_for, uint64_t usec);
};

/* Lists the source. 0: it is complete; negative errno with *ret_error (allocated), which path and why, or
 * with *ret_error NULL: the sink's own, or no memory. */
int scan_source(const struct scan_request *q, struct scan_sink *sink, char **ret_error);

/* Runs the whole: reads the job's input description, connects to agentd, sends the entries, says good-bye.
 * Exit status: 0 listed, 1 the source cannot be read (agentd has been told why), 70 or 73 as for --feed. */
struct scan_options {
        const char *socket;
        const char *input; /* path of the description */
        uint32_t source;   /* its index there */
        const char *after;
        uint64_t batch;
};
int scan_run(const struct scan_options *o);
