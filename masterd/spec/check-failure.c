/* SPDX-License-Identifier: Apache-2.0 */
/* Defaults and rules of what is said about failures. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/format.h"
#include "masterd/spec/check.h"

/* rules: of the job, or of its i-th role. */
static int check_exit_rules(struct reader *r, const struct exit_rule_spec *rules, size_t n, bool of_role,
                            size_t i) {
        for (size_t k = 0; k < n; k++) {
                struct place p = place_of(of_role ? "role" : "exitCodes");

                if (rules[k].codes || rules[k].output)
                        continue;
                if (of_role) {
                        place_push(&p, NULL, i);
                        place_push(&p, "exitCodes", 0);
                }
                place_push(&p, NULL, k);
                return report_at(r, p,
                                 "has neither codes (exit statuses, such as \"75\" or "
                                 "\"130-140,SIGSEGV,oom\") nor output (a regular expression)");
        }
        return 0;
}

static struct place place_in(size_t role, const char *object, const char *key) {
        struct place p = place_of("role");

        place_push(&p, NULL, role);
        place_push(&p, object, 0);
        if (key)
                place_push(&p, key, 0);
        return p;
}

static struct place place_in_elastic(size_t role, const char *key) {
        struct place p = place_in(role, "scheduleStrategy", "elasticResource");

        if (key)
                place_push(&p, key, 0);
        return p;
}

int complete_failure(struct job_spec *s) {
        for (size_t i = 0; i < s->n_roles; i++) {
                struct role_failure_spec *f = &s->roles[i].failure;

                f->ready.kind = f->ready.port > 0 ? READY_TCP
                                : f->ready.notify ? READY_NOTIFY
                                : f->ready.file   ? READY_FILE
                                                  : READY_STARTED;
                if (f->elastic.max == 0 && (f->elastic.ratio_milli > 0 || f->elastic.size > 0))
                        f->elastic.max = MIN(2 * s->roles[i].memory, (uint64_t)SPEC_MEMORY_MB_MAX << 20);
        }
        return 0;
}

static int check_ready(struct reader *r, const struct role_spec *role, size_t i) {
        const struct ready_spec *ready = &role->failure.ready;
        unsigned n = ready->started + ready->notify + (ready->port > 0) + (ready->file != NULL);

        if (n > 1)
                return report_at(r, place_in(i, "ready", NULL),
                                 "give one of started, tcp, notify and file, not %u of them", n);
        if (ready->port > role->ports)
                return report_at(r, place_in(i, "ready", "tcp"),
                                 "there is no port %" PRIu32 ": the role has %" PRIu32
                                 " (portNum), counted from 0",
                                 ready->port - 1, role->ports);
        return 0;
}

static int check_elastic(struct reader *r, const struct role_spec *role, size_t i) {
        const struct elastic_spec *e = &role->failure.elastic;
        char bound[FORMAT_SIZE_MAX], has[FORMAT_SIZE_MAX];

        if (e->ratio_milli == 0 && e->size == 0 && (e->min > 0 || e->max > 0))
                return report_at(r, place_in_elastic(i, NULL),
                                 "extendMemRatio or extendMemSize is missing: by how much does it grow?");
        if (e->max == 0)
                return 0;
        if (role->memory == 0)
                return report_at(r, place_in_elastic(i, NULL),
                                 "memoryMb is 0, so there is no limit that could grow");
        if (e->ratio_milli > 0 && e->ratio_milli <= 1000)
                return report_at(r, place_in_elastic(i, "extendMemRatio"),
                                 "must be more than 1: the memory is multiplied by it (1.2: a fifth more)");
        if (e->max <= role->memory || e->min > e->max)
                return report_at(r, place_in_elastic(i, "maxMemSize"),
                                 "must be more than memoryMb and not less than minMemSize: %s, and memoryMb "
                                 "is %s",
                                 format_size(e->max, bound, sizeof(bound)),
                                 format_size(role->memory, has, sizeof(has)));
        return 0;
}

int check_failure(struct reader *r, const struct job_spec *s) {
        int q = check_exit_rules(r, s->failure.exit_rules, s->failure.n_exit_rules, false, 0);

        for (size_t i = 0; q >= 0 && i < s->n_roles; i++) {
                const struct role_failure_spec *f = &s->roles[i].failure;

                q = check_exit_rules(r, f->exit_rules, f->n_exit_rules, true, i);
                q = q < 0 ? q : check_ready(r, s->roles + i, i);
                q = q < 0 ? q : check_elastic(r, s->roles + i, i);
        }
        return q;
}
