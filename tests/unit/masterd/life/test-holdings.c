/* SPDX-License-Identifier: Apache-2.0 */
/* What a user may have of masterd's memory: what counts, where it ends, and that it is true. */
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/format.h"
#include "masterd/admit/submit.h"
#include "masterd/core/manager.h"
#include "masterd/core/space-parts.h"
#include "masterd/life/history.h"
#include "masterd/life/holdings.h"
#include "masterd/life/life-parts.h"
#include "masterd/life/lifecycle.h"
#include "tests/kit/masterd-kit.h"

#define MIB ((uint64_t)1 << 20)

/* A configuration of so many roles with a variable of so many KiB each; more: further keys of the job. */
static char *config_of(unsigned roles, unsigned kib, const char *more) {
        char *text = NULL;
        size_t size;
        FILE *f = open_memstream(&text, &size);

        assert_non_null(f);
        fprintf(f, "{%s\"role\":[", more);
        for (unsigned i = 0; i < roles; i++) {
                fprintf(f,
                        "%s{\"roleName\":\"r%u\",\"vcores\":1,\"memoryMb\":16,\"command\":\"x\",\"env\":{"
                        "\"V\":\"",
                        i ? "," : "", i);
                for (unsigned k = 0; k < kib * 1024 - 64; k++)
                        fputc('a' + (int)(k % 26), f);
                fprintf(f, "\"}}");
        }
        fprintf(f, "]}");
        assert_int_equal(fclose(f), 0);
        return text;
}

/* NULL: it was refused, and the sentence is said. */
static struct job *try_submit(struct manager *m, const char *config, uint32_t uid,
                              char ret_said[static 512]) {
        struct submission s = { .owner = uid, .config = config, .config_size = strlen(config) };
        sd_bus_error error = SD_BUS_ERROR_NULL;
        struct job *j = NULL;
        int r = submit_job(m, &s, &j, &error);

        snprintf(ret_said, 512, "%s", r < 0 && error.message ? error.message : "");
        sd_bus_error_free(&error);
        submission_done(&s);
        kit_until_durable(m);
        return r < 0 ? NULL : j;
}

static size_t in_use(void) {
        struct mallinfo2 i = mallinfo2();

        return i.uordblks + i.hblkhd;
}

/* What is counted is what it takes, and that is the configuration once. */
static void test_true(void **state) {
        struct kit *k = *state;
        char *config = config_of(64, 60, "");
        size_t before, after;
        char said[512];
        struct job *j;

        kit_until_durable(k->m);
        before = in_use();
        j = try_submit(k->m, config, 1000, said);
        assert_non_null(j);
        after = in_use();
        /* 3.75 MiB of variables. Under sanitizers the allocator says nothing. */
        assert_true(j->bytes > 64 * 60 * 1000 && j->bytes < strlen(config) + (256 << 10));
        if (after > before)
                assert_in_range(after - before, j->bytes - j->bytes / 8, j->bytes + j->bytes / 8);
        free(config);
}

static void test_bound(void **state) {
        struct kit *k = *state;
        char *config = config_of(8, 60, ""), *small = config_of(1, 1, ""), *large = config_of(64, 60, "");
        struct holdings h;
        struct job *j, *first = NULL;
        char said[512], wanted[128], size[32];
        unsigned n = 0;

        k->m->conf.bytes_per_user_max = 2 * MIB;
        while ((j = try_submit(k->m, config, 1000, said))) {
                first = first ?: j;
                n++;
        }
        assert_int_equal(n, 4);
        h = holdings_of(k->m, 1000);
        assert_int_equal(h.jobs, 4);
        assert_in_range(h.bytes, 4 * 8 * 60 * 1000, 2 * MIB);
        snprintf(wanted, sizeof(wanted), "Your 4 active jobs take %s of the master's memory",
                 format_size(h.bytes, size, sizeof(size)));
        assert_non_null(strstr(said, wanted));
        assert_non_null(strstr(said, "may take 2M (BytesPerUserMax=)"));
        assert_non_null(strstr(said, "kill some"));

        /* What is small fits still, others have theirs, what never fits is told so, root has no bound. */
        assert_non_null(try_submit(k->m, small, 1000, said));
        assert_non_null(try_submit(k->m, config, 1001, said));
        assert_null(try_submit(k->m, large, 1001, said));
        assert_non_null(strstr(said, "This job would take 3.9M"));
        assert_int_equal(holdings_admit(k->m, 0, 100 * MIB, NULL), 0);

        /* The same after a restart; and what ends makes room. */
        h = holdings_of(k->m, 1000);
        kit_restart(k);
        k->m->conf.bytes_per_user_max = 2 * MIB;
        assert_int_equal(holdings_of(k->m, 1000).jobs, h.jobs);
        assert_int_equal(holdings_of(k->m, 1000).bytes, h.bytes);
        assert_null(try_submit(k->m, config, 1000, said));
        lifecycle_stop_job(k->m, manager_job(k->m, 1), JOB_EVENT_KILLED, "killed");
        kit_until_durable(k->m);
        assert_non_null(try_submit(k->m, config, 1000, said));
        free(config);
        free(small);
        free(large);
}

/* An array's elements have its configuration together, also after a restart; and they are made as far as
 * their owner's bytes go. */
static void elements(struct manager *m, uint64_t bytes_max) {
        const struct job_spec *spec = NULL;
        struct job *j, *next;
        unsigned n = 0;

        HASH_ITER (hh, m->jobs.by_number, j, next) {
                if (j->element.array != 1)
                        continue;
                assert_true(!spec || j->spec == spec);
                spec = j->spec;
                n++;
        }
        assert_int_equal(n, bytes_max / 2 / manager_job(m, 2)->bytes);
        assert_true(manager_job(m, 2)->bytes < 110000);
        assert_ptr_not_equal(spec, manager_job(m, 1)->spec);
        assert_null(spec->array.array);
        assert_in_range(holdings_of(m, 1000).bytes, bytes_max / 2, bytes_max);
}

static void test_array(void **state) {
        struct kit *k = *state;
        char *config = config_of(2, 60, "\"array\":\"1-1000\",");
        struct submission s = { .owner = 1000, .config = config, .config_size = strlen(config) };
        sd_bus_error error = SD_BUS_ERROR_NULL;
        char *env = malloc(100001);
        struct job *j = NULL;

        k->m->conf.bytes_per_user_max = 5 * MIB;
        memset(env, 'A', 100000);
        env[1] = '=';
        env[100000] = 0;
        s.given.env = calloc(2, sizeof(*s.given.env));
        s.given.env[0] = env;
        assert_true(submit_job(k->m, &s, &j, &error) >= 0);
        submission_done(&s);
        kit_until_durable(k->m);
        elements(k->m, 5 * MIB);
        kit_restart(k); /* with the default */
        elements(k->m, 128 * MIB);
        free(config);
}

/* No room on the disk, no memory: said by name, and nothing is left of what was refused. */
static void test_room(void **state) {
        struct kit *k = *state;
        char *config = config_of(1, 1, "");
        char said[512];

        k->m->conf.keep_free = UINT64_MAX / 4;
        assert_null(try_submit(k->m, config, 1000, said));
        assert_non_null(strstr(said, "disk is nearly full"));
        assert_non_null(strstr(said, k->directory));
        assert_non_null(strstr(said, "KeepFree="));
        assert_null(try_submit(k->m, config, 0, said));
        k->m->conf.keep_free = 0;
        assert_non_null(try_submit(k->m, config, 1000, said));

        k->m->space->limit = 1 << 20;
        k->m->space->look_boot = 0;
        assert_null(try_submit(k->m, config, 1000, said));
        assert_non_null(strstr(said, "nearly all the memory"));
        k->m->space->limit = UINT64_MAX;
        k->m->space->look_boot = 0;
        assert_non_null(try_submit(k->m, config, 1000, said));
        assert_int_equal(holdings_of(k->m, 1000).jobs, 2);
        free(config);
}

/* Jobs that have ended leave memory by what they take as well as by their number. */
static void test_history(void **state) {
        struct kit *k = *state;
        char *config = config_of(64, 60, "");
        char said[512];

        for (unsigned i = 0; i < 12; i++) {
                struct job *j = try_submit(k->m, config, 1000, said);
                assert_non_null(j);
                lifecycle_stop_job(k->m, j, JOB_EVENT_KILLED, "killed");
                kit_until_durable(k->m);
                assert_true(k->m->life->ended_bytes <= HISTORY_BYTES);
        }
        assert_int_equal(k->m->life->n_ended, HISTORY_BYTES / (4 * MIB));
        free(config);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_true, kit_setup, kit_teardown),
                cmocka_unit_test_setup_teardown(test_bound, kit_setup, kit_teardown),
                cmocka_unit_test_setup_teardown(test_array, kit_setup, kit_teardown),
                cmocka_unit_test_setup_teardown(test_room, kit_setup, kit_teardown),
                cmocka_unit_test_setup_teardown(test_history, kit_setup, kit_teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
