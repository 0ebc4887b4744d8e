/* SPDX-License-Identifier: Apache-2.0 */
/* The journal, as both readers use it. Invariant: an entry's text ends in a newline exactly where the line
 * that was printed did, or where its printer stopped. */
#include "agentd/log/journal.h"

#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"

#define LINE_MAX_SMALLEST                                                                                    \
        79u /* journald.conf's LineMax= is at least this: shorter entries were not cut by it */

int log_buffer_append(struct log_buffer *b, const void *data, size_t size) {
        if (b->size + size > b->allocated) {
                size_t bigger = MAX(b->allocated * 2, b->size + size);
                char *p = realloc(b->data, bigger);

                if (!p)
                        return -ENOMEM;
                b->data = p;
                b->allocated = bigger;
        }
        memcpy(b->data + b->size, data, size);
        b->size += size;
        return 0;
}

void log_buffer_done(struct log_buffer *b) {
        free(b->data);
        *b = (struct log_buffer){ 0 };
}

int journal_open(const char *directory, sd_journal **ret) {
        sd_journal *j;
        int r;

        r = directory ? sd_journal_open_directory(&j, directory, 0)
                      : sd_journal_open(&j, SD_JOURNAL_LOCAL_ONLY);
        if (r < 0)
                return r;
        (void)sd_journal_set_data_threshold(j, 0);
        *ret = j;
        return 0;
}

static bool cut_by_journald(sd_journal *j) {
        const char *data;
        size_t size;

        return sd_journal_get_data(j, "_LINE_BREAK", (const void **)&data, &size) >= 0 &&
               size == strlen("_LINE_BREAK=line-max") && memcmp(data, "_LINE_BREAK=line-max", size) == 0;
}

int journal_append_entry(sd_journal *j, struct log_buffer *b, size_t max) {
        static const size_t name = sizeof("MESSAGE=") - 1;
        const char *data;
        size_t size;
        bool cut;
        int r;

        r = sd_journal_get_data(j, "MESSAGE", (const void **)&data, &size);
        if (r == -ENOENT)
                return 0;
        if (r < 0)
                return r;
        if (size < name)
                return 0;
        size = MIN(size - name, max - 1);
        r = log_buffer_append(b, data + name, size);
        if (r < 0)
                return r;
        cut = size >= LINE_MAX_SMALLEST && cut_by_journald(j);
        if (!cut && (r = log_buffer_append(b, "\n", 1)) < 0) {
                b->size -= size;
                return r;
        }
        return (int)size + !cut;
}

const void *journal_mark(sd_journal *j) {
        const void *data;
        size_t size;

        return sd_journal_get_data(j, "_SYSTEMD_UNIT", &data, &size) >= 0 ? data : NULL;
}

bool journal_repeated(const char *cursor_a, const void *mark_a, const char *cursor_b, const void *mark_b) {
        const char *a = cursor_a ? strstr(cursor_a, ";b=") : NULL,
                   *b = cursor_b ? strstr(cursor_b, ";b=") : NULL;

        return a && b && strcmp(a, b) == 0 && (!mark_a || mark_a != mark_b);
}

int journal_sync(const char *socket_path, uint64_t timeout_usec) {
        static const char call[] = "{\"method\":\"io.systemd.Journal.Synchronize\",\"parameters\":{}}";
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        uint64_t until = usec_add(now_boot(), timeout_usec);
        char answer[1024];
        size_t n = 0;
        _cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

        strncpy(address.sun_path, socket_path ? socket_path : "/run/systemd/journal/io.systemd.journal",
                sizeof(address.sun_path) - 1);
        if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
                return -errno;
        /* A varlink call and its answer end in a zero byte. */
        if (send(fd, call, sizeof(call), MSG_NOSIGNAL) != (ssize_t)sizeof(call))
                return -EIO;
        for (;;) {
                struct pollfd pfd = { .fd = fd, .events = POLLIN };
                uint64_t now = now_boot();
                ssize_t l;

                if (now >= until)
                        return -ETIMEDOUT;
                (void)poll(&pfd, 1, (int)MIN((until - now) / 1000 + 1, UINT64_C(60000)));
                l = recv(fd, answer + n, sizeof(answer) - n, 0);
                if (l < 0 && (errno == EAGAIN || errno == EINTR))
                        continue;
                if (l <= 0)
                        return l < 0 ? -errno : -ECONNRESET;
                n += (size_t)l;
                if (answer[n - 1] == 0)
                        return strstr(answer, "\"error\"") ? -EPROTO : 0;
                if (n == sizeof(answer))
                        return -EPROTO;
        }
}
