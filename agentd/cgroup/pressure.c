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

static int watch(sd_event *event, struct watch *w) {
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

int pressure_new(sd_event *event, int dir, const struct pressure_options *options, pressure_handler handler,
                 void *userdata, struct pressure **ret) {
        const struct {
                const char *name;
                int flags;
                bool wanted;
                uint64_t usec;
        } files[_WATCHED_MAX] = {
                [WATCHED_MEMORY] = { "memory.pressure", O_RDWR, options->memory_usec > 0,
                                     options->memory_usec },
                [WATCHED_IO] = { "io.pressure", O_RDWR, options->io_usec > 0, options->io_usec },
                [WATCHED_EVENTS] = { "memory.events", O_RDONLY, true, 0 },
        };
        _cleanup_(pressure_free_p) struct pressure *p = calloc(1, sizeof(*p));
        int r, error = -ENOENT;
        bool any = false;

        if (!p)
                return -ENOMEM;
        p->handler = handler;
        p->userdata = userdata;
        for (size_t i = 0; i < _WATCHED_MAX; i++)
                p->watches[i] = (struct watch){ .pressure = p, .which = (enum watched)i, .fd = -EBADF };
        for (size_t i = 0; i < _WATCHED_MAX; i++) {
                struct watch *w = &p->watches[i];

                if (!files[i].wanted)
                        continue;
                w->fd = openat(dir, files[i].name, files[i].flags | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
                r = w->fd < 0 ? -errno : read_now(w, p->seen);
                if (r >= 0 && files[i].usec > 0)
                        r = set_trigger(w->fd, files[i].usec, options->window_usec);
                if (r >= 0)
                        r = watch(event, w);
                if (r == -ENOMEM)
                        return r;
                any = any || r >= 0;
                if (r < 0 && r != -ENOENT)
                        error = r;
        }
        if (!any)
                return error;
        *ret = TAKE_PTR(p);
        return 0;
}

void pressure_free(struct pressure *p) {
        if (!p)
                return;
        for (size_t i = 0; i < _WATCHED_MAX; i++) {
                sd_event_source_disable_unref(p->watches[i].source);
                (void)close_fd(p->watches[i].fd);
        }
        free(p);
}
