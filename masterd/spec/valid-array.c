/* SPDX-License-Identifier: Apache-2.0 */
/* Rules for after, array and begin. */
#include <errno.h>

#include "lib/base/when.h"
#include "masterd/spec/array.h"
#include "masterd/spec/valid.h"

bool valid_after(const char *s, const char **ret_why) {
        struct after_entry entry;

        if (after_parse(s, &entry) >= 0)
                return true;
        *ret_why = "must be a job's number with :ok, :fail or :any behind it, such as \"417\", "
                   "\"417:any\" or \"417[3]\" (an element of an array)";
        return false;
}

bool valid_array(const char *s, const char **ret_why) {
        struct array_range range;
        int r;

        *ret_why = "cannot be read: out of memory";
        r = array_range_parse(s, &range, ret_why);
        if (r >= 0)
                array_range_done(&range);
        return r >= 0;
}

bool valid_begin(const char *s, const char **ret_why) {
        uint64_t t;
        int r = when_parse_absolute(s, &t);

        if (r >= 0)
                return true;
        *ret_why = r == -ERANGE ? "must be a date and time that there is"
                                : "must be a date and time with its offset from UTC, such as "
                                  "\"2026-01-31T08:00:00Z\" or \"2026-01-31T09:00:00+01:00\"";
        return false;
}
