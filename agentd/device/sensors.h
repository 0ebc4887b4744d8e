/* SPDX-License-Identifier: Apache-2.0 */
/* Disks and the clock: what they are like, and what that is worth. Judging is pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/wire/condition.h"

/* Room that is to be left: the smaller of a share of the file system and a number of bytes. */
struct room {
        uint32_t percent;
        uint64_t bytes;
};

struct disk_facts {
        uint64_t device;            /* file systems are looked at once */
        uint64_t size, available;   /* bytes; to others than root */
        uint64_t files, files_left; /* inodes; 0: it has no such limit */
        bool read_only;
};

/* path below root ("" in life). Negative errno. May take long on a file system of another host. */
int disk_read(const char *root, const char *path, struct disk_facts *ret);
/* Of at most worst. text: a line for people. */
enum condition_severity disk_judge(const struct disk_facts *d, const struct room *warn,
                                   const struct room *drain, enum condition_severity worst, char *text,
                                   size_t size);

/* How far the clock is off masterd's. */
struct clock_sample {
        int64_t offset_usec; /* of masterd's clock: > 0: it is ahead of ours */
        uint64_t rtt_usec;
};
#define CLOCK_SAMPLES 8u
struct clock_watch {
        struct clock_sample samples[CLOCK_SAMPLES]; /* the latest */
        unsigned n;
};

/* masterd's wall clock was that when it answered what was sent rtt_usec ago. */
void clock_note(struct clock_watch *w, uint64_t master_real, uint64_t own_real, uint64_t rtt_usec);
/* The one that travelled fastest knows best; its error is at most half its way. False: nothing is known. */
bool clock_best(const struct clock_watch *w, struct clock_sample *ret);
enum condition_severity clock_judge(const struct clock_watch *w, uint64_t limit_usec, char *text,
                                    size_t size);
