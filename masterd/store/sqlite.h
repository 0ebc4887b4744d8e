/* SPDX-License-Identifier: Apache-2.0 */
/* SQLite with negative errno. */
#pragma once

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

/* The errno for a result code of db (its last call). Never 0. */
int sqlite_error(sqlite3 *db, int code);

/* Whether an error will go away when somebody frees space. */
bool sqlite_error_is_space(int error);

int sqlite_exec(sqlite3 *db, const char *sql);
int sqlite_integer(sqlite3 *db, const char *sql,
                   int64_t *ret); /* first column of the first row; -ENOENT: no row */

/* Opens or creates the database of masterd: one process at a time, write-ahead log, every commit synced,
 * bounded memory. The caller checkpoints. What went wrong is logged. ret_unclean: the last process did not
 * close it. */
int sqlite_open(const char *path, sqlite3 **ret, bool *ret_unclean);
