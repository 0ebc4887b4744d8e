/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies of packets. Invariant: no byte behind body + size is read, whatever the lengths inside say. */
#include "agentd/feed/packet.h"

#include <string.h>

#include "lib/base/cleanup.h"

/* Takes a struct off the front of a body. */
static int take(const uint8_t **body, size_t *size, void *ret, size_t n) {
        if (*size < n)
                return -EBADMSG;
        memcpy(ret, *body, n);
        *body += n;
        *size -= n;
        return 0;
}

/* Takes n bytes of text off the front, without NUL and of at most max bytes, into an allocated string. */
static int take_text(const uint8_t **body, size_t *size, size_t n, size_t max, char **ret) {
        char *s;

        if (n > *size || n > max || memchr(*body, 0, n))
                return -EBADMSG;
        s = malloc(n + 1); /* not strndup(): no NUL follows in the packet */
        if (!s)
                return -ENOMEM;
        memcpy(s, *body, n);
        s[n] = 0;
        *body += n;
        *size -= n;
        *ret = s;
        return 0;
}

void packet_release_progress(struct task_progress *p, size_t n) {
        for (size_t i = 0; i < n; i++)
                free(p[i].error);
}

void packet_release_entries(struct scan_entry *e, size_t n) {
        for (size_t i = 0; i < n; i++)
                free(e[i].path);
}

int packet_read_progress(const uint8_t *body, size_t size, struct task_progress *ret, size_t *ret_n,
                         uint32_t *ret_credits) {
        uint32_t credits = 0;
        size_t n = 0;
        int r = 0;

        while (size > 0) {
                struct feed_progress p;
                char *error = NULL;

                r = n < LINK_TASKS_MAX ? take(&body, &size, &p, sizeof(p)) : -EBADMSG;
                if (r >= 0 && (p.acked > p.read || p.state >= _TASK_STATE_MAX))
                        r = -EBADMSG;
                if (r >= 0)
                        r = take_text(&body, &size, p.error_size, PACKET_ERROR_MAX, &error);
                if (r < 0) {
                        packet_release_progress(ret, n);
                        return r;
                }
                credits = p.credits;
                ret[n++] = (struct task_progress){ .task = p.task,
                                                   .read = p.read,
                                                   .acked = p.acked,
                                                   .state = (uint8_t)p.state,
                                                   .error = error };
        }
        *ret_n = n;
        *ret_credits = MIN(credits, LINK_TASKS_MAX);
        return 0;
}

int packet_read_entries(const uint8_t *body, size_t size, struct scan_entry *ret, size_t *ret_n) {
        size_t n = 0;
        int r = 0;

        while (size > 0) {
                struct feed_entry e;
                char *path = NULL;

                r = n < LINK_SCAN_MAX ? take(&body, &size, &e, sizeof(e)) : -EBADMSG;
                if (r >= 0 && e.path_size == 0)
                        r = -EBADMSG;
                if (r >= 0)
                        r = take_text(&body, &size, e.path_size, PACKET_PATH_MAX, &path);
                if (r < 0) {
                        packet_release_entries(ret, n);
                        return r;
                }
                ret[n++] = (struct scan_entry){
                        .path = path, .size = e.size, .mtime_nsec = e.mtime_nsec, .inode = e.inode
                };
        }
        *ret_n = n;
        return 0;
}

int packet_read_bye(const uint8_t *body, size_t size, struct feed_bye *ret, char **ret_text) {
        struct feed_bye bye;
        int r;

        r = take(&body, &size, &bye, sizeof(bye));
        if (r < 0)
                return r;
        if (bye.text_size != size)
                return -EBADMSG;
        r = take_text(&body, &size, bye.text_size, PACKET_ERROR_MAX, ret_text);
        if (r < 0)
                return r;
        *ret = bye;
        return 0;
}

int packet_write_grants(const struct task_grant *g, size_t n, uint8_t *buf, size_t *ret_size) {
        struct feed_header header = { .type = FEED_GRANT };
        size_t size = sizeof(header), i;

        for (i = 0; i < n; i++) {
                size_t path = strlen(g[i].path);
                struct feed_grant grant = { .task = g[i].task,
                                            .offset = g[i].offset,
                                            .size = g[i].size,
                                            .mtime_nsec = g[i].mtime_nsec,
                                            .inode = g[i].inode,
                                            .path_size = (uint32_t)path };

                if (path == 0 || path > PACKET_PATH_MAX)
                        return -EINVAL;
                if (size + sizeof(grant) + path > FEED_PACKET_MAX)
                        break;
                memcpy(buf + size, &grant, sizeof(grant));
                memcpy(buf + size + sizeof(grant), g[i].path, path);
                size += sizeof(grant) + path;
        }
        header.size = (uint32_t)(size - sizeof(header));
        memcpy(buf, &header, sizeof(header));
        *ret_size = size;
        return (int)i;
}
