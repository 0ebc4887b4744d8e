/* SPDX-License-Identifier: Apache-2.0 */
/* What a person would have been told. */
#include "tools/state/say.h"

#include <stdarg.h>
#include <stdio.h>

#include "tests/kit/state-say.h"

char said[1024];

int say(int error, const char *format, ...) {
        va_list ap;

        va_start(ap, format);
        vsnprintf(said, sizeof(said), format, ap);
        va_end(ap);
        return error;
}
