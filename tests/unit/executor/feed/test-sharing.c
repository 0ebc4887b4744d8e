/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a process of a trainer that waits while tasks are pending is always served, whoever else holds what
 * (masterd/data/takers.h, executor/feed/seats.h, executor/feed/tasks.h): worlds of a master, feeders and
 * trainers whose processes come, go, wait and read in every order, and whose messages take any time. Trainers
 * take from their processes in turn, as a DataLoader does, and from each other's, as ranks in collectives do;
 * so whoever is not served stops the world. When one has come to rest, it is looked at. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include <cmocka.h>

#include "executor/feed/seats.h"
#include "executor/feed/tasks.h"
#include "lib/base/cleanup.h"
#include "lib/wire/input.h"
#include "masterd/data/takers.h"

#define FEEDERS 4
#define PROCESSES 8
#define TASKS 60
#define UNITS 12 /* of the longest task */
#define MESSAGES 4096
#define WORLDS 4000
#define STEPS_MAX 1000000

struct unit {
        uint64_t task, end;
        bool last;
};
/* A process of the trainer, with what its feeder has for it. */
struct process {
        bool there, gone, ended, asked_once;
        struct seat seat;        /* descriptor */
        struct task *task;       /* ring, stdin: that its thread reads */
        uint64_t at;             /* there */
        struct unit ring[64];    /* read and not released */
        unsigned n_ring, held;   /* held: those of them that it works on */
        uint64_t queue[8];       /* descriptor: its tasks, the first of which it reads */
        unsigned n_queue, ahead; /* so many it wants to have */
        unsigned ready;          /* batches that the trainer has not taken */
};
struct feeder {
        enum input_delivery mode;
        bool old; /* of the release before */
        struct tasks tasks;
        struct told told;
        struct process processes[PROCESSES];
        unsigned n, readers, slots, budget, turn; /* whose batch the trainer takes next */
        uint64_t turns, took;
        uint64_t prepared[PROCESSES + 1]; /* descriptor: tasks that have been opened */
        unsigned n_prepared;
        bool open, counted;
        /* the master's */
        struct taker taker;
        bool last;
};
struct message {
        bool grant, last, opens;
        uint64_t tasks[TASKS];
        unsigned n;
        struct taker_word word;
        struct {
                uint64_t task, read;
                bool done;
        } progress[TASKS];
};
struct world {
        unsigned seed;
        struct feeder feeders[FEEDERS];
        unsigned n_feeders;
        bool lockstep, deaths;
        uint64_t now;
        /* the master's */
        struct takers takers;
        struct {
                int holder; /* -1: pending */
                uint64_t size, read;
                bool done;
        } tasks[TASKS];
        unsigned n_tasks, n_done;
        struct message *up[FEEDERS][MESSAGES], *down[FEEDERS][MESSAGES];
        unsigned up_first[FEEDERS], up_n[FEEDERS], down_first[FEEDERS], down_n[FEEDERS];
};

static unsigned pick(struct world *w, unsigned n) {
        return (unsigned)rand_r(&w->seed) % n;
}

static uint64_t unit_size(const struct world *w, uint64_t task) {
        return MAX(w->tasks[task - 1].size / UNITS, UINT64_C(1));
}

/* ---- the master ---- */

static unsigned n_pending(const struct world *w) {
        unsigned n = 0;

        for (unsigned i = 0; i < w->n_tasks; i++)
                n += w->tasks[i].holder < 0;
        return n;
}

static void send_down(struct world *w, struct feeder *f, const struct message *m) {
        size_t k = (size_t)(f - w->feeders);
        struct message *copy = malloc(sizeof(*copy));

        assert_non_null(copy);
        *copy = *m;
        assert_true(w->down_first[k] + w->down_n[k] < MESSAGES);
        w->down[k][w->down_first[k] + w->down_n[k]++] = copy;
}

static void grant_all(struct world *w) {
        struct takers_turn u = takers_begin(n_pending(w), w->n_feeders, w->now);
        struct taker *t;
        uint32_t n;

        while ((t = takers_next(&w->takers, &u, &n))) {
                struct feeder *f = (struct feeder *)((char *)t - offsetof(struct feeder, taker));
                struct message m = { .grant = true };

                assert_true(n > 0 && n <= t->credits);
                for (unsigned i = 0; i < w->n_tasks && m.n < n; i++)
                        if (w->tasks[i].holder < 0) {
                                w->tasks[i].holder = (int)(f - w->feeders);
                                m.tasks[m.n++] = i + 1;
                                t->n_unread++;
                        }
                if (m.n == 0)
                        return;
                send_down(w, f, &m);
                takers_gave(&w->takers, &u, t, m.n);
        }
}

static void count_unread(struct world *w, struct feeder *f) {
        f->taker.n_unread = 0;
        for (unsigned i = 0; i < w->n_tasks; i++)
                f->taker.n_unread += w->tasks[i].holder == f - w->feeders && !w->tasks[i].done &&
                                     w->tasks[i].read < w->tasks[i].size;
}

static void master_hears(struct world *w, struct feeder *f, const struct message *m) {
        struct taker_word word = m->word;

        for (unsigned i = 0; i < m->n; i++) {
                uint64_t t = m->progress[i].task - 1;

                w->tasks[t].read = MAX(w->tasks[t].read, m->progress[i].read);
                w->n_done += m->progress[i].done && !w->tasks[t].done;
                w->tasks[t].done |= m->progress[i].done;
        }
        count_unread(w, f);
        if (m->opens) { /* grants may have been lost */
                struct message again = { .grant = true, .last = f->last };

                for (unsigned i = 0; i < w->n_tasks; i++)
                        if (w->tasks[i].holder == f - w->feeders && !w->tasks[i].done)
                                again.tasks[again.n++] = i + 1;
                f->open = true;
                send_down(w, f, &again);
        }
        word.open = f->open && !f->last;
        word.idle = true;
        for (unsigned i = 0; i < w->n_tasks; i++)
                word.idle &= w->tasks[i].holder != f - w->feeders || w->tasks[i].done;
        takers_say(&w->takers, &f->taker, &word, w->now);
        grant_all(w);
}

/* ---- a feeder: as report.c, ranges.c, lane.c and pipe.c have it ---- */

static struct hunger hunger(struct feeder *f) {
        uint32_t hungry = 0, idle = 0;

        if (f->tasks.last)
                return (struct hunger){};
        for (unsigned i = 0; i < f->n; i++) {
                struct process *p = f->processes + i;

                if (!p->there || p->gone || p->ended)
                        continue;
                if (f->mode == DELIVERY_DESCRIPTOR)
                        hungry += seat_is_hungry(&p->seat);
                else if (p->n_ring == 0) {
                        hungry++;
                        idle += !p->task && !tasks_own(&f->tasks, p);
                }
        }
        if (f->mode == DELIVERY_DESCRIPTOR)
                return hunger_of(hungry, f->n_prepared + tasks_free(&f->tasks, hungry));
        return (struct hunger){ hungry, hunger_of(idle, tasks_free(&f->tasks, idle)).unserved };
}

static void send_up(struct world *w, struct feeder *f, bool opens) {
        size_t k = (size_t)(f - w->feeders);
        struct hunger h = hunger(f);
        struct message *m = calloc(1, sizeof(*m));
        struct task *t;

        assert_non_null(m);
        while ((t = f->tasks.dirty)) {
                struct task_progress p = tasks_progress(&f->tasks, t);

                m->progress[m->n].task = t->id;
                m->progress[m->n].read = p.read;
                m->progress[m->n++].done = p.state == TASK_DONE;
                tasks_reported(&f->tasks, t, false);
        }
        m->word =
                (struct taker_word){ .credits = tasks_credits(&f->tasks, f->readers, f->old ? 0 : h.unserved),
                                     .unserved = f->old || opens ? 0 : h.unserved,
                                     .hungry = f->old || opens ? 0 : h.hungry,
                                     .speaks = !f->old };
        m->opens = opens;
        f->told = (struct told){ m->word.credits, { m->word.hungry, m->word.unserved } };
        assert_true(w->up_first[k] + w->up_n[k] < MESSAGES);
        w->up[k][w->up_first[k] + w->up_n[k]++] = m;
}

static bool may_report(struct feeder *f) {
        struct hunger h = f->old ? (struct hunger){} : hunger(f);

        return f->tasks.dirty ||
               told_is_news(&f->told, tasks_credits(&f->tasks, f->readers, h.unserved), h) ||
               told_has_changed(&f->told, h);
}

static void feeder_hears(struct world *w, struct feeder *f, const struct message *m) {
        for (unsigned i = 0; i < m->n; i++) {
                uint64_t size = w->tasks[m->tasks[i] - 1].size;
                struct task_grant g = { .task = m->tasks[i], .end = size, .size = size, .path = "/d" };

                assert_true(tasks_grant(&f->tasks, &g) >= 0);
                told_granted(&f->told);
        }
        f->tasks.last |= m->last;
}

/* Opens a task. */
static bool prepare(struct feeder *f, bool act) {
        struct task *t;

        if (f->mode != DELIVERY_DESCRIPTOR || f->readers == 0 || f->n_prepared > f->readers ||
            !tasks_may_take(&f->tasks, f))
                return false;
        if (act && (t = tasks_take(&f->tasks, f)))
                f->prepared[f->n_prepared++] = t->id;
        return true;
}

static bool hand_out(struct feeder *f, bool act) {
        struct seat *s = NULL;
        struct process *p;
        struct task *t;

        if (f->n_prepared == 0)
                return false;
        for (unsigned i = 0; i < f->n; i++)
                s = seat_first(s, &f->processes[i].seat);
        if (!s || !act)
                return s != NULL;
        p = (struct process *)((char *)s - offsetof(struct process, seat));
        t = tasks_find(&f->tasks, f->prepared[0]);
        memmove(f->prepared, f->prepared + 1, --f->n_prepared * sizeof(f->prepared[0]));
        seat_give(s, &f->turns);
        t->holder = p;
        tasks_delivered(&f->tasks, t, (struct task_mark){ t->end, 0 });
        p->queue[p->n_queue++] = t->id;
        return true;
}

/* The thread of a ring or pipe. */
static bool fill(struct world *w, struct feeder *f, struct process *p, bool act) {
        uint64_t n;

        if (f->mode == DELIVERY_DESCRIPTOR || !p->there || p->gone || p->ended || p->n_ring == f->slots ||
            (!p->task && !tasks_may_take(&f->tasks, p)))
                return false;
        if (!act)
                return true;
        if (!p->task) {
                p->task = tasks_take(&f->tasks, p);
                p->at = p->task->from.position;
        }
        n = MIN(unit_size(w, p->task->id), p->task->end - p->at);
        p->at += n;
        tasks_delivered(&f->tasks, p->task, (struct task_mark){ p->at, 0 });
        tasks_read(&f->tasks, p->task, p->at, MAX(p->task->end - p->at, UINT64_C(1)));
        p->ring[p->n_ring++] = (struct unit){ p->task->id, p->at, p->at == p->task->end };
        if (p->at == p->task->end) {
                tasks_whole(&f->tasks, p->task);
                p->task = NULL;
        }
        return true;
}

/* Nothing more comes for it, which it learns when it waits. */
static bool tell_end(struct feeder *f, struct process *p, bool act) {
        bool waits = f->mode == DELIVERY_DESCRIPTOR ? seat_is_hungry(&p->seat) && f->n_prepared == 0
                                                    : p->n_ring == 0 && !p->task;

        if (!f->tasks.last || !p->there || p->gone || p->ended || !waits ||
            tasks_may_take(&f->tasks, f->mode == DELIVERY_DESCRIPTOR ? (void *)f : p))
                return false;
        if (act)
                p->ended = p->seat.out = true;
        return true;
}

/* ---- a process of the trainer ---- */

static bool descriptor_read(struct world *w, struct feeder *f, struct process *p, bool act) {
        struct task *t;
        uint64_t read;
        bool asks = (p->n_queue == 0 || !p->asked_once) && p->n_queue + p->seat.credits < p->ahead;

        if (p->n_queue == 0 && !asks)
                return false;
        if (!act)
                return true;
        if (asks) { /* as lib/primus/mode-descriptor.c: before it begins a task */
                p->seat.credits += p->ahead - p->n_queue - p->seat.credits;
                p->asked_once = true;
                return true;
        }
        t = tasks_find(&f->tasks, p->queue[0]);
        read = MIN(t->read + unit_size(w, t->id), t->end);
        tasks_read(&f->tasks, t, read, MAX(t->end - read, UINT64_C(1)));
        p->ready++;
        if (read < t->end)
                return true;
        tasks_whole(&f->tasks, t);
        assert_int_equal(tasks_ack(&f->tasks, t, (struct task_mark){ TASK_TO_END, 0 }, 0), 0);
        seat_take_back(&p->seat);
        memmove(p->queue, p->queue + 1, --p->n_queue * sizeof(p->queue[0]));
        p->asked_once = false;
        return true;
}

static bool ring_read(struct feeder *f, struct process *p, bool act) {
        struct unit u;
        struct task *t;

        if (p->n_ring == 0)
                return false;
        if (!act)
                return true;
        if (p->held > 0) {
                u = p->ring[0];
                memmove(p->ring, p->ring + 1, --p->n_ring * sizeof(u));
                p->held = 0;
                t = tasks_find(&f->tasks, u.task);
                if (t)
                        assert_int_equal(tasks_ack(&f->tasks, t, (struct task_mark){ u.end, 0 }, 0), 0);
        }
        if (p->n_ring > 0) {
                p->held = 1;
                p->ready++;
        }
        return true;
}

/* It works ahead of the trainer by so much and no further. */
static bool work(struct world *w, struct feeder *f, struct process *p, bool act) {
        if (!p->there || p->gone || p->ended || p->ready >= f->budget)
                return false;
        return f->mode == DELIVERY_DESCRIPTOR ? descriptor_read(w, f, p, act) : ring_read(f, p, act);
}

static bool come(struct feeder *f, struct process *p, bool act) {
        if (p->there)
                return false;
        if (act) {
                p->there = true;
                f->readers++;
        }
        return true;
}

/* Dies, and what it has is for the others. */
static void go(struct feeder *f, struct process *p) {
        p->gone = p->seat.out = true;
        p->ready = p->n_ring = p->n_queue = p->held = 0;
        p->task = NULL;
        f->readers--;
        tasks_give_back(&f->tasks, p);
}

/* The trainer takes from its processes in turn, and no faster than the slowest of those that go on. */
static bool take(struct world *w, struct feeder *f, bool act) {
        uint64_t slowest = UINT64_MAX;
        struct process *p = NULL;
        unsigned i;

        for (i = 0; i < f->n; i++) {
                p = f->processes + (f->turn + i) % f->n;
                if (!p->gone && !(p->ended && p->ready == 0))
                        break;
        }
        if (i == f->n || !p || p->ready == 0)
                return false;
        for (struct feeder *o = w->feeders; w->lockstep && o < w->feeders + w->n_feeders; o++)
                for (unsigned k = 0; k < o->n; k++)
                        if (!o->processes[k].gone && !(o->processes[k].ended && o->processes[k].ready == 0))
                                slowest = MIN(slowest, o->took);
        if (w->lockstep && f->took > slowest)
                return false;
        if (act) {
                p->ready--;
                f->took++;
                f->turn = (unsigned)(p - f->processes + 1) % f->n;
        }
        return true;
}

/* ---- the world ---- */

static void lose_link(struct world *w, struct feeder *f) {
        size_t k = (size_t)(f - w->feeders);

        for (unsigned i = 0; i < w->up_n[k]; i++)
                free(w->up[k][w->up_first[k] + i]);
        for (unsigned i = 0; i < w->down_n[k]; i++)
                free(w->down[k][w->down_first[k] + i]);
        w->up_n[k] = w->down_n[k] = 0;
        takers_out(&w->takers, &f->taker);
        f->open = false;
        tasks_report_all(&f->tasks);
        send_up(w, f, true);
}

/* One thing that can happen; false: that one cannot now. */
static bool happen(struct world *w, unsigned what, bool act) {
        unsigned k = what % w->n_feeders, i = what / w->n_feeders;
        struct feeder *f = w->feeders + k;
        struct message *m;

        switch (i) {
        case 0:
                if (w->up_n[k] == 0)
                        return false;
                if (act) {
                        m = w->up[k][w->up_first[k]++];
                        w->up_n[k]--;
                        master_hears(w, f, m);
                        free(m);
                }
                return true;
        case 1:
                if (w->down_n[k] == 0)
                        return false;
                if (act) {
                        m = w->down[k][w->down_first[k]++];
                        w->down_n[k]--;
                        feeder_hears(w, f, m);
                        free(m);
                }
                return true;
        case 2:
                if (!may_report(f))
                        return false;
                if (act)
                        send_up(w, f, false);
                return true;
        case 3:
                return prepare(f, act);
        case 4:
                return hand_out(f, act);
        case 5:
                return take(w, f, act);
        default:
                i -= 6;
                break;
        }
        if (i / 4 >= f->n)
                return false;
        switch (i % 4) {
        case 0:
                return come(f, f->processes + i / 4, act);
        case 1:
                return fill(w, f, f->processes + i / 4, act);
        case 2:
                return work(w, f, f->processes + i / 4, act);
        default:
                return tell_end(f, f->processes + i / 4, act);
        }
}

/* Until nothing can happen any more. */
static void run(struct world *w) {
        unsigned n = (6 + 4 * PROCESSES) * w->n_feeders, quiet = 0, from;

        while (quiet < n) {
                assert_true(w->now < (uint64_t)STEPS_MAX * 1000); /* or it never comes to rest */
                w->now += 1000;
                from = pick(w, n);
                for (quiet = 0; quiet < n; quiet++)
                        if (happen(w, (from + quiet) % n, false))
                                break;
                if (quiet < n)
                        (void)happen(w, (from + quiet) % n, true);
                if (w->deaths && pick(w, 300) == 0) {
                        struct feeder *f = w->feeders + pick(w, w->n_feeders);
                        struct process *p = f->processes + pick(w, f->n);

                        if (p->there && !p->gone && !p->ended && f->readers > 1)
                                go(f, p);
                        quiet = 0;
                }
                if (w->deaths && pick(w, 1000) == 0) {
                        lose_link(w, w->feeders + pick(w, w->n_feeders));
                        quiet = 0;
                }
        }
}

static void look(const struct world *w, unsigned seed) {
        for (unsigned k = 0; k < w->n_feeders; k++) {
                struct feeder *f = (struct feeder *)w->feeders + k;
                struct hunger h = hunger(f);

                if (n_pending(w) > 0 && !f->last && h.hungry > 0)
                        fail_msg("world %u: %u processes of feeder %u of %u (mode %d, %u processes%s) wait "
                                 "while %u "
                                 "of %u tasks are pending; %u unserved; %u unread there, list %d",
                                 seed, h.hungry, k, w->n_feeders, (int)f->mode, f->n, f->old ? ", old" : "",
                                 n_pending(w), w->n_tasks, h.unserved, f->taker.n_unread, (int)f->taker.list);
        }
}

static void begin(struct world *w, unsigned seed, bool old) {
        memset(w, 0, sizeof(*w));
        w->seed = seed * 2654435761u + 1;
        w->now = 1;
        w->n_feeders = 1 + pick(w, FEEDERS);
        w->n_tasks = 1 + pick(w, TASKS);
        w->lockstep = pick(w, 2) == 0;
        w->deaths = pick(w, 3) == 0;
        for (unsigned i = 0; i < w->n_tasks; i++) {
                w->tasks[i].holder = -1;
                w->tasks[i].size = pick(w, 2) == 0 ? 1 + pick(w, 5000) : 1 + pick(w, 100 << 20);
        }
        for (struct feeder *f = w->feeders; f < w->feeders + w->n_feeders; f++) {
                f->mode = (enum input_delivery)pick(w, _DELIVERY_MAX);
                f->old = old && pick(w, 2) == 0;
                f->n = f->mode == DELIVERY_STDIN ? 1 : 1 + pick(w, PROCESSES);
                f->slots = 2 + pick(w, 16);
                f->budget = 1 + pick(w, 6);
                for (unsigned i = 0; i < f->n; i++)
                        f->processes[i].ahead = pick(w, 3) > 0 || f->old ? 2 : 1 + pick(w, 4);
                tasks_init(&f->tasks, ACK_RELEASE);
                send_up(w, f, true); /* before any of its processes is there */
        }
}

static void live(struct world *w, unsigned seed, bool old) {
        bool again = true;
        unsigned n_done;

        begin(w, seed, old);
        while (again) {
                run(w);
                again = false;
                if (n_pending(w) > 0 && takers_due(&w->takers) != UINT64_MAX) {
                        w->now = MAX(w->now + 1000, takers_due(&w->takers));
                        assert_true(w->now < (uint64_t)STEPS_MAX * 1000);
                        grant_all(w);
                        again = true;
                        continue;
                }
                look(w, seed);
                /* Nothing is left but what is held: those who wait are told that no more comes. */
                for (struct feeder *f = w->feeders; f < w->feeders + w->n_feeders; f++)
                        if (n_pending(w) == 0 && !f->last) {
                                send_down(w, f, &(struct message){ .grant = true, .last = true });
                                f->last = again = true;
                                takers_out(&w->takers, &f->taker);
                        }
        }
        n_done = w->n_done;
        if (!w->deaths && n_done != w->n_tasks)
                fail_msg("world %u: %u of %u tasks are done", seed, n_done, w->n_tasks);
        for (struct feeder *f = w->feeders; f < w->feeders + w->n_feeders; f++)
                tasks_done(&f->tasks);
}

static void worlds(unsigned from, unsigned n, bool old) {
        struct world *w = malloc(sizeof(*w));
        const char *one = getenv("SHARING_WORLD");

        assert_non_null(w);
        if (one) {
                from = (unsigned)strtoul(one, NULL, 10);
                n = 1;
        }
        for (unsigned i = from; i < from + n; i++)
                live(w, i, old);
        free(w);
}

static void test_who_is_first(void **state) {
        struct seat none = { .credits = 1, .turn = 9 }, one = { .credits = 3, .given = 1, .turn = 1 },
                    idle = { .given = 0 }, out = { .credits = 1, .out = true };
        uint64_t turns = 9;

        assert_ptr_equal(seat_first(&one, &none), &none); /* who has nothing, however long the other waits */
        assert_ptr_equal(seat_first(&none, &one), &none);
        assert_ptr_equal(seat_first(&idle, &one), &one);
        assert_ptr_equal(seat_first(&one, &out), &one);
        assert_null(seat_first(&idle, &out));
        assert_null(seat_first(NULL, &out));
        seat_give(&none, &turns);
        assert_false(seat_is_hungry(&none));
        assert_ptr_equal(seat_first(NULL, &none), NULL);
        none.credits = 1;
        assert_ptr_equal(seat_first(&none, &one), &one); /* as many: who has waited for longer */
        seat_take_back(&none);
        assert_true(seat_is_hungry(&none));
}

static void test_nobody_starves(void **state) {
        worlds(0, WORLDS, false);
}

static void test_nobody_starves_with_old_feeders(void **state) {
        worlds(WORLDS, WORLDS / 4, true);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_who_is_first),
                cmocka_unit_test(test_nobody_starves),
                cmocka_unit_test(test_nobody_starves_with_old_feeders),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
