/* SPDX-License-Identifier: Apache-2.0 */
/* However many GPUs an executor has, and however long their names are, masterd knows them after a restart. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "masterd/core/manager.h"
#include "masterd/fleet/stuck.h"
#include "masterd/life/lifecycle.h"
#include "masterd/node/gpus.h"
#include "tests/kit/json.h"
#include "tests/kit/masterd-kit.h"

static char names[NODE_GPUS_MAX][LINK_GPU_NAME_MAX + 1];
static struct gpu_info gpus[NODE_GPUS_MAX];

/* As MIG's were called, and as long as the link takes them. */
static void name_all(bool longest) {
        for (unsigned i = 0; i < NODE_GPUS_MAX; i++) {
                int n = snprintf(names[i], sizeof(names[i]),
                                 "MIG-GPU-5c89852c-d268-c3f3-1b07-005d5ae1dc3f/%u/%u", i / 8, i % 8);
                if (longest)
                        memset(names[i] + n, 'a' + (int)(i % 26), sizeof(names[i]) - 1 - (size_t)n);
                gpus[i] = (struct gpu_info){ names[i], (char *)"m", 1, (char *)"" };
        }
}

static void test_text(void **state) {
        struct inventory v = { .gpus = gpus, .n_gpus = NODE_GPUS_MAX };
        const uint64_t sets[] = { 0, 1, UINT64_MAX, UINT64_C(1) << 63, 0xf0f0f0f0f0f0f0f0, UINT64_MAX >> 1 };

        for (int longest = 0; longest < 2; longest++) {
                name_all(longest);
                for (size_t i = 0; i < ELEMENTSOF(sets); i++) {
                        _cleanup_free_ char *text = gpus_text(&v, sets[i]);
                        assert_non_null(text);
                        assert_int_equal(gpus_of_text(&v, text), sets[i]);
                }
        }
}

/* A name that is the beginning, or the end, of another's. */
static void test_whole_words(void **state) {
        struct gpu_info few[] = { { (char *)"GPU-1" }, { (char *)"GPU-10" }, { (char *)"MIG-GPU-1" } };
        struct inventory v = { .gpus = few, .n_gpus = ELEMENTSOF(few) };

        for (uint64_t set = 0; set < 8; set++) {
                _cleanup_free_ char *text = gpus_text(&v, set);
                assert_int_equal(gpus_of_text(&v, text), set);
        }
        assert_int_equal(gpus_of_text(&v, "GPU-10 GPU-2 MIG-GPU-1x"), 2);
}

/* What is left of an inventory until its agent registers again: the names, in their places. */
static void test_named(void **state) {
        const struct inventory v = { .gpus = gpus, .n_gpus = NODE_GPUS_MAX };
        struct inventory few = {};

        for (int longest = 0; longest < 2; longest++) {
                struct inventory named = {};
                _cleanup_free_ char *text = NULL;
                name_all(longest);
                text = gpus_text(&v, UINT64_MAX);
                assert_int_equal(gpus_named(text, &named), 0);
                assert_int_equal(named.n_gpus, NODE_GPUS_MAX);
                for (size_t i = 0; i < NODE_GPUS_MAX; i++)
                        assert_string_equal(named.gpus[i].uuid, names[i]);
                assert_int_equal(gpus_named("one more", &named), 0); /* than a set has room for */
                assert_int_equal(named.n_gpus, NODE_GPUS_MAX);
                inventory_done(&named);
        }
        assert_int_equal(gpus_named("", &few), 0);
        assert_int_equal(few.n_gpus, 0);
        assert_int_equal(gpus_named(" GPU-1  GPU-2 ", &few), 0);
        assert_int_equal(few.n_gpus, 2);
        assert_string_equal(few.gpus[1].uuid, "GPU-2");
        inventory_done(&few);
}

static void test_restart(void **state) {
        static const char config[] = JSON({
                "role" : [ {
                        "roleName" : "w",
                        "num" : 1,
                        "vcores" : 1,
                        "memoryMb" : 16,
                        "gpuNum" : 64,
                        "command" : "x"
                } ]
        });
        struct kit *k = *state;
        struct executor_id id;
        struct node *node;
        struct job *j;

        name_all(false);
        kit_register_gpus(k->m, "n1", 64, UINT64_C(64) << 30, gpus, NODE_GPUS_MAX);
        j = kit_submit_durable(k->m, config);
        kit_start_all(k->m, j);
        assert_int_equal(j->executors[0]->place.gpus, UINT64_MAX);
        kit_restart(k);
        j = manager_job(k->m, 1);
        assert_non_null(j);
        assert_int_equal(j->executors[0]->place.gpus, UINT64_MAX);

        /* The same of one that SIGKILL does not end. */
        id = (struct executor_id){
                .job_uid = j->uid, .job = 1, .role = "w", .attempt = j->executors[0]->attempt
        };
        lifecycle_stop_job(k->m, j, JOB_EVENT_KILLED, "test");
        stuck_told(k->m, nodes_get(&k->m->nodes, "n1"), &id, "test");
        kit_restart(k);
        node = nodes_get(&k->m->nodes, "n1");
        assert_non_null(node->stuck);
        assert_int_equal(node->stuck->gpus, UINT64_MAX);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_text),
                cmocka_unit_test(test_whole_words),
                cmocka_unit_test(test_named),
                cmocka_unit_test_setup_teardown(test_restart, kit_setup, kit_teardown),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
