/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of an array. Invariant: n_state[] is the count of states[]. */
#include "masterd/job/array.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/base/cleanup.h"
#include "lib/base/grow.h"
#include "lib/base/heap.h"
#include "lib/base/try.h"

struct array *array_free(struct array *a) {
        if (!a)
                return NULL;
        if (a->share) {
                assert(a->share->n >= array_active(a));
                a->share->n -= array_active(a);
                a->share->bytes -= array_active(a) * a->element_bytes;
        }
        array_range_done(&a->range);
        trials_free(a->trials);
        spec_free(a->element);
        spec_free(a->searcher.spec);
        free(a->states);
        free(a->jobs);
        free(a);
        return NULL;
}

int array_new(const char *text, struct array **ret) {
        struct array *a = calloc(1, sizeof(*a));
        const char *why;
        int r;

        if (!a)
                return -ENOMEM;
        r = array_range_parse(text, &a->range, &why);
        if (r >= 0) {
                a->states = calloc(a->range.n, sizeof(*a->states));
                a->jobs = calloc(a->range.n, sizeof(*a->jobs));
                if (!a->states || !a->jobs)
                        r = -ENOMEM;
        }
        if (r < 0) {
                array_free(a);
                return r;
        }
        a->n_state[ELEMENT_UNMADE] = a->range.n;
        *ret = a;
        return 0;
}

int array_new_search(const struct search_spec *spec, struct array **ret) {
        struct array *a = calloc(1, sizeof(*a));
        int r = a ? trials_new(spec, &a->trials) : -ENOMEM;

        if (r < 0) {
                array_free(a);
                return r;
        }
        /* A searcher may ask for more than is to run together. */
        if (a->trials->settings.searcher)
                a->range.limit = a->trials->settings.max_concurrent;
        *ret = a;
        return 0;
}

int array_grow(struct array *a) {
        uint32_t n = a->range.n;

        TRY(ARRAY_DOUBLE(a->range.indices, n));
        TRY(ARRAY_DOUBLE(a->states, n));
        TRY(ARRAY_DOUBLE(a->jobs, n));
        a->range.indices[n] = n;
        a->states[n] = ELEMENT_UNMADE;
        a->jobs[n] = 0;
        a->range.n = n + 1;
        a->n_state[ELEMENT_UNMADE]++;
        return 0;
}

int array_find(const struct array *a, uint32_t index, uint32_t *ret_position) {
        uint32_t low = 0, high = a->range.n;

        while (low < high) {
                uint32_t middle = low + (high - low) / 2;
                if (a->range.indices[middle] < index)
                        low = middle + 1;
                else
                        high = middle;
        }
        if (low == a->range.n || a->range.indices[low] != index)
                return -ENOENT;
        *ret_position = low;
        return 0;
}

enum element_state element_state_of(enum job_state s) {
        switch (s) {
        case JOB_SUBMITTED:
        case JOB_QUEUED:
                return ELEMENT_WAITS;
        case JOB_SUCCEEDED:
                return ELEMENT_SUCCEEDED;
        case JOB_FAILED:
                return ELEMENT_FAILED;
        case JOB_KILLED:
                return ELEMENT_KILLED;
        default:
                return ELEMENT_RUNS;
        }
}

void array_join(struct array *a, struct array_share *share) {
        a->share = share;
        share->n += array_active(a);
        share->bytes += array_active(a) * a->element_bytes;
}

void array_weigh(struct array *a, size_t element_bytes) {
        if (a->share)
                a->share->bytes += array_active(a) * (element_bytes - a->element_bytes);
        a->element_bytes = element_bytes;
}

void array_set(struct array *a, uint32_t position, enum element_state s) {
        uint32_t before = array_active(a);

        assert(position < a->range.n && a->n_state[a->states[position]] > 0);
        a->n_state[a->states[position]]--;
        a->states[position] = (uint8_t)s;
        a->n_state[s]++;
        if (a->share) {
                a->share->n += array_active(a) - before;
                a->share->bytes += (array_active(a) - (size_t)before) * a->element_bytes;
        }
        if (s == ELEMENT_UNMADE)
                a->next = MIN(a->next, position);
}

uint32_t array_active(const struct array *a) {
        return a->n_state[ELEMENT_WAITS] + a->n_state[ELEMENT_RUNS];
}

uint32_t array_under_way(const struct array *a) {
        return array_active(a) + a->n_state[ELEMENT_PARKED];
}

uint32_t array_waiting(const struct array *a) {
        return a->n_state[ELEMENT_UNMADE] + a->n_state[ELEMENT_WAITS] + a->n_state[ELEMENT_PARKED] +
               array_total(a) - a->range.n;
}

bool array_over(const struct array *a) {
        return a->n_state[ELEMENT_UNMADE] == 0 && array_under_way(a) == 0 &&
               !(a->trials && search_to_come(a->trials->search));
}

uint32_t array_total(const struct array *a) {
        return a->trials && (search_to_come(a->trials->search) || !a->trials->settings.searcher)
                       ? MAX(a->range.n, a->trials->settings.max_trials)
                       : a->range.n;
}

size_t array_bytes(const struct array *a) {
        const size_t n = array_total(a);

        return heap_of(sizeof(*a)) + heap_of(n * sizeof(*a->range.indices)) +
               heap_of(n * sizeof(*a->states)) + heap_of(n * sizeof(*a->jobs)) +
               (a->element ? spec_bytes(a->element) : 0) +
               (a->searcher.spec ? spec_bytes(a->searcher.spec) : 0) +
               (a->trials ? trials_bytes(a->trials) : 0);
}

/* One more would be too much of what its owner has under way. */
static bool share_is_full(const struct array *a, size_t bytes_max) {
        return a->share && (a->share->n >= ARRAY_WINDOW || a->share->bytes + a->element_bytes > bytes_max);
}

bool array_wants(struct array *a, size_t bytes_max, uint32_t *ret_position) {
        uint32_t window = a->range.limit > 0 ? MIN(a->range.limit, ARRAY_WINDOW) : ARRAY_WINDOW;

        if (array_active(a) >= window || (array_active(a) > 0 && share_is_full(a, bytes_max)))
                return false;
        while (a->next < a->range.n && a->states[a->next] != ELEMENT_UNMADE)
                a->next++;
        if (a->next == a->range.n && !(a->trials && search_wants(a->trials->search)))
                return false;
        *ret_position = a->next;
        return true;
}

uint32_t array_again(struct array *a) {
        uint32_t n = 0;

        for (uint32_t i = 0; i < a->range.n; i++)
                if (a->states[i] != ELEMENT_SUCCEEDED) {
                        array_set(a, i, ELEMENT_UNMADE);
                        n++;
                }
        return n;
}

char *array_text(const struct array *a, char *buf, size_t size) {
        const uint32_t *n = a->n_state;
        char failed[32] = "", killed[32] = "", parked[32] = "", active[96] = "";

        if (n[ELEMENT_FAILED] > 0)
                snprintf(failed, sizeof(failed), ", %u failed", n[ELEMENT_FAILED]);
        if (n[ELEMENT_KILLED] > 0)
                snprintf(killed, sizeof(killed), ", %u killed", n[ELEMENT_KILLED]);
        if (n[ELEMENT_PARKED] > 0)
                snprintf(parked, sizeof(parked), ", %u parked", n[ELEMENT_PARKED]);
        if (!array_over(a))
                snprintf(active, sizeof(active), "; %u run, %u wait%s", n[ELEMENT_RUNS],
                         array_waiting(a) - n[ELEMENT_PARKED], parked);
        snprintf(buf, size, "%u of %u %ssucceeded%s%s%s", n[ELEMENT_SUCCEEDED], array_total(a),
                 a->trials ? "trials " : "", failed, killed, active);
        return buf;
}
