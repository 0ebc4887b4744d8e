/* SPDX-License-Identifier: Apache-2.0 */
/* However many GPUs an executor has, and however long their names are, masterd knows them after a restart. */
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "masterd/core/manager.h"
#include "masterd/fleet/gpus-off.h"
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

#define WITH_GPUS(n)                                                                                         \
        "{'role':[{'roleName':'w','num':1,'vcores':1,'memoryMb':16,'gpuNum':" #n ",'command':'x'}]}"

static const char *uuids_of(const struct job *j, char buf[static 512]) {
        _cleanup_free_ char *text = gpus_text(&j->executors[0]->node->inventory, j->executors[0]->place.gpus);

        assert_non_null(text);
        snprintf(buf, 512, "%s", text);
        return buf;
}

/* The agent lists them in another order, or without one that has fallen off its bus: whoever has one keeps
 * that one, and nobody else gets it. */
static void test_listed_anew(void **state) {
        struct kit *k = *state;
        struct gpu_info few[4], turned[4];
        char one[512], again[512];
        struct job *j, *other;
        uint64_t a, b;

        name_all(false);
        for (size_t i = 0; i < 4; i++) {
                few[i] = gpus[i];
                turned[i] = gpus[3 - i];
        }
        kit_register_gpus(k->m, "n1", 64, UINT64_C(64) << 30, few, 4);
        j = kit_submit_durable(k->m, WITH_GPUS(1));
        assert_int_equal(j->executors[0]->state, EXECUTOR_PLACED);
        uuids_of(j, one);
        kit_register_gpus(k->m, "n1", 64, UINT64_C(64) << 30, turned, 4);
        assert_string_equal(uuids_of(j, again), one);
        other = kit_submit_durable(k->m, WITH_GPUS(3));
        assert_int_equal(other->executors[0]->state, EXECUTOR_PLACED);
        a = j->executors[0]->place.gpus;
        b = other->executors[0]->place.gpus;
        assert_true((a & b) == 0 && (a | b) == 15);

        /* One of the three is gone. */
        for (size_t i = 0, n = 0; i < 4; i++)
                if (a >> i & 1 || i != (a & 1 ? 1 : 0))
                        few[n++] = turned[i];
        kit_register_gpus(k->m, "n1", 64, UINT64_C(64) << 30, few, 3);
        assert_string_equal(uuids_of(j, again), one);
        a = j->executors[0]->place.gpus;
        b = other->executors[0]->place.gpus;
        assert_true((a & b) == 0 && (a | b) == 7);
}

/* A person takes one out of use: by its number, it stays so by its uuid. */
static void test_out_of_use(void **state) {
        struct kit *k = *state;
        struct gpu_info few[4], turned[4];
        struct node *node;
        struct job *j, *all;
        char text[512];

        name_all(false);
        for (size_t i = 0; i < 4; i++) {
                few[i] = gpus[i];
                turned[i] = gpus[3 - i];
        }
        kit_register_gpus(k->m, "n1", 64, UINT64_C(64) << 30, few, 4);
        node = nodes_get(&k->m->nodes, "n1");
        assert_null(gpus_off_find(node, "4"));
        assert_null(gpus_off_find(node, "GPU-0"));
        assert_string_equal(gpus_off_find(node, "2"), names[2]);
        assert_string_equal(gpus_off_find(node, names[1]), names[1]);

        j = kit_submit_durable(k->m, WITH_GPUS(1)); /* keeps what it has */
        assert_string_equal(uuids_of(j, text), names[0]);
        assert_int_equal(gpus_off_add(k->m, node, names[0], 7, "hot"), 0);
        assert_int_equal(gpus_off_add(k->m, node, names[2], 7, ""), 0);
        assert_int_equal(gpus_off_add(k->m, node, names[2], 7, ""), -EALREADY);
        all = kit_submit_durable(k->m, WITH_GPUS(3));
        assert_int_equal(all->executors[0]->state, EXECUTOR_PENDING);
        assert_int_equal(kit_submit_durable(k->m, WITH_GPUS(2))->executors[0]->state, EXECUTOR_PLACED);
        kit_register_gpus(k->m, "n1", 64, UINT64_C(64) << 30, turned, 4);
        assert_int_equal(all->executors[0]->state, EXECUTOR_PENDING);

        kit_restart(k);
        kit_register_gpus(k->m, "n1", 64, UINT64_C(64) << 30, turned, 4);
        node = nodes_get(&k->m->nodes, "n1");
        assert_string_equal(node->gpus_off->reason, "hot");
        assert_int_equal(node->gpus_off->uid, 7);
        kit_exited(k->m, manager_job(k->m, 1)->executors[0], 0);
        kit_exited(k->m, manager_job(k->m, 3)->executors[0], 0);
        kit_until_durable(k->m);
        assert_int_equal(manager_job(k->m, 2)->executors[0]->state, EXECUTOR_PENDING); /* two of four */
        assert_true(gpus_off_remove(k->m, node, names[2], 7));
        assert_false(gpus_off_remove(k->m, node, names[2], 7));
        kit_until_durable(k->m);
        assert_int_equal(manager_job(k->m, 2)->executors[0]->state, EXECUTOR_PLACED);
        assert_int_equal(manager_job(k->m, 2)->executors[0]->place.gpus,
                         7); /* of the turned list: all but 0 */
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_text),
                cmocka_unit_test(test_whole_words),
                cmocka_unit_test(test_named),
                cmocka_unit_test_setup_teardown(test_restart, kit_setup, kit_teardown),
                cmocka_unit_test_setup_teardown(test_listed_anew, kit_setup, kit_teardown),
                cmocka_unit_test_setup_teardown(test_out_of_use, kit_setup, kit_teardown),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
