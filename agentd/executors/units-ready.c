/* SPDX-License-Identifier: Apache-2.0 */
/* Whether executors are ready: a port that is listened on, a file that they have written (READY=1 of
 * sd_notify is systemd's: Type=notify). What is asked for, and that it was found, are files of the private
 * directory, so a restart of agentd loses neither. Invariant: masterd is told once for each registration. */
#include <endian.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "agentd/executors/units-internal.h"
#include "lib/base/file.h"
#include "lib/base/format.h"
#include "lib/base/utf8.h"
#include "lib/unit/output.h"

#define LOOK_USEC (250 * USEC_PER_MSEC)
#define CHECK_FILE "ready"
#define FOUND_FILE "is-ready"
/* Times of files are those of the kernel's last tick. */
#define TICK_USEC (10 * USEC_PER_MSEC)

enum outcome {
        OUTCOME_WAITING,
        OUTCOME_READY,
        OUTCOME_LATE
};

struct ready_check {
        uint16_t port;
        char *path; /* or NULL: the port */
        uint64_t timeout_usec;
        enum outcome outcome;
        bool looking; /* the starter looks at the file */
};

void ready_check_free(struct ready_check *c) {
        if (!c)
                return;
        free(c->path);
        free(c);
}

/* ---- on disk ---- */

int ready_prepare(struct executor *e, const struct start_order *order, char **ret) {
        const struct start_extra *x = &order->extra;
        bool file = strcmp(x->ready, "file") == 0;
        struct ready_check *c;
        char *text;
        int r;

        *ret = NULL;
        if (!file && strcmp(x->ready, "tcp") != 0)
                return 0;
        if (file ? !x->ready_file : x->ready_port == 0 || x->ready_port > UINT16_MAX)
                return -EINVAL;
        ready_check_free(e->check);
        c = e->check = calloc(1, sizeof(*c));
        if (!c)
                return -ENOMEM;
        c->port = (uint16_t)x->ready_port;
        c->timeout_usec = x->ready_timeout_usec;
        if (file) {
                r = output_expand(x->ready_file, &e->id, e->units->options.node, e->directory, &c->path);
                if (r < 0)
                        return r;
        }
        if (asprintf(&text, "%llu %u %s", (unsigned long long)c->timeout_usec, c->port,
                     c->path ? c->path : "") < 0)
                return -ENOMEM;
        *ret = text;
        return 0;
}

int ready_recall(struct executor *e) {
        _cleanup_free_ char *text = NULL;
        unsigned long long timeout;
        struct ready_check *c;
        unsigned port;
        int n = 0, r = private_get(e->units->options.root, e->unit, CHECK_FILE, LINK_PATH_MAX + 64, &text);

        if (r == -ENOENT)
                return 0;
        if (r < 0)
                return r;
        if (sscanf(text, "%llu %u %n", &timeout, &port, &n) < 2 || n == 0 || port > UINT16_MAX)
                return -EUCLEAN;
        c = e->check = calloc(1, sizeof(*c));
        if (!c)
                return -ENOMEM;
        c->timeout_usec = timeout;
        c->port = (uint16_t)port;
        if (text[n] && !(c->path = strdup(text + n)))
                return -ENOMEM;
        if (private_has(e->units->options.root, e->unit, FOUND_FILE))
                c->outcome = OUTCOME_READY;
        ready_watch(e);
        return 0;
}

/* ---- telling ---- */

static void tell_ready(struct executor *e) {
        struct ready_check *c = e->check;
        char timeout[FORMAT_DURATION_MAX], why[LINK_TEXT_MAX];

        if (!e->units->ops.readiness || c->outcome == OUTCOME_WAITING)
                return;
        *why = 0;
        if (c->outcome == OUTCOME_LATE) {
                format_duration(c->timeout_usec, timeout, sizeof(timeout));
                if (c->path)
                        snprintf(why, sizeof(why),
                                 "not ready within %s: %.*s has not been written (ready: file)", timeout,
                                 utf8_fit(c->path, 600), c->path);
                else
                        snprintf(why, sizeof(why),
                                 "not ready within %s: nobody listens on port %u (ready: tcp)", timeout,
                                 c->port);
        }
        e->units->ops.readiness(&e->id, c->outcome == OUTCOME_READY, why, e->units->userdata);
}

static void conclude(struct executor *e, enum outcome outcome) {
        e->check->outcome = outcome;
        if (outcome == OUTCOME_READY)
                starter_tell(e->units->systemd, "Put", "ssay", e->unit, FOUND_FILE, 0);
        log_executor(e, LOG_INFO, outcome == OUTCOME_READY ? "%s is ready" : "%s is not ready in time",
                     e->unit);
        tell_ready(e);
}

void ready_tell_all(struct units *u) {
        struct executor *e, *next;

        HASH_ITER (hh, u->executors, e, next)
                if (e->check && e->state == EXECUTOR_RUNNING)
                        tell_ready(e);
}

/* ---- looking ---- */

/* The ports that somebody listens on, as a bit map. */
static int listening(const char *path, uint8_t map[static 8192]) {
        char line[512];
        FILE *f = fopen(path, "re");

        if (!f)
                return -errno;
        while (fgets(line, sizeof(line), f)) {
                unsigned port, state;
                /* "  0: 00000000:1F90 00000000:0000 0A ..."; state 0A is LISTEN. */
                if (sscanf(line, " %*u: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x", &port, &state) == 2 &&
                    state == 0x0A && port <= UINT16_MAX)
                        map[port / 8] |= (uint8_t)(1u << port % 8);
        }
        (void)fclose(f);
        return 0;
}

/* The starter looks, in a process that may hang in it: the file is where its user likes. */
struct look {
        struct units *units;
        char unit[UNIT_NAME_MAX];
        sd_bus_slot *question;
        sd_event_source *answer;
        int fd;
        struct look *next, *prev;
};

static void look_free(struct look *l) {
        DL_DELETE(l->units->looks, l);
        sd_bus_slot_unref(l->question);
        sd_event_source_disable_unref(l->answer);
        (void)close_fd(l->fd);
        free(l);
}

void ready_looks_free(struct units *u) {
        while (u->looks)
                look_free(u->looks);
}

static int on_written(sd_event_source *s, int fd, uint32_t events, void *userdata) {
        struct look *l = userdata;
        struct executor *e = executor_find_unit(l->units, l->unit);
        uint64_t changed = 0;
        bool found = read(fd, &changed, sizeof(changed)) == (ssize_t)sizeof(changed);

        if (e && e->check) {
                e->check->looking = false;
                if (found && usec_add(le64toh(changed), TICK_USEC) >= e->started_real &&
                    e->check->outcome == OUTCOME_WAITING && e->state == EXECUTOR_RUNNING)
                        conclude(e, OUTCOME_READY);
        }
        look_free(l);
        return 0;
}

static int on_looking(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        struct look *l = userdata;
        struct executor *e = executor_find_unit(l->units, l->unit);
        int fd;

        l->question = sd_bus_slot_unref(l->question);
        if (!sd_bus_message_is_method_error(reply, NULL) && sd_bus_message_read(reply, "h", &fd) > 0 &&
            (l->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3)) >= 0 &&
            sd_event_add_io(l->units->event, &l->answer, l->fd, EPOLLIN, on_written, l) >= 0)
                return 0;
        if (e && e->check)
                e->check->looking = false; /* and it is asked again */
        look_free(l);
        return 0;
}

static void look_at_file(struct executor *e) {
        struct look *l;

        if (e->check->looking)
                return;
        l = calloc(1, sizeof(*l));
        if (!l)
                return;
        *l = (struct look){ .units = e->units, .fd = -EBADF };
        strcpy(l->unit, e->unit);
        DL_APPEND(e->units->looks, l);
        if (systemd_ask_written(e->units->systemd, e->unit, &l->question, on_looking, l) < 0)
                look_free(l);
        else
                e->check->looking = true;
}

static int on_look(sd_event_source *s, uint64_t usec, void *userdata) {
        struct units *u = userdata;
        struct executor *e, *next;
        uint8_t map[8192] = {};
        bool mapped = false, waiting = false;

        HASH_ITER (hh, u->executors, e, next) {
                struct ready_check *c = e->check;
                if (!c || c->outcome != OUTCOME_WAITING || e->state != EXECUTOR_RUNNING)
                        continue;
                if (c->path)
                        look_at_file(e);
                else {
                        if (!mapped) {
                                (void)listening("/proc/net/tcp", map);
                                (void)listening("/proc/net/tcp6", map);
                                mapped = true;
                        }
                        if (map[c->port / 8] & (1u << c->port % 8))
                                conclude(e, OUTCOME_READY);
                }
                if (c->outcome == OUTCOME_WAITING && c->timeout_usec > 0 &&
                    usec_sub(now_real(), e->started_real) >= c->timeout_usec)
                        conclude(e, OUTCOME_LATE);
                waiting = waiting || c->outcome == OUTCOME_WAITING;
        }
        if (!waiting)
                return sd_event_source_set_enabled(s, SD_EVENT_OFF);
        (void)sd_event_source_set_time_relative(s, LOOK_USEC);
        return sd_event_source_set_enabled(s, SD_EVENT_ONESHOT);
}

void ready_watch(struct executor *e) {
        struct units *u = e->units;

        if (!e->check)
                return;
        if (e->check->outcome != OUTCOME_WAITING) {
                tell_ready(e);
                return;
        }
        if (!u->look &&
            sd_event_add_time_relative(u->event, &u->look, CLOCK_BOOTTIME, 0, 0, on_look, u) < 0) {
                log_oom();
                return;
        }
        (void)sd_event_source_set_time(u->look, 0);
        (void)sd_event_source_set_enabled(u->look, SD_EVENT_ONESHOT);
}
