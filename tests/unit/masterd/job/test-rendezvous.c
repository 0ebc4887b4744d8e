/* SPDX-License-Identifier: Apache-2.0 */
#include "masterd/job/rendezvous.h"

#include <errno.h>
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "tests/kit/json.h"

static const struct rendezvous_role two_roles[] = { { "ps", "PS", 2 }, { "worker", "WORKER", 4 } };
static const uint16_t ports[][2] = { { 2000, 2001 }, { 2100, 2101 }, { 2200, 2201 },
                                     { 2300, 2301 }, { 2400, 2401 }, { 2500, 2501 } };

struct place {
        uint32_t role, index;
        const char *node, *address;
};

struct fixture {
        struct addr addresses[8];
        struct rendezvous_member members[8];
        struct rendezvous_job job;
};

static void set_up(struct fixture *f, const struct place *places, size_t n, size_t n_ports) {
        for (size_t i = 0; i < n; i++) {
                if (places[i].node)
                        assert_int_equal(addr_parse(places[i].address, 0, f->addresses + i), 0);
                f->members[i] = (struct rendezvous_member){ places[i].role,   places[i].index, places[i].node,
                                                            f->addresses + i, ports[i],        n_ports };
        }
        f->job = (struct rendezvous_job){ .name = "digits",
                                          .uid = "0123456789abcdef0123456789abcdef",
                                          .submitted_real = UINT64_C(1700000000123456),
                                          .roles = two_roles,
                                          .n_roles = ELEMENTSOF(two_roles),
                                          .members = f->members,
                                          .n_members = n };
}

static const char *get(char **env, const char *name) {
        const char *found = NULL;
        size_t l = strlen(name);

        for (char **p = env; *p; p++)
                if (strncmp(*p, name, l) == 0 && (*p)[l] == '=') {
                        assert_null(found); /* each once */
                        found = *p + l + 1;
                }
        return found;
}

static void env_free(char **env) {
        for (char **p = env; *p; p++)
                free(*p);
        free(env);
}

static void assert_variables(char **env, const char *const (*expected)[2]) {
        for (; (*expected)[0]; expected++) {
                const char *value = get(env, (*expected)[0]);
                if (!value || strcmp(value, (*expected)[1]) != 0)
                        fail_msg("%s is %s, not %s", (*expected)[0], value ? value : "missing",
                                 (*expected)[1]);
        }
}

static void assert_tf_config(char **env, const char *expected) {
        const char *text = get(env, "TF_CONFIG");
        json_t *is, *should;

        assert_non_null(text);
        is = json_loads(text, 0, NULL);
        should = json_loads(expected, 0, NULL);
        assert_non_null(should);
        if (!json_equal(is, should))
                fail_msg("TF_CONFIG is %s, not %s", text, expected);
        json_decref(is);
        json_decref(should);
}

/* Two ps and four workers over three hosts, taking turns. */
static const struct place interleaved[] = {
        { 0, 0, "n2", "192.0.2.2" },   { 0, 1, "n1", "192.0.2.1" }, { 1, 0, "n1", "192.0.2.1" },
        { 1, 1, "n3", "2001:db8::3" }, { 1, 2, "n2", "192.0.2.2" }, { 1, 3, "n1", "192.0.2.1" },
};

static void test_everything(void **state) {
        static const char *const expected[][2] = {
                { "MASTER_ADDR", "192.0.2.2" },
                { "MASTER_PORT", "2000" },
                { "RANK", "3" },
                { "WORLD_SIZE", "6" },
                { "LOCAL_RANK", "0" },
                { "LOCAL_WORLD_SIZE", "1" },
                { "NODE_RANK", "2" },
                { "PET_NNODES", "6" },
                { "PET_NODE_RANK", "3" },
                { "PET_MASTER_ADDR", "192.0.2.2" },
                { "PET_MASTER_PORT", "2000" },
                { "EXECUTOR_ID", "1" },
                { "EXECUTOR_ROLE", "worker" },
                { "EXECUTOR_INDEX", "1" },
                { "PORT_LIST", "2300,2301" },
                { "ROLES_LIST", "ps,worker" },
                { "NUM_OF_PRIMUS_worker", "4" },
                { "PRIMUS_EXECUTOR_UNIQID", "0123456789abcdef0123456789abcdef-worker-1" },
                { "PRIMUS_ROLE_CATEGORY", "WORKER" },
                { "PRIMUS_SUBMIT_TIMESTAMP", "1700000000123" },
                { "PRIMUS_JOB_NAME", "digits" },
                { "PRIMUS_RANK", "3" },
                { "PRIMUS_WORLD_SIZE", "6" },
                { "PRIMUS_ROLE_SIZE", "4" },
                { "PRIMUS_NUM_NODES", "3" },
                { "PRIMUS_NODE_RANK", "2" },
                { "PRIMUS_LOCAL_RANK", "0" },
                { "PRIMUS_LOCAL_WORLD_SIZE", "1" },
                { "PRIMUS_PORTS", "2300,2301" },
                { "PRIMUS_HOSTS", "n2,n1,n3" },
                { NULL, NULL },
        };
        struct rendezvous *r;
        struct fixture f = {};
        char **env;

        set_up(&f, interleaved, ELEMENTSOF(interleaved), 2);
        assert_int_equal(rendezvous_new(&f.job, &r), 0);
        assert_int_equal(rendezvous_environment(r, 3, &env), 0);
        assert_variables(env, expected);
        assert_null(get(env, "NUM_OF_PRIMUS_ps")); /* of its own role only, as upstream's */
        /* the first port of each; v6 in brackets */
        assert_tf_config(env, JSON({
                                 "cluster" : {
                                         "ps" : [ "192.0.2.2:2000", "192.0.2.1:2100" ],
                                         "worker" : [
                                                 "192.0.2.1:2200", "[2001:db8::3]:2300", "192.0.2.2:2400",
                                                 "192.0.2.1:2500"
                                         ]
                                 },
                                 "task" : { "type" : "worker", "index" : 1 }
                         }));
        env_free(env);
        assert_int_equal(rendezvous_environment(r, 6, &env), -ENOENT);
        rendezvous_free(r);
        rendezvous_free(NULL);
}

/* Hosts are numbered by the lowest rank on each, executors of a host by rank. */
static void test_ranks(void **state) {
        static const char *const expected[][4] = { /* RANK NODE_RANK LOCAL_RANK LOCAL_WORLD_SIZE */
                                                   { "0", "0", "0", "2" }, { "1", "1", "0", "3" },
                                                   { "2", "1", "1", "3" }, { "3", "2", "0", "1" },
                                                   { "4", "0", "1", "2" }, { "5", "1", "2", "3" }
        };
        struct rendezvous *r;
        struct fixture f = {};

        set_up(&f, interleaved, ELEMENTSOF(interleaved), 1);
        assert_int_equal(rendezvous_new(&f.job, &r), 0);
        for (size_t i = 0; i < ELEMENTSOF(expected); i++) {
                char **env;
                assert_int_equal(rendezvous_environment(r, i, &env), 0);
                assert_string_equal(get(env, "RANK"), expected[i][0]);
                assert_string_equal(get(env, "NODE_RANK"), expected[i][1]);
                assert_string_equal(get(env, "LOCAL_RANK"), expected[i][2]);
                assert_string_equal(get(env, "LOCAL_WORLD_SIZE"), expected[i][3]);
                env_free(env);
        }
        rendezvous_free(r);
}

/* Those without a place have no rank; the others close up, but keep their index in TF_CONFIG. */
static void test_unplaced(void **state) {
        static const struct place places[] = {
                { 0, 0, NULL, NULL },        { 0, 1, "n1", "192.0.2.1" }, { 1, 0, "n2", "192.0.2.2" },
                { 1, 1, "n1", "192.0.2.1" }, { 1, 2, NULL, NULL },        { 1, 3, NULL, NULL },
        };
        static const char *const expected[][2] = {
                { "MASTER_ADDR", "192.0.2.1" },
                { "MASTER_PORT", "2100" },
                { "RANK", "2" },
                { "WORLD_SIZE", "3" },
                { "NODE_RANK", "0" },
                { "LOCAL_RANK", "1" },
                { "PRIMUS_NUM_NODES", "2" },
                { "PRIMUS_HOSTS", "n1,n2" },
                { "NUM_OF_PRIMUS_worker", "4" },
                { NULL, NULL },
        };
        struct rendezvous *r;
        struct fixture f = {};
        char **env;

        set_up(&f, places, ELEMENTSOF(places), 1);
        assert_int_equal(rendezvous_new(&f.job, &r), 0);
        assert_int_equal(rendezvous_environment(r, 0, &env), -ENOENT);
        assert_int_equal(rendezvous_environment(r, 4, &env), -ENOENT);
        assert_int_equal(rendezvous_environment(r, 3, &env), 0);
        assert_variables(env, expected);
        assert_tf_config(env, JSON({
                                 "cluster" : {
                                         "ps" : { "1" : "192.0.2.1:2100" },
                                         "worker" : [ "192.0.2.2:2200", "192.0.2.1:2300" ]
                                 },
                                 "task" : { "type" : "worker", "index" : 1 }
                         }));
        env_free(env);
        rendezvous_free(r);
}

/* TF_CONFIG is left out for a job of one executor, not for the first that is placed of several. */
static void test_alone(void **state) {
        static const struct place one[] = { { 1, 0, "n1", "2001:db8::1" } };
        static const struct place first[] = { { 1, 0, "n1", "2001:db8::1" }, { 1, 1, NULL, NULL } };
        struct fixture f = {}, g = {};
        struct rendezvous *r;
        char **env;

        set_up(&f, one, 1, 1);
        assert_int_equal(rendezvous_new(&f.job, &r), 0);
        assert_int_equal(rendezvous_environment(r, 0, &env), 0);
        assert_null(get(env, "TF_CONFIG"));
        assert_string_equal(get(env, "MASTER_ADDR"), "2001:db8::1");
        assert_string_equal(get(env, "WORLD_SIZE"), "1");
        env_free(env);
        rendezvous_free(r);

        set_up(&g, first, 2, 1);
        assert_int_equal(rendezvous_new(&g.job, &r), 0);
        assert_int_equal(rendezvous_environment(r, 0, &env), 0);
        assert_tf_config(env, JSON({
                                 "cluster" : { "worker" : ["[2001:db8::1]:2000"] },
                                 "task" : { "type" : "worker", "index" : 0 }
                         }));
        env_free(env);
        rendezvous_free(r);
}

static void test_nobody_placed(void **state) {
        static const struct place places[] = { { 0, 0, NULL, NULL }, { 1, 0, NULL, NULL } };
        struct fixture f = {};
        struct rendezvous *r;
        char **env;

        set_up(&f, places, 2, 1);
        assert_int_equal(rendezvous_new(&f.job, &r), 0);
        assert_int_equal(rendezvous_environment(r, 0, &env), -ENOENT);
        rendezvous_free(r);
}

/* 64 ports are listed whole; a cluster that the kernel would not take in one variable has no TF_CONFIG. */
static void test_bounds(void **state) {
        enum {
                N = 6000
        };
        uint16_t many[64];
        char expected[64 * 6 + 1] = "";
        const struct rendezvous_role role = { "worker", "WORKER", N };
        struct rendezvous_member *members = calloc(N, sizeof(*members));
        struct rendezvous_job job = {
                .name = "big", .uid = "0", .roles = &role, .n_roles = 1, .members = members, .n_members = N
        };
        struct addr address;
        struct rendezvous *r;
        char **env;

        assert_non_null(members);
        assert_int_equal(addr_parse("192.0.2.100", 0, &address), 0);
        for (size_t i = 0; i < ELEMENTSOF(many); i++) {
                many[i] = (uint16_t)(65535 - i);
                sprintf(expected + strlen(expected), "%s%u", i ? "," : "", many[i]);
        }
        for (uint32_t i = 0; i < N; i++)
                members[i] = (struct rendezvous_member){ 0, i, "n1", &address, many, ELEMENTSOF(many) };
        assert_int_equal(rendezvous_new(&job, &r), 0);
        assert_int_equal(rendezvous_environment(r, N - 1, &env), 0);
        assert_null(get(env, "TF_CONFIG"));
        assert_string_equal(get(env, "PORT_LIST"), expected);
        assert_string_equal(get(env, "RANK"), "5999");
        assert_string_equal(get(env, "LOCAL_RANK"), "5999");
        env_free(env);
        rendezvous_free(r);
        free(members);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_everything),    cmocka_unit_test(test_ranks),
                cmocka_unit_test(test_unplaced),      cmocka_unit_test(test_alone),
                cmocka_unit_test(test_nobody_placed), cmocka_unit_test(test_bounds),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
