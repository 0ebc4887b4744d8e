/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays that grow. */
#pragma once

#include <errno.h>
#include <stdlib.h>

/* An array with room for n: 0; -ENOMEM, and it is as it was. */
#define ARRAY_GROW(array, n)                                                                                 \
        ({                                                                                                   \
                __typeof__(array) _bigger = reallocarray(array, n, sizeof(*(array)));                        \
                if (_bigger)                                                                                 \
                        (array) = _bigger;                                                                   \
                _bigger ? 0 : -ENOMEM;                                                                       \
        })

/* An array that holds n, with room for one more: for twice as many whenever n is a power of two. Nobody else
 * gives it room. As above. */
#define ARRAY_DOUBLE(array, n) (((n) & ((n)-1)) != 0 ? 0 : ARRAY_GROW(array, (n) > 0 ? 2 * (size_t)(n) : 1))
