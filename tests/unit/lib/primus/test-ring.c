/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/primus/ring.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define SIZE RING_SLOT_MIN

struct pair {
        struct ring_producer *p;
        struct ring_consumer *c;
        uint32_t slots;
};

static void dup_fds(const struct ring_producer *p, int ret[static 4]) {
        ring_producer_fds(p, ret);
        for (size_t i = 0; i < 4; i++) {
                ret[i] = fcntl(ret[i], F_DUPFD_CLOEXEC, 3);
                assert_true(ret[i] >= 0);
        }
}

static struct pair pair_new(uint32_t slots) {
        struct pair x = { .slots = slots };
        int fds[4];

        assert_int_equal(ring_producer_new(slots, SIZE, &x.p), 0);
        dup_fds(x.p, fds);
        assert_int_equal(ring_consumer_new(fds, slots, SIZE, &x.c), 0);
        return x;
}

static void pair_done(struct pair *x) {
        x->p = ring_producer_free(x->p);
        x->c = ring_consumer_free(x->c);
}

/* What slot n of a test holds: its size and bytes follow from its number. */
static struct ring_slot slot_of(uint64_t n) {
        return (struct ring_slot){
                .task = n / 7 + 1,
                .position = n * 11,
                .end = n * 11 + 11,
                .size = (uint32_t)(n * 2654435761u % (SIZE + 1)),
                .flags = n % 7 == 6 ? RING_TASK_END : 0,
        };
}

static void fill(uint8_t *data, uint64_t n) {
        struct ring_slot s = slot_of(n);

        /* The ends are enough to see that it is this slot and whole. */
        memset(data, (int)(n * 37 & 0xff), s.size < 256 ? s.size : 256);
        if (s.size > 0)
                data[s.size - 1] = (uint8_t)~n;
}

static bool holds(const uint8_t *data, const struct ring_slot *s, uint64_t n) {
        struct ring_slot want = slot_of(n);

        if (memcmp(s, &want, sizeof(want)) != 0)
                return false;
        if (s->size > 1 && data[0] != (uint8_t)(n * 37 & 0xff))
                return false;
        return s->size == 0 || data[s->size - 1] == (uint8_t)~n;
}

static int put(struct ring_producer *p, uint64_t n) {
        struct ring_slot s = slot_of(n);
        uint8_t *data;
        int r = ring_producer_reserve(p, &data);

        if (r <= 0)
                return r;
        fill(data, n);
        ring_producer_commit(p, &s);
        return 1;
}

static void test_shape(void **state) {
        struct ring_producer *p = NULL;

        assert_int_equal(ring_producer_new(0, SIZE, &p), -EINVAL);
        assert_int_equal(ring_producer_new(3, SIZE, &p), -EINVAL);
        assert_int_equal(ring_producer_new(2 * RING_SLOTS_MAX, SIZE, &p), -EINVAL);
        assert_int_equal(ring_producer_new(2, SIZE / 2, &p), -EINVAL);
        assert_int_equal(ring_producer_new(2, SIZE + 1, &p), -EINVAL);
        assert_int_equal(ring_producer_new(4096, RING_SLOT_MAX, &p), -EINVAL);
        assert_null(p);
        assert_null(ring_producer_free(NULL));
        assert_null(ring_consumer_free(NULL));
}

/* Full, empty, around its end several times, and closed. */
static void test_around(void **state) {
        for (uint32_t slots = 1; slots <= 8; slots *= 2) {
                struct pair x = pair_new(slots);
                struct ring_slot s;
                const uint8_t *data;
                uint64_t in = 0, out = 0, back = 0;

                for (int round = 0; round < 5; round++) {
                        while (put(x.p, in) > 0)
                                in++;
                        assert_int_equal(in - back, slots);
                        assert_int_equal(ring_producer_unreleased(x.p), slots);
                        for (uint32_t i = 0; i < slots - slots / 2; i++, out++) {
                                assert_int_equal(ring_consumer_next(x.c, &s, &data), 1);
                                assert_true(holds(data, &s, out));
                        }
                        assert_int_equal(ring_producer_released(x.p, &s), 0);
                        while (back < out) {
                                ring_consumer_release(x.c);
                                assert_int_equal(ring_producer_released(x.p, &s), 1);
                                assert_int_equal(s.position, back * 11);
                                back++;
                        }
                        assert_int_equal(ring_producer_released(x.p, &s), 0);
                }
                ring_producer_close(x.p);
                for (; out < in; out++) {
                        assert_int_equal(ring_consumer_next(x.c, &s, &data), 1);
                        assert_true(holds(data, &s, out));
                        ring_consumer_release(x.c);
                }
                assert_int_equal(ring_consumer_next(x.c, &s, &data), -EPIPE);
                ring_consumer_release(x.c); /* one too many does nothing */
                while (back < in) {
                        assert_int_equal(ring_producer_released(x.p, &s), 1);
                        back++;
                }
                assert_int_equal(ring_producer_released(x.p, &s), 0);
                pair_done(&x);
        }
}

/* A slot whose release has not been taken is not given out again: its entry would be lost. */
static void test_releases_are_taken_first(void **state) {
        struct pair x = pair_new(2);
        struct ring_slot s;
        const uint8_t *data;

        assert_int_equal(put(x.p, 0), 1);
        assert_int_equal(put(x.p, 1), 1);
        assert_int_equal(ring_consumer_next(x.c, &s, &data), 1);
        ring_consumer_release(x.c);
        assert_int_equal(put(x.p, 2), 0);
        assert_true(ring_producer_arm(x.p));
        assert_int_equal(ring_producer_released(x.p, &s), 1);
        assert_int_equal(put(x.p, 2), 1);
        assert_int_equal(put(x.p, 3), 0);
        assert_false(ring_producer_arm(x.p));
        pair_done(&x);
}

static bool readable(int fd) {
        struct pollfd p = { .fd = fd, .events = POLLIN };

        return poll(&p, 1, 0) > 0;
}

static void test_wake(void **state) {
        struct pair x = pair_new(4);
        struct ring_slot s;
        const uint8_t *data;
        int fds[4], more[2];

        ring_producer_fds(x.p, fds);
        for (uint64_t n = 0; n < 4; n++)
                assert_int_equal(put(x.p, n), 1);
        assert_false(readable(fds[2])); /* nobody waited */
        assert_false(ring_producer_arm(x.p));
        for (int i = 0; i < 4; i++)
                assert_int_equal(ring_consumer_next(x.c, &s, &data), 1);
        ring_consumer_release(x.c);
        assert_false(readable(fds[3]));
        ring_consumer_release(x.c);
        assert_true(readable(fds[3])); /* half of it is free */
        assert_true(ring_producer_arm(x.p));
        assert_false(readable(fds[3]));
        ring_consumer_release(x.c);
        assert_true(readable(fds[3])); /* armed though there was room */

        /* The consumer waits: for nothing, for a descriptor, for a slot. A waiting consumer wakes the
         * producer. */
        while (ring_producer_released(x.p, &s) > 0)
                ;
        (void)ring_producer_arm(x.p);
        assert_int_equal(ring_consumer_wait(x.c, -1, 20), 0);
        assert_true(readable(fds[3]));
        assert_true(ring_consumer_waited_nsec(x.p) >= 15000000);
        assert_int_equal(pipe(more), 0);
        assert_int_equal(write(more[1], "x", 1), 1);
        assert_int_equal(ring_consumer_wait(x.c, more[0], -1), 1);
        assert_int_equal(put(x.p, 4), 1);
        assert_int_equal(ring_consumer_wait(x.c, -1, -1), 1);
        assert_int_equal(ring_consumer_next(x.c, &s, &data), 1);
        ring_producer_close(x.p);
        assert_int_equal(ring_consumer_wait(x.c, -1, -1), 1);
        close(more[0]);
        close(more[1]);
        pair_done(&x);
}

#define MANY 20000u

static void produce(struct ring_producer *p) {
        struct ring_slot s;
        uint64_t in = 0, back = 0;
        int fds[4], r;

        ring_producer_fds(p, fds);
        while (back < MANY) {
                while ((r = ring_producer_released(p, &s)) > 0) {
                        assert_int_equal(s.position, back * 11);
                        back++;
                }
                assert_int_equal(r, 0);
                while (in < MANY && (r = put(p, in)) > 0)
                        in++;
                assert_true(r >= 0);
                if (in == MANY)
                        ring_producer_close(p);
                if (in == MANY && back < MANY) {
                        /* Room is of no use any more: wait for releases; the consumer may be gone when the
                         * last ones are told of, so not for ever. */
                        struct pollfd f = { .fd = fds[3], .events = POLLIN };
                        (void)ring_producer_arm(p);
                        (void)poll(&f, 1, 10);
                } else if (in < MANY && !ring_producer_arm(p)) {
                        struct pollfd f = { .fd = fds[3], .events = POLLIN };
                        assert_int_equal(poll(&f, 1, 20000), 1);
                }
        }
}

/* Everything, in order; now and then several slots are held. 0 or where it went wrong. */
static int consume(struct ring_consumer *c, uint32_t slots) {
        struct ring_slot s;
        const uint8_t *data;
        uint64_t out = 0, held = 0;

        for (;;) {
                int r = ring_consumer_next(c, &s, &data);
                if (r == -EPIPE)
                        return out == MANY ? 0 : 1;
                if (r < 0)
                        return 2;
                if (r == 0) {
                        while (held > 0) {
                                ring_consumer_release(c);
                                held--;
                        }
                        if (ring_consumer_wait(c, -1, 20000) != 1)
                                return 3;
                        continue;
                }
                if (!holds(data, &s, out))
                        return 4;
                out++;
                held++;
                while (held > out % 5 && held > 0) {
                        ring_consumer_release(c);
                        held--;
                }
                if (held >= slots)
                        return 5;
        }
}

static void *consumer_thread(void *argument) {
        struct pair *x = argument;

        return (void *)(intptr_t)consume(x->c, x->slots);
}

static void test_threads(void **state) {
        for (uint32_t slots = 8; slots <= 64; slots *= 8) {
                struct pair x = pair_new(slots);
                pthread_t thread;
                void *result;

                assert_int_equal(pthread_create(&thread, NULL, consumer_thread, &x), 0);
                produce(x.p);
                assert_int_equal(pthread_join(thread, &result), 0);
                assert_int_equal((intptr_t)result, 0);
                assert_int_equal(ring_producer_unreleased(x.p), 0);
                pair_done(&x);
        }
}

static void test_processes(void **state) {
        struct ring_producer *p;
        int fds[4], status;
        pid_t pid;

        assert_int_equal(ring_producer_new(16, SIZE, &p), 0);
        dup_fds(p, fds);
        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
                struct ring_consumer *c;
                if (ring_consumer_new(fds, 16, SIZE, &c) < 0)
                        _exit(9);
                _exit(consume(c, 16));
        }
        for (size_t i = 0; i < 4; i++)
                close(fds[i]);
        produce(p);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
        ring_producer_free(p);
}

/* What is passed on can be read and nothing else. */
static void test_sealed(void **state) {
        struct ring_producer *p;
        int fds[4];
        void *m;

        assert_int_equal(ring_producer_new(2, SIZE, &p), 0);
        ring_producer_fds(p, fds);
        assert_int_equal(ftruncate(fds[0], 0), -1);
        assert_int_equal(ftruncate(fds[0], 1 << 30), -1);
        assert_int_equal(ftruncate(fds[1], 0), -1);
        assert_int_equal(pwrite(fds[0], "x", 1, 0), -1);
        assert_ptr_equal(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fds[0], 0), MAP_FAILED);
        m = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fds[0], 0);
        assert_ptr_not_equal(m, MAP_FAILED);
        assert_int_equal(mprotect(m, 4096, PROT_READ | PROT_WRITE), -1);
        munmap(m, 4096);
        ring_producer_free(p);
}

/* A consumer takes nothing that could later fault under it or is no ring. */
static void test_consumer_checks(void **state) {
        struct ring_producer *p;
        struct ring_consumer *c = NULL;
        int fds[4];

        assert_int_equal(ring_producer_new(2, SIZE, &p), 0);
        dup_fds(p, fds);
        assert_int_equal(ring_consumer_new(fds, 4, SIZE, &c), -EPROTO); /* another size */
        dup_fds(p, fds);
        assert_int_equal(ring_consumer_new(fds, 3, SIZE, &c), -EINVAL);
        dup_fds(p, fds);
        assert_int_equal(fcntl(fds[0], F_GETFD) < 0, 0);
        close(fds[0]);
        fds[0] = memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        assert_int_equal(ftruncate(fds[0], 4096 + 2 * (off_t)SIZE), 0);
        assert_int_equal(ring_consumer_new(fds, 2, SIZE, &c), -EPROTO);
        dup_fds(p, fds);
        close(fds[1]);
        fds[1] = fcntl(fds[0], F_DUPFD_CLOEXEC, 3);
        assert_int_equal(ring_consumer_new(fds, 2, SIZE, &c), -EPROTO);
        assert_null(c);
        ring_producer_free(p);
}

/* The control page says what cannot be: refused, for good, without a slot being given out again. */
static void test_hostile(void **state) {
        static const struct {
                uint64_t released;
                int expected;
        } cases[] = {
                { 0, 0 },
                { 1, 1 },
                { 2, 1 },
                { 3, -EPROTO },
                { UINT64_MAX, -EPROTO },
                { UINT64_C(1) << 63, -EPROTO },
        };

        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                struct ring_producer *p;
                struct ring_control *control;
                struct ring_slot s;
                uint8_t *data;
                int fds[4];

                assert_int_equal(ring_producer_new(4, SIZE, &p), 0);
                ring_producer_fds(p, fds);
                control = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fds[1], 0);
                assert_ptr_not_equal(control, MAP_FAILED);
                assert_int_equal(put(p, 0), 1);
                assert_int_equal(put(p, 1), 1);
                atomic_store(&control->released, cases[i].released);
                atomic_store(&control->produced, 77);
                control->magic = 0;
                atomic_store(&control->consumer_wait_nsec, UINT64_MAX);
                assert_int_equal(ring_producer_released(p, &s), cases[i].expected);
                assert_true(ring_consumer_waited_nsec(p) < UINT64_C(60000000000));
                if (cases[i].expected == -EPROTO) {
                        atomic_store(&control->released, 1);
                        assert_int_equal(ring_producer_released(p, &s), -EPROTO);
                        assert_int_equal(ring_producer_reserve(p, &data), -EPROTO);
                        assert_true(ring_producer_arm(p));
                } else if (cases[i].released > 0) {
                        atomic_store(&control->released, 0); /* goes back */
                        while (ring_producer_released(p, &s) > 0)
                                ;
                        assert_int_equal(ring_producer_released(p, &s), -EPROTO);
                }
                munmap(control, 4096);
                ring_producer_free(p);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_shape),
                cmocka_unit_test(test_around),
                cmocka_unit_test(test_releases_are_taken_first),
                cmocka_unit_test(test_wake),
                cmocka_unit_test(test_threads),
                cmocka_unit_test(test_processes),
                cmocka_unit_test(test_sealed),
                cmocka_unit_test(test_consumer_checks),
                cmocka_unit_test(test_hostile),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
