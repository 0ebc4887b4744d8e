/* SPDX-License-Identifier: Apache-2.0 */
/* What a captured agentd may not bring the starter to, beyond what tests of its parts show. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/unitname.h"
#include "lib/unit/files.h"
#include "starter/calls/server.h"
#include "starter/files/private.h"
#include "starter/systemd/slices.h"
#include "tests/kit/fake-systemd.h"
#include "tests/kit/root-kit.h"
#include "tests/kit/starter-kit.h"

#define JOB_UID SD_ID128_MAKE(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16)
#define SERVED 12u

static struct fake_systemd systemd;
static struct starter_kit kit;
static char work[256];

static int setup(void **state) {
        assert_int_equal(root_setup(state), 0);
        fake_systemd_new(&systemd);
        starter_kit_new(&kit, systemd.event, systemd.client, NULL, NULL, root_kit, "n1");
        kit.starter.policy.serve.allow_root = false;
        kit.starter.policy.serve.min_uid = 10;
        fake_run_until(&systemd, sd_bus_is_ready(kit.client) > 0); /* descriptors may be sent from then on */
        snprintf(work, sizeof(work), "PRIMUS_WORK=%s" WORK_DIR "/7-01020304", root_kit);
        return 0;
}

static int teardown(void **state) {
        starter_kit_done(&kit);
        fake_systemd_done(&systemd);
        return root_teardown(state);
}

/* ---- calls ---- */

static sd_bus_message *call_new(const char *member) {
        sd_bus_message *m = NULL;

        assert_true(sd_bus_message_new_method_call(kit.client, &m, NULL, STARTER_PATH, STARTER_UNITS,
                                                   member) >= 0);
        return m;
}

static int on_answer(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        sd_bus_message **ret = userdata;

        *ret = sd_bus_message_ref(reply);
        return 1;
}

/* Takes m. The name of the error that it came to, or "". */
static const char *come_to(sd_bus_message *m) {
        static char name[256];
        sd_bus_message *reply = NULL;

        assert_true(sd_bus_call_async(kit.client, NULL, m, on_answer, &reply, 0) >= 0);
        sd_bus_message_unref(m);
        fake_run_until(&systemd, reply);
        snprintf(name, sizeof(name), "%s",
                 sd_bus_message_get_error(reply) ? sd_bus_message_get_error(reply)->name : "");
        sd_bus_message_unref(reply);
        return name;
}

#define assert_refused(m) assert_string_equal(come_to(m), SD_BUS_ERROR_INVALID_ARGS)

/* ---- hooks ---- */

static sd_bus_message *hook(const char *name, const char *const *environment) {
        static unsigned n;
        sd_bus_message *m = call_new("StartHook");
        char unit[64];
        int fds[2];

        snprintf(unit, sizeof(unit), "primus-hook-%s-7-1.%u.service", name, ++n);
        assert_int_equal(pipe(fds), 0);
        assert_true(sd_bus_message_append(m, "ss", unit, name) >= 0);
        assert_true(sd_bus_message_append_strv(m, (char **)environment) >= 0);
        assert_true(sd_bus_message_append(m, "th", UINT64_C(1000000), fds[1]) >= 0);
        (void)close(fds[0]);
        (void)close(fds[1]);
        return m;
}

static sd_bus_message *prolog(const char *job, const char *uid, const char *node, const char *directory) {
        return hook("prolog", (const char *[]){ job, uid, node, directory, NULL });
}

/* They are root's, and take these words for Primus's. */
static void test_hook_is_told_what_is_so(void **state) {
        char other[sizeof(work) + 32];

        assert_refused(prolog("PRIMUS_JOB=7", "PRIMUS_UID=12", "PRIMUS_NODE=n1", "PRIMUS_WORK=/etc"));
        snprintf(other, sizeof(other), "%s/../../../../etc", work);
        assert_refused(prolog("PRIMUS_JOB=7", "PRIMUS_UID=12", "PRIMUS_NODE=n1", other));
        assert_refused(prolog("PRIMUS_JOB=8", "PRIMUS_UID=12", "PRIMUS_NODE=n1", work));
        assert_refused(prolog("PRIMUS_JOB=7", "PRIMUS_UID=0", "PRIMUS_NODE=n1", work));
        assert_refused(prolog("PRIMUS_JOB=7", "PRIMUS_UID=9", "PRIMUS_NODE=n1", work));
        assert_refused(prolog("PRIMUS_JOB=7", "PRIMUS_UID=014", "PRIMUS_NODE=n1", work));
        assert_refused(prolog("PRIMUS_JOB=7", "PRIMUS_UID=12;id", "PRIMUS_NODE=n1", work));
        assert_refused(prolog("PRIMUS_JOB=7", "PRIMUS_UID=12", "PRIMUS_NODE=n2", work));
        assert_refused(hook("prolog", (const char *[]){ "PRIMUS_NODE=n1", NULL }));
        assert_refused(hook(
                "prolog", (const char *[]){ "PRIMUS_JOB=7", "PRIMUS_JOB=7", "PRIMUS_NODE=n1", work, NULL }));
        assert_refused(hook("prolog", (const char *[]){ "PRIMUS_JOB=7", "PRIMUS_UID=12", "PRIMUS_NODE=n1",
                                                        work, "PRIMUS_JOB_UID=1", NULL }));
        assert_refused(hook("health", (const char *[]){ "PRIMUS_NODE=n1", work, NULL }));
        assert_refused(hook("health", NULL));
        assert_refused(hook("fence", (const char *[]){ "PRIMUS_NODE=n1", NULL }));
        assert_int_equal(systemd.starts, 0);

        assert_string_equal(come_to(prolog("PRIMUS_JOB=7", "PRIMUS_UID=12", "PRIMUS_NODE=n1", work)), "");
        assert_string_equal(come_to(hook("health", (const char *[]){ "PRIMUS_NODE=n1", NULL })), "");
        assert_int_equal(systemd.starts, 2);
}

/* Whose the directory is counts, where there is one: an epilog comes also for who is not served any more. */
static void test_hook_goes_by_the_owner(void **state) {
        char uid[32], path[256];

        if (geteuid() != 0)
                skip();
        assert_int_equal(work_create(root_kit, 7, JOB_UID, 5), 0);
        snprintf(path, sizeof(path), "%s" WORK_DIR "/7-01020304", root_kit);
        snprintf(uid, sizeof(uid), "PRIMUS_UID=%u", SERVED);
        assert_refused(prolog("PRIMUS_JOB=7", uid, "PRIMUS_NODE=n1", work));
        assert_string_equal(come_to(prolog("PRIMUS_JOB=7", "PRIMUS_UID=5", "PRIMUS_NODE=n1", work)), "");
}

/* ---- what becomes somebody's ---- */

static sd_bus_message *shared_memory(uint32_t uid) {
        sd_bus_message *m = call_new("MakeSharedMemory");

        assert_true(sd_bus_message_append(m, "u", 7) >= 0 && link_append_id128(m, JOB_UID) >= 0 &&
                    sd_bus_message_append(m, "tu", UINT64_C(1) << 20, uid) >= 0);
        return m;
}

/* A directory that is not there belongs to nobody, which is 0. */
static void test_shared_memory_is_nobodys(void **state) {
        assert_refused(shared_memory(0));
        assert_refused(shared_memory(SERVED));
        assert_int_equal(systemd.starts, 0);
}

static sd_bus_message *make_work(uint32_t uid) {
        sd_bus_message *m = call_new("MakeWork");

        assert_true(sd_bus_message_append(m, "u", 7) >= 0 && link_append_id128(m, JOB_UID) >= 0 &&
                    sd_bus_message_append(m, "u", uid) >= 0);
        return m;
}

/* By name, too: "daemon" is in every user database. */
static void test_work_is_for_the_served(void **state) {
        char *denied[] = { (char *)"daemon", NULL };
        char path[256];
        struct stat st;

        kit.starter.policy.serve.min_uid = 1;
        kit.starter.policy.serve.deny_users = denied;
        lookup_free(kit.starter.lookup);
        assert_int_equal(lookup_new(&kit.starter.policy.serve, &kit.starter.lookup), 0);
        assert_string_equal(come_to(make_work(1)), LINK_ERROR_NOT_SERVED);
        assert_string_equal(come_to(make_work(0)), LINK_ERROR_NOT_SERVED);
        assert_refused(prolog("PRIMUS_JOB=7", "PRIMUS_UID=1", "PRIMUS_NODE=n1", work));
        snprintf(path, sizeof(path), "%s" WORK_DIR "/7-01020304", root_kit);
        assert_int_equal(lstat(path, &st), -1);
        if (geteuid() == 0)
                assert_string_equal(come_to(make_work(SERVED)), "");
        kit.starter.policy.serve.deny_users = NULL;
}

static sd_bus_message *get_artifacts(uint32_t uid) {
        sd_bus_message *m = call_new("StartGet");
        int fds[2];

        assert_int_equal(pipe(fds), 0);
        assert_true(sd_bus_message_append(m, "u", 7) >= 0 && link_append_id128(m, JOB_UID) >= 0 &&
                    sd_bus_message_append(m, "uuh", uid, 3, fds[0]) >= 0);
        (void)close(fds[0]);
        (void)close(fds[1]);
        return m;
}

/* Read by a process of the user's whose they are, and by nobody else's. */
static void test_artifacts_are_their_owners(void **state) {
        assert_string_equal(come_to(get_artifacts(SERVED)), LINK_ERROR_NOT_FOUND); /* there are none */
        assert_refused(get_artifacts(0));
        assert_refused(get_artifacts(5)); /* not served */
        if (geteuid() != 0)
                skip();
        assert_string_equal(come_to(make_work(SERVED)), "");
        assert_string_equal(come_to(get_artifacts(SERVED + 1)), LINK_ERROR_NOT_FOUND);
        assert_int_equal(systemd.starts, 0);
        assert_string_equal(come_to(get_artifacts(SERVED)), "");
        assert_int_equal(systemd.starts, 1);
}

/* Of which ports executors are kept is this host's setting, not agentd's word. */
static void test_ports_are_the_policys(void **state) {
        const struct inventory inventory = { .hostname = (char *)"n1",
                                             .kernel = (char *)"",
                                             .os = (char *)"",
                                             .cpus = 1,
                                             .memory = 1,
                                             .port_first = 1,
                                             .port_last = 1 };
        sd_bus_message *m = call_new("SetInventory");

        assert_true(sd_bus_message_append(m, "s", "n1") >= 0 && inventory_append(m, &inventory) >= 0 &&
                    link_append_extra_empty(m) >= 0);
        assert_string_equal(come_to(m), "");
        assert_int_equal(kit.connection->inventory.port_first, 23000);
        assert_int_equal(kit.connection->inventory.port_last, 27999);
}

/* ---- what systemd keeps of slices ---- */

static char reverted[256];

static int on_call(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        char *slice = NULL;

        if (!sd_bus_message_is_method_call(m, NULL, "RevertUnitFiles"))
                return 0;
        assert_true(sd_bus_message_read(m, "as", 1, &slice) > 0);
        strcat(strcat(reverted, slice), " ");
        return 1;
}

/* Limits that were set where there is no such slice would be those of a job to come. */
static void test_limits_do_not_outlive_slices(void **state) {
        sd_bus_message *m;

        *reverted = 0;
        assert_true(sd_bus_add_filter(systemd.server, NULL, on_call, NULL) >= 0);
        root_put("/run/systemd/system.control/primus-8.slice.d/50-MemoryMax.conf", "");
        root_put("/run/systemd/system.control/primus-9.slice.d/50-MemoryMax.conf", "");
        root_put("/run/systemd/system.control/primus.slice.d/50-MemoryMax.conf", "");
        root_put("/run/systemd/system.control/sshd.service.d/50-MemoryMax.conf", "");
        root_put("/sys/fs/cgroup/primus.slice/primus-8.slice/primus-8-worker-0.1.service/cgroup.procs", "");
        root_put("/sys/fs/cgroup/primus.slice/primus-9.slice/cgroup.procs", "");
        slices_sweep(systemd.client, root_kit);
        fake_settle(&systemd, 0);
        assert_string_equal(reverted, "primus-9.slice ");

        /* Its job says that it is over. */
        for (unsigned job = 7; job <= 8; job++) {
                char slice[UNIT_NAME_MAX];

                m = call_new("Stop");
                assert_true(sd_bus_message_append(m, "s", job_slice_name(job, slice)) >= 0);
                assert_string_equal(come_to(m), "");
        }
        assert_string_equal(reverted, "primus-9.slice primus-8.slice ");
}

/* ---- connections ---- */

static sd_bus *dial(const struct sockaddr_un *address) {
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        sd_bus *bus;

        assert_true(fd >= 0 && connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0);
        assert_true(sd_bus_new(&bus) >= 0 && sd_bus_set_fd(bus, fd, fd) >= 0 &&
                    sd_bus_negotiate_fds(bus, true) >= 0 && sd_bus_start(bus) >= 0 &&
                    sd_bus_attach_event(bus, systemd.event, SD_EVENT_PRIORITY_NORMAL) >= 0);
        return bus;
}

static void ask(sd_bus *bus) {
        sd_bus_message *m = NULL;
        uint64_t cookie;

        assert_true(sd_bus_message_new_method_call(bus, &m, NULL, STARTER_PATH, STARTER_UNITS, "Nothing") >=
                    0);
        (void)sd_bus_send(bus, m, &cookie);
        sd_bus_message_unref(m);
}

/* Who asks and does not listen costs a bounded number of answers; another connection does not notice. */
static void test_answers_are_bounded(void **state) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        struct server *server;
        sd_bus *deaf, *other;
        sd_bus_message *reply = NULL, *m = NULL;

        snprintf(address.sun_path, sizeof(address.sun_path), "%s/starter.sock", root_kit);
        assert_true(listener >= 0 && bind(listener, (struct sockaddr *)&address, sizeof(address)) == 0 &&
                    listen(listener, 4) == 0);
        assert_int_equal(server_new(&kit.starter, listener, &server), 0);
        deaf = dial(&address);
        fake_run_until(&systemd, sd_bus_is_ready(deaf) > 0);
        assert_true(sd_bus_detach_event(deaf) >= 0);
        for (unsigned i = 0; i < ANSWERS_MAX; i++) {
                ask(deaf);
                if (i % 64 == 0)
                        fake_settle(&systemd, 0);
        }
        fake_settle(&systemd, 0);
        assert_true(sd_bus_is_open(deaf) > 0); /* so much is fine */
        /* The kernel keeps 8 MiB of them besides. */
        for (unsigned i = 0; i < 16 * ANSWERS_MAX && sd_bus_is_open(deaf) > 0; i++) {
                ask(deaf);
                if (i % 64 == 0)
                        fake_settle(&systemd, 0);
        }
        assert_false(sd_bus_is_open(deaf) > 0);
        other = dial(&address);
        assert_true(sd_bus_message_new_method_call(other, &m, NULL, STARTER_PATH, STARTER_UNITS, "Usage") >=
                    0);
        assert_true(sd_bus_call_async(other, NULL, m, on_answer, &reply, 0) >= 0);
        fake_run_until(&systemd, reply);
        assert_null(sd_bus_message_get_error(reply));
        sd_bus_message_unref(reply);
        sd_bus_message_unref(m);
        sd_bus_close_unref(other);
        sd_bus_close_unref(deaf);
        server_free(server);
        (void)close(listener);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_hook_is_told_what_is_so, setup, teardown),
                cmocka_unit_test_setup_teardown(test_hook_goes_by_the_owner, setup, teardown),
                cmocka_unit_test_setup_teardown(test_shared_memory_is_nobodys, setup, teardown),
                cmocka_unit_test_setup_teardown(test_work_is_for_the_served, setup, teardown),
                cmocka_unit_test_setup_teardown(test_artifacts_are_their_owners, setup, teardown),
                cmocka_unit_test_setup_teardown(test_ports_are_the_policys, setup, teardown),
                cmocka_unit_test_setup_teardown(test_limits_do_not_outlive_slices, setup, teardown),
                cmocka_unit_test_setup_teardown(test_answers_are_bounded, setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
