/* SPDX-License-Identifier: Apache-2.0 */
/* The keys by which users submit, so that whoever does not hear the answer may ask again and gets the same
 * job. A key is its user's own, and is for one submission; it is remembered for a day, of a user at most
 * KEYS_PER_USER, of which the oldest go first. */
#pragma once

#include <stdint.h>
#include <systemd/sd-bus.h>

#include "masterd/admit/submit.h"

struct manager;
struct submit_key;

#define KEY_MAX 64u
#define KEY_RULE "1 to 64 letters, digits and -_.:@+=/"
#define KEYS_PER_USER 10000u

bool key_valid(const char *text);

/* m->keys. */
int keys_new(struct manager *m);
void keys_free(struct manager *m);
/* From the store. -ENOMEM, or what the store says. */
int keys_load(struct manager *m);

/* Before the submission is made a job of. 0: to be submitted; *ret is for keys_end(), once; NULL: it has no
 * key. 1: it is job *ret_job already. Negative with the D-Bus error set: Conflict (the key was for something
 * else), Busy (the same is being submitted). */
int keys_begin(struct manager *m, const struct submission *s, struct submit_key **ret, uint32_t *ret_job,
               sd_bus_error *error);
/* What came of it: the job, in the open batch, which the key goes into; NULL: nothing, the key is free again.
 * k may be NULL. */
void keys_end(struct manager *m, struct submit_key *k, const struct job *j);
