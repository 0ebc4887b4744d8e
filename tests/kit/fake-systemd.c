/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/kit/fake-systemd.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"

#define SERVICE "org.freedesktop.systemd1"
#define OBJECT "/org/freedesktop/systemd1"
#define UNITS OBJECT "/unit"

/* ---- the bus itself ---- */

static int method_hello(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        return sd_bus_reply_method_return(m, "s", ":1.1");
}

static int method_match(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        return sd_bus_reply_method_return(m, NULL);
}

static int method_owner(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        return sd_bus_reply_method_return(m, "s", ":1.0");
}

static const sd_bus_vtable driver[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_METHOD("Hello", "", "s", method_hello, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("GetNameOwner", "s", "s", method_owner, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("AddMatch", "s", "", method_match, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("RemoveMatch", "s", "", method_match, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_VTABLE_END,
};

/* ---- the manager ---- */

struct fake_unit *fake_unit_find(struct fake_systemd *f, const char *name) {
        for (size_t i = 0; i < f->n_units; i++)
                if (strcmp(f->units[i].name, name) == 0)
                        return &f->units[i];
        return NULL;
}

struct fake_unit *fake_unit_add(struct fake_systemd *f, const char *name, const char *active,
                                const char *sub) {
        struct fake_unit *u = fake_unit_find(f, name);

        if (!u) {
                assert_true(f->n_units < FAKE_UNITS);
                u = &f->units[f->n_units++];
        }
        *u = (struct fake_unit){ .active = active, .sub = sub, .transient = true };
        snprintf(u->name, sizeof(u->name), "%s", name);
        return u;
}

static void count_call(struct fake_systemd *f, sd_bus_message *m) {
        size_t i = 0;

        while (i < f->n_more && f->more[i] != sd_bus_message_get_bus(m))
                i++;
        f->calls_on[i < f->n_more ? i + 1 : 0]++;
}

static int reply_job(struct fake_systemd *f, sd_bus_message *m, unsigned job) {
        char path[64];

        snprintf(path, sizeof(path), OBJECT "/job/%u", job);
        return sd_bus_reply_method_return(m, "o", path);
}

static int method_start(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        struct fake_systemd *f = userdata;
        struct fake_unit *u;
        const char *name;

        assert_true(sd_bus_message_read(m, "s", &name) > 0);
        f->starts++;
        count_call(f, m);
        if (f->refuse)
                return sd_bus_error_set(error, SD_BUS_ERROR_FAILED, f->refuse);
        if (fake_unit_find(f, name))
                return sd_bus_error_setf(error, SERVICE ".UnitExists", "Unit %s exists", name);
        u = fake_unit_add(f, name, "activating", "start");
        u->start_job = ++f->jobs;
        if (!f->hold)
                return reply_job(f, m, u->start_job);
        assert_true(f->n_held < FAKE_UNITS);
        f->held[f->n_held++] = sd_bus_message_ref(m);
        return 1;
}

void fake_release(struct fake_systemd *f) {
        size_t n = f->n_held;

        f->n_held = 0;
        f->hold = false;
        for (size_t i = 0; i < n; i++) {
                const char *name;

                assert_true(sd_bus_message_rewind(f->held[i], true) >= 0);
                assert_true(sd_bus_message_read(f->held[i], "s", &name) > 0);
                assert_true(reply_job(f, f->held[i], fake_unit_find(f, name)->start_job) >= 0);
                sd_bus_message_unref(f->held[i]);
        }
}

static int method_stop(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        struct fake_systemd *f = userdata;
        const char *name;

        assert_true(sd_bus_message_read(m, "ss", &name, NULL) > 0);
        f->stops++;
        count_call(f, m);
        snprintf(f->last_stop, sizeof(f->last_stop), "%s", name);
        return reply_job(f, m, ++f->jobs);
}

static int method_kill(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        struct fake_systemd *f = userdata;
        const char *name, *whom;
        int32_t number;

        assert_true(sd_bus_message_read(m, "ssi", &name, &whom, &number) > 0);
        assert_true(f->n_kills < ELEMENTSOF(f->kills));
        snprintf(f->kills[f->n_kills].unit, sizeof(f->kills[0].unit), "%s", name);
        snprintf(f->kills[f->n_kills].whom, sizeof(f->kills[0].whom), "%s", whom);
        f->kills[f->n_kills++].signal = number;
        if (!fake_unit_find(f, name))
                return sd_bus_error_setf(error, SERVICE ".NoSuchUnit", "Unit %s not loaded.", name);
        return sd_bus_reply_method_return(m, NULL);
}

static int append_unit(sd_bus_message *reply, const struct fake_unit *u) {
        _cleanup_free_ char *path = NULL;

        assert_true(sd_bus_path_encode(UNITS, u->name, &path) >= 0);
        return sd_bus_message_append(reply, "(ssssssouso)", u->name, "", "loaded", u->active, u->sub, "",
                                     path, 0, "", "/");
}

static int method_list(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        struct fake_systemd *f = userdata;
        const char *pattern;

        f->lists++;
        assert_true(sd_bus_message_skip(m, "as") >= 0);
        assert_true(sd_bus_message_enter_container(m, 'a', "s") > 0);
        assert_true(sd_bus_message_read(m, "s", &pattern) > 0);
        assert_true(sd_bus_message_new_method_return(m, &reply) >= 0);
        assert_true(sd_bus_message_open_container(reply, 'a', "(ssssssouso)") >= 0);
        for (size_t i = 0; i < f->n_units; i++)
                if (strcmp(pattern, "primus-*") == 0 || strcmp(pattern, f->units[i].name) == 0)
                        assert_true(append_unit(reply, &f->units[i]) >= 0);
        assert_true(sd_bus_message_close_container(reply) >= 0);
        return sd_bus_send(NULL, reply, NULL);
}

static const sd_bus_vtable manager[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_METHOD("Subscribe", "", "", method_match, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("StartTransientUnit", "ssa(sv)a(sa(sv))", "o", method_start,
                      SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("StopUnit", "ss", "o", method_stop, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("KillUnit", "ssi", "", method_kill, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("ListUnitsByPatterns", "asas", "a(ssssssouso)", method_list,
                      SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_VTABLE_END,
};

/* ---- units ---- */

static int find_unit(sd_bus *bus, const char *path, const char *interface, void *userdata, void **ret_found,
                     sd_bus_error *error) {
        _cleanup_free_ char *name = NULL;

        if (sd_bus_path_decode(path, UNITS, &name) <= 0)
                return 0;
        *ret_found = fake_unit_find(userdata, name);
        return *ret_found != NULL;
}

static int get_string(sd_bus *bus, const char *path, const char *interface, const char *property,
                      sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        struct fake_unit *u = userdata;

        return sd_bus_message_append(reply, "s", u->sub);
}

static int get_transient(sd_bus *bus, const char *path, const char *interface, const char *property,
                         sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        return sd_bus_message_append(reply, "b", (int)((struct fake_unit *)userdata)->transient);
}

static int get_environment(sd_bus *bus, const char *path, const char *interface, const char *property,
                           sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        return sd_bus_message_append_strv(reply, ((struct fake_unit *)userdata)->environment);
}

static const sd_bus_vtable unit[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_PROPERTY("SubState", "s", get_string, 0, 0),
        SD_BUS_PROPERTY("Transient", "b", get_transient, 0, 0),
        SD_BUS_VTABLE_END,
};
static const sd_bus_vtable service[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_PROPERTY("Environment", "as", get_environment, 0, 0),
        SD_BUS_VTABLE_END,
};

/* ---- signals ---- */

static void emit(struct fake_systemd *f, const char *member, const char *types, ...) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        va_list ap;

        assert_true(sd_bus_message_new_signal(f->server, &m, OBJECT, SERVICE ".Manager", member) >= 0);
        assert_true(sd_bus_message_set_sender(m, SERVICE) >= 0);
        va_start(ap, types);
        assert_true(sd_bus_message_appendv(m, types, ap) >= 0);
        va_end(ap);
        assert_true(sd_bus_send(f->server, m, NULL) >= 0);
}

void fake_job_runs(struct fake_systemd *f, unsigned job) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        char path[64];

        snprintf(path, sizeof(path), OBJECT "/job/%u", job);
        assert_true(sd_bus_message_new_signal(f->server, &m, path, "org.freedesktop.DBus.Properties",
                                              "PropertiesChanged") >= 0);
        assert_true(sd_bus_message_set_sender(m, SERVICE) >= 0);
        assert_true(sd_bus_message_append(m, "sa{sv}as", SERVICE ".Job", 1, "State", "s", "running", 0) >= 0);
        assert_true(sd_bus_send(f->server, m, NULL) >= 0);
}

void fake_job_removed(struct fake_systemd *f, unsigned job, const char *name, const char *result) {
        char path[64];

        snprintf(path, sizeof(path), OBJECT "/job/%u", job);
        emit(f, "JobRemoved", "uoss", job, path, name, result);
}

void fake_unit_gone(struct fake_systemd *f, const char *name) {
        struct fake_unit *u = fake_unit_find(f, name);

        if (u)
                *u = f->units[--f->n_units];
        emit(f, "UnitRemoved", "so", name, "/");
}

void fake_reloaded(struct fake_systemd *f) {
        emit(f, "Reloading", "b", 1);
        emit(f, "Reloading", "b", 0);
}

/* ---- the loop ---- */

uint64_t fake_deadline(void) {
        return now_boot() + 10 * USEC_PER_SEC;
}

bool fake_deadline_over(uint64_t end) {
        return now_boot() > end;
}

void fake_settle(struct fake_systemd *f, uint64_t usec) {
        while (sd_event_run(f->event, usec) > 0)
                ;
}

/* A connection: the server's end is attached, the client's is the caller's. */
static void connect_pair(struct fake_systemd *f, sd_bus **ret_server, sd_bus **ret_client) {
        sd_bus *server, *client;
        sd_id128_t id;
        int fds[2];

        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
        assert_true(sd_id128_randomize(&id) >= 0);
        assert_true(sd_bus_new(&server) >= 0);
        assert_true(sd_bus_set_fd(server, fds[0], fds[0]) >= 0);
        assert_true(sd_bus_set_server(server, true, id) >= 0);
        assert_true(sd_bus_set_trusted(server, true) >= 0);
        assert_true(sd_bus_start(server) >= 0);
        assert_true(sd_bus_attach_event(server, f->event, SD_EVENT_PRIORITY_NORMAL) >= 0);
        assert_true(sd_bus_add_object_vtable(server, NULL, "/org/freedesktop/DBus", "org.freedesktop.DBus",
                                             driver, f) >= 0);
        assert_true(sd_bus_add_object_vtable(server, NULL, OBJECT, SERVICE ".Manager", manager, f) >= 0);
        assert_true(sd_bus_add_fallback_vtable(server, NULL, UNITS, SERVICE ".Unit", unit, find_unit, f) >=
                    0);
        assert_true(sd_bus_add_fallback_vtable(server, NULL, UNITS, SERVICE ".Service", service, find_unit,
                                               f) >= 0);
        assert_true(sd_bus_new(&client) >= 0);
        assert_true(sd_bus_set_fd(client, fds[1], fds[1]) >= 0);
        assert_true(sd_bus_set_bus_client(client, true) >= 0);
        *ret_server = server;
        *ret_client = client;
}

sd_bus *fake_systemd_connect(struct fake_systemd *f) {
        sd_bus *client;

        assert_true(f->n_more < FAKE_BUSES);
        connect_pair(f, &f->more[f->n_more++], &client);
        return client;
}

void fake_systemd_new(struct fake_systemd *f) {
        *f = (struct fake_systemd){ 0 };
        assert_true(sd_event_new(&f->event) >= 0);
        connect_pair(f, &f->server, &f->client);
        assert_true(sd_bus_start(f->client) >= 0);
        assert_true(sd_bus_attach_event(f->client, f->event, SD_EVENT_PRIORITY_NORMAL) >= 0);
}

void fake_systemd_done(struct fake_systemd *f) {
        (void)sd_bus_set_exit_on_disconnect(f->client, false);
        for (size_t i = 0; i < f->n_held; i++)
                sd_bus_message_unref(f->held[i]);
        sd_bus_close_unref(f->client);
        sd_bus_close_unref(f->server);
        for (size_t i = 0; i < f->n_more; i++)
                sd_bus_close_unref(f->more[i]);
        sd_event_unref(f->event);
}
