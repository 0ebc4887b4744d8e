/* SPDX-License-Identifier: Apache-2.0 */
/* The host to which "primusctl login" has said to go from a machine that is of no cluster. */
#pragma once

#include <stddef.h>

/* The file that has it; allocated, NULL without a home or memory. */
char *login_path(void);
/* What stands there, where it is a host's name; allocated; NULL: nothing does. */
char *login_host(void);
