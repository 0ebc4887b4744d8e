/* SPDX-License-Identifier: Apache-2.0 */
/* The database's shape and how older ones become it. */
#pragma once

#include <sqlite3.h>

/* Brings the database at path, open as db, to the newest version, in one transaction. Before that, of a
 * database that holds something, a copy "PATH.vN.bak" (N: the version that it is of) is made, mode 0600, and
 * synced; it appears whole or not at all. That copy and the one of the version before it are kept.
 * -EPROTONOSUPPORT: the database is newer than this program; -EPERSON: it cannot be copied or migrated, and
 * is as it was (both are logged, with what to do); -EMEDIUMTYPE: it is not Primus's. */
int store_migrate(sqlite3 *db, const char *path);

/* The same with the steps given (tests). Ended by NULL. */
int store_migrate_steps(sqlite3 *db, const char *path, const char *const *steps);

/* The steps of Primus. */
extern const char *const store_steps[];
