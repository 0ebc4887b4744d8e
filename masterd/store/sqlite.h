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
 * bounded memory. The caller checkpoints. What went wrong is logged. *ret_lock: keeps others out, to be
 * closed behind the last connection. ret_unclean: the last process did not close it. */
int sqlite_open(const char *path, sqlite3 **ret, int *ret_lock, bool *ret_unclean);

/* Another connection of the process that has opened it, which only reads. What went wrong is logged. */
int sqlite_open_reader(const char *path, sqlite3 **ret);

/* The bytes of the file by which SQLite locks it (its file format says which), and the one behind them, by
 * which masters keep each other out. */
#define SQLITE_LOCK_START 0x40000000
#define SQLITE_LOCK_BYTES 512
#define SQLITE_LOCK_MASTER (SQLITE_LOCK_START + SQLITE_LOCK_BYTES)
