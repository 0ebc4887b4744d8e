/* SPDX-License-Identifier: Apache-2.0 */
/* journald's io.systemd.Journal.Synchronize for agentd. Of its varlink interface this one call goes there, as
 * a constant; nothing of journald's answer comes back but whether it did it. Invariant: a call is answered
 * once, after JOURNAL_SYNC_USEC at the latest, unless its connection ends first. */
#include "starter/systemd/journal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <utlist.h>

#include "lib/base/clock.h"
#include "lib/base/try.h"
#include "lib/wire/starter.h"

struct sync {
        struct journal_syncs *all;
        sd_bus_message *call;
        int fd;
        sd_event_source *readable, *late;
        char answer[512];
        size_t n;
        struct sync *next, *prev;
};

struct journal_syncs {
        sd_event *event;
        struct sockaddr_un address;
        sd_bus_slot *slot;
        struct sync *syncs;
        unsigned n;
};

static void sync_free(struct sync *s) {
        if (s->all) {
                DL_DELETE(s->all->syncs, s);
                s->all->n--;
        }
        sd_event_source_disable_unref(s->readable);
        sd_event_source_disable_unref(s->late);
        close_fd(s->fd);
        sd_bus_message_unref(s->call);
        free(s);
}
DEFINE_CLEANUP(struct sync *, sync_free)

static int sync_done(struct sync *s, int r) {
        if (r < 0)
                (void)sd_bus_reply_method_errno(s->call, r, NULL);
        else
                (void)sd_bus_reply_method_return(s->call, NULL);
        sync_free(s);
        return 0;
}

static int on_readable(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        struct sync *s = userdata;
        ssize_t l = recv(fd, s->answer + s->n, sizeof(s->answer) - s->n, 0);

        if (l < 0 && (errno == EAGAIN || errno == EINTR))
                return 0;
        if (l <= 0)
                return sync_done(s, l < 0 ? -errno : -ECONNRESET);
        s->n += (size_t)l;
        /* A varlink message ends in a zero byte. */
        if (s->answer[s->n - 1] == 0)
                return sync_done(s, strstr(s->answer, "\"error\"") ? -EPROTO : 0);
        return s->n == sizeof(s->answer) ? sync_done(s, -EPROTO) : 0;
}

static int on_late(sd_event_source *source, uint64_t usec, void *userdata) {
        return sync_done(userdata, -ETIMEDOUT);
}

static int sync_begin(struct journal_syncs *all, sd_bus_message *call) {
        static const char text[] = "{\"method\":\"io.systemd.Journal.Synchronize\",\"parameters\":{}}";
        _cleanup_(sync_free_p) struct sync *s = calloc(1, sizeof(*s));

        if (!s)
                return -ENOMEM;
        s->call = sd_bus_message_ref(call);
        s->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (s->fd < 0 || connect(s->fd, (struct sockaddr *)&all->address, sizeof(all->address)) < 0)
                return -errno;
        if (send(s->fd, text, sizeof(text), MSG_NOSIGNAL) != (ssize_t)sizeof(text))
                return -EIO;
        TRY(sd_event_add_io(all->event, &s->readable, s->fd, EPOLLIN, on_readable, s));
        TRY(sd_event_add_time_relative(all->event, &s->late, CLOCK_BOOTTIME, JOURNAL_SYNC_USEC, 0, on_late,
                                       s));
        s->all = all;
        all->n++;
        DL_APPEND(all->syncs, s);
        TAKE_PTR(s);
        return 1;
}

static int method_synchronize(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        struct journal_syncs *all = userdata;

        if (all->n >= JOURNAL_SYNCS_MAX)
                return sd_bus_error_set(error, SD_BUS_ERROR_LIMITS_EXCEEDED, "too many calls are under way");
        return sync_begin(all, call);
}

static const sd_bus_vtable vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_METHOD("Synchronize", "", "", method_synchronize, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_VTABLE_END,
};

int journal_offer(sd_bus *connection, sd_event *event, const char *socket, struct journal_syncs **ret) {
        _cleanup_(journal_syncs_free_p) struct journal_syncs *s = calloc(1, sizeof(*s));

        if (!s)
                return -ENOMEM;
        s->event = event;
        s->address.sun_family = AF_UNIX;
        if (strlen(socket) >= sizeof(s->address.sun_path))
                return -ENAMETOOLONG;
        strcpy(s->address.sun_path, socket);
        TRY(sd_bus_add_object_vtable(connection, &s->slot, STARTER_PATH, STARTER_JOURNAL, vtable, s));
        *ret = TAKE_PTR(s);
        return 0;
}

void journal_syncs_free(struct journal_syncs *s) {
        if (!s)
                return;
        while (s->syncs)
                sync_free(s->syncs);
        sd_bus_slot_unref(s->slot);
        free(s);
}
