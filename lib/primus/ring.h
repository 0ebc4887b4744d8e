/* SPDX-License-Identifier: Apache-2.0 */
/* The ring between the feeder (one producer) and one trainer process (one consumer). Two memfds:
 *   data:    slot table and slots; sealed SHRINK|GROW|FUTURE_WRITE|SEAL once the producer has mapped it, so a
 * trainer can map it read-only and nothing else; control: one page that both write; sealed SHRINK|GROW|SEAL.
 * A hostile trainer may write anything there at any moment: the producer reads each field once, keeps its own
 * copy of everything that matters, and treats a value that cannot be as the end of that connection. Slots are
 * numbered from 0 for ever; slot n lies at n % slots. produced and released are counts of slots, so the ring
 * is empty when they are equal and full when they differ by slots. Sleeping: who is about to wait sets its
 * flag, looks once more, and reads its eventfd; who moves on looks at the other's flag behind a full fence
 * (both sides: store, fence, load) and writes the eventfd only when it is set. So a side that keeps up makes
 * no system call. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RING_MAGIC 0x676e6952u
#define RING_SLOTS_MAX 4096u
#define RING_SLOT_MIN (64u << 10)
#define RING_SLOT_MAX (64u << 20)
#define RING_BYTES_MAX (UINT64_C(1) << 30)

/* Of one slot, in the data memfd; written by the producer before produced moves. */
struct ring_slot {
        uint64_t task;
        uint64_t position, end; /* see struct chunk in executor/read/reader.h */
        uint64_t skip, records;
        uint32_t size, flags;
        uint32_t source;
        uint32_t crc; /* reserved: 0 */
        uint64_t reserved[1];
};
/* The chunk's flags in executor/read/reader.h, the same values. A slot with RING_MORE ends inside a record:
 * its release acknowledges nothing, that of the record's last slot does. */
#define RING_FIRST 0x1u
#define RING_MORE 0x2u
#define RING_COUNTED 0x4u
#define RING_HEADER 0x8u
#define RING_TASK_END 0x100u /* the last chunk of its task (size may be 0) */
#define RING_TASK_BROKEN                                                                                     \
        0x200u /* the task failed behind this chunk: a record that was begun does not end                    \
                */

struct ring_control {
        uint32_t magic, version;
        _Alignas(64) _Atomic uint64_t produced;
        _Atomic uint32_t closed;         /* 1: no slot follows those produced */
        _Atomic uint32_t producer_waits; /* wants eventfd "released" */
        _Alignas(64) _Atomic uint64_t released;
        _Atomic uint32_t consumer_waits;     /* wants eventfd "produced" */
        _Atomic uint64_t consumer_wait_nsec; /* time the consumer has waited, for the counters: believed
                                                within the clock's bounds */
};

/* ---- the producer's side (executor) ---- */
/* Used by one thread, or under one lock. */
struct ring_producer;
/* slots: a power of two; slot_size: a multiple of 4096; both within the bounds above, else -EINVAL. */
int ring_producer_new(uint32_t slots, uint32_t slot_size, struct ring_producer **ret);
struct ring_producer *ring_producer_free(struct ring_producer *p);
/* Descriptors to pass on, the producer's own: data, control, produced, released. */
void ring_producer_fds(const struct ring_producer *p, int ret[static 4]);
/* The next slot's bytes (slot_size of them). 1: *ret; 0: full, or what has been released has not been taken
 * from ring_producer_released() yet; -EPROTO: the trainer has written nonsense. */
int ring_producer_reserve(struct ring_producer *p, uint8_t **ret);
void ring_producer_commit(struct ring_producer *p, const struct ring_slot *slot);
void ring_producer_close(struct ring_producer *p); /* no more will come */
/* Arms the eventfd "released"; true: there is room, or something to take from ring_producer_released(),
 * already. It is armed in any case, so that a producer that has nothing to write can wait for releases. The
 * eventfd is written when half of the ring is free, and by each release from then on, once for each call of
 * this. */
bool ring_producer_arm(struct ring_producer *p);
/* Slots released since the last call, oldest first, as the producer committed them. 1: *ret; 0: none;
 * -EPROTO. */
int ring_producer_released(struct ring_producer *p, struct ring_slot *ret);
uint64_t ring_producer_unreleased(const struct ring_producer *p);
uint64_t ring_consumer_waited_nsec(struct ring_producer *p); /* bounded, monotone */
/* Whether the consumer says that it is waiting now. */
bool ring_consumer_waits(const struct ring_producer *p);

/* ---- the consumer's side (libprimus) ---- */
struct ring_consumer;
/* Takes over the four descriptors, also on failure. Checks their sizes and seals. */
int ring_consumer_new(const int fds[static 4], uint32_t slots, uint32_t slot_size,
                      struct ring_consumer **ret);
struct ring_consumer *ring_consumer_free(struct ring_consumer *c);
/* The next slot. 1: *ret and its bytes, valid until released; 0: none now; -EPIPE: closed and empty. */
int ring_consumer_next(struct ring_consumer *c, struct ring_slot *ret, const uint8_t **ret_data);
/* The oldest slot taken is not needed any more. */
void ring_consumer_release(struct ring_consumer *c);
/* Waits for a slot, for at most timeout_msec (-1: for ever); also returns when extra_fd (-1: none) is
 * readable (the executor's socket: packets, or its end). 1: look again; 0: the time is over; -EINTR. */
int ring_consumer_wait(struct ring_consumer *c, int extra_fd, int timeout_msec);
/* For a consumer that waits in a poll() of its own: the descriptor, and arming it. True: there is something
 * (or the end) already. */
int ring_consumer_fd(const struct ring_consumer *c);
bool ring_consumer_arm(struct ring_consumer *c);
