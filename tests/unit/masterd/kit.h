/* SPDX-License-Identifier: Apache-2.0 */
/* A manager on a store in a directory, without buses, and what a kill -9 would leave of it. What goes wrong
 * fails the test. */
#pragma once

struct manager;

/* Opens or creates the store in directory and loads what is in it; term 1. For manager_free(). */
struct manager *kit_open(const char *directory);
/* Runs the loop until all that has been recorded is on disk. */
void kit_until_durable(struct manager *m);
/* Makes a directory TO and copies the database and its log there, as they are. For remove_tree(). */
void kit_copy_store(const char *from, char to[static 64]);
