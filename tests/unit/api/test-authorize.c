/* SPDX-License-Identifier: Apache-2.0 */
/* caller.c, polkit.c and authorize.c against a message bus of the test's own, on which the test plays polkit,
 * the daemon and its callers in one event loop: whatever blocks would hang it. */
#include "masterd/api/authorize.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <systemd/sd-event.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/clock.h"
#include "masterd/api/polkit.h"

#define TEST_PATH "/org/primus/Test"
#define TEST_INTERFACE "org.primus.Test"
#define TEST_NAME "org.primus.Test1"
#define NOBODY 65534u

static const char *dbus_daemon_path;
static char directory[] = "/tmp/primus-test-XXXXXX", address[64];
static pid_t bus_pid;

static sd_event *event;
static sd_bus *daemon_bus, *polkit_bus, *client;
static struct callers *callers;

static struct {
        uint32_t owner;     /* of what is called */
        int returned;       /* by the last authorize() or caller_identify() */
        unsigned runs;      /* of the handler */
        uint32_t uid;       /* that it was told */
        bool fail;          /* it returns an error */
        unsigned questions; /* that polkit got */
        bool yes, challenge, silent, was_interactive;
        char asked_about[64], asked_action[64];
        sd_bus_message *unanswered[POLKIT_PENDING_MAX];
        unsigned n_unanswered;
} scene;

/* ---- the daemon ---- */
static int handler(sd_bus_message *m, uint32_t uid, void *userdata, sd_bus_error *ret_error) {
        scene.runs++;
        scene.uid = uid;
        assert_ptr_equal(userdata, &scene);
        if (scene.fail)
                return sd_bus_error_set(ret_error, "org.primus.Error.Busy", "busy");
        return sd_bus_reply_method_return(m, NULL);
}

static int method_identify(sd_bus_message *m, void *userdata, sd_bus_error *ret_error) {
        return scene.returned = caller_identify(callers, m, handler, &scene, ret_error);
}

static int method_authorize(sd_bus_message *m, void *userdata, sd_bus_error *ret_error) {
        return scene.returned = authorize(callers, m, scene.owner, ACTION_MANAGE_JOBS, handler, &scene, NULL,
                                          ret_error);
}

static const sd_bus_vtable vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_METHOD("Identify", "", "", method_identify, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("Authorize", "", "", method_authorize, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_VTABLE_END,
};

/* ---- polkit ---- */
static int method_check(sd_bus_message *m, void *userdata, sd_bus_error *ret_error) {
        const char *kind, *key, *name, *action, *cancellation;
        uint32_t flags;

        scene.questions++;
        assert_true(sd_bus_message_read(m, "(sa{sv})sa{ss}us", &kind, 1, &key, "s", &name, &action, 0, &flags,
                                        &cancellation) > 0);
        assert_string_equal(kind, "system-bus-name");
        assert_string_equal(key, "name");
        snprintf(scene.asked_about, sizeof(scene.asked_about), "%s", name);
        snprintf(scene.asked_action, sizeof(scene.asked_action), "%s", action);
        scene.was_interactive = flags & 1;
        if (scene.silent) {
                scene.unanswered[scene.n_unanswered++] = sd_bus_message_ref(m);
                return 1;
        }
        return sd_bus_reply_method_return(m, "(bba{ss})", (int)scene.yes, (int)scene.challenge, 0);
}

static const sd_bus_vtable polkit_vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_METHOD("CheckAuthorization", "(sa{sv})sa{ss}us", "(bba{ss})", method_check,
                      SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_VTABLE_END,
};

/* ---- connections ---- */
static sd_bus *connect_as(uint32_t uid) {
        sd_bus *bus = NULL;

        if (geteuid() == 0)
                assert_int_equal(seteuid(uid), 0); /* the socket's credentials are those of connect() */
        assert_true(sd_bus_new(&bus) >= 0);
        assert_true(sd_bus_set_address(bus, address) >= 0);
        assert_true(sd_bus_set_bus_client(bus, true) >= 0);
        assert_true(sd_bus_start(bus) >= 0);
        if (getuid() == 0)
                assert_int_equal(seteuid(0), 0);
        assert_true(sd_bus_attach_event(bus, event, 0) >= 0);
        return bus;
}

static uint32_t client_uid(void) {
        return getuid() == 0 ? NOBODY : getuid();
}

/* ---- calls ---- */
struct call {
        bool done;
        char error[128], text[256];
};

static int on_reply(sd_bus_message *m, void *userdata, sd_bus_error *ret_error) {
        struct call *c = userdata;
        const sd_bus_error *e = sd_bus_message_get_error(m);

        c->done = true;
        snprintf(c->error, sizeof(c->error), "%s", e ? e->name : "");
        snprintf(c->text, sizeof(c->text), "%s", e ? e->message : "");
        return 0;
}

static void start_call(sd_bus *from, const char *method, bool interactive, struct call *c) {
        sd_bus_message *m = NULL;

        *c = (struct call){};
        assert_true(sd_bus_message_new_method_call(from, &m, TEST_NAME, TEST_PATH, TEST_INTERFACE, method) >=
                    0);
        assert_true(sd_bus_message_set_allow_interactive_authorization(m, interactive) >= 0);
        assert_true(sd_bus_call_async(from, NULL, m, on_reply, c, 0) >= 0);
        sd_bus_message_unref(m);
}

/* Runs the loop until *flag, for 10 s at most. */
static void run_until(const bool *flag) {
        uint64_t until = now_boot() + 10 * USEC_PER_SEC;

        while (!*flag) {
                assert_true(now_boot() < until);
                assert_true(sd_event_run(event, 100 * USEC_PER_MSEC) >= 0);
        }
}

static struct call call(sd_bus *from, const char *method, bool interactive) {
        struct call c;

        start_call(from, method, interactive, &c);
        run_until(&c.done);
        return c;
}

/* ---- set-up ---- */
static void write_bus_configuration(const char *path) {
        FILE *f = fopen(path, "we");

        assert_non_null(f);
        fprintf(f,
                "<busconfig><type>system</type><listen>unix:path=%s/bus</listen><auth>EXTERNAL</auth>\n"
                "<policy context=\"default\"><allow user=\"*\"/><allow own=\"*\"/><allow "
                "send_destination=\"*\"/>"
                "<allow receive_sender=\"*\"/></policy></busconfig>\n",
                directory);
        fclose(f);
}

static int setup_bus(void **state) {
        char path[64];

        assert_non_null(mkdtemp(directory));
        assert_int_equal(chmod(directory, 0755), 0);
        snprintf(path, sizeof(path), "%s/bus.conf", directory);
        snprintf(address, sizeof(address), "unix:path=%s/bus", directory);
        write_bus_configuration(path);
        int ready[2];
        assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
        bus_pid = fork();
        assert_true(bus_pid >= 0);
        if (bus_pid == 0) {
                char file[96], print[32];
                (void)dup2(ready[1], 10);
                snprintf(file, sizeof(file), "--config-file=%s", path);
                snprintf(print, sizeof(print), "--print-address=10");
                execl(dbus_daemon_path, dbus_daemon_path, "--nofork", "--nopidfile", file, print,
                      (char *)NULL);
                _exit(127);
        }
        close(ready[1]);
        assert_true(read(ready[0], path, sizeof(path)) > 0);
        close(ready[0]);
        return 0;
}

static int teardown_bus(void **state) {
        char path[64];

        kill(bus_pid, SIGTERM);
        waitpid(bus_pid, NULL, 0);
        snprintf(path, sizeof(path), "%s/bus.conf", directory);
        unlink(path);
        snprintf(path, sizeof(path), "%s/bus", directory);
        unlink(path);
        rmdir(directory);
        return 0;
}

static void start_polkit(void) {
        polkit_bus = connect_as(getuid());
        assert_true(sd_bus_add_object_vtable(polkit_bus, NULL, "/org/freedesktop/PolicyKit1/Authority",
                                             "org.freedesktop.PolicyKit1.Authority", polkit_vtable,
                                             NULL) >= 0);
        assert_true(sd_bus_request_name(polkit_bus, "org.freedesktop.PolicyKit1", 0) >= 0);
}

static int setup(void **state) {
        memset(&scene, 0, sizeof(scene));
        assert_true(sd_event_new(&event) >= 0);
        daemon_bus = connect_as(getuid());
        assert_true(sd_bus_add_object_vtable(daemon_bus, NULL, TEST_PATH, TEST_INTERFACE, vtable, NULL) >= 0);
        assert_true(sd_bus_request_name(daemon_bus, TEST_NAME, 0) >= 0);
        assert_int_equal(callers_new(daemon_bus, &callers), 0);
        start_polkit();
        client = connect_as(client_uid());
        return 0;
}

static int teardown(void **state) {
        callers = callers_free(callers);
        client = sd_bus_close_unref(client);
        for (unsigned i = 0; i < scene.n_unanswered; i++)
                sd_bus_message_unref(scene.unanswered[i]);
        polkit_bus = sd_bus_close_unref(polkit_bus);
        daemon_bus = sd_bus_close_unref(daemon_bus);
        event = sd_event_unref(event);
        return 0;
}

/* ---- tests ---- */
static void test_identify(void **state) {
        struct call c = call(client, "Identify", false);

        assert_string_equal(c.error, "");
        assert_int_equal(scene.uid, client_uid());
        assert_int_equal(scene.runs, 1);
        assert_int_equal(callers_known(callers), 1);
        scene.fail = true;
        c = call(client, "Identify", false); /* known: at once, through the vtable's own error */
        assert_string_equal(c.error, "org.primus.Error.Busy");
        assert_true(scene.returned < 0);
        assert_int_equal(scene.runs, 2);
}

static void test_late_error(void **state) {
        struct call c;

        scene.fail = true;
        c = call(client, "Identify", false);
        assert_int_equal(scene.returned, 1); /* was answered later */
        assert_string_equal(c.error, "org.primus.Error.Busy");
        assert_string_equal(c.text, "busy");
}

static void test_several_at_once(void **state) {
        struct call c[20];

        for (size_t i = 0; i < ELEMENTSOF(c); i++)
                start_call(client, "Identify", false, &c[i]);
        for (size_t i = 0; i < ELEMENTSOF(c); i++) {
                run_until(&c[i].done);
                assert_string_equal(c[i].error, "");
        }
        assert_int_equal(scene.runs, ELEMENTSOF(c));
        assert_int_equal(callers_known(callers), 1);
}

static void test_forgotten(void **state) {
        bool forgotten = false;

        (void)call(client, "Identify", false);
        assert_int_equal(callers_known(callers), 1);
        client = sd_bus_close_unref(client);
        for (uint64_t until = now_boot() + 10 * USEC_PER_SEC; !forgotten;
             forgotten = callers_known(callers) == 0) {
                assert_true(now_boot() < until);
                assert_true(sd_event_run(event, 100 * USEC_PER_MSEC) >= 0);
        }
}

static void test_owner(void **state) {
        struct call c;

        scene.owner = client_uid();
        c = call(client, "Authorize", false);
        assert_string_equal(c.error, "");
        assert_int_equal(scene.runs, 1);
        assert_int_equal(scene.questions, 0); /* polkit is not asked */
}

static void test_root(void **state) {
        if (getuid() != 0)
                skip();
        sd_bus *root = connect_as(0);
        scene.owner = 4242;
        assert_string_equal(call(root, "Authorize", false).error, "");
        assert_int_equal(scene.uid, 0);
        assert_int_equal(scene.questions, 0);
        sd_bus_close_unref(root);
}

static void test_granted(void **state) {
        struct call c;
        const char *name;

        scene.owner = 4242;
        scene.yes = true;
        c = call(client, "Authorize", true);
        assert_string_equal(c.error, "");
        assert_int_equal(scene.runs, 1);
        assert_int_equal(scene.uid, client_uid());
        assert_int_equal(scene.questions, 1);
        assert_true(scene.was_interactive);
        assert_string_equal(scene.asked_action, ACTION_MANAGE_JOBS);
        assert_true(sd_bus_get_unique_name(client, &name) >= 0);
        assert_string_equal(scene.asked_about, name);
        scene.yes = false; /* not kept: the next call is asked about again */
        c = call(client, "Authorize", false);
        assert_string_equal(c.error, SD_BUS_ERROR_ACCESS_DENIED);
        assert_false(scene.was_interactive);
        assert_int_equal(scene.runs, 1);
}

static void test_denied(void **state) {
        struct call c;

        scene.owner = 4242;
        c = call(client, "Authorize", false);
        assert_string_equal(c.error, SD_BUS_ERROR_ACCESS_DENIED);
        assert_string_equal(
                c.text,
                "Only the owner and root, and whom polkit grants org.primus.manage-jobs, may do this.");
        scene.challenge = true;
        c = call(client, "Authorize", false);
        assert_string_equal(c.error, SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED);
        scene.owner = OWNER_NONE;
        scene.challenge = false;
        c = call(client, "Authorize", false);
        assert_string_equal(c.text, "Only root, and whom polkit grants org.primus.manage-jobs, may do this.");
        assert_int_equal(scene.runs, 0);
}

static void test_no_polkit(void **state) {
        struct call c;

        polkit_bus = sd_bus_close_unref(polkit_bus);
        scene.owner = 4242;
        c = call(client, "Authorize", false);
        assert_string_equal(c.error, SD_BUS_ERROR_ACCESS_DENIED);
        assert_non_null(strstr(c.text, "polkit does not answer"));
        assert_int_equal(scene.runs, 0);
        start_polkit();
}

/* One caller cannot fill the queue, and calls that wait hold nothing up. */
static void test_bound(void **state) {
        struct call c[POLKIT_PENDING_PER_USER_MAX + 1], other;
        bool asked = false;

        scene.owner = 4242;
        scene.silent = true;
        for (size_t i = 0; i < POLKIT_PENDING_PER_USER_MAX; i++)
                start_call(client, "Authorize", false, &c[i]);
        for (uint64_t until = now_boot() + 10 * USEC_PER_SEC; !asked;
             asked = scene.n_unanswered == POLKIT_PENDING_PER_USER_MAX) {
                assert_true(now_boot() < until);
                assert_true(sd_event_run(event, 100 * USEC_PER_MSEC) >= 0);
        }
        c[POLKIT_PENDING_PER_USER_MAX] = call(client, "Authorize", false);
        assert_string_equal(c[POLKIT_PENDING_PER_USER_MAX].error, SD_BUS_ERROR_LIMITS_EXCEEDED);

        other = call(client, "Identify", false);
        assert_string_equal(other.error, "");
        assert_int_equal(scene.runs, 1);
        for (size_t i = 0; i < POLKIT_PENDING_PER_USER_MAX; i++)
                assert_false(c[i].done);
        assert_true(sd_bus_reply_method_return(scene.unanswered[0], "(bba{ss})", 1, 0, 0) >= 0);
        run_until(&c[0].done);
        assert_string_equal(c[0].error, "");
        assert_int_equal(scene.runs, 2);
        /* The others go with callers_free(): nothing is left behind. */
}

int main(int argc, char **argv) {
#define TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
        const struct CMUnitTest tests[] = {
                TEST(test_identify),  TEST(test_late_error), TEST(test_several_at_once), TEST(test_forgotten),
                TEST(test_owner),     TEST(test_root),       TEST(test_granted),         TEST(test_denied),
                TEST(test_no_polkit), TEST(test_bound),
        };
        if (argc != 2)
                return EXIT_FAILURE;
        dbus_daemon_path = argv[1];
        return cmocka_run_group_tests(tests, setup_bus, teardown_bus);
}
