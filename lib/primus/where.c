/* SPDX-License-Identifier: Apache-2.0 */
/* Which file the latest record is of: for messages to people, so it may cost a question to the executor.
 * Invariant: a trainer does not wait long for an answer that matters to nobody but a reader of its log. */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "lib/primus/handle.h"

#define ANSWER_USEC (UINT64_C(2) * 1000 * 1000)

int client_take_place(struct primus *p, const uint8_t *body, size_t size) {
        struct client_place place;

        if (size < sizeof(place))
                return -EPROTO;
        memcpy(&place, body, sizeof(place));
        if (size - sizeof(place) != place.path_size || place.path_size > TASK_PATH_MAX ||
            memchr(body + sizeof(place), 0, place.path_size))
                return -EPROTO;
        free(p->place_path);
        p->place_path = strndup((const char *)body + sizeof(place), place.path_size);
        if (!p->place_path)
                return handle_fail(p, ENOMEM, "no memory");
        p->place_task = place.task;
        return 0;
}

static int ask_executor(struct primus *p, uint64_t task) {
        const struct client_where where = { .task = task };
        uint64_t until = feed_clock() + ANSWER_USEC, now;
        int r = client_send(p, CLIENT_WHERE, &where, sizeof(where));

        while (r >= 0 && p->place_task != task && (now = feed_clock()) < until) {
                struct pollfd fd = { .fd = p->fd, .events = POLLIN };

                r = poll(&fd, 1, (int)((until - now) / 1000) + 1);
                if (r > 0)
                        r = client_drain(p);
                else if (r < 0)
                        r = errno == EINTR ? 0 : handle_fail(p, errno, "cannot wait for primus-executor: %m");
        }
        return r;
}

int primus_task_path(struct primus *p, const char **ret) {
        uint64_t task = p->piece.task;
        int r = handle_check(p);

        *ret = NULL;
        if (r < 0)
                return r;
        if (task == 0 || p->fd < 0 || p->peer_version < CLIENT_VERSION_WHERE)
                return 0;
        if (p->place_task != task) {
                r = ask_executor(p, task);
                if (r < 0)
                        return r;
        }
        if (p->place_task != task || !p->place_path || !*p->place_path)
                return 0;
        *ret = p->place_path;
        return 1;
}
