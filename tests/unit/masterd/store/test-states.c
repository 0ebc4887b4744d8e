/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of what is stored of a job, a scope and a host, each with the largest that there is and any
 * other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "masterd/store/table.h"

static uint64_t seed = 7;

static uint32_t dice(uint32_t n) {
        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
        return (uint32_t)(seed >> 33) % n;
}

static void fill(const struct codec_field *fields, char *state, bool random) {
        for (const struct codec_field *f = fields; f->type != CODEC_END; f++) {
                char *p = state + f->offset;
                uint32_t n = random ? dice(f->max + 1u) : f->max;
                if (f->type == CODEC_BOOL)
                        *p = random ? (char)dice(2) : 1;
                else if (f->type == CODEC_TEXT)
                        memset(p, 'x', random ? dice(f->size) : f->size - 1u);
                else if (f->type == CODEC_PART)
                        fill(f->part, p, random);
                else if (f->type == CODEC_LIST) {
                        memcpy(state + f->n, &n, sizeof(n));
                        for (uint32_t i = 0; i < n; i++)
                                fill(f->part, p + (size_t)i * f->size, random);
                } else
                        for (size_t i = 0; i < f->size; i++)
                                p[i] = random ? (char)dice(dice(2) ? 256 : 2) : (char)0xff;
        }
}

static void check_numbers(const struct codec_field *fields) {
        for (const struct codec_field *f = fields; f->type != CODEC_END; f++) {
                assert_true(f->number > 0);
                for (const struct codec_field *g = fields; g < f; g++)
                        assert_int_not_equal(g->number, f->number);
                if (f->part)
                        check_numbers(f->part);
        }
}

/* Each number once, the largest of each fits, and any comes back. */
static void test_states(void **state) {
        const struct {
                const struct codec_field *fields;
                size_t size;
        } states[] = {
                { job_state_codec, sizeof(struct job_state_record) },
                { scope_state_codec, sizeof(struct scope_state_record) },
                { blame_state_codec, sizeof(struct blame_state_record) },
        };

        for (size_t i = 0; i < ELEMENTSOF(states); i++) {
                _cleanup_free_ char *s = malloc(states[i].size), *t = calloc(1, states[i].size);
                uint8_t bytes[CODEC_SIZE_MAX];
                ssize_t n;

                check_numbers(states[i].fields);
                for (int run = 0; run < 300; run++) {
                        memset(s, 0, states[i].size);
                        fill(states[i].fields, s, run > 0);
                        n = codec_write(states[i].fields, s, bytes, sizeof(bytes));
                        assert_true(n > 0);
                        assert_int_equal(codec_read(states[i].fields, bytes, (size_t)n, t), 0);
                        assert_memory_equal(s, t, states[i].size);
                }
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_states),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
