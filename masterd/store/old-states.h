/* SPDX-License-Identifier: Apache-2.0 */
/* What versions 1 to 5 of the store had in columns of state: a struct as the compiler laid it out, on a
 * little-endian machine of 64 bits. For migrations alone. */
#pragma once

#include <sqlite3.h>

/* Gives the connection job_state_of_5(state_data, started), scope_state_of_5(state) and
 * blame_state_of_5(state): the same in the form of masterd/store/codec.h. An old column that is no state
 * fails the statement. SQLite's code. */
int old_states_register(sqlite3 *db);
