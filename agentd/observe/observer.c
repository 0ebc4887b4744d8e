/* SPDX-License-Identifier: Apache-2.0 */
/* Calls to the starter. Invariant: an answer is read within the interface's signature and bounds, and every
 * descriptor in it is either the handler's or closed. */
#include "agentd/observe/observer.h"

#include <fcntl.h>
#include <string.h>

#include "lib/base/clock.h"

/* The starter answers at once; the kernel takes a while to look through a set of programs. */
#define CALL_USEC (30 * USEC_PER_SEC)

struct observer {
        sd_bus *bus;
};

/* What an answer is for; freed with its slot. */
struct asking {
        union {
                observer_probes_handler probes;
                observer_trace_handler trace;
                observer_fd_handler fd;
                observer_signal_handler signal;
        };
        void *userdata;
        sd_bus_destroy_t destroy; /* of it; may be NULL */
};

static void asking_free(void *p) {
        struct asking *a = p;

        if (a->destroy)
                a->destroy(a->userdata);
        free(a);
}

int observer_new(sd_bus *starter, struct observer **ret) {
        struct observer *o = calloc(1, sizeof(*o));

        if (!o)
                return -ENOMEM;
        o->bus = sd_bus_ref(starter);
        *ret = o;
        return 0;
}

void observer_free(struct observer *o) {
        if (!o)
                return;
        sd_bus_unref(o->bus);
        free(o);
}

static int message(struct observer *o, const char *method, sd_bus_message **ret) {
        return sd_bus_message_new_method_call(o->bus, ret, NULL, STARTER_PATH, STARTER_OBSERVE, method);
}

/* ret NULL: the question lives as long as it takes. */
static int ask_starter(struct observer *o, sd_bus_message *m, sd_bus_message_handler_t f, struct asking what,
                       sd_bus_slot **ret) {
        _cleanup_(sd_bus_slot_unrefp) sd_bus_slot *slot = NULL;
        struct asking *a = malloc(sizeof(*a));
        int r;

        if (!a) {
                if (what.destroy)
                        what.destroy(what.userdata);
                return -ENOMEM;
        }
        *a = what;
        r = sd_bus_call_async(o->bus, &slot, m, f, a, CALL_USEC);
        if (r < 0) {
                asking_free(a);
                return r;
        }
        (void)sd_bus_slot_set_destroy_callback(slot, asking_free);
        if (ret)
                *ret = TAKE_PTR(slot);
        else
                (void)sd_bus_slot_set_floating(slot, true);
        return 0;
}

/* 0: there is an answer to be read. */
static int reply_failed(sd_bus_message *reply, const char **ret_text) {
        const sd_bus_error *e = sd_bus_message_get_error(reply);

        *ret_text = e ? e->message ?: e->name : NULL;
        return !e                                                  ? 0
               : sd_bus_error_has_name(e, OBSERVE_ERROR_NOT_FOUND) ? -ENOENT
               : sd_bus_error_has_name(e, OBSERVE_ERROR_BUSY)      ? -EBUSY
                                                                   : -sd_bus_message_get_errno(reply);
}

static int copy(int fd) {
        int mine = fcntl(fd, F_DUPFD_CLOEXEC, 3);

        return mine < 0 ? -errno : mine;
}

/* ---- programs ---- */

static int read_descriptors(sd_bus_message *m, int fds[static _OBSERVED_FD_MAX]) {
        static const char *const names[_OBSERVED_FD_MAX] = {
                [OBSERVED_STATE] = OBSERVE_MAP_STATE,  [OBSERVED_UNITS] = OBSERVE_MAP_UNITS,
                [OBSERVED_FLOWS] = OBSERVE_MAP_FLOWS,  [OBSERVED_EVENTS] = OBSERVE_MAP_EVENTS,
                [OBSERVED_TASKS] = OBSERVE_LINK_TASKS,
        };
        const char *name;
        int fd, r = sd_bus_message_enter_container(m, 'a', "{sh}");

        while (r >= 0 && (r = sd_bus_message_read(m, "{sh}", &name, &fd)) > 0)
                for (size_t i = 0; i < _OBSERVED_FD_MAX; i++)
                        if (fds[i] < 0 && strcmp(names[i], name) == 0)
                                fds[i] = copy(fd);
        return r < 0 ? r : sd_bus_message_exit_container(m);
}

static int read_programs(sd_bus_message *m, struct observed_program programs[static _OBSERVE_PROGRAM_MAX]) {
        const char *name, *why;
        int up, out, r = sd_bus_message_enter_container(m, 'a', "(sbbs)");

        while (r >= 0 && (r = sd_bus_message_read(m, "(sbbs)", &name, &up, &out, &why)) > 0)
                for (size_t i = 0; i < _OBSERVE_PROGRAM_MAX; i++)
                        if (strcmp(observe_program_name((enum observe_program)i), name) == 0) {
                                programs[i] = (struct observed_program){ .up = up, .out_of_place = out };
                                snprintf(programs[i].why, sizeof(programs[i].why), "%s", why);
                        }
        return r;
}

static int on_probes(sd_bus_message *reply, void *userdata, sd_bus_error *unused) {
        struct observed_program programs[_OBSERVE_PROGRAM_MAX] = {};
        const struct asking a = *(struct asking *)userdata;
        int fds[_OBSERVED_FD_MAX];
        const char *error;
        int r = reply_failed(reply, &error);

        for (size_t i = 0; i < _OBSERVED_FD_MAX; i++)
                fds[i] = -EBADF;
        for (size_t i = 0; i < _OBSERVE_PROGRAM_MAX; i++)
                strcpy(programs[i].why, "the starter says nothing of it");
        if (r >= 0 && ((r = read_descriptors(reply, fds)) < 0 || (r = read_programs(reply, programs)) < 0)) {
                for (size_t i = 0; i < _OBSERVED_FD_MAX; i++)
                        fds[i] = close_fd(fds[i]);
                error = "the starter's answer cannot be read";
        }
        a.probes(r, error, fds, programs, a.userdata);
        return 0;
}

int observer_probes(struct observer *o, observer_probes_handler handler, void *userdata, sd_bus_slot **ret) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        int r = message(o, "Probes", &m);

        return r < 0 ? r
                     : ask_starter(o, m, on_probes,
                                   (struct asking){ .probes = handler, .userdata = userdata }, ret);
}

static int on_trace(sd_bus_message *reply, void *userdata, sd_bus_error *unused) {
        const struct asking a = *(struct asking *)userdata;
        int settings = -EBADF, latencies = -EBADF, mine[2] = { -EBADF, -EBADF };
        const char *error;
        int r = reply_failed(reply, &error);

        if (r >= 0 && (r = sd_bus_message_read(reply, "hh", &settings, &latencies)) >= 0) {
                mine[0] = copy(settings);
                mine[1] = copy(latencies);
                r = MIN(mine[0], mine[1]);
        }
        if (r < 0) {
                mine[0] = close_fd(mine[0]);
                mine[1] = close_fd(mine[1]);
                error = error ?: strerror(-r);
        }
        a.trace(MIN(r, 0), error, mine[0], mine[1], a.userdata);
        return 0;
}

int observer_trace(struct observer *o, enum observe_trace k, observer_trace_handler handler, void *userdata,
                   sd_bus_slot **ret) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        int r = message(o, "Trace", &m);

        if (r < 0 || (r = sd_bus_message_append(m, "s", observe_trace_to_string(k))) < 0)
                return r;
        return ask_starter(o, m, on_trace, (struct asking){ .trace = handler, .userdata = userdata }, ret);
}

void observer_untrace(struct observer *o, enum observe_trace k) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;

        /* Where it cannot be said the lease ends it. */
        if (message(o, "Untrace", &m) >= 0 &&
            sd_bus_message_append(m, "s", observe_trace_to_string(k)) >= 0 &&
            sd_bus_message_set_expect_reply(m, false) >= 0)
                (void)sd_bus_send(o->bus, m, NULL);
}

/* ---- descriptors ---- */

static int on_fd(sd_bus_message *reply, void *userdata, sd_bus_error *unused) {
        const struct asking a = *(struct asking *)userdata;
        int fd, mine = -EBADF, flags;
        const char *error;
        int r = reply_failed(reply, &error);

        if (r >= 0 && (r = sd_bus_message_read(reply, "h", &fd)) >= 0)
                r = mine = copy(fd);
        if (r >= 0 && ((flags = fcntl(mine, F_GETFL)) < 0 || fcntl(mine, F_SETFL, flags | O_NONBLOCK) < 0))
                r = -errno;
        if (r < 0) {
                mine = close_fd(mine);
                error = error ?: strerror(-r);
        }
        a.fd(MIN(r, 0), error, mine, a.userdata);
        return 0;
}

static int ask_fd(struct observer *o, sd_bus_message *m, observer_fd_handler handler, void *userdata,
                  sd_bus_slot **ret) {
        return ask_starter(o, m, on_fd, (struct asking){ .fd = handler, .userdata = userdata }, ret);
}

int observer_open(struct observer *o, const char *unit, const char *file, observer_fd_handler handler,
                  void *userdata, sd_bus_destroy_t destroy, sd_bus_slot **ret) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        int r = message(o, "Open", &m);

        if (r < 0 || (r = sd_bus_message_append(m, "ss", unit, file)) < 0) {
                if (destroy)
                        destroy(userdata);
                return r;
        }
        return ask_starter(o, m, on_fd,
                           (struct asking){ .fd = handler, .userdata = userdata, .destroy = destroy }, ret);
}

int observer_capture(struct observer *o, const char *unit, const char *work, int signal,
                     observer_fd_handler handler, void *userdata, sd_bus_slot **ret) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        int r = message(o, "Capture", &m);

        return r < 0 || (r = sd_bus_message_append(m, "ssi", unit, work, signal)) < 0
                       ? r
                       : ask_fd(o, m, handler, userdata, ret);
}

int observer_usage(struct observer *o, const char *const *units, size_t n, observer_fd_handler handler,
                   void *userdata, sd_bus_slot **ret) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        int r = message(o, "Usage", &m);

        if (r < 0 || (r = sd_bus_message_open_container(m, 'a', "s")) < 0)
                return r;
        for (size_t i = 0; i < n && r >= 0; i++)
                r = sd_bus_message_append_basic(m, 's', units[i]);
        return r < 0 || (r = sd_bus_message_close_container(m)) < 0 ? r
                                                                    : ask_fd(o, m, handler, userdata, ret);
}

/* ---- others ---- */

static int on_signal(sd_bus_message *reply, void *userdata, sd_bus_error *unused) {
        const struct asking a = *(struct asking *)userdata;
        uint32_t told = 0, processes = 0;
        const char *error;
        int r = reply_failed(reply, &error);

        if (r >= 0)
                r = sd_bus_message_read(reply, "uu", &told, &processes);
        a.signal(MIN(r, 0), error ?: "", told, processes, a.userdata);
        return 0;
}

int observer_signal(struct observer *o, const char *unit, int signal, observer_signal_handler handler,
                    void *userdata, sd_bus_destroy_t destroy) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        int r = message(o, "Signal", &m);

        if (r < 0 || (r = sd_bus_message_append(m, "si", unit, signal)) < 0) {
                destroy(userdata);
                return r;
        }
        return ask_starter(o, m, on_signal,
                           (struct asking){ .signal = handler, .userdata = userdata, .destroy = destroy },
                           NULL);
}

void observer_widen(struct observer *o, int fd, uint32_t size) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;

        if (message(o, "Widen", &m) >= 0 && sd_bus_message_append(m, "hu", fd, size) >= 0 &&
            sd_bus_message_set_expect_reply(m, false) >= 0)
                (void)sd_bus_send(o->bus, m, NULL);
}
