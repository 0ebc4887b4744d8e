/* SPDX-License-Identifier: Apache-2.0 */
/* The names of users in what masterd writes. masterd knows numbers alone: to ask for a name may take seconds.
 */
#pragma once

#include <stdint.h>

/* The user's name here, or NULL. */
typedef const char *(*user_lookup)(uint32_t uid);
const char *user_lookup_here(uint32_t uid);

/* text with its first "uid N" in place of which the name stands, where there is one: what a person wrote
 * comes behind it, and stays. Allocated; NULL: out of memory, or text is NULL. */
char *users_named(const char *text, user_lookup lookup);
