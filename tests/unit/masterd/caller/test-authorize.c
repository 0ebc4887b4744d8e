/* SPDX-License-Identifier: Apache-2.0 */
/* caller.c, polkit.c and authorize.c against a message bus of the test's own, on which the test plays polkit,
 * the daemon and its callers in one event loop: whatever blocks would hang it. */
#include "masterd/caller/authorize.h"

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

#include "lib/base/audit.h"
#include "lib/base/clock.h"
#include "masterd/caller/audit-table.h"
#include "masterd/caller/audit.h"
#include "masterd/caller/polkit.h"
#include "masterd/caller/refusals.h"
#include "masterd/caller/reply.h"

#define TEST_PATH "/org/primus/Test"
#define TEST_INTERFACE "org.primus.Test"
#define TEST_NAME "org.primus.Test1"
#define NOBODY 65534u
#define BUS_KEEPS (2u << 20) /* for one that does not read */
#define JOB_PATH "/org/primus/Master1/job/7"

static const char *dbus_daemon_path;
static char directory[] = "/tmp/primus-test-XXXXXX", address[64];
static pid_t bus_pid;

static sd_event *event;
static sd_bus *daemon_bus, *polkit_bus, *client;
static struct callers *callers;
static struct audit *audit;
static FILE *lines; /* what the audit says, on standard error */
static int saved_stderr;

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
        bool late, fail_early; /* of a job: answered by the test; before anybody is asked who calls */
        sd_bus_message *answer;
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

/* A job of ml's (the client's, or scene.owner's), as its vtable is: what is called is known to the audit's
 * table, but for Novelty. */
static int job_work(sd_bus_message *m, uint32_t uid, void *userdata, sd_bus_error *ret_error) {
        if (scene.fail)
                return sd_bus_error_set(ret_error, "org.primus.Error.Busy", "busy");
        if (scene.late) {
                scene.answer = sd_bus_message_ref(m);
                return 1;
        }
        return reply_return(m, NULL);
}

static int job_method(sd_bus_message *m, void *userdata, sd_bus_error *ret_error) {
        if (scene.fail_early)
                return sd_bus_error_set(ret_error, "org.primus.Error.NotFound", "nothing");
        return authorize(callers, m, scene.owner, ACTION_MANAGE_JOBS, job_work, &scene, NULL, ret_error);
}

static const sd_bus_vtable job_vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_METHOD("Kill", "s", "", job_method, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("GetStatus", "", "", job_method, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("Novelty", "", "", job_method, SD_BUS_VTABLE_UNPRIVILEGED),
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

static struct call job_call(const char *method, const char *reason) {
        static struct call c; /* an answer may come when nobody waits any more */
        sd_bus_message *m = NULL;

        c = (struct call){};
        assert_true(sd_bus_message_new_method_call(client, &m, TEST_NAME, JOB_PATH, "org.primus.Master1.Job",
                                                   method) >= 0);
        assert_true(!reason || sd_bus_message_append(m, "s", reason) >= 0);
        assert_true(sd_bus_call_async(client, NULL, m, on_reply, &c, 0) >= 0);
        sd_bus_message_unref(m);
        for (uint64_t until = now_boot() + 10 * USEC_PER_SEC; !c.done && !scene.answer;) {
                assert_true(now_boot() < until);
                assert_true(sd_event_run(event, 100 * USEC_PER_MSEC) >= 0);
        }
        return c;
}

/* What the audit has said, when it has said as many lines. */
static const char *audited(unsigned n) {
        static char text[65536];
        unsigned found = 0;
        size_t size;

        for (uint64_t until = now_boot() + 10 * USEC_PER_SEC;;) {
                rewind(lines);
                size = fread(text, 1, sizeof(text) - 1, lines);
                text[size] = 0;
                found = 0;
                for (const char *p = text; (p = strchr(p, '\n')); p++)
                        found++;
                if (found >= n || now_boot() >= until)
                        break;
                assert_true(sd_event_run(event, 10 * USEC_PER_MSEC) >= 0);
        }
        assert_int_equal(found, n);
        return text;
}

/* ---- set-up ---- */
static void write_bus_configuration(const char *path) {
        FILE *f = fopen(path, "we");

        assert_non_null(f);
        fprintf(f,
                "<busconfig><type>system</type><listen>unix:path=%s/bus</listen><auth>EXTERNAL</auth>\n"
                "<limit name=\"max_outgoing_bytes\">%u</limit>\n"
                "<policy context=\"default\"><allow user=\"*\"/><allow own=\"*\"/><allow "
                "send_destination=\"*\"/>"
                "<allow receive_sender=\"*\"/></policy></busconfig>\n",
                directory, BUS_KEEPS);
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
        assert_int_equal(audit_new(daemon_bus, NULL, event, callers, &audit), 0);
        assert_true(audit_add_vtable(audit, JOB_PATH, "org.primus.Master1.Job", job_vtable, NULL, NULL) >= 0);
        start_polkit();
        client = connect_as(client_uid());
        lines = tmpfile();
        assert_non_null(lines);
        saved_stderr = dup(STDERR_FILENO);
        assert_true(dup2(fileno(lines), STDERR_FILENO) >= 0);
        return 0;
}

static int teardown(void **state) {
        callers = callers_free(callers);
        audit = audit_free(audit);
        (void)dup2(saved_stderr, STDERR_FILENO);
        close(saved_stderr);
        fclose(lines);
        sd_bus_message_unref(scene.answer);
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
        assert_non_null(strstr(c.text, "may do this; an administrator's password would do"));
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

/* ---- the audit ---- */
static void test_audit_of_a_change(void **state) {
        char who[64], want[256];

        scene.owner = client_uid();
        assert_string_equal(job_call("Kill", "one\ntwo \x1b[31m\xc3\xa9").error, "");
        snprintf(who, sizeof(who), "by uid %u, pid %u", client_uid(), (unsigned)getpid());
        snprintf(want, sizeof(want),
                 "<6>Audit: Job.Kill of " JOB_PATH
                 " %s (owner): ok; reason=one\\x0atwo \\x1b[31m\\xc3\\xa9\n",
                 who);
        assert_string_equal(audited(1), want);
}

static void test_audit_of_what_is_read(void **state) {
        scene.owner = client_uid();
        assert_string_equal(job_call("GetStatus", NULL).error, "");
        scene.fail = true;
        assert_string_equal(job_call("GetStatus", NULL).error, "org.primus.Error.Busy");
        assert_string_equal(audited(0), "");
        scene.owner = 4242; /* not theirs: that has a line */
        assert_string_equal(job_call("GetStatus", NULL).error, SD_BUS_ERROR_ACCESS_DENIED);
        assert_non_null(strstr(audited(1), "Job.GetStatus"));
        assert_non_null(strstr(audited(1), "(polkit:no): " SD_BUS_ERROR_ACCESS_DENIED "\n"));
}

static void test_audit_of_polkit(void **state) {
        scene.owner = 4242;
        scene.yes = true;
        assert_string_equal(job_call("Kill", "x").error, "");
        assert_non_null(strstr(audited(1), "(polkit:yes): ok; reason=x\n"));
        scene.yes = false;
        scene.challenge = true;
        (void)job_call("Kill", "x");
        assert_non_null(
                strstr(audited(2), "(polkit:challenge): " SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED));
        polkit_bus = sd_bus_close_unref(polkit_bus);
        (void)job_call("Kill", "x");
        assert_non_null(strstr(audited(3), "(polkit:absent): "));
        start_polkit();
}

/* Refused before anybody has asked who calls: the line says it all the same. */
static void test_audit_of_an_early_failure(void **state) {
        char want[64];

        scene.fail_early = true;
        assert_string_equal(job_call("Kill", "x").error, "org.primus.Error.NotFound");
        snprintf(want, sizeof(want), "by uid %u, pid", client_uid());
        assert_non_null(strstr(audited(1), want));
        assert_non_null(strstr(audited(1), "org.primus.Error.NotFound"));
}

static void test_audit_of_a_new_method(void **state) {
        scene.owner = client_uid();
        (void)job_call("Novelty", NULL);
        assert_non_null(strstr(audited(1), "Job.Novelty"));
}

/* Another bus's messages, a link's, name whom they like. */
static void test_audit_believes_its_bus_alone(void **state) {
        sd_bus_message *reply = NULL, *stranger = NULL;
        const char *name;
        uint64_t serial;

        scene.owner = client_uid();
        scene.late = true;
        (void)job_call("Kill", "x");
        assert_non_null(scene.answer);
        assert_true(sd_bus_message_get_cookie(scene.answer, &serial) >= 0);
        assert_true(sd_bus_get_unique_name(client, &name) >= 0);
        assert_true(sd_bus_message_new_method_call(polkit_bus, &stranger, name, "/", "a.b", "C") >= 0);
        assert_true(sd_bus_message_set_sender(stranger, name) >= 0 &&
                    sd_bus_message_seal(stranger, serial, 0) >= 0);
        audit_succeeded(stranger);
        assert_string_equal(audited(0), "");
        assert_true(sd_bus_message_new_method_return(scene.answer, &reply) >= 0);
        assert_true(reply_send(reply) >= 0);
        assert_non_null(strstr(audited(1), "(owner): ok"));
        sd_bus_message_unref(reply);
        sd_bus_message_unref(stranger);
}

/* What was never answered has its line too, when the ledger is closed. */
static void test_audit_of_no_answer(void **state) {
        scene.owner = client_uid();
        scene.late = true;
        (void)job_call("Kill", "x");
        callers = callers_free(callers);
        audit = audit_free(audit);
        assert_non_null(strstr(audited(1), "(owner): unknown; reason=x"));
}

static void test_audit_of_a_flood(void **state) {
        scene.owner = 4242;
        for (unsigned i = 0; i < REFUSALS_MAX + 12; i++)
                (void)job_call("Kill", "x");
        (void)audited(REFUSALS_MAX);
        scene.owner = client_uid(); /* what is done is always said */
        (void)job_call("Kill", "done");
        assert_non_null(strstr(audited(REFUSALS_MAX + 1), "reason=done"));
        callers = callers_free(callers);
        audit = audit_free(audit);
        assert_non_null(strstr(audited(REFUSALS_MAX + 2), "Audit: 12 more refusals of uid"));
}

/* More than the bus keeps for the daemon; nobody waits for it. */
static void flood(sd_bus *from) {
        _cleanup_free_ char *bytes = calloc(1, BUS_KEEPS / 4);

        assert_non_null(bytes);
        for (int i = 0; i < 6; i++) {
                _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
                assert_true(sd_bus_message_new_method_call(from, &m, TEST_NAME, TEST_PATH, TEST_INTERFACE,
                                                           "Nothing") >= 0);
                assert_true(sd_bus_message_append_array(m, 'y', bytes, BUS_KEEPS / 4) >= 0);
                assert_true(sd_bus_message_set_expect_reply(m, false) >= 0);
                assert_true(sd_bus_send(NULL, m, NULL) >= 0);
        }
        /* When that is answered the bus has all of it. */
        assert_true(sd_bus_call_method(from, "org.freedesktop.DBus", "/", "org.freedesktop.DBus", "GetId",
                                       NULL, NULL, NULL) >= 0);
}

/* While the bus holds too much for the daemon it throws its own answers away. */
static void test_lost_answer(void **state) {
        sd_bus *other = connect_as(client_uid()), *attacker = connect_as(client_uid());
        struct call c;
        uint64_t began;

        assert_true(sd_bus_flush(other) >= 0);
        assert_true(sd_bus_detach_event(daemon_bus) >= 0);
        start_call(other, "Identify", false, &c);
        assert_true(sd_bus_flush(other) >= 0);
        flood(attacker);
        began = now_boot();
        scene.returned = 0;
        while (scene.returned == 0) {
                assert_true(now_boot() < began + 10 * USEC_PER_SEC);
                if (sd_bus_process(daemon_bus, NULL) == 0)
                        (void)sd_bus_wait(daemon_bus, 100 * USEC_PER_MSEC);
        }
        assert_int_equal(scene.returned, 1); /* it has asked the bus */
        assert_true(sd_bus_flush(daemon_bus) >= 0);
        (void)usleep(200000); /* the bus answers, or does not */
        assert_true(sd_bus_attach_event(daemon_bus, event, 0) >= 0);
        run_until(&c.done);
        assert_string_equal(c.error, "");
        assert_int_equal(scene.uid, client_uid());
        assert_true(now_boot() - began > USEC_PER_SEC); /* the second answer it was */
        sd_bus_flush_close_unref(attacker);
        sd_bus_flush_close_unref(other);
}

static void test_refusals(void **state) {
        struct refusals *r;
        uint64_t suppressed, now = 5;
        uint32_t uid;

        assert_int_equal(refusals_new(&r), 0);
        for (unsigned i = 0; i < REFUSALS_MAX; i++)
                assert_true(refusals_admit(r, 7, now));
        assert_true(refusals_full(r, 7));
        assert_false(refusals_full(r, 8));
        assert_false(refusals_admit(r, 7, now));
        assert_true(refusals_admit(r, 8, now)); /* another has a share of his own */
        assert_false(refusals_over(r, now, false, &uid, &suppressed));
        for (unsigned i = 0; i < 1000; i++) /* and thousands of others have one together */
                (void)refusals_admit(r, 1000 + i, now);
        for (unsigned n = 0; refusals_over(r, now + REFUSALS_USEC, false, &uid, &suppressed); n++) {
                assert_in_range(n, 0, REFUSALS_WHO_MAX);
                assert_int_equal(suppressed, uid == 7                 ? 1
                                             : uid == REFUSALS_OTHERS ? 1000 - 62 - REFUSALS_MAX
                                                                      : 0);
        }
        assert_false(refusals_any(r));
        assert_true(refusals_admit(r, 7, now));
        refusals_free(r);
}

static void test_clean(void **state) {
        char buf[16];

        assert_string_equal(audit_clean("plain \"text\"", buf, sizeof(buf)), "plain \"text\"");
        assert_string_equal(audit_clean("\x7f\\\n", buf, sizeof(buf)), "\\x7f\\x5c\\x0a");
        assert_string_equal(audit_clean("0123456789abcdefgh", buf, sizeof(buf)), "0123456789ab...");
        assert_string_equal(audit_clean("\n\n\n\n\n\n", buf, sizeof(buf)), "\\x0a\\x0a\\x0a...");
        assert_string_equal(audit_clean("", buf, sizeof(buf)), "");
}

int main(int argc, char **argv) {
#define TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
        const struct CMUnitTest tests[] = {
                TEST(test_identify),
                TEST(test_late_error),
                TEST(test_several_at_once),
                TEST(test_forgotten),
                TEST(test_owner),
                TEST(test_root),
                TEST(test_granted),
                TEST(test_denied),
                TEST(test_no_polkit),
                TEST(test_bound),
                TEST(test_audit_of_a_change),
                TEST(test_audit_of_what_is_read),
                TEST(test_audit_of_polkit),
                TEST(test_audit_of_an_early_failure),
                TEST(test_audit_of_a_new_method),
                TEST(test_audit_believes_its_bus_alone),
                TEST(test_audit_of_no_answer),
                TEST(test_audit_of_a_flood),
                TEST(test_lost_answer),
                cmocka_unit_test(test_refusals),
                cmocka_unit_test(test_clean),
        };
        if (argc != 2)
                return EXIT_FAILURE;
        dbus_daemon_path = argv[1];
        return cmocka_run_group_tests(tests, setup_bus, teardown_bus);
}
