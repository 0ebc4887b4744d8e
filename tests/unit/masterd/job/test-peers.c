/* SPDX-License-Identifier: Apache-2.0 */
/* What is kept must never differ from what would be computed. */
#include "masterd/job/peers.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <utlist.h>

#include "lib/base/clock.h"
#include "masterd/job/job.h"
#include "masterd/node/node.h"
#include "tests/kit/json.h"

static struct job *job(const char *memory, unsigned num) {
        struct diagnostics d = {};
        struct job_spec *spec = NULL;
        struct job *j = NULL;
        char text[512];

        snprintf(text, sizeof(text),
                 "{'role': [{'roleName': 'ps', 'num': 1, 'memoryMb': 100, 'command': 'true'},"
                 "{'roleName': 'worker', 'num': %u, 'memoryMb': %s, 'command': 'true'}]}",
                 num, memory);
        if (spec_parse(json_text(text), strlen(text), &spec, &d) < 0)
                fail_msg("the test's own configuration is wrong");
        diagnostics_done(&d);
        assert_int_equal(
                job_new(1, SD_ID128_MAKE(01, 23, 45, 67, 89, ab, cd, ef, 01, 23, 45, 67, 89, ab, cd, ef),
                        1000, spec, &j),
                0);
        return j;
}

static void place(struct executor *e, struct node *node, uint16_t port) {
        assert_int_equal(executor_transition(e, EXECUTOR_EVENT_PLACED), 0);
        e->node = node;
        e->attempt++;
        free(e->place.ports);
        e->place.ports = malloc(sizeof(port));
        assert_non_null(e->place.ports);
        e->place.ports[0] = port;
        e->place.n_ports = 1;
        DL_APPEND2(node->executors, e, node_prev, node_next);
}

static void end(struct executor *e, enum executor_event event) {
        DL_DELETE2(e->node->executors, e, node_prev, node_next);
        assert_int_equal(executor_transition(e, event), 0);
}

static void assert_has(struct executor *e, const char *variable) {
        bool found = false;
        char **env;

        assert_int_equal(job_peers_environment(e, &env), 0);
        for (char **p = env; *p; p++) {
                found = found || strcmp(*p, variable) == 0;
                free(*p);
        }
        free(env);
        if (!found)
                fail_msg("no %s", variable);
}

static void test_follows_placement(void **state) {
        struct node n1 = { .name = (char *)"n1" }, n2 = { .name = (char *)"n2" };
        struct job *j = job("100", 2);
        struct executor *ps = j->executors[0], *w0 = j->executors[1], *w1 = j->executors[2];
        struct job_peers *kept;
        uint64_t before;
        char **env;

        assert_int_equal(addr_parse("192.0.2.1", 0, &n1.address), 0);
        assert_int_equal(addr_parse("192.0.2.2", 0, &n2.address), 0);
        assert_int_equal(job_peers_environment(ps, &env), -ENOENT);
        place(ps, &n1, 2000);
        place(w0, &n1, 2001);
        assert_has(w0, "WORLD_SIZE=2");
        kept = j->peers;
        assert_has(ps, "MASTER_PORT=2000");
        assert_int_equal(executor_transition(w0, EXECUTOR_EVENT_ORDERED), 0);
        assert_int_equal(executor_transition(w0, EXECUTOR_EVENT_STARTED), 0);
        assert_has(w0, "RANK=1");
        assert_ptr_equal(j->peers, kept); /* computed once */
        place(w1, &n2, 2000);
        assert_has(w0, "WORLD_SIZE=3");
        assert_has(w1, "NODE_RANK=1");
        /* An end keeps its rank until the next attempt, which gets another place and port. */
        end(ps, EXECUTOR_EVENT_FAILED);
        assert_has(w1, "MASTER_ADDR=192.0.2.1");
        assert_int_equal(executor_again(ps), 0);
        assert_has(w1, "MASTER_PORT=2000"); /* it is back in a moment, where it was for all we know */
        n1.state = NODE_LOST;
        job_peers_drop(j);
        assert_has(w1, "MASTER_PORT=2001");
        n1.state = NODE_READY;
        place(ps, &n2, 3000);
        assert_has(w1, "MASTER_ADDR=192.0.2.2");
        assert_has(w1, "MASTER_PORT=3000");
        assert_has(w0, "PRIMUS_HOSTS=n2,n1");
        /* The digest is of who is where, and of nothing else. */
        before = job_membership(j);
        end(w1, EXECUTOR_EVENT_FAILED);
        assert_int_equal(executor_again(w1), 0);
        assert_true(job_membership(j) == before);
        place(w1, &n2, 2000);
        assert_true(job_membership(j) == before);
        w1->place.ports[0]++;
        assert_true(job_membership(j) != before);
        /* A host may come back with another address. */
        assert_int_equal(addr_parse("192.0.2.77", 0, &n2.address), 0);
        job_peers_drop(j);
        assert_has(w0, "MASTER_ADDR=192.0.2.77");
        /* Nothing is kept for a job that runs. */
        j->state = JOB_STARTING;
        assert_int_equal(job_transition(j, JOB_EVENT_UP), 0);
        assert_null(j->peers);
        assert_has(w0, "WORLD_SIZE=3"); /* a restart while it runs; job_free() takes what that leaves */
        job_free(j);
}

static void test_sums(void **state) {
        struct node n1 = { .name = (char *)"n1" }, n2 = { .name = (char *)"n2" };
        struct job *a = job("200", 3), *b = job("0", 1);

        place(a->executors[0], &n1, 1);
        place(a->executors[1], &n1, 2);
        place(a->executors[2], &n1, 3);
        place(a->executors[3], &n2, 1);
        place(b->executors[0], &n1, 4);
        place(b->executors[1], &n2, 2);
        for (uint32_t i = 0; i < 4; i++)
                a->executors[i]->place.gpus = UINT64_C(1) << i;
        b->executors[0]->place.gpus = UINT64_C(1) << 63;
        assert_int_equal(job_memory_on_node(a->executors[0]), UINT64_C(500) << 20);
        assert_int_equal(job_memory_on_node(a->executors[3]), UINT64_C(200) << 20);
        assert_int_equal(job_memory_on_node(b->executors[0]), UINT64_C(100) << 20);
        assert_int_equal(job_memory_on_node(b->executors[1]), 0); /* no limit */
        assert_int_equal(job_gpus_on_node(a->executors[1]), 7);
        assert_int_equal(job_gpus_on_node(a->executors[3]), 8);
        assert_true(job_gpus_on_node(b->executors[0]) == UINT64_C(1) << 63);
        end(a->executors[1], EXECUTOR_EVENT_FAILED);
        assert_int_equal(job_memory_on_node(a->executors[0]), UINT64_C(300) << 20);
        assert_int_equal(job_gpus_on_node(a->executors[0]), 5);
        job_free(a);
        job_free(b);
}

/* A gang of 2,000 on 50 hosts: a rendezvous for each of them would take minutes under the sanitizers. */
static void test_gang(void **state) {
        struct node nodes[50] = {};
        char names[ELEMENTSOF(nodes)][16];
        struct job *j = job("100", 1999);
        uint64_t begin = now_boot(), sum = 0;

        for (size_t i = 0; i < ELEMENTSOF(nodes); i++) {
                snprintf(names[i], sizeof(names[i]), "n%zu", i);
                nodes[i].name = names[i];
                nodes[i].address = (struct addr){ .family = AF_INET, .bytes = { 192, 0, 2, (uint8_t)i } };
        }
        for (uint32_t i = 0; i < j->n_executors; i++)
                place(j->executors[i], nodes + i % ELEMENTSOF(nodes), (uint16_t)(20000 + i));
        for (uint32_t i = 0; i < j->n_executors; i++) {
                char **env;
                assert_int_equal(job_peers_environment(j->executors[i], &env), 0);
                for (char **p = env; *p; p++) {
                        sum += strlen(*p);
                        free(*p);
                }
                free(env);
                assert_int_equal(job_memory_on_node(j->executors[i]), UINT64_C(4000) << 20);
                assert_int_equal(job_gpus_on_node(j->executors[i]), 0);
        }
        print_message("%u environments, %llu bytes, in %llu ms\n", j->n_executors, (unsigned long long)sum,
                      (unsigned long long)((now_boot() - begin) / USEC_PER_MSEC));
        job_free(j);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_follows_placement),
                cmocka_unit_test(test_sums),
                cmocka_unit_test(test_gang),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
