/* SPDX-License-Identifier: Apache-2.0 */
#include "masterd/search/space.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "tests/kit/json.h"

/* With ' for the quotes of JSON. */
static json_t *json_of(const char *text) {
        return json_loads(json_text(text), JSON_DECODE_ANY, NULL);
}

static struct space *space_of(const char *text, bool grid, const char *refused) {
        json_t *j = json_of(text);
        char why[SPACE_WHY_MAX];
        struct space *s = NULL;
        int r;

        assert_non_null(j);
        r = space_read(j, grid, &s, why);
        json_decref(j);
        if (!refused) {
                if (r < 0)
                        fail_msg("%s: %s", text, why);
        } else if (r != -EINVAL || !strstr(why, refused))
                fail_msg("%s: %d, %s", text, r, why);
        return s;
}

static json_t *given(const struct space *s, uint64_t seed, uint32_t trial) {
        json_t *j = NULL;

        assert_int_equal(space_given(s, seed, trial, &j), 0);
        return j;
}

static void expect(json_t *got, const char *want) {
        json_t *wanted = json_of(want);
        _cleanup_free_ char *text = json_dumps(got, JSON_COMPACT | JSON_SORT_KEYS);

        if (!json_equal(got, wanted))
                fail_msg("%s is not %s", text, want);
        json_decref(got);
        json_decref(wanted);
}

static void test_grid(void **state) {
        _cleanup_(space_free_p) struct space *s = space_of(
                "{'b':{'type':'int','minval':0,'maxval':20,'count':3},'c':{'type':'int','minval':0,'maxval':10,'count':3}}",
                true, NULL);
        static const char *const points[] = { "{'b':0,'c':0}",  "{'b':0,'c':5}",  "{'b':0,'c':10}",
                                              "{'b':10,'c':0}", "{'b':10,'c':5}", "{'b':10,'c':10}",
                                              "{'b':20,'c':0}", "{'b':20,'c':5}", "{'b':20,'c':10}" };

        assert_int_equal(space_n_points(s), 9);
        for (uint32_t i = 0; i < 9; i++)
                expect(given(s, 0, i), points[i]);
}

static void test_grid_points(void **state) {
        static const struct {
                const char *text;
                uint32_t n;
                const char *first, *last;
        } cases[] = {
                { "{'x':{'type':'int','minval':0,'maxval':4,'count':5}}", 5, "{'x':0}", "{'x':4}" },
                { "{'x':{'type':'int','minval':-4,'maxval':-2,'count':5}}", 3, "{'x':-4}", "{'x':-2}" },
                { "{'x':{'type':'int','minval':0,'maxval':4,'count':1}}", 1, "{'x':2}", "{'x':2}" },
                { "{'x':{'type':'double','minval':0,'maxval':1,'count':1}}", 1, "{'x':0.5}", "{'x':0.5}" },
                { "{'x':{'type':'double','minval':0,'maxval':1,'step':0.25}}", 5, "{'x':0.0}", "{'x':1.0}" },
                { "{'x':{'type':'log','base':10,'minval':-2,'maxval':2,'count':3}}", 3, "{'x':0.01}",
                  "{'x':100.0}" },
                { "{'a':{'type':'int','minval':0,'maxval':9,'count':2},'b':{'type':'int','minval':0,'maxval':9,'count':2},"
                  "'c':{'type':'double','minval':0,'maxval':9,'count':3},'d':{'type':'int','minval':0,'maxval':9,'count':3},"
                  "'e':{'type':'int','minval':0,'maxval':9,'count':4},'f':{'type':'int','minval':0,'maxval':9,'count':5}}",
                  720, NULL, NULL },
                { "{'m':{'k':{'type':'categorical','vals':[1,'z',null,[2],{'p':3}]}},'n':7}", 5,
                  "{'m':{'k':1},'n':7}", "{'m':{'k':{'p':3}},'n':7}" },
                /* what "when" leaves out is no point of its own */
                { "{'opt':{'type':'categorical','vals':['adam','sgd']},"
                  "'sgd':{'momentum':{'type':'double','minval':0,'maxval':1,'count':3,'when':{'opt':'sgd'}}}}",
                  4, "{'opt':'adam'}", "{'opt':'sgd','sgd':{'momentum':1.0}}" },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_(space_free_p) struct space *s = space_of(cases[i].text, true, NULL);

                assert_int_equal(space_n_points(s), cases[i].n);
                if (cases[i].first) {
                        expect(given(s, 0, 0), cases[i].first);
                        expect(given(s, 0, cases[i].n - 1), cases[i].last);
                }
        }
}

static double real(json_t *j, const char *name) {
        double x = json_number_value(json_object_get(j, name));

        json_decref(j);
        return x;
}

static void test_draws(void **state) {
        _cleanup_(space_free_p) struct space *s = space_of(
                "{'i':{'type':'int','minval':-3,'maxval':3},'d':{'type':'double','minval':-1,'maxval':1},"
                "'l':{'type':'log','base':2,'minval':-10,'maxval':0},'s':{'type':'int','minval':8,'maxval':64,'step':8},"
                "'q':{'type':'double','minval':0,'maxval':1,'step':0.25}}",
                false, NULL);
        unsigned seen[7] = {}, steps[9] = {}, quarters[5] = {};
        double sum = 0, low = 0;

        for (uint32_t n = 0; n < 7000; n++) {
                double i = real(given(s, 1, n), "i"), d = real(given(s, 1, n), "d"),
                       l = real(given(s, 1, n), "l");
                double e = real(given(s, 1, n), "s"), q = real(given(s, 1, n), "q");

                assert_true(i >= -3 && i <= 3 && d >= -1 && d < 1 && l >= ldexp(1, -10) && l < 1 && e >= 8 &&
                            e <= 64 && fmod(e, 8) == 0);
                seen[(int)i + 3]++;
                steps[(int)e / 8]++;
                quarters[(int)(q * 4)]++;
                sum += d;
                low += l < ldexp(1, -5);
        }
        for (int i = 0; i < 7; i++) /* both ends too; 1000 each, 5 standard deviations are 150 */
                assert_in_range(seen[i], 850, 1150);
        for (int i = 1; i < 9; i++)
                assert_in_range(steps[i], 725, 1025);
        for (int i = 0; i < 5; i++)
                assert_in_range(quarters[i], 1230, 1570);
        assert_true(fabs(sum / 7000) < 0.04);
        assert_true(low > 3300 && low < 3700);
}

/* On seed, trial and name alone: the same again, another for another, and untouched by a parameter more. */
static void test_depends(void **state) {
#define X "'x':{'type':'double','minval':0,'maxval':1}"
        _cleanup_(space_free_p) struct space *one = space_of("{" X "}", false, NULL);
        _cleanup_(space_free_p) struct space *more =
                space_of("{'a':{'type':'int','minval':0,'maxval':9}," X ",'z':1}", false, NULL);
        double first = real(given(one, 5, 17), "x");

        assert_true(real(given(one, 5, 17), "x") == first);
        assert_true(real(given(more, 5, 17), "x") == first);
        assert_true(real(given(one, 5, 18), "x") != first);
        assert_true(real(given(one, 6, 17), "x") != first);
        /* And from release to release: a search goes on with those that it has. */
        expect(given(one, 5, 17), "{'x':0.44301288351542167}");
        assert_int_equal(space_trial_seed(5, 17), space_trial_seed(5, 17));
        assert_true(space_trial_seed(5, 17) != space_trial_seed(5, 18) &&
                    space_trial_seed(5, 17) < UINT32_C(1) << 31);
}

static void test_when(void **state) {
        _cleanup_(space_free_p) struct space *s =
                space_of("{'net':{'type':'categorical','vals':['cnn','mlp','none']},"
                         "'layers':{'type':'int','minval':1,'maxval':2,'when':{'net':['cnn','mlp']}},"
                         "'second':{'type':'int','minval':1,'maxval':9,'when':{'layers':2}}}",
                         false, NULL);
        unsigned seconds = 0;

        for (uint32_t n = 0; n < 1000; n++) {
                json_t *j = given(s, 1, n), *layers = json_object_get(j, "layers");
                bool none = strcmp(json_string_value(json_object_get(j, "net")), "none") == 0;

                assert_int_equal(!layers, none);
                assert_int_equal(!!json_object_get(j, "second"), layers && json_integer_value(layers) == 2);
                seconds += !!json_object_get(j, "second");
                json_decref(j);
        }
        assert_in_range(seconds, 250, 420);
}

static void test_refused(void **state) {
        static const struct {
                const char *text, *why;
                bool grid;
        } cases[] = {
                { "{}", "at least one parameter" },
                { "[]", "at least one parameter" },
                { "{'x':{}}", "x: is an empty object" },
                { "{'a.b':1}", "a name must be" },
                { "{'a=b':1}", "a name must be" },
                { "{'':1}", "a name must be" },
                { "{'1':1}", "a name must be" },
                { "{'x':{'type':'gauss'}}", "type must be const, int" },
                { "{'x':{'type':7}}", "type must be const, int" },
                { "{'x':{'type':'int','minval':3,'maxval':2}}", "x: minval must not be above maxval" },
                { "{'m':{'x':{'type':'int','minval':3,'maxval':2}}}", "m.x: minval" },
                { "{'x':{'type':'int','minval':0.5,'maxval':2}}", "x: minval must be a whole number" },
                { "{'x':{'type':'int','minval':0,'maxval':1e300}}", "x: maxval must be a whole number" },
                { "{'x':{'type':'int','minval':0}}", "x: maxval is missing" },
                { "{'x':{'type':'int','minval':0,'maxval':'9'}}", "x: maxval must be a number" },
                { "{'x':{'type':'int','minval':0,'maxval':9,'step':0}}", "step must be above 0" },
                { "{'x':{'type':'int','minval':0,'maxval':4,'step':2,'count':5}}",
                  "count and step both say" },
                { "{'x':{'type':'int','minval':0,'maxval':9,'count':0}}", "count must be" },
                { "{'x':{'type':'int','minval':0,'maxval':9,'counts':3}}",
                  "'counts' is no key of a parameter of type int" },
                { "{'x':{'type':'double','minval':1,'maxval':1}}", "minval must be below maxval" },
                { "{'x':{'type':'double','minval':-1e308,'maxval':1e308}}", "minval must be below maxval" },
                { "{'x':{'type':'double','minval':0,'maxval':1,'step':-1}}", "step must be above 0" },
                { "{'x':{'type':'log','base':0,'minval':0,'maxval':1}}", "base must be above 0" },
                { "{'x':{'type':'log','base':-2,'minval':0,'maxval':1}}", "base must be above 0" },
                { "{'x':{'type':'log','base':10,'minval':0,'maxval':400}}", "exponents of base 10" },
                { "{'x':{'type':'categorical','vals':[]}}", "vals must be an array" },
                { "{'x':{'type':'categorical','vals':3}}", "vals must be an array" },
                { "{'x':{'type':'const'}}", "val is missing" },
                { "{'x':{'type':'int','minval':0,'maxval':9}}", "a grid needs", true },
                { "{'x':{'type':'double','minval':0,'maxval':1,'step':1e-9}}", "make step larger", true },
                { "{'a':{'type':'int','minval':0,'maxval':999,'count':1000},'b':{'type':'int','minval':0,'maxval':999,'count':101}}",
                  "b: with this one the grid has more", true },
                { "{'x':{'type':'const','val':1,'when':{'y':1}}}", "when: there is no parameter 'y'" },
                { "{'x':{'type':'const','val':1,'when':{'x':1}}}", "depends on itself" },
                { "{'x':{'type':'const','val':1,'when':{'y':1}},'y':{'type':'const','val':1,'when':{'x':1}}}",
                  "depends on itself" },
                { "{'x':{'type':'const','val':1,'when':{}}}", "when must be an object" },
                { "{'x':{'type':'const','val':1,'when':{'y':[]}},'y':1}", "needs 1 to 64 values" },
                { "{'x':{'type':'const','val':1,'when':{'y':1}},'y':{'type':'double','minval':0,'maxval':1}}",
                  "must be categorical" },
                { "{'a':{'type':'int','minval':0,'maxval':99999,'count':100000},'b':{'type':'const','val':1,'when':{'a':[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19]}}}",
                  "a grid of 100000 points, with these conditions", true },
                { "{'a':{'type':'const','val':1,'when':{'b':1}},'b':{'type':'const','val':1,'when':{'c':1}},'c':{'type':'const','val':1,'when':{'d':1}},'d':{'type':'const','val':1,'when':{'e':1}},"
                  "'e':{'type':'const','val':1,'when':{'f':1}},'f':{'type':'const','val':1,'when':{'g':1}},'g':{'type':'const','val':1,'when':{'h':1}},'h':{'type':'const','val':1,'when':{'i':1}},'i':1}",
                  "a: when: more than 8 parameters" },
                { "{'x':{'type':'const','val':1,'when':{'y':[[1]]}},'y':1}", "must be a text, a number" },
                { "{'a':{'a':{'a':{'a':{'a':{'a':{'a':{'a':{'a':1}}}}}}}}}", "nested deeper" },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++)
                assert_null(space_of(cases[i].text, cases[i].grid, cases[i].why));
}

/* No trial is given more than is said, and that is known before there is one. */
static void test_size(void **state) {
        _cleanup_(space_free_p) struct space *s = space_of(
                "{'a':{'type':'categorical','vals':[1,'a long text that is chosen now and then',{'b':[1,2,3]}]},'net':{'d':{'type':'double','minval':0,'maxval':1}},'c':[1,2]}",
                false, NULL);
        size_t largest = 0;

        for (uint32_t n = 0; n < 200; n++) {
                json_t *j = given(s, 3, n);
                _cleanup_free_ char *text = json_dumps(j, JSON_COMPACT);

                largest = MAX(largest, strlen(text));
                json_decref(j);
        }
        assert_in_range(largest, 60, space_given_max(s));
        assert_in_range(space_given_max(s), 60, 200);
        assert_true(space_bytes(s) > 500);
}

static void test_given(void **state) {
        static const struct {
                const char *text;
                int r;
        } cases[] = {
                { "{'lr':0.1,'net':{'width':3}}", 0 },
                { "{}", -EINVAL },
                { "3", -EINVAL },
                { "{'a.b':1}", -EINVAL },
                { "{'a':{'':1}}", -EINVAL },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                json_t *j = json_of(cases[i].text);
                char why[SPACE_WHY_MAX];

                assert_int_equal(space_check_given(j, why), cases[i].r);
                assert_true((*why != 0) == (cases[i].r < 0));
                json_decref(j);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_grid),  cmocka_unit_test(test_grid_points),
                cmocka_unit_test(test_draws), cmocka_unit_test(test_depends),
                cmocka_unit_test(test_when),  cmocka_unit_test(test_refused),
                cmocka_unit_test(test_given), cmocka_unit_test(test_size),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
