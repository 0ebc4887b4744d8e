/* SPDX-License-Identifier: Apache-2.0 */
/* Events of lack. Invariant: a file whose control group is gone is let go of at its first event, so that it
 * cannot keep the loop busy. */
#include "agentd/cgroup/pressure.h"

#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>

#include "agentd/cgroup/files.h"
#include "lib/base/clock.h"

#define TEXT_MAX 1024u
#define WINDOW_MIN_USEC (500 * USEC_PER_MSEC)
#define WINDOW_MAX_USEC (10 * USEC_PER_SEC)
/* Without CAP_SYS_RESOURCE the kernel looks only this often. */
#define UNPRIVILEGED_USEC (2 * USEC_PER_SEC)
/* Who runs into a limit does so thousands of times a second. */
#define RATE_USEC USEC_PER_SEC
#define RATE_EVENTS 2u

enum watched {
        WATCHED_MEMORY,
        WATCHED_IO,
        WATCHED_EVENTS,
        _WATCHED_MAX
};

struct watch {
        struct pressure *pressure;
        enum watched which;
        int fd;
        sd_event_source *source;
};

struct pressure {
        sd_event *event;
        struct pressure_options options;
        struct watch watches[_WATCHED_MAX];
        uint64_t seen[_PRESSURE_KIND_MAX]; /* as the file said it last */
        pressure_handler handler;
        void *userdata;
};

const char *pressure_kind_to_string(enum pressure_kind k) {
        static const char *const names[_PRESSURE_KIND_MAX] = {
                [PRESSURE_MEMORY] = "memory",
                [PRESSURE_IO] = "io",
                [PRESSURE_MEMORY_HIGH] = "memory-high",
                [PRESSURE_MEMORY_MAX] = "memory-max",
                [PRESSURE_OOM] = "oom",
        };

        return k < _PRESSURE_KIND_MAX ? names[k] : NULL;
}

bool pressure_options_valid(const struct pressure_options *o) {
        return o->window_usec >= WINDOW_MIN_USEC && o->window_usec <= WINDOW_MAX_USEC &&
               o->memory_usec <= o->window_usec && o->io_usec <= o->window_usec;
}

/* < 0: the control group is gone. */
static int read_now(const struct watch *w, uint64_t now[static _PRESSURE_KIND_MAX]) {
        char text[TEXT_MAX];
        ssize_t n = pread(w->fd, text, sizeof(text) - 1, 0);
        const struct cgroup_key events[] = {
                { "high", &now[PRESSURE_MEMORY_HIGH] },
                { "max", &now[PRESSURE_MEMORY_MAX] },
                { "oom_kill", &now[PRESSURE_OOM] },
                { NULL, NULL },
        };

        if (n < 0)
                return -errno;
        text[n] = 0;
        if (w->which == WATCHED_EVENTS)
                cgroup_parse_keys(text, events);
        else
                cgroup_parse_pressure(text, NULL,
                                      &now[w->which == WATCHED_IO ? PRESSURE_IO : PRESSURE_MEMORY]);
        return 0;
}

static int on_event(sd_event_source *s, int fd, uint32_t revents, void *userdata) {
        struct watch *w = userdata;
        struct pressure *p = w->pressure;
        uint64_t now[_PRESSURE_KIND_MAX];
        bool psi = w->which != WATCHED_EVENTS;

        memcpy(now, p->seen, sizeof(now));
        /* memory.events always says that there is an error, a trigger only when it is over. */
        if (read_now(w, now) < 0 || (psi && (revents & EPOLLERR)))
                return sd_event_source_set_enabled(s, SD_EVENT_OFF);
        for (enum pressure_kind k = 0; k < _PRESSURE_KIND_MAX; k++) {
                uint64_t before = p->seen[k];

                p->seen[k] = now[k];
                if (now[k] > before)
                        p->handler(k, now[k] - before, p->userdata);
        }
        return 0;
}

static int watch_pressure(sd_event *event, struct watch *w) {
        int r = sd_event_add_io(event, &w->source, w->fd, EPOLLPRI, on_event, w);

        if (r < 0 || (r = sd_event_source_set_ratelimit(w->source, RATE_USEC, RATE_EVENTS)) < 0)
                return r;
        return 0;
}

static int write_trigger(int fd, uint64_t usec, uint64_t window) {
        char text[64];
        int n = snprintf(text, sizeof(text), "full %llu %llu", (unsigned long long)usec,
                         (unsigned long long)window);

        return write(fd, text, (size_t)n + 1) < 0 ? -errno : 0; /* the kernel wants the end, too */
}

static int set_trigger(int fd, uint64_t usec, uint64_t window) {
        uint64_t whole = (window + UNPRIVILEGED_USEC - 1) / UNPRIVILEGED_USEC * UNPRIVILEGED_USEC;
        int r = write_trigger(fd, usec, window);

        /* The same share of a longer window, for who has no CAP_SYS_RESOURCE. */
        return r == -EINVAL && whole != window ? write_trigger(fd, usec * whole / window, whole) : r;
}

int pressure_new(sd_event *event, const struct pressure_options *options, pressure_handler handler,
                 void *userdata, struct pressure **ret) {
        struct pressure *p = calloc(1, sizeof(*p));

        if (!p)
                return -ENOMEM;
        p->event = sd_event_ref(event);
        p->options = *options;
        p->handler = handler;
        p->userdata = userdata;
        for (size_t i = 0; i < _WATCHED_MAX; i++)
                p->watches[i] = (struct watch){ .pressure = p, .which = (enum watched)i, .fd = -EBADF };
        *ret = p;
        return 0;
}

/* fd is w's. */
static int start_watch(struct watch *w, int fd, uint64_t usec) {
        struct pressure *p = w->pressure;
        int r;

        if (fd < 0)
                return -errno;
        w->fd = fd;
        if ((r = read_now(w, p->seen)) >= 0 && usec > 0)
                r = set_trigger(w->fd, usec, p->options.window_usec);
        if (r >= 0)
                r = watch_pressure(p->event, w);
        if (r < 0)
                w->fd = close_fd(w->fd);
        return r;
}

int pressure_watch_events(struct pressure *p, int dir) {
        return start_watch(&p->watches[WATCHED_EVENTS],
                           openat(dir, "memory.events", O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC), 0);
}

bool pressure_wanted(const struct pressure_options *o, enum pressure_kind kind) {
        return kind == PRESSURE_MEMORY ? o->memory_usec > 0 : kind == PRESSURE_IO && o->io_usec > 0;
}

int pressure_watch(struct pressure *p, enum pressure_kind kind, int fd) {
        struct watch *w = &p->watches[kind == PRESSURE_IO ? WATCHED_IO : WATCHED_MEMORY];

        if (!pressure_wanted(&p->options, kind) || w->fd >= 0) {
                close_fd(fd);
                return -EINVAL;
        }
        return start_watch(w, fd, kind == PRESSURE_IO ? p->options.io_usec : p->options.memory_usec);
}

void pressure_free(struct pressure *p) {
        if (!p)
                return;
        for (size_t i = 0; i < _WATCHED_MAX; i++) {
                sd_event_source_disable_unref(p->watches[i].source);
                (void)close_fd(p->watches[i].fd);
        }
        sd_event_unref(p->event);
        free(p);
}
