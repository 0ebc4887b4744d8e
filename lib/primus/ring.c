/* SPDX-License-Identifier: Apache-2.0 */
/* The ring of one trainer process: ring.h has the layout and the rules. The producer's half keeps its own
 * counts and its own copy of the slot table, and compares what the control page says with them; what lies in
 * shared memory is written by it and never read back. */
#include "lib/primus/ring.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/cleanup.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

#define RING_VERSION 1u
#define RING_PAGE 4096u
#define CONTROL_SIZE RING_PAGE
#define DATA_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL)
#define CONTROL_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

_Static_assert(sizeof(struct ring_slot) == 64, "one cache line for each slot");
_Static_assert(sizeof(struct ring_control) <= CONTROL_SIZE, "the control page is a page");

enum {
        FD_DATA,
        FD_CONTROL,
        FD_PRODUCED,
        FD_RELEASED,
        _FD_MAX
};

/* What both sides have: the descriptors and where they are mapped. */
struct ring_map {
        int fds[_FD_MAX];
        struct ring_control *control;
        uint8_t *data;
        size_t data_size;
        uint32_t slots, slot_size;
};

static uint64_t now_nsec(void) {
        struct timespec ts;

        clock_gettime(CLOCK_MONOTONIC, &ts);
        return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* The slots lie behind the table, at the next page. */
static size_t table_size(uint32_t slots) {
        return (slots * sizeof(struct ring_slot) + RING_PAGE - 1) & ~(size_t)(RING_PAGE - 1);
}

static bool shape_valid(uint32_t slots, uint32_t slot_size) {
        return slots > 0 && slots <= RING_SLOTS_MAX && (slots & (slots - 1)) == 0 &&
               slot_size >= RING_SLOT_MIN && slot_size <= RING_SLOT_MAX && slot_size % RING_PAGE == 0 &&
               (uint64_t)slots * slot_size <= RING_BYTES_MAX;
}

static void map_init(struct ring_map *m, uint32_t slots, uint32_t slot_size) {
        *m = (struct ring_map){
                .slots = slots,
                .slot_size = slot_size,
                .data_size = table_size(slots) + (size_t)slots * slot_size,
        };
        for (size_t i = 0; i < _FD_MAX; i++)
                m->fds[i] = -EBADF;
}

static void map_done(struct ring_map *m) {
        if (m->control)
                (void)munmap(m->control, CONTROL_SIZE);
        if (m->data)
                (void)munmap(m->data, m->data_size);
        for (size_t i = 0; i < _FD_MAX; i++)
                m->fds[i] = close_fd(m->fds[i]);
}

static int map_pages(int fd, size_t size, int protection, void **ret) {
        void *p = mmap(NULL, size, protection, MAP_SHARED, fd, 0);

        if (p == MAP_FAILED)
                return -errno;
        *ret = p;
        return 0;
}

static struct ring_slot *table(const struct ring_map *m) {
        return (struct ring_slot *)m->data;
}

static uint8_t *slot_bytes(const struct ring_map *m, uint64_t n) {
        return m->data + table_size(m->slots) + (size_t)(n & (m->slots - 1)) * m->slot_size;
}

/* The counter of an eventfd only ever says "look"; one that is full already says it. */
static void event_set(int fd) {
        uint64_t one = 1;

        while (write(fd, &one, sizeof(one)) < 0 && errno == EINTR)
                ;
}

static void event_clear(int fd) {
        uint64_t n;

        while (read(fd, &n, sizeof(n)) < 0 && errno == EINTR)
                ;
}

/* ---- the producer ---- */

struct ring_producer {
        struct ring_map map;
        struct ring_slot *sent; /* the table as committed */
        uint64_t produced;      /* slots committed */
        uint64_t seen;          /* slots released, as last believed */
        uint64_t reported;      /* slots that ring_producer_released() has handed out */
        bool broken;            /* the trainer has written what cannot be */
        uint64_t begin_nsec, waited_nsec;
};

static int sealed_memory(const char *name, size_t size, int *ret) {
        _cleanup_close_ int fd = -EBADF;

        fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
        if (fd < 0 && errno == EINVAL) /* before Linux 6.3 */
                fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
        if (fd < 0)
                return -errno;
        if (ftruncate(fd, (off_t)size) < 0)
                return -errno;
        *ret = TAKE_FD(fd);
        return 0;
}

static int producer_map(struct ring_map *m) {
        int r;

        r = sealed_memory("primus-ring", m->data_size, &m->fds[FD_DATA]);
        if (r < 0)
                return r;
        r = map_pages(m->fds[FD_DATA], m->data_size, PROT_READ | PROT_WRITE, (void **)&m->data);
        if (r < 0)
                return r;
        if (fcntl(m->fds[FD_DATA], F_ADD_SEALS, DATA_SEALS) < 0)
                return -errno;
        r = sealed_memory("primus-ring-control", CONTROL_SIZE, &m->fds[FD_CONTROL]);
        if (r < 0)
                return r;
        r = map_pages(m->fds[FD_CONTROL], CONTROL_SIZE, PROT_READ | PROT_WRITE, (void **)&m->control);
        if (r < 0)
                return r;
        if (fcntl(m->fds[FD_CONTROL], F_ADD_SEALS, CONTROL_SEALS) < 0)
                return -errno;
        for (size_t i = FD_PRODUCED; i <= FD_RELEASED; i++) {
                m->fds[i] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
                if (m->fds[i] < 0)
                        return -errno;
        }
        return 0;
}

int ring_producer_new(uint32_t slots, uint32_t slot_size, struct ring_producer **ret) {
        struct ring_producer *p;
        int r;

        if (!shape_valid(slots, slot_size))
                return -EINVAL;
        p = calloc(1, sizeof(*p));
        if (!p)
                return -ENOMEM;
        map_init(&p->map, slots, slot_size);
        p->sent = calloc(slots, sizeof(*p->sent));
        r = p->sent ? producer_map(&p->map) : -ENOMEM;
        if (r < 0) {
                ring_producer_free(p);
                return r;
        }
        p->map.control->magic = RING_MAGIC;
        p->map.control->version = RING_VERSION;
        p->begin_nsec = now_nsec();
        *ret = p;
        return 0;
}

struct ring_producer *ring_producer_free(struct ring_producer *p) {
        if (!p)
                return NULL;
        map_done(&p->map);
        free(p->sent);
        free(p);
        return NULL;
}

void ring_producer_fds(const struct ring_producer *p, int ret[static 4]) {
        memcpy(ret, p->map.fds, sizeof(p->map.fds));
}

/* Takes the trainer's count over if it can be true. 0, -EPROTO (from then on always). */
static int producer_look(struct ring_producer *p) {
        uint64_t released;

        if (p->broken)
                return -EPROTO;
        released = atomic_load_explicit(&p->map.control->released, memory_order_acquire);
        if (released < p->seen || released > p->produced) {
                p->broken = true;
                return -EPROTO;
        }
        p->seen = released;
        return 0;
}

int ring_producer_reserve(struct ring_producer *p, uint8_t **ret) {
        if (p->broken)
                return -EPROTO;
        /* An entry of the table is taken anew only once its release has been handed out. */
        if (p->produced - p->reported >= p->map.slots)
                return producer_look(p);
        *ret = slot_bytes(&p->map, p->produced);
        return 1;
}

void ring_producer_commit(struct ring_producer *p, const struct ring_slot *slot) {
        struct ring_control *c = p->map.control;
        size_t i = (size_t)(p->produced & (p->map.slots - 1));

        assert(p->produced - p->reported < p->map.slots);
        assert(slot->size <= p->map.slot_size);
        p->sent[i] = *slot;
        table(&p->map)[i] = *slot;
        p->produced++;
        atomic_store_explicit(&c->produced, p->produced, memory_order_release);
        atomic_thread_fence(memory_order_seq_cst);
        if (atomic_load_explicit(&c->consumer_waits, memory_order_relaxed) != 0) {
                atomic_store_explicit(&c->consumer_waits, 0, memory_order_relaxed);
                event_set(p->map.fds[FD_PRODUCED]);
        }
}

void ring_producer_close(struct ring_producer *p) {
        atomic_store_explicit(&p->map.control->closed, 1, memory_order_release);
        atomic_thread_fence(memory_order_seq_cst);
        event_set(p->map.fds[FD_PRODUCED]);
}

bool ring_producer_arm(struct ring_producer *p) {
        struct ring_control *c = p->map.control;

        event_clear(p->map.fds[FD_RELEASED]);
        atomic_store_explicit(&c->producer_waits, 1, memory_order_relaxed);
        atomic_thread_fence(memory_order_seq_cst);
        /* Nonsense is news as well: the next call says so. */
        return producer_look(p) < 0 || p->seen != p->reported || p->produced - p->reported < p->map.slots;
}

int ring_producer_released(struct ring_producer *p, struct ring_slot *ret) {
        if (p->seen == p->reported || p->broken) {
                int r = producer_look(p);
                if (r < 0)
                        return r;
        }
        if (p->seen == p->reported)
                return 0;
        *ret = p->sent[p->reported & (p->map.slots - 1)];
        p->reported++;
        return 1;
}

uint64_t ring_producer_unreleased(const struct ring_producer *p) {
        return p->produced - p->seen;
}

uint64_t ring_consumer_waited_nsec(struct ring_producer *p) {
        uint64_t said = atomic_load_explicit(&p->map.control->consumer_wait_nsec, memory_order_relaxed);
        uint64_t elapsed = now_nsec() - p->begin_nsec;

        p->waited_nsec = MAX(p->waited_nsec, MIN(said, elapsed));
        return p->waited_nsec;
}

bool ring_consumer_waits(const struct ring_producer *p) {
        return atomic_load_explicit(&p->map.control->consumer_waits, memory_order_relaxed) != 0;
}

/* ---- the consumer ---- */

struct ring_consumer {
        struct ring_map map;
        uint64_t taken;    /* slots handed out */
        uint64_t produced; /* as last looked at */
        uint64_t released;
};

static int check_memory(int fd, size_t size, int seals) {
        struct stat st;
        int has;

        if (fstat(fd, &st) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size != size)
                return -EPROTO;
        has = fcntl(fd, F_GET_SEALS);
        if (has < 0 || (has & seals) != seals)
                return -EPROTO;
        return 0;
}

static int consumer_map(struct ring_map *m) {
        int r;

        r = check_memory(m->fds[FD_DATA], m->data_size, DATA_SEALS);
        if (r < 0)
                return r;
        r = check_memory(m->fds[FD_CONTROL], CONTROL_SIZE, CONTROL_SEALS);
        if (r < 0)
                return r;
        r = map_pages(m->fds[FD_DATA], m->data_size, PROT_READ, (void **)&m->data);
        if (r < 0)
                return r;
        r = map_pages(m->fds[FD_CONTROL], CONTROL_SIZE, PROT_READ | PROT_WRITE, (void **)&m->control);
        if (r < 0)
                return r;
        if (m->control->magic != RING_MAGIC || m->control->version != RING_VERSION)
                return -EPROTO;
        return 0;
}

int ring_consumer_new(const int fds[static 4], uint32_t slots, uint32_t slot_size,
                      struct ring_consumer **ret) {
        struct ring_consumer *c;
        int r;

        c = calloc(1, sizeof(*c));
        if (!c) {
                for (size_t i = 0; i < _FD_MAX; i++)
                        close_fd(fds[i]);
                return -ENOMEM;
        }
        if (shape_valid(slots, slot_size)) {
                map_init(&c->map, slots, slot_size);
                r = 0;
        } else
                r = -EINVAL;
        memcpy(c->map.fds, fds, sizeof(c->map.fds));
        if (r >= 0)
                r = consumer_map(&c->map);
        if (r < 0) {
                ring_consumer_free(c);
                return r;
        }
        *ret = c;
        return 0;
}

struct ring_consumer *ring_consumer_free(struct ring_consumer *c) {
        if (!c)
                return NULL;
        map_done(&c->map);
        free(c);
        return NULL;
}

/* Looks at the producer's count. Whether closed is read before it matters: what was produced before the ring
 * was closed must not be missed. */
static int consumer_look(struct ring_consumer *c, bool *ret_closed) {
        bool closed = atomic_load_explicit(&c->map.control->closed, memory_order_acquire) != 0;
        uint64_t produced = atomic_load_explicit(&c->map.control->produced, memory_order_acquire);

        if (produced < c->produced || produced - c->released > c->map.slots)
                return -EPROTO;
        c->produced = produced;
        *ret_closed = closed;
        return 0;
}

int ring_consumer_next(struct ring_consumer *c, struct ring_slot *ret, const uint8_t **ret_data) {
        const struct ring_slot *slot;

        if (c->taken == c->produced) {
                bool closed;
                int r = consumer_look(c, &closed);
                if (r < 0)
                        return r;
                if (c->taken == c->produced)
                        return closed ? -EPIPE : 0;
        }
        slot = table(&c->map) + (c->taken & (c->map.slots - 1));
        if (slot->size > c->map.slot_size)
                return -EPROTO;
        *ret = *slot;
        *ret_data = slot_bytes(&c->map, c->taken);
        c->taken++;
        return 1;
}

static void wake_producer(struct ring_consumer *c) {
        atomic_thread_fence(memory_order_seq_cst);
        if (atomic_load_explicit(&c->map.control->producer_waits, memory_order_relaxed) != 0) {
                atomic_store_explicit(&c->map.control->producer_waits, 0, memory_order_relaxed);
                event_set(c->map.fds[FD_RELEASED]);
        }
}

void ring_consumer_release(struct ring_consumer *c) {
        if (c->released == c->taken)
                return;
        c->released++;
        atomic_store_explicit(&c->map.control->released, c->released, memory_order_release);
        /* A producer that found the ring full is woken when half of it is free, not for every slot: it then
         * has something to do for a while. */
        if (c->produced - c->released <= c->map.slots / 2)
                wake_producer(c);
}

int ring_consumer_wait(struct ring_consumer *c, int extra_fd, int timeout_msec) {
        struct ring_control *control = c->map.control;
        struct pollfd fds[2] = {
                { .fd = c->map.fds[FD_PRODUCED], .events = POLLIN },
                { .fd = extra_fd, .events = POLLIN },
        };
        uint64_t begin;
        bool closed;
        int r;

        atomic_store_explicit(&control->consumer_waits, 1, memory_order_relaxed);
        wake_producer(c); /* begins with the fence; a consumer that waits wants the producer to work */
        r = consumer_look(c, &closed);
        if (r < 0 || c->taken != c->produced || closed) {
                atomic_store_explicit(&control->consumer_waits, 0, memory_order_relaxed);
                return r < 0 ? r : 1;
        }
        begin = now_nsec();
        r = poll(fds, 2, timeout_msec);
        if (r < 0)
                r = -errno;
        atomic_store_explicit(&control->consumer_waits, 0, memory_order_relaxed);
        atomic_fetch_add_explicit(&control->consumer_wait_nsec, now_nsec() - begin, memory_order_relaxed);
        if (r > 0 && fds[0].revents != 0)
                event_clear(c->map.fds[FD_PRODUCED]);
        return r < 0 ? r : r > 0;
}

int ring_consumer_fd(const struct ring_consumer *c) {
        return c->map.fds[FD_PRODUCED];
}

bool ring_consumer_arm(struct ring_consumer *c) {
        bool closed;

        event_clear(c->map.fds[FD_PRODUCED]);
        atomic_store_explicit(&c->map.control->consumer_waits, 1, memory_order_relaxed);
        wake_producer(c);
        return consumer_look(c, &closed) < 0 || c->taken != c->produced || closed;
}
