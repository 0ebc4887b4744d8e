/* SPDX-License-Identifier: Apache-2.0 */
/* Names and groups of users, as this host's user database has them now: looked up in a thread, for that may
 * block, and kept for half a minute. Invariant: what did not come in time is not known, and lets nobody in.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-event.h>
#include <uthash.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"

#define PEOPLE_KEPT_USEC (30 * USEC_PER_SEC)
#define PEOPLE_WAIT_USEC (3 * USEC_PER_SEC)
#define PEOPLE_MAX 512u       /* kept */
#define PEOPLE_ASKED_MAX 64u  /* of one question */
#define PEOPLE_ASKING_MAX 64u /* lookups under way, of so many each */
/* Who wait for them, over all and of one user; further ones are answered by what is known. */
#define PEOPLE_WAITING_MAX 8192u
#define PEOPLE_WAITING_PER_USER 1024u
#define PERSON_NAME_MAX 64u

struct person {
        uint32_t uid;
        bool found;                 /* there is such a user */
        char name[PERSON_NAME_MAX]; /* "": not known, or nothing to print */
        uint32_t gid;               /* of its primary group */
        uint32_t *groups;           /* all of them, sorted */
        size_t n_groups;
        uint64_t at_boot; /* looked up then */
        UT_hash_handle hh;
};

struct people;

/* What a database says of ret->uid: fills found, name, gid and groups (allocated, in any order). Called in
 * the thread. -errno: it does not answer. */
typedef int (*people_lookup)(struct person *ret);
int people_lookup_host(struct person *ret);

/* event outlives it. */
int people_new(sd_event *event, people_lookup lookup, struct people **ret);
/* Questions under way are forgotten; waits for no database. */
struct people *people_free(struct people *p);
DEFINE_CLEANUP(struct people *, people_free)

/* NULL: not known, or not known any more. Good until the next call of people_ask() or turn of the loop. */
const struct person *people_find(const struct people *p, uint32_t uid);

bool person_in(const struct person *p, uint32_t gid); /* p may be NULL */

typedef void (*people_done)(void *userdata);
/* Calls done when as much is known of these as will be, which people_find() then tells: at once (returns 0),
 * or later (1). Negative errno: it will not be called. destroy (may be NULL) is called with userdata in its
 * place when the people are freed. uid: for whom this is. Who is asked about already is not asked about
 * again, and those who ask about the same people are told in their order. */
int people_ask(struct people *p, uint32_t uid, const uint32_t *uids, size_t n, people_done done,
               void (*destroy)(void *userdata), void *userdata);
