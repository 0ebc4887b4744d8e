/* SPDX-License-Identifier: Apache-2.0 */
/* Whether executors are ready: a port that is listened on, a file that they have written (READY=1 of
 * sd_notify is systemd's: Type=notify). What is asked for, and that it was found, are files of the private
 * directory, so a restart of agentd loses neither. Invariant: masterd is told once for each registration. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "agentd/unit/units-internal.h"
#include "lib/base/file.h"
#include "lib/base/parse.h"
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
        bool looking; /* the thread looks at the file */
};

void ready_check_free(struct ready_check *c) {
        if (!c)
                return;
        free(c->path);
        free(c);
}

/* ---- on disk
 * ----------------------------------------------------------------------------------------------------- */

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

/* ---- telling
 * ------------------------------------------------------------------------------------------------------ */

static void tell(struct executor *e) {
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
        tell(e);
}

void ready_tell_all(struct units *u) {
        struct executor *e, *next;

        HASH_ITER (hh, u->executors, e, next)
                if (e->check && e->state == EXECUTOR_RUNNING)
                        tell(e);
}

/* ---- looking
 * ------------------------------------------------------------------------------------------------------- */

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

struct look {
        struct units *units;
        char unit[UNIT_NAME_MAX];
        char *path;
        uint32_t uid;
        uint64_t since_real;
        bool found;
};

/* Only the user's own file counts: agentd sees what he may not. */
static void run_look(void *data) {
        struct look *l = data;
        struct stat st;
        uint64_t changed;

        if (lstat(l->path, &st) < 0 || st.st_uid != l->uid)
                return;
        changed = (uint64_t)st.st_mtim.tv_sec * USEC_PER_SEC + (uint64_t)st.st_mtim.tv_nsec / 1000;
        l->found = usec_add(changed, TICK_USEC) >= l->since_real;
}

static void on_looked(void *data) {
        struct look *l = data;
        struct executor *e = executor_find_unit(l->units, l->unit);

        if (e && e->check) {
                e->check->looking = false;
                if (l->found && e->check->outcome == OUTCOME_WAITING && e->state == EXECUTOR_RUNNING)
                        conclude(e, OUTCOME_READY);
        }
        free(l->path);
        free(l);
}

/* A thread of its own: a path of a user's may lead to a file system that does not answer, and the other has
 * the host's own work to do. */
static struct worker *looker(struct units *u) {
        if (!u->looker && worker_new(u->event, &u->looker) < 0)
                log_oom();
        return u->looker;
}

static void release(void *data) {
}

void looker_free(struct units *u) {
        if (*u->options.root) /* in tests, where all answers */
                worker_free(u->looker);
        else
                worker_abandon(u->looker, release, NULL);
        u->looker = NULL;
}

static void look_at_file(struct executor *e) {
        struct look *l;

        if (e->check->looking)
                return;
        l = calloc(1, sizeof(*l));
        if (!l)
                return;
        *l = (struct look){ .units = e->units, .uid = e->uid, .since_real = e->started_real };
        strcpy(l->unit, e->unit);
        l->path = strdup(e->check->path);
        if (!l->path || !looker(e->units) || worker_submit(e->units->looker, run_look, on_looked, l) < 0) {
                free(l->path);
                free(l);
                return;
        }
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
                tell(e);
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
