/* SPDX-License-Identifier: Apache-2.0 */
/* One line to standard error. */
#pragma once

#include "lib/base/cleanup.h"

/* "primusctl: ..."; the person asked primusctl. Returns error. */
int say(int error, const char *format, ...) _printf_(2, 3);
