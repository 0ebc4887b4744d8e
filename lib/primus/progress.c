/* SPDX-License-Identifier: Apache-2.0 */
/* How far the trainer is: two numbers in a page that primus-agentd reads, and with a watchdog a datagram to
 * systemd twice in its interval. Invariant: a call that has no datagram to send makes no system call. */
#include "lib/primus/progress.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/primus/primus.h"

struct page {
        _Atomic uint64_t step, usec; /* little-endian; CLOCK_BOOTTIME, 0: nothing was said yet */
};

enum {
        STATE_NEW,
        STATE_SETTING_UP,
        STATE_NOTHING, /* not in an executor */
        STATE_MAPPED,
};

/* Of the process, and of those it forks: the page is shared, and whoever calls feeds. */
static _Atomic int state;
static struct page *page;
static uint64_t interval;        /* of the watchdog; 0: there is none */
static _Atomic uint64_t feed_at; /* when it is to be fed next */
static struct sockaddr_un notify;
static socklen_t notify_size;

static struct page *map_page(void) {
        const char *path = getenv("PRIMUS_PROGRESS");
        struct page *p = NULL;
        struct stat st;
        void *m;
        int fd;

        if (!path || !*path)
                return NULL;
        fd = open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        if (fd < 0)
                return NULL;
        /* A page behind the end of its file would be a SIGBUS. */
        if (fstat(fd, &st) >= 0 && S_ISREG(st.st_mode) && st.st_size >= (off_t)sizeof(*p)) {
                m = mmap(NULL, sizeof(*p), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
                p = m == MAP_FAILED ? NULL : m;
        }
        (void)close(fd);
        return p;
}

/* The unit accepts it from all its processes (NotifyAccess=all), so WATCHDOG_PID, systemd's guess of who
 * will, does not matter. */
static void find_watchdog(void) {
        const char *path = getenv("NOTIFY_SOCKET"), *usec = getenv("WATCHDOG_USEC");
        unsigned long long value;
        char *end;

        if (!path || !usec || (path[0] != '/' && path[0] != '@') || strlen(path) >= sizeof(notify.sun_path))
                return;
        errno = 0;
        value = strtoull(usec, &end, 10);
        if (errno != 0 || end == usec || *end || value == 0)
                return;
        notify.sun_family = AF_UNIX;
        memcpy(notify.sun_path, path, strlen(path) + 1);
        notify_size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path) + (path[0] == '/'));
        if (path[0] == '@')
                notify.sun_path[0] = 0;
        interval = value;
}

/* Whether there is a page. Another thread that is at it just now gets it done. */
static bool set_up(void) {
        int s = STATE_NEW, saved = errno;

        if (!atomic_compare_exchange_strong(&state, &s, STATE_SETTING_UP))
                return s == STATE_MAPPED;
        page = map_page();
        if (page)
                find_watchdog();
        errno = saved;
        atomic_store_explicit(&state, page ? STATE_MAPPED : STATE_NOTHING, memory_order_release);
        return page != NULL;
}

static void send_alive(void) {
        static const char text[] = "WATCHDOG=1";
        int saved = errno, fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

        if (fd >= 0) {
                (void)sendto(fd, text, sizeof(text) - 1, MSG_NOSIGNAL | MSG_DONTWAIT,
                             (const struct sockaddr *)&notify, notify_size);
                (void)close(fd);
        }
        errno = saved;
}

static void feed(uint64_t now) {
        uint64_t at = atomic_load_explicit(&feed_at, memory_order_relaxed);

        if (now >= at && atomic_compare_exchange_strong(&feed_at, &at, usec_add(now, interval / 2)))
                send_alive();
}

void primus_progress(uint64_t step) {
        uint64_t now;
        int s = atomic_load_explicit(&state, memory_order_acquire);

        if (s != STATE_MAPPED && (s != STATE_NEW || !set_up()))
                return;
        now = now_boot();
        atomic_store_explicit(&page->step, htole64(step), memory_order_relaxed);
        atomic_store_explicit(&page->usec, htole64(now), memory_order_release);
        if (interval > 0)
                feed(now);
}

/* It feeds the watchdog, and not from this moment on only. */
static bool feeds(void) {
        return atomic_load_explicit(&state, memory_order_acquire) == STATE_MAPPED && interval > 0 &&
               atomic_load_explicit(&feed_at, memory_order_relaxed) > 0;
}

int progress_wait_msec(void) {
        return feeds() ? (int)MAX(MIN(interval / 2 / USEC_PER_MSEC, UINT64_C(60000)), UINT64_C(1)) : -1;
}

void progress_waiting(void) {
        if (feeds())
                feed(now_boot());
}
