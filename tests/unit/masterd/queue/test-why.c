/* SPDX-License-Identifier: Apache-2.0 */
/* Why a job waits, each kind of it: what people are told is asserted word by word. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/base/log.h"
#include "masterd/conf/pools.h"
#include "masterd/core/manager.h"
#include "masterd/life/change.h"
#include "masterd/life/lifecycle.h"
#include "masterd/life/suspension.h"
#include "masterd/queue/placement-parts.h"
#include "masterd/queue/queueing.h"
#include "masterd/queue/why.h"
#include "tests/kit/json.h"
#include "tests/kit/masterd-kit.h"

#define GIB (UINT64_C(1) << 30)
#define SETTLE 8u /* passes after which nothing new is said */

/* A job of one role w, whose executors take a core and 16 MiB if nothing else is said. */
#define JOB(num, role, more)                                                                                 \
        "{'waitForHosts':true," more "'role':[{'roleName':'w','num':" #num ",'command':'x'" role "}]}"
#define SMALL ",'memoryMb':16"

/* Two hosts of four cores and 8 GiB, and, with GPUs, two of a model g on each. */
struct scene {
        const char *name;
        bool gpus;
        const char *before[3]; /* jobs that were there first, and run as far as they can */
        const char *job;
        const char *says;                /* why, or the job's reason when it is not in the queue */
        const char *host;                /* a kind of hosts, or NULL */
        const char *suggestion, *second; /* or NULL */
};

static const struct scene scenes[] = {
        { "CPU: some fit, some do not", .before = { JOB(3, SMALL, ) }, .job = JOB(8, SMALL, ),
          .says = "role w: 5 of 8 fit now on 2 usable nodes, short of CPU", .host = "with room for 4",
          .suggestion = "w minNum 5 (instead of 8)" },
        { "CPU: none fits", .before = { JOB(8, SMALL, ) }, .job = JOB(2, SMALL, ),
          .says = "role w: 0 of 2 fit now on 2 usable nodes, short of CPU", .host = "short of CPU now" },
        { "memory", .before = { JOB(2, ",'memoryMb':6144", ) }, .job = JOB(2, ",'memoryMb':3072", ),
          .says = "role w: 0 of 2 fit now on 2 usable nodes, short of memory", .host = "short of memory now",
          .suggestion = "w memoryMb 2048 (instead of 3072)" },
        { "GPUs", .gpus = true, .before = { JOB(1, SMALL ",'gpuNum':2", ) },
          .job = JOB(2, SMALL ",'gpuNum':2", ),
          .says = "role w: 1 of 2 fit now on 2 usable nodes, short of GPUs", .host = "short of GPUs now",
          .suggestion = "w minNum 1 (instead of 2)", .second = "w gpuNum 1 (instead of 2)" },
        { "no GPU at all", .job = JOB(1, SMALL ",'gpuNum':1", ),
          .says = "role w: 1 wanted, more than the 2 usable nodes hold even when empty, short of GPUs",
          .host = "too small even when empty, short of GPUs" },
        { "another model of GPU", .gpus = true, .job = JOB(1, SMALL ",'gpuNum':1,'gpu':{'model':'other'}", ),
          .says = "role w: none of 2 usable nodes meets its constraints",
          .host = "not as its constraints want it", .suggestion = "w any whole GPU (without gpu)" },
        { "a label that nobody has", .job = JOB(1, SMALL ",'constraints':['rack=7']", ),
          .says = "role w: none of 2 usable nodes meets its constraints",
          .host = "not as its constraints want it", .suggestion = "w without the constraint rack=7" },
        { "more than there is, by CPU", .job = JOB(9, SMALL, ),
          .says = "role w: 9 wanted, more than the 2 usable nodes hold even when empty, short of CPU",
          .suggestion = "w minNum 8 (instead of 9)" },
        { "more than there is, by memory, while CPUs are taken", .before = { JOB(8, SMALL, ) },
          .job = JOB(1, ",'memoryMb':16384", ),
          .says = "role w: 1 wanted, more than the 2 usable nodes hold even when empty, short of memory",
          .host = "too small even when empty, short of memory" },
        { "hosts of its own that there are not",
          .job = JOB(3, SMALL ",'scheduleStrategy':{'maxReplicasPerNode':1}", ),
          .says = "role w: 3 wanted, more than the 2 usable nodes hold even when empty, short of nodes",
          .suggestion = "w without maxReplicasPerNode" },
        { "one on each host, where one is full", .before = { JOB(1, SMALL ",'vcores':4", ) },
          .job = JOB(2, SMALL ",'scheduleStrategy':{'maxReplicasPerNode':1}", ),
          .says = "role w: 1 of 2 fit now on 2 usable nodes, short of CPU",
          .suggestion = "w without maxReplicasPerNode" },
        { "so many on each host",
          .before = { JOB(2, SMALL ",'vcores':2,'scheduleStrategy':{'maxReplicasPerNode':1}", ) },
          .job = JOB(4, SMALL ",'scheduleStrategy':{'replicasPerNode':4}", ),
          .says = "role w: 0 of 4 fit now on 2 usable nodes, short of CPU",
          .suggestion = "w on 2 hosts with 2 each (replicasPerNode 2; --hosts=2 --per-host=2)" },
        { "a host that is not the one", .before = { JOB(1, SMALL ",'vcores':4,'nodes':'n1'", ) },
          .job = JOB(1, SMALL ",'nodes':'n1'", ),
          .says = "role w: 0 of 1 fit now on 1 usable nodes, short of CPU",
          .host = "not among the job's hosts", .suggestion = "w on any host (without nodes)" },
        { "a host that there is not", .job = JOB(1, SMALL ",'nodes':'n9'", ),
          .says = "role w: no usable node is there for it", .suggestion = "w on any host (without nodes)" },
        { "whole hosts", .before = { JOB(1, SMALL ",'nodes':'n1'", ), JOB(1, SMALL ",'nodes':'n2'", ) },
          .job = JOB(1, SMALL, "'wholeHosts':true,"),
          .says = "role w: 0 of 1 fit now on 2 usable nodes, short of hosts on which nobody else is",
          .host = "not empty", .suggestion = "w others on its hosts (without wholeHosts)" },
        { "licences", .before = { JOB(1, SMALL ",'consumables':{'matlab':2}", ) },
          .job = JOB(1, SMALL ",'consumables':{'matlab':2}", ),
          .says = "role w: 0 of 1 fit now on 2 usable nodes, short of licences" },
        { "the rest of a gang", .job = JOB(12, SMALL ",'minNum':8", ),
          .says = "role w: none of the 4 beyond minNum fits now on 2 usable nodes, short of CPU",
          .host = "short of CPU now" },
        { "behind one that has waited for longer",
          .before = { JOB(6, SMALL, "'timeLimit':'1h',"), JOB(8, SMALL, "'timeLimit':'1h',") },
          .job = JOB(2, SMALL, "'timeLimit':'10h',"),
          .says = "would fit, but job 2 before it would start later" },
        { "a job before it", .before = { JOB(1, SMALL, ) }, .job = JOB(1, SMALL, "'after':['1:ok'],"),
          .says = "after job 1 (" },
        { "a time", .job = JOB(1, SMALL, "'begin':'2099-01-02T03:04:05Z',"), .says = "begins at 2099-01-0" },
        { "the limit of its pool", .before = { JOB(3, SMALL, "'queue':'tight',") },
          .job = JOB(2, SMALL, "'queue':'tight',"), .says = "pool tight is at its limit (4 CPUs)" },
        { "the limit for users of its pool", .before = { JOB(2, SMALL, "'queue':'fair',") },
          .job = JOB(2, SMALL, "'queue':'fair',"),
          .says = "its user is at the limit for users of pool fair (3 CPUs)" },
};

static void begin(struct kit *k, bool with_gpus) {
        static struct gpu_info gpus[2][2] = {
                { { (char *)"GPU-1", (char *)"g", GIB, (char *)"" },
                  { (char *)"GPU-2", (char *)"g", GIB, (char *)"" } },
                { { (char *)"GPU-3", (char *)"g", GIB, (char *)"" },
                  { (char *)"GPU-4", (char *)"g", GIB, (char *)"" } },
        };
        const char *why;
        struct pool *p;

        p = pools_find_section(&k->m->conf, "tight", &why);
        p->policy.limit.cpu_milli = 4000;
        p = pools_find_section(&k->m->conf, "fair", &why);
        p->policy.user_limit.cpu_milli = 3000;
        assert_true(queueing_set_pools(k->m) >= 0);
        assert_int_equal(placement_parse_licences("matlab=3", &k->m->conf.placement, &why), 0);
        assert_true(placement_configure(k->m->placement->sched, &k->m->conf.placement) >= 0);
        for (unsigned i = 0; i < 2; i++)
                kit_register_gpus(k->m, i == 0 ? "n1" : "n2", 4, 8 * GIB, with_gpus ? gpus[i] : NULL,
                                  with_gpus ? 2 : 0);
}

static void settle(struct kit *k) {
        for (unsigned i = 0; i < SETTLE; i++) {
                manager_schedule(k->m);
                kit_until_durable(k->m);
        }
}

/* What is said: of the queue, or why it is not in the queue. */
static const char *told(struct kit *k, struct job *j, struct why *w, char *buf) {
        int r = why_job(k->m, j, w);

        if (r == -ENOENT)
                return j->reason ?: "";
        assert_true(r >= 0);
        return queueing_why_text(k->m, j, &w->policy, buf, QUEUEING_WHY_MAX);
}

static bool has_host(const struct why *w, const char *text) {
        for (size_t i = 0; i < w->n_groups; i++)
                if (strcmp(w->groups[i].text, text) == 0)
                        return true;
        return false;
}

static bool has_suggestion(const struct why *w, const char *text) {
        for (size_t i = 0; i < w->n_suggestions; i++)
                if (strcmp(w->suggestions[i], text) == 0)
                        return true;
        return false;
}

static void show(const struct why *w) {
        for (size_t i = 0; i < w->n_groups; i++)
                print_message("  %u %s\n", w->groups[i].hosts, w->groups[i].text);
        for (size_t i = 0; i < w->n_suggestions; i++)
                print_message("  + %s\n", w->suggestions[i]);
}

static unsigned play(const struct scene *s, struct kit *k) {
        char buf[QUEUEING_WHY_MAX];
        struct why w;
        struct job *j;
        const char *says;
        bool good;

        begin(k, s->gpus);
        for (size_t i = 0; i < ELEMENTSOF(s->before) && s->before[i]; i++)
                kit_start_all(k->m, kit_submit_durable(k->m, s->before[i]));
        j = kit_submit_durable(k->m, s->job);
        settle(k);
        says = told(k, j, &w, buf);
        good = strncmp(says, s->says, strlen(s->says)) == 0 && (!s->host || has_host(&w, s->host)) &&
               (!s->suggestion || has_suggestion(&w, s->suggestion)) &&
               (!s->second || has_suggestion(&w, s->second));
        if (good)
                return 0;
        print_message("%s: '%s'\n", s->name, says);
        show(&w);
        return 1;
}

static void test_each_kind(void **state) {
        unsigned wrong = 0;

        for (size_t i = 0; i < ELEMENTSOF(scenes); i++) {
                void *own = NULL;

                assert_int_equal(kit_setup(&own), 0);
                wrong += play(scenes + i, own);
                assert_int_equal(kit_teardown(&own), 0);
        }
        assert_int_equal(wrong, 0);
}

#define assert_told(k, j, text)                                                                              \
        do {                                                                                                 \
                char _buf[QUEUEING_WHY_MAX];                                                                 \
                struct why _w;                                                                               \
                assert_string_equal(told(k, j, &_w, _buf), text);                                            \
        } while (0)

/* More than there is room for, of a job that runs: what is missing is said at once. */
static void test_scaled(void **state) {
        struct spec_edit more = { EDIT_SCALE, "w", "12" };
        sd_bus_error error = SD_BUS_ERROR_NULL;
        struct kit *k = *state;
        uint64_t version;
        struct job *j;

        begin(k, false);
        j = kit_submit_durable(k->m, JOB(2, SMALL, ));
        kit_start_all(k->m, j);
        assert_int_equal(change_job(k->m, j, 1000, CHANGE_ANY_VERSION, &more, 1, NULL, &version, &error), 0);
        kit_until_durable(k->m);
        kit_start_all(k->m, j);
        assert_int_equal(kit_in_state(j, EXECUTOR_RUNNING), 8);
        assert_told(k, j, "role w: none of 4 fits now on 2 usable nodes, short of CPU");
}

/* The same of a gang that began with as much as there was. */
static void test_rest_of_gang(void **state) {
        struct kit *k = *state;
        struct job *j;

        begin(k, false);
        j = kit_submit_durable(k->m, JOB(10, SMALL ",'minNum':2", ));
        assert_told(k, j, "role w: none of the 2 beyond minNum fits now on 2 usable nodes, short of CPU");
}

static void test_no_host(void **state) {
        struct kit *k = *state;
        struct job *j = kit_submit_durable(k->m, JOB(2, SMALL, ));

        assert_told(k, j, "role w: no usable node is there for it");
}

static void test_preempting(void **state) {
        struct kit *k = *state;
        struct job *victim, *j;

        begin(k, false);
        k->m->conf.pools.policy.min_run_usec = 0;
        k->m->conf.pools.items[0]->policy.preempts = true;
        assert_true(queueing_set_pools(k->m) >= 0);
        victim = kit_submit_durable(k->m, JOB(8, SMALL, "'preemptible':true,'signal':'USR1@1h',"));
        kit_start_all(k->m, victim);
        j = kit_submit_durable(k->m, JOB(1, SMALL, "'priority':5,"));
        assert_told(k, j, "1 job is being stopped for it");
}

static void test_held(void **state) {
        struct kit *k = *state;
        char text[SUSPENSION_TEXT_MAX];
        struct job *first, *j;

        begin(k, false);
        first = kit_submit_durable(k->m, JOB(8, SMALL, ));
        kit_start_all(k->m, first);
        j = kit_submit_durable(k->m, JOB(1, SMALL, ));
        assert_int_equal(suspension_begin(k->m, j, SUSPEND_STOP, 1000, text), 0);
        kit_until_durable(k->m);
        assert_memory_equal(j->reason, "held by uid 1000 since ", 23);
        assert_non_null(strstr(j->reason, "'primusctl resume 2' lets it go on"));
}

/* Of a job that has begun. */
static void test_not_tried(void **state) {
        static const char ordered[] =
                "{'scheduler':{'schedulePolicy':{'orderPolicy':{'rolePolicy':[{'roleName':'ps'},"
                "{'roleName':'w'}]}}},'backoff':{'initial':'1m'},'role':[{'roleName':'w',"
                "'command':'x'},{'roleName':'ps','command':'x','ready':{'notify':true},"
                "'failover':{'commonFailoverPolicy':{'maxFailureTimes':3}}}]}";
        struct kit *k = *state;
        char text[256];
        struct job *j;

        begin(k, false);
        j = kit_submit_durable(k->m, ordered);
        assert_true(why_not_tried(j, text, sizeof(text)));
        assert_string_equal(text, "the roles behind ps wait until it is ready (orderPolicy)");
        for (unsigned i = 0; i < 2; i++) { /* the first time, at once */
                kit_start_all(k->m, j);
                kit_exited(k->m, j->roles[1].executors[0], 1);
        }
        assert_true(why_not_tried(j, text, sizeof(text)));
        assert_memory_equal(text, "ps/0 failed and starts again in ", 32);
        lifecycle_stop_job(k->m, j, JOB_EVENT_KILLED, "killed");
        kit_until_durable(k->m);
        assert_false(why_not_tried(j, text, sizeof(text)));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, kit_setup, kit_teardown)

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_each_kind),
                TEST(test_scaled),
                TEST(test_rest_of_gang),
                TEST(test_no_host),
                TEST(test_preempting),
                TEST(test_held),
                TEST(test_not_tried),
        };

        log_set_level(LOG_CRIT);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
