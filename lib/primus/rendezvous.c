/* SPDX-License-Identifier: Apache-2.0 */
/* Who the peers of this trainer are: the file that primus-agentd replaces whenever that changes. Invariant:
 * what one struct primus_rendezvous says is of one epoch. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/primus/primus.h"

#define BYTES_MAX (4u << 20)

struct primus_rendezvous {
        uint64_t epoch;
        char *text; /* lines, each ended by NUL instead of its line break */
        size_t size;
};

static int read_all(int fd, char **ret, size_t *ret_size) {
        char *text = NULL, *bigger;
        size_t size = 0, space = 0;
        ssize_t n;

        for (;;) {
                if (size + 1 >= space) {
                        space = space ? 2 * space : 16384;
                        bigger = space > 2 * BYTES_MAX ? NULL : realloc(text, space);
                        if (!bigger) {
                                free(text);
                                return -ENOMEM;
                        }
                        text = bigger;
                }
                n = read(fd, text + size, space - size - 1);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0) {
                        int r = -errno;
                        free(text);
                        return r;
                }
                if (n == 0)
                        break;
                size += (size_t)n;
        }
        text[size] = 0;
        *ret = text;
        *ret_size = size;
        return 0;
}

void primus_rendezvous_free(struct primus_rendezvous *r) {
        if (!r)
                return;
        free(r->text);
        free(r);
}

int primus_rendezvous_read(struct primus_rendezvous **ret) {
        const char *path = getenv("PRIMUS_RENDEZVOUS_FILE"), *epoch;
        struct primus_rendezvous *x;
        char *end;
        int fd, r;

        if (!path || !*path)
                return -ENOENT;
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        x = calloc(1, sizeof(*x));
        r = x ? read_all(fd, &x->text, &x->size) : -ENOMEM;
        (void)close(fd);
        if (r < 0) {
                primus_rendezvous_free(x);
                return r;
        }
        for (char *p = x->text; (p = strchr(p, '\n')); p++)
                *p = 0;
        epoch = primus_rendezvous_get(x, "PRIMUS_EPOCH");
        errno = 0;
        x->epoch = epoch ? strtoull(epoch, &end, 10) : 0;
        if (!epoch || errno != 0 || end == epoch || *end || x->epoch == 0) {
                primus_rendezvous_free(x);
                return -EBADMSG;
        }
        *ret = x;
        return 0;
}

uint64_t primus_rendezvous_epoch(const struct primus_rendezvous *r) {
        return r->epoch;
}

const char *primus_rendezvous_get(const struct primus_rendezvous *r, const char *name) {
        size_t n = strlen(name);

        for (size_t i = 0; i < r->size; i += strlen(r->text + i) + 1)
                if (strncmp(r->text + i, name, n) == 0 && r->text[i + n] == '=')
                        return r->text + i + n + 1;
        return NULL;
}

const char *primus_rendezvous_next(const struct primus_rendezvous *r, const char *line) {
        size_t i = line ? (size_t)(line - r->text) + strlen(line) + 1 : 0;

        return i < r->size && r->text[i] ? r->text + i : NULL;
}

static uint64_t now_usec(void) {
        struct timespec ts;

        clock_gettime(CLOCK_MONOTONIC, &ts);
        return (uint64_t)ts.tv_sec * USEC_PER_SEC + (uint64_t)ts.tv_nsec / 1000;
}

/* Waits for the file that is there now to be replaced. 0: look again, or the time is over; or an error. */
static int wait_replaced(int fd, uint64_t until) {
        char events[4096];
        uint64_t now = now_usec();
        int timeout = -1, n;

        if (until != UINT64_MAX) {
                uint64_t left = until > now ? (until - now + USEC_PER_MSEC - 1) / USEC_PER_MSEC : 0;
                timeout = left > INT32_MAX ? INT32_MAX : (int)left;
        }
        n = poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, timeout);
        if (n < 0)
                return -errno;
        while (read(fd, events, sizeof(events)) > 0)
                ;
        return 0;
}

int primus_rendezvous_wait(uint64_t after, uint64_t timeout_usec, struct primus_rendezvous **ret) {
        const char *path = getenv("PRIMUS_RENDEZVOUS_FILE");
        uint64_t now = now_usec(), until = timeout_usec > UINT64_MAX - now ? UINT64_MAX : now + timeout_usec;
        struct primus_rendezvous *x;
        int fd, watch, r;

        if (!path || !*path)
                return -ENOENT;
        fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
        if (fd < 0)
                return -errno;
        for (;;) {
                /* The one that is watched may be replaced before it is read: then what is read is newer. */
                watch = inotify_add_watch(fd, path, IN_ATTRIB | IN_DELETE_SELF | IN_MODIFY);
                r = watch < 0 ? -errno : primus_rendezvous_read(&x);
                if (r < 0)
                        break;
                if (x->epoch > after) {
                        *ret = x;
                        r = 1;
                        break;
                }
                primus_rendezvous_free(x);
                if (now_usec() >= until)
                        break;
                r = wait_replaced(fd, until);
                if (r < 0)
                        break;
                (void)inotify_rm_watch(fd, watch);
        }
        (void)close(fd);
        return r;
}
