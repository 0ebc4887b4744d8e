/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/* "FIRST-LAST", ports from 1024 to 65535. -EINVAL. */
int port_range_parse(const char *text, uint16_t *ret_first, uint16_t *ret_last);
