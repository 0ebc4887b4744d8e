/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/masterd/kit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "masterd/manager.h"
#include "masterd/placement.h"
#include "masterd/recover.h"

struct manager *kit_open(const char *directory) {
        char path[256];
        struct manager *m;

        assert_int_equal(manager_new(&m), 0);
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
        int armed = 1;

        while (armed || m->batch_open || (store_get_stats(m->store, &stats), stats.queue_records > 0)) {
                assert_true(sd_event_run(m->event, 10000) >= 0);
                assert_true(sd_event_source_get_enabled(m->turn, &armed) >= 0);
        }
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
