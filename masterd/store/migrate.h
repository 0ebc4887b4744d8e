/* SPDX-License-Identifier: Apache-2.0 */
/* The database's shape and how older ones become it. */
#pragma once

#include <sqlite3.h>

/* Brings the database at path, open as db, to the newest version. Before each step of a database that holds
 * something, a copy "PATH.vN.bak" is written and synced. Each step is one transaction. -EPROTONOSUPPORT: it
 * is newer than this program; -EMEDIUMTYPE: it is not Primus's. What went wrong is logged. */
int store_migrate(sqlite3 *db, const char *path);

/* The same with the steps given (tests). Ended by NULL. */
int store_migrate_steps(sqlite3 *db, const char *path, const char *const *steps);

/* The steps of Primus. */
extern const char *const store_steps[];
