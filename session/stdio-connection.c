/* SPDX-License-Identifier: Apache-2.0 */
/* The holder's end of the connection to primusctl run: frames of input, output and what else either has to
 * say. Invariant: what comes is taken only where it goes on from what is held, whoever sends it. */
#include <string.h>
#include <sys/socket.h>

#include "session/stdio-hold-parts.h"

#define ACK_BYTES (32u << 10)

static void disconnect(struct hold *h) {
        h->connection = close_fd(h->connection);
        h->greeted = false;
        h->rx_size = h->tx_at = h->tx_size = 0;
        if ((h->options->pty || (!h->in_ended && !h->in_gone && !h->options->may_leave)) && !h->ended)
                h->lost_at = now_msec() + LOST_MSEC;
}

/* Who comes later is the same one, whose connection before may not know yet that it has ended. */
void connection_accept(struct hold *h) {
        int fd = accept4(h->listening, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (fd < 0)
                return;
        if (!stdio_is_ours(fd)) {
                (void)close(fd);
                return;
        }
        disconnect(h);
        h->connection = fd;
        h->tell_held = true;
        h->told_gone = h->told_exit = false;
}

static void frame(struct hold *h, enum stdio_frame kind, const void *data, size_t size) {
        stdio_head(h->tx, kind, size);
        if (size > 0)
                memcpy(h->tx + STDIO_HEAD, data, size);
        h->tx_at = 0;
        h->tx_size = STDIO_HEAD + size;
}

/* What is to be said next, if there is anything. */
bool connection_compose(struct hold *h) {
        if (h->connection < 0 || h->tx_at < h->tx_size)
                return h->connection >= 0;
        if (h->tell_held) {
                const struct stdio_held held = { htole64(h->in.from), htole64(h->in.to),
                                                 htole64(h->out.from) };

                h->tell_held = false;
                frame(h, STDIO_HELD, &held, sizeof(held));
        } else if (!h->greeted)
                return false;
        else if (h->in.from - h->told >= ACK_BYTES || (h->in.from != h->told && h->in.from == h->in.to)) {
                const uint64_t taken = htole64(h->in.from);

                h->told = h->in.from;
                frame(h, STDIO_TAKEN, &taken, sizeof(taken));
        } else if (h->in_gone && !h->told_gone) {
                h->told_gone = true;
                frame(h, STDIO_UNREAD, NULL, 0);
        } else if (h->out_sent < h->out.to) {
                const uint8_t *piece;
                size_t n = bytes_at(&h->out, h->out_sent, &piece);

                n = n < STDIO_DATA_MAX ? n : STDIO_DATA_MAX;
                frame(h, STDIO_OUTPUT, piece, n);
                h->out_sent += n;
        } else if (h->ended && h->out_over && !h->told_exit) {
                h->told_exit = true;
                frame(h, STDIO_EXIT, NULL, 0);
        } else
                return false;
        return true;
}

void connection_send(struct hold *h) {
        while (connection_compose(h)) {
                ssize_t n = send(h->connection, h->tx + h->tx_at, h->tx_size - h->tx_at, MSG_NOSIGNAL);

                if (n < 0) {
                        if (errno != EAGAIN && errno != EINTR)
                                disconnect(h);
                        return;
                }
                h->tx_at += (size_t)n;
        }
}

static uint64_t read_u64(const uint8_t *data, size_t size) {
        uint64_t v = 0;

        memcpy(&v, data, size < sizeof(v) ? size : sizeof(v));
        return le64toh(v);
}

static bool on_hello(struct hold *h, const uint8_t *data, size_t size) {
        struct stdio_hello hello;
        struct session_size s;
        uint64_t from, shown;

        if (size != sizeof(hello) || h->greeted)
                return false;
        memcpy(&hello, data, sizeof(hello));
        from = le64toh(hello.from);
        shown = le64toh(hello.shown);
        if (h->options->may_leave && h->in.to == 0)
                h->in.from = h->in.to = h->told = from; /* what was typed to an earlier attempt */
        if (from != h->in.to || shown < h->out.from || shown > h->out.to)
                return false;
        h->out.from = h->out_sent = shown;
        h->greeted = true;
        h->lost_at = 0;
        s = (struct session_size){ le16toh(hello.size.rows), le16toh(hello.size.columns) };
        if (hold_start(h, &s) != 0) {
                h->broken = h->left = true;
                return true;
        }
        command_resize(&h->command, &s);
        return true;
}

/* False: nobody who speaks as we do. */
static bool on_frame(struct hold *h, uint8_t kind, const uint8_t *data, size_t size) {
        struct stdio_size s;
        uint64_t shown;

        if (kind == STDIO_HELLO)
                return on_hello(h, data, size);
        if (kind == STDIO_ABORT) {
                char why[256];
                size_t n = 0;

                for (size_t i = 0; i < size && n < sizeof(why) - 1; i++)
                        why[n++] = data[i] < ' ' || data[i] == 127 ? '?' : (char)data[i];
                why[n] = 0;
                hold_lose(h, why);
                return true;
        }
        if (!h->greeted)
                return false;
        switch (kind) {
        case STDIO_INPUT:
                if (h->in_ended || size > bytes_room(&h->in))
                        return false;
                bytes_put(&h->in, data, size);
                return true;
        case STDIO_INPUT_END:
                h->in_ended = true;
                return true;
        case STDIO_SHOWN:
                shown = read_u64(data, size);
                if (shown < h->out.from || shown > h->out_sent)
                        return false;
                h->out.from = shown;
                return true;
        case STDIO_SIZE:
                if (size == sizeof(s)) {
                        memcpy(&s, data, size);
                        command_resize(&h->command,
                                       &(struct session_size){ le16toh(s.rows), le16toh(s.columns) });
                }
                return true;
        default: /* of a later primusctl */
                return true;
        }
}

void connection_read(struct hold *h) {
        ssize_t n = recv(h->connection, h->rx + h->rx_size, sizeof(h->rx) - h->rx_size, 0);
        size_t at = 0;
        long l = 0;

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return;
        if (n <= 0) {
                h->left |= h->told_exit;
                disconnect(h);
                return;
        }
        h->rx_size += (size_t)n;
        while (h->connection >= 0 && (l = stdio_frame_size(h->rx + at, h->rx_size - at)) > 0) {
                if (!on_frame(h, h->rx[at], h->rx + at + STDIO_HEAD, (size_t)l - STDIO_HEAD))
                        l = -1;
                if (l < 0)
                        break;
                at += (size_t)l;
        }
        if (l < 0) {
                disconnect(h);
                return;
        }
        memmove(h->rx, h->rx + at, h->rx_size - at);
        h->rx_size -= at;
}
