/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/kit/masterd-kit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "masterd/admit/submit.h"
#include "masterd/core/manager.h"
#include "masterd/fleet/exits.h"
#include "masterd/fleet/liveness.h"
#include "masterd/life/attempts.h"
#include "masterd/link/link.h"
#include "masterd/link/orders.h"
#include "masterd/queue/placement.h"
#include "masterd/recover/load.h"
#include "masterd/recover/registered.h"
#include "masterd/start.h"
#include "tests/kit/json.h"

struct manager *kit_open(const char *directory) {
        char path[256];
        struct manager *m;

        assert_int_equal(start_new(&m), 0);
        free(m->conf.state_directory);
        m->conf.state_directory = strdup(directory);
        snprintf(path, sizeof(path), "%s/primus.db", directory);
        assert_int_equal(store_open(path, m->event, NULL, &m->store), 0);
        assert_int_equal(placement_new(m), 0);
        m->term = 1;
        assert_int_equal(recover_load(m), 0);
        return m;
}

void kit_until_durable(struct manager *m) {
        struct store_stats stats;

        do
                assert_true(sd_event_run(m->event, 10000) >= 0);
        while (manager_turn_waits(m) || (store_get_stats(m->store, &stats), stats.queue_records > 0));
}

/* Whether it is whole: not cut off while it was read. */
static bool copy_file(const char *from, const char *to, const char *name) {
        char path[256], buf[65536];
        FILE *in, *out;
        struct stat st;
        off_t size = 0;
        size_t n;

        snprintf(path, sizeof(path), "%s/%s", from, name);
        in = fopen(path, "r");
        if (!in)
                return true;
        snprintf(path, sizeof(path), "%s/%s", to, name);
        out = fopen(path, "w");
        assert_non_null(out);
        for (; (n = fread(buf, 1, sizeof(buf), in)) > 0; size += (off_t)n)
                assert_int_equal(fwrite(buf, 1, n, out), n);
        assert_int_equal(fstat(fileno(in), &st), 0);
        fclose(in);
        assert_int_equal(fclose(out), 0);
        return st.st_size == size;
}

void kit_copy_store(const char *from, char to[static 64]) {
        snprintf(to, 64, "/tmp/test-masterd-XXXXXX");
        assert_non_null(mkdtemp(to));
        /* The log first: the store may move it into the database at any moment, and what it had is good over
         * that. Some seconds after a job has ended it also empties the log, because of the job's secrets: the
         * first part of a log laid over a database that has all of it is what no crash leaves. */
        while (!copy_file(from, to, "primus.db-wal"))
                ;
        assert_true(copy_file(from, to, "primus.db"));
}

void kit_serve(struct manager *m) {
        m->serving_boot = now_boot();
        assert_true(liveness_start(m) >= 0);
        manager_schedule(m);
        kit_until_durable(m);
}

struct link kit_link;

void kit_register_node(struct manager *m, const char *name, uint32_t cpus, uint64_t memory) {
        kit_register_gpus(m, name, cpus, memory, NULL, 0);
}

void kit_register_gpus(struct manager *m, const char *name, uint32_t cpus, uint64_t memory,
                       struct gpu_info *gpus, size_t n_gpus) {
        struct registration g = { .boot_id = { .qwords = { 1, 1 } },
                                  .inventory = { .controllers = true,
                                                 .hostname = (char *)name,
                                                 .kernel = (char *)"",
                                                 .os = (char *)"",
                                                 .cpus = cpus,
                                                 .memory = memory,
                                                 .gpus = gpus,
                                                 .n_gpus = n_gpus,
                                                 .port_first = 20000,
                                                 .port_last = 60000,
                                                 .allow_root = true } };
        struct node *node;

        node = nodes_get(&m->nodes, name);
        if (!node)
                assert_int_equal(nodes_add(&m->nodes, name, &node), 0);
        assert_int_equal(addr_parse("192.0.2.1", 0, &g.inventory.address), 0);
        assert_int_equal(recover_registered(m, node, &kit_link, &g), 0);
        kit_until_durable(m);
}

struct job *kit_submit(struct manager *m, const char *config, json_t *overrides) {
        struct submission s = { .owner = 1000,
                                .config = json_text(config),
                                .config_size = strlen(config),
                                .overrides = overrides };
        sd_bus_error error = SD_BUS_ERROR_NULL;
        struct job *j = NULL;
        int r = submit_job(m, &s, &j, &error);

        if (r < 0)
                fail_msg("%s", error.message ? error.message : strerror(-r));
        submission_done(&s);
        return j;
}

struct job *kit_submit_durable(struct manager *m, const char *config) {
        struct job *j = kit_submit(m, config, NULL);

        kit_until_durable(m);
        return j;
}

void kit_start_all(struct manager *m, struct job *j) {
        for (uint32_t i = 0; i < j->n_executors; i++) {
                struct executor *e = j->executors[i];
                if (e->state != EXECUTOR_PLACED && e->state != EXECUTOR_STARTING)
                        continue;
                if (e->state == EXECUTOR_PLACED)
                        assert_true(executor_transition(e, EXECUTOR_EVENT_ORDERED) >= 0);
                attempts_start_answered(m, e,
                                        &(struct start_result){ .message = "",
                                                                .invocation = { .qwords = { 1, 2 } },
                                                                .started_real = now_real() });
        }
        kit_until_durable(m);
}

void kit_exited(struct manager *m, struct executor *e, int status) {
        struct exit_report x = { .id = executor_id_of(e),
                                 .result = "exit-code",
                                 .code = "exited",
                                 .status = status,
                                 .stop_requested = e->orders.stopped,
                                 .started_real = now_real(),
                                 .ended_real = now_real(),
                                 .memory_peak = UINT64_MAX,
                                 .cpu_usec = UINT64_MAX };

        if (status == 0)
                snprintf(x.result, sizeof(x.result), "success");
        exit_reported(m, e->node, &x);
        kit_until_durable(m);
}

uint32_t kit_in_state(const struct job *j, enum executor_state s) {
        uint32_t n = 0;

        for (size_t i = 0; i < j->spec->n_roles; i++)
                n += j->roles[i].n_state[s];
        return n;
}

int kit_setup(void **state) {
        static struct kit k;

        snprintf(k.directory, sizeof(k.directory), "/tmp/test-masterd-XXXXXX");
        assert_non_null(mkdtemp(k.directory));
        k.m = kit_open(k.directory);
        kit_serve(k.m);
        *state = &k;
        return 0;
}

int kit_teardown(void **state) {
        struct kit *k = *state;

        start_free(k->m);
        (void)remove_tree(k->directory);
        return 0;
}

void kit_restart(struct kit *k) {
        char copy[64];

        kit_until_durable(k->m);
        kit_copy_store(k->directory, copy);
        start_free(k->m);
        (void)remove_tree(k->directory);
        memcpy(k->directory, copy, sizeof(copy));
        k->m = kit_open(k->directory);
        kit_serve(k->m);
}
