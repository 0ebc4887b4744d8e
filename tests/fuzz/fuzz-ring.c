/* SPDX-License-Identifier: Apache-2.0 */
/* A trainer that writes anything to the ring's control page, between the calls of a producer that goes on
 * working: no slot is given out that was not released, every slot is reported once, in order and as it was
 * committed, and nonsense that was noticed stays noticed.
 *
 *   CC=clang meson setup build-fuzz -Dfuzz=true -Db_sanitize=address,undefined -Db_lundef=false
 *   ninja -C build-fuzz tests/fuzz/fuzz-ring
 *   build-fuzz/tests/fuzz/fuzz-ring -max_len=512 CORPUS
 */
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "lib/primus/ring.h"
#include "tests/fuzz/fuzz.h"

struct world {
        struct ring_producer *p;
        struct ring_control *control; /* as the trainer has it mapped */
        uint32_t slots;
        uint64_t produced, reported, waited;
        bool broken;
};

static struct ring_slot slot_of(uint64_t n) {
        return (struct ring_slot){
                .task = n + 1,
                .position = n * 3,
                .end = n * 3 + 3,
                .size = (uint32_t)(n % RING_SLOT_MIN),
                .records = ~n,
        };
}

static void commit(struct world *w) {
        struct ring_slot slot = slot_of(w->produced);
        uint8_t *bytes = NULL;
        int r = ring_producer_reserve(w->p, &bytes);

        MUST(r == 1 || r == 0 || r == -EPROTO);
        MUST(!w->broken || r == -EPROTO);
        w->broken = r == -EPROTO;
        if (r <= 0) {
                MUST(r < 0 || w->produced - w->reported == w->slots);
                return;
        }
        MUST(w->produced - w->reported < w->slots);
        bytes[0] = bytes[RING_SLOT_MIN - 1] = (uint8_t)w->produced;
        ring_producer_commit(w->p, &slot);
        w->produced++;
}

static void take_releases(struct world *w, unsigned max) {
        struct ring_slot slot, want;
        bool broken = w->broken;
        int r = 1;

        while (max-- > 0 && (r = ring_producer_released(w->p, &slot)) > 0) {
                MUST(!broken && w->reported < w->produced);
                want = slot_of(w->reported++);
                MUST(memcmp(&slot, &want, sizeof(slot)) == 0);
        }
        MUST(r == 1 || r == 0 || r == -EPROTO);
        w->broken |= r == -EPROTO;
}

static void look(struct world *w) {
        uint64_t waited = ring_consumer_waited_nsec(w->p);

        MUST(waited >= w->waited && waited < UINT64_C(3600) * 1000000000);
        w->waited = waited;
        MUST(ring_producer_unreleased(w->p) <= w->slots);
        if (!ring_producer_arm(w->p))
                MUST(!w->broken && w->produced - w->reported == w->slots);
}

static uint64_t take_value(const uint8_t **data, size_t *size) {
        uint64_t v = 0;
        size_t n = *size < sizeof(v) ? *size : sizeof(v);

        memcpy(&v, *data, n);
        *data += n;
        *size -= n;
        return v;
}

static void act(struct world *w, const uint8_t **data, size_t *size) {
        uint8_t op = *(*data)++;

        (*size)--;
        switch (op & 7) {
        case 0:
        case 1:
                for (unsigned i = 0; i <= op >> 5; i++)
                        commit(w);
                break;
        case 2:
                take_releases(w, op >> 3);
                break;
        case 3:
                look(w);
                break;
        case 4: { /* anything, anywhere in the page's struct */
                uint64_t v = take_value(data, size);

                memcpy((uint8_t *)w->control + (op >> 3) * 8 % sizeof(*w->control), &v, sizeof(v));
                break;
        }
        case 5: /* near what is right */
                atomic_store(&w->control->released, w->produced - (op >> 3) + 4);
                break;
        case 6:
                atomic_fetch_add(&w->control->released, op >> 3 & 3);
                break;
        case 7:
                if (op == 0xff)
                        ring_producer_close(w->p);
                else
                        atomic_store(&w->control->consumer_wait_nsec, take_value(data, size));
                break;
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        struct world w = {};
        int fds[4];

        if (size < 1)
                return 0;
        w.slots = 1u << (*data++ & 7);
        size--;
        MUST(ring_producer_new(w.slots, RING_SLOT_MIN, &w.p) == 0);
        ring_producer_fds(w.p, fds);
        w.control = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fds[1], 0);
        MUST(w.control != MAP_FAILED);
        while (size > 0)
                act(&w, &data, &size);
        take_releases(&w, UINT32_MAX);
        (void)munmap(w.control, 4096);
        ring_producer_free(w.p);
        return 0;
}
