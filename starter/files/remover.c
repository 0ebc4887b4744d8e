/* SPDX-License-Identifier: Apache-2.0 */
/* Invariant: while something waits, CHILDREN_MAX are at work; and WAITING_MAX wait at most. */
#include "starter/files/remover.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utlist.h>

#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/base/strv.h"
#include "starter/files/artifacts.h"

#define CHILDREN_MAX 4u
/* More than there are executors on any host. */
#define WAITING_MAX 65536u

struct removal {
        struct remover *remover;
        char *path;
        char **keep; /* not NULL: path is the root, and artifacts are trimmed */
        uint64_t max;
        struct timespec since;  /* when keep was true */
        sd_event_source *child; /* while it is at work */
        struct removal *next, *prev;
};

struct remover {
        sd_event *event;
        struct removal *waiting, *working;
        unsigned n_waiting, n_working;
};

static void removal_free(struct removal *x) {
        sd_event_source_disable_unref(x->child);
        free(x->path);
        strings_free(x->keep);
        free(x);
}

static void go_on(struct remover *r);

static int on_child(sd_event_source *s, const siginfo_t *si, void *userdata) {
        struct removal *x = userdata;
        struct remover *r = x->remover;

        if (si->si_code != CLD_EXITED || si->si_status != 0)
                log_warning("Cannot remove %s as a whole", x->keep ? "artifacts" : x->path);
        DL_DELETE(r->working, x);
        r->n_working--;
        removal_free(x);
        go_on(r);
        return 0;
}

/* This process has one thread, so the child may do what it likes. */
static int begin_removal(struct removal *x) {
        pid_t pid = fork();

        if (pid < 0)
                return -errno;
        if (pid == 0) {
                log_open_child();
                _exit((x->keep ? artifacts_trim(x->path, x->max, x->keep, &x->since) : remove_tree(x->path)) <
                                      0
                              ? EXIT_FAILURE
                              : EXIT_SUCCESS);
        }
        return sd_event_add_child(x->remover->event, &x->child, pid, WEXITED, on_child, x);
}

static void go_on(struct remover *r) {
        while (r->waiting && r->n_working < CHILDREN_MAX) {
                struct removal *x = r->waiting;
                int k;

                DL_DELETE(r->waiting, x);
                r->n_waiting--;
                k = begin_removal(x);
                if (k < 0) {
                        log_warning_errno(k, "Cannot remove %s", x->path);
                        removal_free(x);
                        continue;
                }
                DL_APPEND(r->working, x);
                r->n_working++;
        }
}

int remover_new(sd_event *event, struct remover **ret) {
        struct remover *r = calloc(1, sizeof(*r));

        if (!r)
                return -ENOMEM;
        r->event = sd_event_ref(event);
        *ret = r;
        return 0;
}

void remover_free(struct remover *r) {
        struct removal *x, *next;

        if (!r)
                return;
        DL_FOREACH_SAFE (r->waiting, x, next)
                removal_free(x);
        DL_FOREACH_SAFE (r->working, x, next)
                removal_free(x);
        sd_event_unref(r->event);
        free(r);
}

static int take_removal(struct remover *r, struct removal *x) {
        if (r->n_waiting == WAITING_MAX)
                return -EBUSY;
        x->remover = r;
        DL_APPEND(r->waiting, x);
        r->n_waiting++;
        go_on(r);
        return 0;
}

static bool trims(const struct removal *list) {
        const struct removal *x;

        DL_FOREACH (list, x)
                if (x->keep)
                        return true;
        return false;
}

int remover_trim(struct remover *r, const char *root, uint64_t max, char **keep) {
        struct removal *x = calloc(1, sizeof(*x));
        int k = x && (x->path = strdup(root)) ? 0 : -ENOMEM;

        if (x) {
                x->keep = keep;
                x->max = max;
                (void)clock_gettime(CLOCK_REALTIME_COARSE, &x->since);
        } else
                strings_free(keep);
        if (k >= 0)
                k = trims(r->waiting) || trims(r->working) ? -EBUSY : take_removal(r, x);
        if (k < 0 && x)
                removal_free(x);
        return k;
}

int remover_take(struct remover *r, char *path) {
        struct removal *x = path ? calloc(1, sizeof(*x)) : NULL;

        if (!x || r->n_waiting == WAITING_MAX) {
                int k = x ? -EBUSY : -ENOMEM;

                free(x);
                free(path);
                return k;
        }
        *x = (struct removal){ .remover = r, .path = path };
        DL_APPEND(r->waiting, x);
        r->n_waiting++;
        go_on(r);
        return 0;
}
