/* SPDX-License-Identifier: Apache-2.0 */
/* Invariant: whatever the bytes are, a record is handed on whole, and no more than one is held. */
#include "lib/wire/artifacts.h"

#include <endian.h>
#include <string.h>

#include "lib/base/cleanup.h"

const char *artifact_why_text(uint8_t why) {
        static const char *const texts[_ARTIFACT_WHY_MAX] = {
                [ARTIFACT_CHANGED] = "changed while it was read",
                [ARTIFACT_SPECIAL] = "is a FIFO, a socket or a device",
                [ARTIFACT_GONE] = "is not there any more",
                [ARTIFACT_DEEP] = "lies too deep, or its path is too long",
                [ARTIFACT_OUTSIDE] = "is a link that points out of the directory",
        };

        return why < _ARTIFACT_WHY_MAX && texts[why] ? texts[why] : "cannot be read";
}

void artifact_write(const struct artifact *a, uint8_t buf[static ARTIFACT_HEAD_SIZE]) {
        const uint16_t payload = htole16(a->payload_size);
        const uint32_t mode = htole32(a->mode);
        const uint64_t size = htole64(a->size), mtime = htole64(a->mtime_nsec);

        buf[0] = a->type;
        buf[1] = a->why;
        memcpy(buf + 2, &payload, sizeof(payload));
        memcpy(buf + 4, &mode, sizeof(mode));
        memcpy(buf + 8, &size, sizeof(size));
        memcpy(buf + 16, &mtime, sizeof(mtime));
}

void artifact_read(const uint8_t buf[static ARTIFACT_HEAD_SIZE], struct artifact *ret) {
        uint64_t size, mtime;
        uint16_t payload;
        uint32_t mode;

        memcpy(&payload, buf + 2, sizeof(payload));
        memcpy(&mode, buf + 4, sizeof(mode));
        memcpy(&size, buf + 8, sizeof(size));
        memcpy(&mtime, buf + 16, sizeof(mtime));
        *ret = (struct artifact){ buf[0],        buf[1],        le16toh(payload),
                                  le32toh(mode), le64toh(size), le64toh(mtime) };
}

bool artifact_path_valid(const char *path, size_t size) {
        const char *end = path + size;

        if (size == 0 || size > ARTIFACT_PATH_MAX || memchr(path, 0, size))
                return false;
        for (unsigned depth = 0; depth <= ARTIFACT_DEPTH_MAX; depth++) {
                const char *slash = memchr(path, '/', (size_t)(end - path));
                size_t l = (size_t)((slash ?: end) - path);

                if (l == 0 || l > 255 || (l == 1 && *path == '.') || (l == 2 && memcmp(path, "..", 2) == 0))
                        return false;
                if (!slash)
                        return true;
                path = slash + 1;
        }
        return false;
}

bool artifact_link_inside(const char *path, const char *target) {
        bool down = false;
        size_t depth = 0;

        if (!*target || *target == '/' || strlen(target) > ARTIFACT_PATH_MAX)
                return false;
        for (const char *p = path; *p; p++)
                depth += *p == '/';
        while (*target) {
                size_t l = strcspn(target, "/");

                if (l == 2 && memcmp(target, "..", 2) == 0) {
                        if (down || depth == 0)
                                return false;
                        depth--;
                } else if (l > 0 && !(l == 1 && *target == '.'))
                        down = true;
                target += l;
                target += strspn(target, "/");
        }
        return true;
}

int artifact_decode(struct artifact_decoder *d, const void *data, size_t size, artifact_handler handler,
                    void *userdata) {
        const uint8_t *in = data;
        struct artifact a;

        for (;;) {
                size_t want = ARTIFACT_HEAD_SIZE, take;
                int r;

                if (d->have >= ARTIFACT_HEAD_SIZE) {
                        artifact_read(d->buffer, &a);
                        want += a.payload_size;
                }
                take = MIN(want - d->have, size);
                memcpy(d->buffer + d->have, in, take);
                d->have += take;
                in += take;
                size -= take;
                if (d->have < want)
                        return 0;
                if (want == ARTIFACT_HEAD_SIZE) {
                        artifact_read(d->buffer, &a);
                        if (a.payload_size > 0)
                                continue;
                }
                d->buffer[want] = 0;
                d->have = 0;
                r = handler(&a, d->buffer + ARTIFACT_HEAD_SIZE, userdata);
                if (r < 0)
                        return r;
        }
}
