/* SPDX-License-Identifier: Apache-2.0 */
/* Invariant: whatever a submitter can make larger is in the sum. */
#include "masterd/job/footprint.h"

#include "lib/base/heap.h"
#include "masterd/job/array.h"
#include "masterd/job/reshape.h"

/* But the configuration. */
static size_t skeleton(const struct job_spec *s) {
        size_t executor = heap_of(sizeof(struct executor)) + sizeof(struct executor *);

        return heap_of(sizeof(struct job)) +
               s->n_roles * (sizeof(struct role) + heap_of(sizeof(struct scope))) +
               spec_executors(s) * executor;
}

size_t footprint_of_spec(const struct job_spec *s) {
        return skeleton(s) + spec_bytes(s);
}

size_t footprint_of_secrets(const struct job_secret *secrets, size_t n) {
        size_t sum = n > 0 ? heap_of(n * sizeof(*secrets)) : 0;

        for (size_t i = 0; i < n; i++)
                sum += heap_of_string(secrets[i].name) + heap_of(secrets[i].size + 1);
        return sum;
}

size_t footprint_of_job(const struct job *j) {
        size_t sum = skeleton(j->spec) + job_retired_bytes(j);

        if (j->element.array == 0)
                sum += spec_bytes(j->spec);
        if (j->array)
                sum += array_bytes(j->array);
        return sum + heap_of_string(j->name) + heap_of_string(j->warnings) + heap_of_string(j->given.cwd) +
               heap_of_strings(j->given.env) + heap_of_strings(j->element.env) +
               footprint_of_secrets(j->given.secrets, j->given.n_secrets);
}
