/* SPDX-License-Identifier: Apache-2.0 */
/* logs.c, logs-read.c and bundles.c over real connections, with just as much of a manager as they look at. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>
#include <gnutls/crypto.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "masterd/core/listeners.h"
#include "masterd/core/manager.h"
#include "masterd/core/notices.h"
#include "masterd/core/record.h"
#include "masterd/core/space.h"
#include "masterd/feed/feeding.h"
#include "masterd/life/arrays.h"
#include "masterd/life/savepoints.h"
#include "masterd/link/link.h"
#include "masterd/link/orders.h"
#include "masterd/relay/bundles.h"
#include "masterd/relay/logs.h"
#include "masterd/relay/relay-parts.h"

static const sd_id128_t uid = SD_ID128_MAKE(01, 02, 03, 04, 05, 06, 07, 08, 09, 0a, 0b, 0c, 0d, 0e, 0f, 10);

/* ---- the manager ---- */

struct world {
        struct manager m;
        struct relay_state relay;
        struct job job;
        struct job_spec spec;
        struct role_spec role_spec;
        struct role role;
        struct executor executor;
        struct node node;
        struct link bulk;
        char state[64];
        sd_bus *server, *client;             /* masterd's side and a caller */
        sd_bus *agent_side, *agent_of_agent; /* masterd's side of the link and the agent's */
        char asked[64];                      /* cursor that the agent saw */
        char first_error_event[512];
        unsigned changed;
        unsigned answers;
        char data[1024], next[64], error[128];
        int end;
        uint64_t put_next;
        uint32_t looker;
        const char *identifier; /* only lines of that */
        char identified[64];    /* what the agent was asked for */
        bool sees;
};

static struct world *world;

static bool may_look(struct manager *m, uint32_t looker, const struct job *j) {
        assert_int_equal(looker, 1001);
        return world->sees;
}

static const struct upcalls upcalls = { .may_look = may_look };

struct job *manager_job(struct manager *m, uint32_t number) {
        return number == world->job.number ? &world->job : NULL;
}
struct executor *job_executor(struct job *j, const char *role, uint32_t index) {
        return strcmp(role, "worker") == 0 && index == 3 ? &world->executor : NULL;
}
struct executor *job_attempt(struct job *j, const char *role, uint32_t index, uint32_t attempt) {
        struct executor *e = job_executor(j, role, index);
        return e && e->attempt == attempt ? e : NULL;
}
struct executor_id executor_id_of(const struct executor *e) {
        return (struct executor_id){ .job_uid = e->job->uid,
                                     .job = e->job->number,
                                     .role = "worker",
                                     .index = 3,
                                     .attempt = e->attempt };
}
struct node *nodes_get(struct nodes *n, const char *name) {
        return strcmp(name, world->node.name) == 0 ? &world->node : NULL;
}
bool feeding_scan_known(struct job *j, struct node *node, const struct executor_id *id) {
        return false;
}
sd_bus *peer_bus(struct peer *p) {
        return world->agent_side;
}
int space_admit_disk(const struct manager *m, uint64_t bytes, sd_bus_error *error) {
        return 0;
}

void record_job(struct manager *m, const struct job *j, bool body) {
}
void record_event(struct manager *m, struct job *j, const char *kind, const struct executor *e,
                  const char *format, ...) {
        va_list ap;

        assert_string_equal(kind, "first-error");
        va_start(ap, format);
        vsnprintf(world->first_error_event, sizeof(world->first_error_event), format, ap);
        va_end(ap);
}
bool savepoints_need(const struct manager *m, uint32_t owner, const char *bundle) {
        return false;
}
void arrays_first_error(struct manager *m, const struct job *j) {
}

void notice_job_changed(struct manager *m, struct job *j) {
        world->changed++;
}
int text_set(char **field, const char *format, ...) {
        va_list ap;
        int r;

        va_start(ap, format);
        r = vasprintf(field, format, ap);
        va_end(ap);
        return r < 0 ? -ENOMEM : 0;
}

/* ---- connections ---- */

static void connect_pair(sd_event *event, sd_bus **server, sd_bus **client) {
        sd_id128_t id;
        int fds[2];

        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
        assert_int_equal(sd_id128_randomize(&id), 0);
        assert_int_equal(sd_bus_new(server), 0);
        assert_int_equal(sd_bus_set_fd(*server, fds[0], fds[0]), 0);
        assert_int_equal(sd_bus_set_server(*server, true, id), 0);
        assert_int_equal(sd_bus_set_anonymous(*server, true), 0);
        assert_int_equal(sd_bus_set_trusted(*server, true), 0);
        assert_true(sd_bus_start(*server) >= 0);
        assert_int_equal(sd_bus_new(client), 0);
        assert_int_equal(sd_bus_set_fd(*client, fds[1], fds[1]), 0);
        assert_int_equal(sd_bus_set_anonymous(*client, true), 0);
        assert_int_equal(sd_bus_set_trusted(*client, true), 0);
        assert_true(sd_bus_start(*client) >= 0);
        assert_true(sd_bus_attach_event(*server, event, 0) >= 0);
        assert_true(sd_bus_attach_event(*client, event, 0) >= 0);
}

static int on_read_log(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        const void *cursor;
        uint64_t wait, tail;
        size_t size;

        assert_true(sd_bus_message_read_array(call, 'y', &cursor, &size) >= 0);
        assert_true(sd_bus_message_read(call, "tt", &wait, &tail) >= 0);
        return logs_read(&world->m, &world->job, &world->node,
                         &(struct executor_id){ uid, 7, "worker", 3, 1 },
                         &(struct log_wish){ .cursor = cursor,
                                             .cursor_size = size,
                                             .wait_usec = wait,
                                             .tail = tail,
                                             .looker = world->looker,
                                             .identifier = world->identifier },
                         call);
}

static int on_put(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        return bundles_put(&world->m, 1000, call);
}

static int on_serve(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        return bundles_serve(&world->m, &world->node, call);
}

static const sd_bus_vtable master_vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_METHOD("ReadLog", "aytt", "ayayb", on_read_log, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("PutBundle", "sttay", "t", on_put, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("GetBundle", "ustua{sv}", "taya{sv}", on_serve, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_VTABLE_END,
};

static int on_agent_option(sd_bus_message *call, const char *key, void *userdata) {
        const char *text;

        assert_string_equal(key, "identifier");
        assert_true(sd_bus_message_read(call, "v", "s", &text) > 0);
        snprintf(world->identified, sizeof(world->identified), "%s", text);
        return 1;
}

static int on_agent_read_log(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        struct executor_id id;
        const void *cursor;
        size_t size;

        assert_int_equal(executor_id_read(call, &id), 1);
        assert_true(sd_bus_message_read_array(call, 'y', &cursor, &size) >= 0);
        snprintf(world->asked, sizeof(world->asked), "%.*s", (int)size, size ? (const char *)cursor : "");
        world->identified[0] = 0;
        assert_true(sd_bus_message_skip(call, "ut") > 0);
        assert_int_equal(link_read_entries(call, on_agent_option, NULL), 1);
        assert_int_equal(sd_bus_message_new_method_return(call, &reply), 0);
        assert_int_equal(sd_bus_message_append_array(reply, 'y', "one\ntwo\n", 8), 0);
        assert_int_equal(sd_bus_message_append_array(reply, 'y', "c2", 2), 0);
        assert_true(sd_bus_message_append(reply, "b", 0) >= 0);
        assert_true(link_append_extra_empty(reply) >= 0);
        return sd_bus_send(NULL, reply, NULL);
}

static const sd_bus_vtable agent_vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_METHOD("ReadLog", "(ayusuu)ayuta{sv}", "ayayba{sv}", on_agent_read_log,
                      SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_VTABLE_END,
};

static int setup(void **state) {
        struct world *w = world = calloc(1, sizeof(*w));

        assert_non_null(w);
        strcpy(w->state, "/tmp/test-logs.XXXXXX");
        assert_non_null(mkdtemp(w->state));
        w->m.conf.state_directory = w->state;
        w->m.conf.bundle_max = w->m.conf.bundles_per_user_max = 1 << 20;
        assert_int_equal(sd_event_new(&w->m.event), 0);
        w->role_spec = (struct role_spec){ .name = (char *)"worker", .num = 4 };
        w->spec = (struct job_spec){ .roles = &w->role_spec, .n_roles = 1 };
        w->role = (struct role){ .spec = &w->role_spec };
        w->job = (struct job){ .number = 7,
                               .uid = uid,
                               .state = JOB_RUNNING,
                               .owner = 1000,
                               .spec = &w->spec,
                               .roles = &w->role };
        w->executor = (struct executor){
                .job = &w->job, .attempt = 1, .state = EXECUTOR_RUNNING, .node = &w->node, .index = 3
        };
        w->looker = LOOKER_NONE;
        w->m.up = &upcalls;
        w->m.relay = &w->relay;
        w->node.name = (char *)"n1";
        w->node.executors = &w->executor;
        connect_pair(w->m.event, &w->server, &w->client);
        connect_pair(w->m.event, &w->agent_of_agent, &w->agent_side);
        assert_true(sd_bus_add_object_vtable(w->server, NULL, "/t", "t.t", master_vtable, w) >= 0);
        assert_true(sd_bus_add_object_vtable(w->agent_of_agent, NULL, LINK_PATH, LINK_INTERFACE, agent_vtable,
                                             w) >= 0);
        assert_int_equal(logs_new(&w->m, &w->relay.logs), 0);
        assert_int_equal(bundles_new(&w->m, &w->relay.bundles), 0);
        return 0;
}

static int teardown(void **state) {
        struct world *w = world;

        logs_free(w->relay.logs);
        bundles_free(w->relay.bundles);
        sd_bus_close_unref(w->server);
        sd_bus_close_unref(w->client);
        sd_bus_close_unref(w->agent_side);
        sd_bus_close_unref(w->agent_of_agent);
        sd_event_unref(w->m.event);
        free(w->job.first_error);
        assert_int_equal(remove_tree(w->state), 0);
        free(w);
        return 0;
}

static void turn_until(const unsigned *counter, unsigned value) {
        uint64_t until = now_boot() + 10 * USEC_PER_SEC;

        while (*counter < value) {
                assert_true(now_boot() < until);
                assert_true(sd_event_run(world->m.event, 100 * USEC_PER_MSEC) >= 0);
        }
}

static int on_log(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        const sd_bus_error *e = sd_bus_message_get_error(reply);
        const void *p;
        size_t n;

        world->answers++;
        snprintf(world->error, sizeof(world->error), "%s", e ? e->name : "");
        if (e)
                return 0;
        assert_true(sd_bus_message_read_array(reply, 'y', &p, &n) >= 0);
        snprintf(world->data, sizeof(world->data), "%.*s", (int)n, n ? (const char *)p : "");
        assert_true(sd_bus_message_read_array(reply, 'y', &p, &n) >= 0);
        snprintf(world->next, sizeof(world->next), "%.*s", (int)n, n ? (const char *)p : "");
        assert_true(sd_bus_message_read(reply, "b", &world->end) >= 0);
        return 0;
}

static void ask(const char *cursor, uint64_t wait, uint64_t tail) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;

        assert_int_equal(sd_bus_message_new_method_call(world->client, &m, NULL, "/t", "t.t", "ReadLog"), 0);
        assert_int_equal(sd_bus_message_append_array(m, 'y', cursor, strlen(cursor)), 0);
        assert_true(sd_bus_message_append(m, "tt", wait, tail) >= 0);
        assert_true(sd_bus_call_async(world->client, NULL, m, on_log, NULL, 0) >= 0);
}

static void read_log(const char *cursor, uint64_t wait, uint64_t tail) {
        char copy[64]; /* cursor may be world->next */
        unsigned n = world->answers + 1;

        snprintf(copy, sizeof(copy), "%s", cursor);
        ask(copy, wait, tail);
        turn_until(&world->answers, n);
}

static void tail(uint64_t offset, const char *text) {
        logs_tail(&world->m, &world->node, &(struct executor_id){ uid, 7, "worker", 3, 1 }, offset, text,
                  strlen(text));
}

static void expect(const char *error, const char *data, const char *next, bool end) {
        assert_string_equal(world->error, error);
        if (error[0])
                return;
        assert_string_equal(world->data, data);
        assert_string_equal(world->next, next);
        assert_int_equal(world->end, end);
}

/* ---- logs ---- */

static void test_kept(void **state) {
        struct node other = { .name = (char *)"n2" };

        read_log("", 0, UINT64_MAX); /* it runs, its host is away, nothing is kept: perhaps later */
        expect("", "", "", false);
        logs_tail(&world->m, &other, &(struct executor_id){ uid, 7, "worker", 3, 1 }, 0, "lies\n", 5);
        read_log("", 0, UINT64_MAX);
        expect("", "", "", false);
        tail(0, "one\ntwo\nthr");
        read_log("", 0, UINT64_MAX);
        expect("", "one\ntwo\n", "kept:8", false);
        read_log("kept:8", 200 * USEC_PER_MSEC, UINT64_MAX); /* whole lines only */
        expect("", "", "kept:8", false);
        /* A reader that waits gets what comes. */
        unsigned n = world->answers + 1;
        ask("kept:8", 5 * USEC_PER_SEC, UINT64_MAX);
        tail(11, "ee\n");
        turn_until(&world->answers, n);
        expect("", "three\n", "kept:14", false);
        world->executor.state = EXECUTOR_FAILED;
        read_log("", 0, 8);
        expect("", "three\n", "kept:14", true);
        read_log("kept:14", 0, UINT64_MAX);
        expect("", "", "kept:14", true);
        read_log("nonsense", 0, UINT64_MAX);
        expect(SD_BUS_ERROR_INVALID_ARGS, "", "", false);
}

/* One to whom the job is not visible any more when there is something new, has to ask again. */
static void test_looker(void **state) {
        unsigned n;

        world->looker = 1001;
        world->sees = true;
        tail(0, "one\n");
        read_log("", 0, UINT64_MAX);
        expect("", "one\n", "kept:4", false);
        n = world->answers + 1;
        ask("kept:4", 5 * USEC_PER_SEC, UINT64_MAX);
        world->sees = false;
        tail(4, "two\n");
        turn_until(&world->answers, n);
        expect("", "", "kept:4", false);
        world->node.bulk = &world->bulk;
        read_log("agent:8:c2", 0, UINT64_MAX);
        expect("", "", "agent:8:c2", false);
        world->looker = LOOKER_NONE;
        read_log("agent:8:c2", 0, UINT64_MAX);
        expect("", "one\ntwo\n", "agent:16:c2", false);
}

static void test_gone(void **state) {
        world->executor.state = EXECUTOR_LOST;
        read_log("", 0, UINT64_MAX);
        expect(LINK_ERROR_NOT_FOUND, "", "", false);
        read_log("agent:10:c", 0, UINT64_MAX);
        expect("", "", "agent:10:c", true);
}

/* The agent while it is there, what is kept behind the same byte when it is not. */
static void test_agent(void **state) {
        world->node.bulk = &world->bulk;
        read_log("", 0, UINT64_MAX);
        expect("", "one\ntwo\n", "agent:8:c2", false);
        assert_string_equal(world->asked, "");
        read_log("agent:8:c2", 0, UINT64_MAX);
        assert_string_equal(world->asked, "c2");
        expect("", "one\ntwo\n", "agent:16:c2", false);
        tail(0, "one\ntwo\nlast words\n");
        world->node.bulk = NULL;
        world->executor.state = EXECUTOR_LOST;
        read_log("agent:8:c2", 0, UINT64_MAX);
        expect("", "last words\n", "kept:19", true);
}

/* Lines of one name: from the agent, and never from what is kept, which has no names. */
static void test_identifier(void **state) {
        world->identifier = "Counter 3";
        world->node.bulk = &world->bulk;
        read_log("", 0, UINT64_MAX);
        expect("", "one\ntwo\n", "agent:8:c2", false);
        assert_string_equal(world->identified, "Counter 3");
        tail(0, "one\ntwo\nlast words\n");
        world->node.bulk = NULL;
        world->executor.state = EXECUTOR_LOST;
        for (const char *const *cursor = (const char *const[]){ "", "agent:8:c2", "kept:4", NULL }; *cursor;
             cursor++) {
                read_log(*cursor, 0, UINT64_MAX);
                expect(LINK_ERROR_NOT_FOUND, "", "", false);
        }
        world->identifier = NULL;
}

static void test_bounded(void **state) {
        unsigned n = world->answers;

        for (unsigned i = 0; i < 64; i++)
                ask("", 15 * USEC_PER_SEC, UINT64_MAX);
        ask("", 15 * USEC_PER_SEC, UINT64_MAX);
        turn_until(&world->answers, n + 1);
        expect("org.primus.Error.Busy", "", "", false);
        assert_int_equal(world->answers, n + 1);
}

static void test_first_error(void **state) {
        world->node.bulk = &world->bulk;
        world->executor.state = EXECUTOR_FAILED;
        logs_note_failure(&world->m, &world->executor);
        logs_note_failure(&world->m, &world->executor);
        /* The next attempt has begun elsewhere; the last words of this one are its node's. */
        world->executor.attempt = 2;
        world->executor.node = NULL;
        tail(0, "Traceback (most recent call last):\n  File \"a.py\", line 3, in f\n    g()\n");
        tail(71, "ValueError: no\n");
        turn_until(&world->changed, 1);
        assert_string_equal(world->job.first_error, "ValueError: no (a.py:3 in f)");
        assert_string_equal(world->first_error_event, world->job.first_error);
        /* Without a host there is nothing to wait for, and the first stays. */
        world->executor.attempt = 1;
        world->executor.node = &world->node;
        world->node.bulk = NULL;
        world->first_error_event[0] = 0;
        logs_note_failure(&world->m, &world->executor);
        for (unsigned i = 0; i < 100 && !world->first_error_event[0]; i++)
                (void)sd_event_run(world->m.event, 20 * USEC_PER_MSEC);
        assert_string_equal(world->first_error_event, world->job.first_error);
        assert_int_equal(world->changed, 1);
        /* When all run again it is an event, and not the job's any more. */
        free(world->job.first_error);
        world->job.first_error = NULL;
        world->role.n_state[EXECUTOR_RUNNING] = world->role_spec.num;
        world->first_error_event[0] = 0;
        logs_note_failure(&world->m, &world->executor);
        assert_true(logs_awaited(&world->m, &world->job));
        for (unsigned i = 0; i < 100 && !world->first_error_event[0]; i++)
                (void)sd_event_run(world->m.event, 20 * USEC_PER_MSEC);
        assert_string_equal(world->first_error_event, "ValueError: no (a.py:3 in f)");
        assert_null(world->job.first_error);
        assert_false(logs_awaited(&world->m, &world->job));
}

/* ---- bundles ---- */

static int on_bundle(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        const sd_bus_error *e = sd_bus_message_get_error(reply);

        world->answers++;
        snprintf(world->error, sizeof(world->error), "%s", e ? e->name : "");
        if (!e)
                assert_true(sd_bus_message_read(reply, "t", &world->put_next) >= 0);
        return 0;
}

static void put(const char *sha256, uint64_t size, uint64_t offset, const char *text) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;

        assert_int_equal(sd_bus_message_new_method_call(world->client, &m, NULL, "/t", "t.t", "PutBundle"),
                         0);
        assert_true(sd_bus_message_append(m, "stt", sha256, size, offset) >= 0);
        assert_int_equal(sd_bus_message_append_array(m, 'y', text, strlen(text)), 0);
        assert_true(sd_bus_call_async(world->client, NULL, m, on_bundle, NULL, 0) >= 0);
}

static void get(const char *sha256) {
        unsigned n = world->answers + 1;

        assert_true(sd_bus_call_method_async(world->client, NULL, NULL, "/t", "t.t", "GetBundle", on_bundle,
                                             NULL, "ustua{sv}", 1000u, sha256, UINT64_C(0), 100u, 0) >= 0);
        turn_until(&world->answers, n);
}

static void test_bundle(void **state) {
        char sha256[65];
        uint8_t digest[32];

        assert_int_equal(gnutls_hash_fast(GNUTLS_DIG_SHA256, "hello world", 11, digest), 0);
        for (size_t i = 0; i < sizeof(digest); i++)
                snprintf(sha256 + 2 * i, 3, "%02x", digest[i]);
        put("../x", 11, 0, "hello");
        turn_until(&world->answers, 1);
        assert_string_equal(world->error, SD_BUS_ERROR_INVALID_ARGS);
        put(sha256, 2 << 20, 0, "hello");
        turn_until(&world->answers, 2);
        assert_string_equal(world->error, "org.primus.Error.Refused");
        put(sha256, 11, 0, "hello");
        turn_until(&world->answers, 3);
        assert_string_equal(world->error, "");
        assert_int_equal(world->put_next, 5);
        put(sha256, 11, 5, "_world");
        turn_until(&world->answers, 4);
        assert_string_equal(world->error, "org.primus.Error.BadBundle");
        put(sha256, 11, 0, "hello ");
        put(sha256, 11, 6, "world");
        put(sha256, 11, 0, ""); /* another caller, while it is made durable */
        turn_until(&world->answers, 7);
        assert_string_equal(world->error, "");
        assert_int_equal(world->put_next, 11);
        assert_true(bundles_have(&world->m, 1000, sha256));

        /* Only for a node with an executor of such a job. */
        get(sha256);
        assert_string_equal(world->error, LINK_ERROR_REFUSED);
        strcpy(world->job.given.bundle, sha256);
        get(sha256);
        assert_string_equal(world->error, "");
        assert_int_equal(world->put_next, 11);
        world->job.state = JOB_KILLED;
        get(sha256);
        assert_string_equal(world->error, LINK_ERROR_REFUSED);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_kept, setup, teardown),
                cmocka_unit_test_setup_teardown(test_looker, setup, teardown),
                cmocka_unit_test_setup_teardown(test_gone, setup, teardown),
                cmocka_unit_test_setup_teardown(test_agent, setup, teardown),
                cmocka_unit_test_setup_teardown(test_identifier, setup, teardown),
                cmocka_unit_test_setup_teardown(test_bounded, setup, teardown),
                cmocka_unit_test_setup_teardown(test_first_error, setup, teardown),
                cmocka_unit_test_setup_teardown(test_bundle, setup, teardown),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
