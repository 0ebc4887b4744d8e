/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* For functions that fail as what they call fails. */
#define TRY(expression)                                                                                      \
        do {                                                                                                 \
                int _r = (expression);                                                                       \
                if (_r < 0)                                                                                  \
                        return _r;                                                                           \
        } while (0)
