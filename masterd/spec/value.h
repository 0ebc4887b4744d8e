/* SPDX-License-Identifier: Apache-2.0 */
/* Single values: numbers, words, texts, in the forms that protobuf's JSON allows. */
#pragma once

#include "masterd/spec/read.h"

#define WORD_SHOWN_MAX 40u

/* A value for a message: short, in one line; into buf. */
const char *value_show(const json_t *v, char *buf, size_t size);
#define SHOW(v) value_show(v, (char[WORD_SHOWN_MAX + 16]){ 0 }, WORD_SHOWN_MAX + 16)

/* null, false, 0, "" or empty, also in quotes: what says nothing in protobuf. */
bool value_is_zero(const json_t *v);

/* The rules that hold for a text by itself. Returns 1 when they hold, 0 with an error reported, or -ENOMEM.
 */
int value_check_text(struct reader *r, const struct key *k, json_t *v, size_t min, size_t max);

/* Reads a value of a type that is no list, map or message; target may be NULL. 0 (see the diagnostics), or
 * -ENOMEM. */
int value_read(struct reader *r, const struct key *k, json_t *v, void *target);
