/* SPDX-License-Identifier: Apache-2.0 */
/* bpf(2) on descriptors. Invariant: the ring's positions are the kernel's word, and are still not believed
 * beyond its size. */
#include "agentd/probe/maps.h"

#include <linux/bpf.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "lib/base/cleanup.h"

static int call(enum bpf_cmd command, union bpf_attr *a) {
        long r = syscall(SYS_bpf, command, a, sizeof(*a));

        return r < 0 ? -errno : (int)r;
}

static int element(enum bpf_cmd command, int fd, const void *key, const void *value, uint64_t flags) {
        union bpf_attr a = { .map_fd = (uint32_t)fd,
                             .key = (uint64_t)(uintptr_t)key,
                             .value = (uint64_t)(uintptr_t)value, /* also: the next key */
                             .flags = flags };

        return call(command, &a);
}

int map_lookup(int fd, const void *key, void *value) {
        return element(BPF_MAP_LOOKUP_ELEM, fd, key, value, 0);
}

int map_update(int fd, const void *key, const void *value, uint64_t flags) {
        return element(BPF_MAP_UPDATE_ELEM, fd, key, value, flags);
}

int map_delete(int fd, const void *key) {
        return element(BPF_MAP_DELETE_ELEM, fd, key, NULL, 0);
}

int map_next(int fd, const void *key, void *next) {
        return element(BPF_MAP_GET_NEXT_KEY, fd, key, next, 0);
}

int iterator_run(int link) {
        union bpf_attr a = { .iter_create.link_fd = (uint32_t)link };
        _cleanup_close_ int fd = call(BPF_ITER_CREATE, &a);
        char buf[64]; /* the program writes nothing */

        if (fd < 0)
                return fd;
        for (;;) {
                ssize_t n = read(fd, buf, sizeof(buf));

                if (n < 0 && (errno == EAGAIN || errno == EINTR))
                        continue;
                if (n <= 0)
                        return n < 0 ? -errno : 0;
        }
}

/* ---- ring buffer: a page that we write (how far we have read), one that the kernel writes (how far it has),
 * then the data, twice in a row so that no record is torn ---- */

struct events {
        int fd;
        size_t size, page;
        unsigned long *consumed;
        const uint8_t *produced; /* and the data behind it */
};

int events_new(int fd, size_t size, struct events **ret) {
        struct events *r = calloc(1, sizeof(*r));
        void *p;

        if (!r) {
                close_fd(fd);
                return -ENOMEM;
        }
        *r = (struct events){ .fd = fd, .size = size, .page = (size_t)sysconf(_SC_PAGESIZE) };
        p = mmap(NULL, r->page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (p != MAP_FAILED) {
                r->consumed = p;
                p = mmap(NULL, r->page + 2 * size, PROT_READ, MAP_SHARED, fd, (off_t)r->page);
                if (p != MAP_FAILED)
                        r->produced = p;
        }
        if (!r->produced) {
                int error = -errno;

                events_free(r);
                return error;
        }
        *ret = r;
        return 0;
}

void events_free(struct events *r) {
        if (!r)
                return;
        if (r->consumed)
                (void)munmap(r->consumed, r->page);
        if (r->produced)
                (void)munmap((void *)(uintptr_t)r->produced, r->page + 2 * r->size);
        close_fd(r->fd);
        free(r);
}

int events_fd(const struct events *r) {
        return r->fd;
}

int events_read(struct events *r, events_handler f, void *userdata) {
        unsigned long at = __atomic_load_n(r->consumed, __ATOMIC_ACQUIRE);
        int n = 0;

        for (;;) {
                unsigned long end =
                        __atomic_load_n((const unsigned long *)(const void *)r->produced, __ATOMIC_ACQUIRE);

                if (at == end || end - at > r->size)
                        return n;
                while (at < end) {
                        const uint8_t *head = r->produced + r->page + (at & (r->size - 1));
                        uint32_t word = __atomic_load_n((const uint32_t *)(const void *)head,
                                                        __ATOMIC_ACQUIRE),
                                 size = word & ~(BPF_RINGBUF_BUSY_BIT | BPF_RINGBUF_DISCARD_BIT);

                        if ((word & BPF_RINGBUF_BUSY_BIT) || size > r->size)
                                return n; /* it is being written */
                        if (!(word & BPF_RINGBUF_DISCARD_BIT)) {
                                f(head + BPF_RINGBUF_HDR_SZ, size, userdata);
                                n++;
                        }
                        at += (size + BPF_RINGBUF_HDR_SZ + 7) / 8 * 8;
                        __atomic_store_n(r->consumed, at, __ATOMIC_RELEASE);
                }
        }
}
