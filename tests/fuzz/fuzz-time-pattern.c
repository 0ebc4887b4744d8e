/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a path pattern with a time: no fault, what comes out keeps its bounds, and the calendar goes
 * on. The first ten bytes are the time (a batch, as text or not), the rest is the pattern.
 *
 *   CC=clang meson setup build-fuzz -Dfuzz=true -Db_sanitize=address,undefined -Db_lundef=false
 *   ninja -C build-fuzz tests/fuzz/fuzz-time-pattern
 *   build-fuzz/tests/fuzz/fuzz-time-pattern -max_len=256 -max_total_time=600 corpus
 * tests/fuzz/corpus/time-pattern
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "executor/scan/time-pattern.h"
#include "lib/base/cleanup.h"
#include "tests/fuzz/fuzz.h"

#define DIGITS 10u
#define PATTERN_MAX 256u

static void check_words(const char *pattern) {
        _cleanup_(words_free_p) char **words = NULL;
        size_t n = 0;
        int r = words_expand(pattern, &words, &n);

        if (r < 0) {
                MUST(r == -E2BIG || r == -ENAMETOOLONG);
                return;
        }
        MUST(n > 0 && n <= PATTERN_WORDS_MAX && !words[n]);
        for (size_t i = 0; i < n; i++)
                MUST(strlen(words[i]) <= PATTERN_BYTES_MAX);
}

static void check_time(const char *pattern, struct time_point t) {
        _cleanup_free_ char *text = NULL, *later = NULL;
        enum time_step step = TIME_STEP_NONE;
        struct time_point next = t, back;
        int known = time_pattern_step(pattern, &step), r = time_pattern_expand(pattern, &t, &text);

        MUST(time_point_valid(&t));
        MUST(time_point_from_batch(time_point_batch(&t), &back) == 0 && memcmp(&t, &back, sizeof(t)) == 0);
        MUST((known == 0) == (r == 0)); /* the bound cannot be met by what the driver takes */
        if (r < 0)
                return;
        MUST(strlen(text) <= strlen(pattern));
        check_words(text);
        if (time_point_next(&next, step == TIME_STEP_NONE ? TIME_STEP_DAY : step)) {
                MUST(time_point_valid(&next) && time_point_batch(&next) > time_point_batch(&t));
                MUST(time_pattern_expand(pattern, &next, &later) == 0);
                if (step == TIME_STEP_NONE)
                        MUST(strcmp(text, later) == 0);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        char digits[DIGITS + 1] = "", pattern[PATTERN_MAX + 1];
        struct time_point t;
        size_t n = MIN(size, (size_t)DIGITS);

        memcpy(digits, data, n);
        size = MIN(size - n, (size_t)PATTERN_MAX);
        memcpy(pattern, data + n, size);
        pattern[size] = 0;
        if (time_point_from_batch(strtoull(digits, NULL, 10), &t) < 0)
                t = (struct time_point){ 2026, 11, 20, 5 };
        check_time(pattern, t);
        check_words(pattern);
        return 0;
}
