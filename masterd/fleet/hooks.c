/* SPDX-License-Identifier: Apache-2.0 */
/* fence and notify. Invariants: at most RUNNING_MAX of each kind run at a time and at most WAITING_MAX wait,
 * the rest is dropped and counted; what is told is on disk. A restart of masterd forgets what waits; hosts
 * that are still LOST are fenced again. */
#include "masterd/fleet/hooks.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <utlist.h>

#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/base/worker.h"
#include "masterd/core/manager.h"
#include "masterd/fleet/fleet-parts.h"
#include "masterd/fleet/liveness.h"
#include "masterd/fleet/unit-run.h"

#define HOOKS_DIR PRIMUS_SYSCONFDIR "/hooks"
#define RUNNING_MAX 4u
#define WAITING_MAX 1000u
/* systemd ends the hook itself (TimeoutStartSec= of its unit); this is for a word that was lost. */
#define GIVE_UP_USEC (900 * USEC_PER_SEC)
/* A fence that could not vouch is asked again while the host is LOST. */
#define AGAIN_USEC (60 * USEC_PER_SEC)

enum kind {
        FENCE,
        NOTIFY,
        _KIND_MAX
};
static const char *const names[_KIND_MAX] = { "fence", "notify" };

/* In one piece, so that whoever drops it needs free() alone while it is in no list. */
struct request {
        struct manager *manager;
        enum kind kind;
        enum {
                WAITING,
                RUNNING,
                LATER
        } state;
        char id[48], unit[96];
        char node[65];  /* of a fence */
        uint64_t epoch; /* of that node, then */
        int written;    /* how writing it down went */
        struct unit_run *run;
        sd_event_source *timer;
        struct request *next, *prev;
        size_t size;
        char text[]; /* NAME=VALUE, each ended by NUL */
};

struct hooks {
        struct manager *manager;
        struct worker *worker;
        char *directory;
        struct request *requests;
        unsigned running[_KIND_MAX], waiting[_KIND_MAX];
        uint64_t count, dropped;
};

static bool present(enum kind kind) {
        char path[sizeof(HOOKS_DIR) + 16];
        struct stat st;

        snprintf(path, sizeof(path), HOOKS_DIR "/%s", names[kind]);
        if (lstat(path, &st) >= 0)
                return true;
        snprintf(path, sizeof(path), HOOKS_DIR "/%s.d", names[kind]);
        return lstat(path, &st) >= 0;
}

static char *path_of(const struct request *r) {
        char *path;

        return asprintf(&path, "%s/%s", r->manager->fleet->hooks->directory, r->id) < 0 ? NULL : path;
}

/* ---- the life of a request ---- */

static void set_state(struct request *r, int state) {
        struct hooks *h = r->manager->fleet->hooks;

        h->waiting[r->kind] -= r->state == WAITING;
        h->running[r->kind] -= r->state == RUNNING;
        r->state = state;
        h->waiting[r->kind] += r->state == WAITING;
        h->running[r->kind] += r->state == RUNNING;
}

static void request_free(struct request *r) {
        set_state(r, LATER);
        DL_DELETE(r->manager->fleet->hooks->requests, r);
        unit_run_free(r->run);
        sd_event_source_disable_unref(r->timer);
        free(r);
}

static void start_next(struct hooks *h, enum kind kind);

static int on_again(sd_event_source *s, uint64_t usec, void *userdata) {
        struct request *r = userdata;

        set_state(r, WAITING);
        start_next(r->manager->fleet->hooks, r->kind);
        return 0;
}

/* The host that it was asked about, while it is LOST since then. */
static struct node *fenced_node(const struct request *r) {
        struct node *node = r->kind == FENCE ? nodes_get(&r->manager->nodes, r->node) : NULL;

        return node && node->state == NODE_LOST && node->epoch == r->epoch ? node : NULL;
}

/* why NULL: it ended well. */
static void finish(struct request *r, const char *why) {
        struct hooks *h = r->manager->fleet->hooks;
        struct node *node = fenced_node(r);
        _cleanup_free_ char *path = path_of(r);
        enum kind kind = r->kind;

        if (path)
                (void)unlink(path);
        r->run = unit_run_free(r->run);
        if (why)
                log_full(LOG_WARNING, 0, &(struct log_fields){ .unit = r->unit },
                         "The %s hook failed (%s): %s", names[kind], r->unit, why);
        if (node && !why) {
                log_full(LOG_NOTICE, 0, &(struct log_fields){ .node = node->name },
                         "The fence hook vouches that node %s is dead", node->name);
                request_free(r);
                liveness_lost(h->manager, node, true);
        } else if (!node || sd_event_add_time_relative(h->manager->event, &r->timer, CLOCK_BOOTTIME,
                                                       AGAIN_USEC, USEC_PER_SEC, on_again, r) < 0)
                request_free(r);
        else
                set_state(r, LATER);
        start_next(h, kind);
}

static void on_ended(void *userdata, const char *why) {
        finish(userdata, why);
}

static void run_write(void *data) {
        struct request *r = data;
        _cleanup_free_ char *path = path_of(r);

        r->written = path ? write_file_atomic(path, r->text, r->size, 0600, false) : -ENOMEM;
}

static void on_written(void *data) {
        struct request *r = data;
        int k = r->written;

        if (k >= 0)
                k = unit_run_start(r->manager, r->unit, GIVE_UP_USEC, on_ended, r, &r->run);
        if (k < 0)
                finish(r, strerror(-k));
}

static void start(struct request *r) {
        struct hooks *h = r->manager->fleet->hooks;
        int k;

        r->timer = sd_event_source_disable_unref(r->timer);
        set_state(r, RUNNING);
        snprintf(r->id, sizeof(r->id), "%llx-%llu", (unsigned long long)r->manager->term,
                 (unsigned long long)++h->count);
        snprintf(r->unit, sizeof(r->unit), "primus-hook-%s@%s.service", names[r->kind], r->id);
        k = worker_submit(h->worker, run_write, on_written, r);
        if (k < 0)
                finish(r, strerror(-k));
}

static void start_next(struct hooks *h, enum kind kind) {
        struct request *r, *next;

        DL_FOREACH_SAFE (h->requests, r, next) {
                if (h->running[kind] >= RUNNING_MAX)
                        return;
                if (r->kind != kind || r->state != WAITING)
                        continue;
                if (kind == FENCE && !fenced_node(r)) {
                        request_free(r); /* it is back */
                        continue;
                }
                start(r);
        }
}

static void run_queue(struct manager *m, void *data) {
        struct request *r = data;
        struct hooks *h = m->fleet->hooks;

        if (h->waiting[r->kind] >= WAITING_MAX) {
                if (h->dropped++ % 1000 == 0)
                        log_warning("Too many %s hooks wait; %llu were left out", names[r->kind],
                                    (unsigned long long)h->dropped);
                free(r);
                return;
        }
        DL_APPEND(h->requests, r);
        h->waiting[r->kind]++;
        start_next(h, r->kind);
}

/* ---- what is told ---- */

static void put(FILE *f, const char *name, const char *format, ...) _printf_(3, 4);
static void put(FILE *f, const char *name, const char *format, ...) {
        va_list ap;

        fprintf(f, "%s=", name);
        va_start(ap, format);
        vfprintf(f, format, ap);
        va_end(ap);
        fputc(0, f);
}

static void put_node(FILE *f, const struct node *node) {
        char address[ADDR_TEXT_MAX];

        put(f, "PRIMUS_NODE", "%s", node->name);
        put(f, "PRIMUS_NODE_STATE", "%s", node_shown_state(node));
        put(f, "PRIMUS_NODE_ADDRESS", "%s", node->address.family ? addr_format(&node->address, address) : "");
        put(f, "PRIMUS_EXECUTORS", "%u", node->n_executors);
}

static void put_job(FILE *f, const struct job *j) {
        put(f, "PRIMUS_JOB", "%u", j->number);
        put(f, "PRIMUS_JOB_NAME", "%s", j->name);
        put(f, "PRIMUS_JOB_STATE", "%s", job_state_to_string(j->state));
        put(f, "PRIMUS_UID", "%u", j->owner);
}

static void queue(struct manager *m, enum kind kind, const char *event, const struct node *node,
                  const struct job *job, const char *text) {
        _cleanup_free_ char *environment = NULL;
        struct request *r;
        size_t size = 0;
        FILE *f;

        if (!m->fleet->hooks || !m->bus || !present(kind))
                return;
        f = open_memstream(&environment, &size);
        if (!f)
                return;
        put(f, "PRIMUS_EVENT", "%s", event);
        put(f, "PRIMUS_TEXT", "%s", text);
        put(f, "PRIMUS_CLUSTER", SD_ID128_FORMAT_STR, SD_ID128_FORMAT_VAL(m->cluster));
        if (node)
                put_node(f, node);
        if (job)
                put_job(f, job);
        if (fclose(f) != 0 || !(r = calloc(1, sizeof(*r) + size))) {
                log_oom();
                return;
        }
        r->manager = m;
        r->kind = kind;
        r->size = size;
        memcpy(r->text, environment, size);
        if (kind == FENCE) {
                snprintf(r->node, sizeof(r->node), "%s", node->name);
                r->epoch = node->epoch;
        }
        (void)manager_effect(m, run_queue, r);
}

void hooks_fence(struct manager *m, const struct node *node) {
        queue(m, FENCE, "host-lost", node, NULL, "nothing was heard of it for LostSec");
}

void hooks_notify(struct manager *m, const char *event, const struct node *node, const struct job *job,
                  const char *text) {
        queue(m, NOTIFY, event, node, job, text);
}

/* ---- start and end ---- */

static void hooks_free(struct hooks *h) {
        if (!h)
                return;
        worker_free(h->worker);
        while (h->requests)
                request_free(h->requests);
        free(h->directory);
        free(h);
}

int hooks_start(struct manager *m) {
        struct hooks *h = calloc(1, sizeof(*h));
        int r;

        if (!h)
                return -ENOMEM;
        h->manager = m;
        r = asprintf(&h->directory, "%s/hooks", m->conf.state_directory) < 0 ? -ENOMEM : 0;
        if (r >= 0) {
                (void)remove_tree(h->directory); /* what an earlier master wrote down */
                r = make_directories(h->directory, 0700);
        }
        if (r >= 0)
                r = worker_new(m->event, &h->worker);
        if (r < 0) {
                hooks_free(h);
                return r;
        }
        m->fleet->hooks = h;
        return 0;
}

void hooks_stop(struct manager *m) {
        hooks_free(m->fleet->hooks);
        m->fleet->hooks = NULL;
}
