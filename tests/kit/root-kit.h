/* SPDX-License-Identifier: Apache-2.0 */
/* A directory that stands for the root of a host: for what takes a root to be put before its paths. What goes
 * wrong fails the test. */
#pragma once

#include <stddef.h>

extern char root_kit[]; /* its path, once root_setup() has made it */

/* For cmocka's groups. */
int root_setup(void **state);
int root_teardown(void **state);

/* A file below it, and the directories on the way; one that is there is replaced by another. */
void root_put(const char *path, const char *text);
void root_put_bytes(const char *path, const void *data, size_t size);
