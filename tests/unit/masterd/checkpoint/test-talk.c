/* SPDX-License-Identifier: Apache-2.0 */
#include "masterd/checkpoint/talk.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/kit/json.h"

static char why[CHECKPOINT_WHY_MAX];

static int read_talk(const char *text, struct checkpoint_talk *ret) {
        *why = 0;
        return checkpoint_talk_read(json_text(text), ret, why);
}

static void refuses(const char *text, const char *part) {
        struct checkpoint_talk t;

        assert_int_equal(read_talk(text, &t), -EINVAL);
        assert_non_null(strstr(why, part));
}

#define SAVED(path, more)                                                                                    \
        "{'op': 'checkpoint', 'path': '" path                                                                \
        "', 'step': 1000, 'time': 1764000000.5, 'files': 3, 'bytes': 4096, " more "}"
#define GOOD "'metrics': {'loss': 0.25, 'x': null}, 'metric': 'loss', 'smaller': true"

static void test_saved(void **state) {
        struct checkpoint_talk t;

        assert_int_equal(read_talk(SAVED("/s/step-000000001000", GOOD), &t), 0);
        assert_int_equal(t.op, CHECKPOINT_SAVED);
        assert_string_equal(t.facts.path, "/s/step-000000001000");
        assert_int_equal(t.facts.step, 1000);
        assert_int_equal(t.facts.saved_real, 1764000000500000);
        assert_int_equal(t.facts.files, 3);
        assert_int_equal(t.facts.bytes, 4096);
        assert_true(t.facts.smaller && t.facts.value == 0.25);
        assert_string_equal(t.facts.metric, "loss");
        checkpoint_talk_done(&t);
        assert_int_equal(read_talk(SAVED("/s", "'metrics': {}, 'metric': '', 'smaller': false"), &t), 0);
        assert_true(isnan(t.facts.value));
        checkpoint_talk_done(&t);
        assert_int_equal(read_talk("{'op': 'checkpointGone', 'path': 's3://bucket/s'}", &t), 0);
        assert_string_equal(t.facts.path, "s3://bucket/s");
        checkpoint_talk_done(&t);
        assert_int_equal(read_talk("{'op': 'checkpointGone', 'path': '/s'}", &t), 0);
        assert_int_equal(t.op, CHECKPOINT_GONE);
        checkpoint_talk_done(&t);
        assert_int_equal(read_talk("{'op': 'checkpointsMarked', 'after': 7}", &t), 0);
        assert_int_equal(t.after, 7);
        checkpoint_talk_done(&t);
}

static void test_refused(void **state) {
        static const char *const paths[] = {
                "s",    "",     "/",     "/s/",       "/s/../t",     "/s/..",
                "/s/.", "/./s", "//s",   "/s\\u001b", "/s\\u0000t",  "/s\\n",
                "s3:",  "s3:/", "s3://", "s3:///s",   "s3://b/../s", "s4://b/s"
        };
        char text[CHECKPOINT_TALK_MAX];
        struct checkpoint_talk t;

        for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
                snprintf(text, sizeof(text), "{'op': 'checkpointGone', 'path': '%s'}", paths[i]);
                /* jansson itself takes no NUL within a text. */
                assert_true(read_talk(text, &t) < 0);
        }
        snprintf(text, sizeof(text), "{'op': 'checkpointGone', 'path': '/%0*d'}", (int)CHECKPOINT_PATH_MAX,
                 0);
        refuses(text, "path must be");
        refuses("{'op': 'checkpointGone', 'path': '/s', 'x': 1}", "checkpointGone has no");
        refuses("{'op': 'checkpointGone'}", "path must be");
        refuses("{'op': 'checkpointsMarked', 'after': -1}", "after must be");
        refuses(SAVED("/s", "'metrics': [], 'metric': '', 'smaller': false"), "metrics must be");
        refuses(SAVED("/s", "'metrics': {'a': 'b'}, 'metric': '', 'smaller': false"),
                "metrics must be numbers");
        refuses(SAVED("/s", "'metrics': {}, 'metric': 7, 'smaller': false"), "metric must be");
        refuses(SAVED("/s", "'metrics': {}, 'metric': '\\u001b[2J', 'smaller': false"), "metric must be");
        refuses(SAVED("/s", "'metrics': {}, 'metric': ''"), "smaller must be");
        refuses("{'op': 'checkpoint', 'path': '/s', 'step': 1e3}", "step must be");
        refuses("{'op': 'checkpoint', 'path': '/s', 'step': 1, 'bytes': 0, 'files': 0, 'time': -1}",
                "time must be");
        assert_int_equal(read_talk("{'op': 'hello'}", &t), -ENOENT);
        assert_int_equal(read_talk("[]", &t), -ENOENT);
        assert_int_equal(read_talk("{", &t), -ENOENT);
}

static void test_metrics_bounds(void **state) {
        char text[CHECKPOINT_TALK_MAX], metrics[2048] = "";

        for (int i = 0; i <= (int)CHECKPOINT_METRICS_NAMES_MAX; i++)
                sprintf(metrics + strlen(metrics), "%s'm%d': 1", i > 0 ? ", " : "", i);
        snprintf(text, sizeof(text), SAVED("/s", "'metrics': {%s}, 'metric': '', 'smaller': true"), metrics);
        refuses(text, "at most 32");
        *metrics = 0;
        for (int i = 0; i < (int)CHECKPOINT_METRICS_NAMES_MAX; i++)
                sprintf(metrics + strlen(metrics), "%s'%050d': 1", i > 0 ? ", " : "", i);
        snprintf(text, sizeof(text), SAVED("/s", "'metrics': {%s}, 'metric': '', 'smaller': true"), metrics);
        refuses(text, "1024 bytes");
}

static void test_answers(void **state) {
        struct checkpoint_facts f = {
                .host = "n1", .metrics = "{}", .metric = "", .owner = 1000, .step = 5, .saved_real = 1500000
        };
        struct checkpoints *c;
        struct checkpoint *x;
        char path[32], *text;

        assert_int_equal(checkpoints_new(&c), 0);
        f.path = path;
        for (int i = 0; i < 100; i++) {
                snprintf(path, sizeof(path), "/%d", i);
                assert_int_equal(checkpoints_put(c, 0, &f, &x), 0);
                x->marked = i != 1;
        }
        f.owner = 1001;
        assert_int_equal(checkpoints_put(c, 0, &f, &x), 0);
        x->marked = true;
        assert_int_equal(checkpoint_talk_marked(c, 1000, 98, &text), 0);
        assert_string_equal(
                text, json_text("{'checkpoints':[{'id':99,'path':'/98','step':5,'time':1.5,'host':'n1'},"
                                "{'id':100,'path':'/99','step':5,'time':1.5,'host':'n1'}]}"));
        free(text);
        assert_int_equal(checkpoint_talk_marked(c, 1000, 0, &text), 0);
        assert_null(strstr(text, json_text("'id':2,")));
        assert_non_null(strstr(text, json_text("'id':65,")));
        assert_null(strstr(text, json_text("'id':66,")));
        free(text);
        assert_int_equal(checkpoint_talk_marked(c, 1002, 0, &text), 0);
        assert_string_equal(text, json_text("{'checkpoints':[]}"));
        free(text);
        assert_int_equal(checkpoint_talk_id(7, &text), 0);
        assert_string_equal(text, json_text("{'id':7}"));
        free(text);
        checkpoints_free(c);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_saved),
                cmocka_unit_test(test_refused),
                cmocka_unit_test(test_metrics_bounds),
                cmocka_unit_test(test_answers),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
