/* SPDX-License-Identifier: Apache-2.0 */
/* What one user, over how many connections ever, may have of masterd at a time: calls that wait for the disk
 * and what they write, time of the loop, bytes of answers. Who has all of it is told so at once; nothing is
 * put off. Pure: time is an argument. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/cleanup.h"

/* Calls that wait until what they changed is on disk, and bytes that they have to write: what others write
 * waits behind these. One call alone may have more. */
#define QUOTA_CALLS 32u
#define QUOTA_BYTES ((size_t)8 << 20)

/* Microseconds of the loop that calls may take in a second, and those that may be saved up. */
#define QUOTA_USEC_RATE 200000
#define QUOTA_USEC_BURST 200000
/* Bytes of large answers in a second, and saved up. masterd sees when the bus has taken an answer, not when
 * its receiver has; a bus that keeps too much for those who do not read takes no more from masterd. */
#define QUOTA_ANSWER_RATE (8 << 20)
#define QUOTA_ANSWER_BURST (64 << 20)

#define QUOTA_USERS 1024u /* remembered; those who have nothing under way are forgotten beyond it */

enum quota_verdict {
        QUOTA_FREE,
        QUOTA_CALLS_WAIT,  /* too many of his calls wait, or write too much */
        QUOTA_TIME_USED,   /* his calls took too much of the loop's time */
        QUOTA_ANSWERS_BIG, /* he was answered too much */
};

struct quota;

int quota_new(struct quota **ret); /* -ENOMEM */
struct quota *quota_free(struct quota *q);
DEFINE_CLEANUP(struct quota *, quota_free)

/* Whether a call of his is taken now. Root (0) is always free. now: CLOCK_BOOTTIME. *ret_usec (not with
 * QUOTA_FREE or QUOTA_CALLS_WAIT, then 0): in how many microseconds it will be. */
enum quota_verdict quota_admit(struct quota *q, uint32_t uid, uint64_t now, uint64_t *ret_usec);

/* A call has taken so much of the loop; so many bytes were answered. */
void quota_charge(struct quota *q, uint32_t uid, uint64_t usec, size_t answered, uint64_t now);

/* A call waits for the disk with so many bytes; it does so no more. */
void quota_wait(struct quota *q, uint32_t uid, size_t bytes, uint64_t now);
void quota_waited(struct quota *q, uint32_t uid, size_t bytes);
