/* SPDX-License-Identifier: Apache-2.0 */
/* When a job attempt is over. Invariant: stops that somebody asked for are in neither count. */
#include "masterd/job/verdict.h"

#include <stdbool.h>
#include <stdio.h>

enum verdict verdict_of(const struct role_count *roles, size_t n, size_t *ret_role,
                        char ret_text[static VERDICT_TEXT_MAX]) {
        bool required = false, all_reached = true, all_ended = true;

        for (size_t i = 0; i < n; i++) {
                const struct role_count *r = roles + i;
                uint32_t needed = (uint32_t)(((uint64_t)r->wanted * r->success_percent + 99) / 100);
                bool ended = r->succeeded + r->failed >= r->wanted;

                all_ended = all_ended && ended;
                if (r->fail_percent > 0 && r->failed > 0 &&
                    (uint64_t)r->failed * 100 >= (uint64_t)r->wanted * r->fail_percent) {
                        snprintf(ret_text, VERDICT_TEXT_MAX,
                                 "%u of %u executors of role %s failed (failPercent: %u)", r->failed,
                                 r->wanted, r->name, r->fail_percent);
                        *ret_role = i;
                        return VERDICT_FAILED;
                }
                if (r->success_percent == 0)
                        continue;
                required = true;
                if (r->succeeded >= needed)
                        continue;
                all_reached = false;
                if (ended) {
                        snprintf(ret_text, VERDICT_TEXT_MAX,
                                 "%u of %u executors of role %s succeeded, %u needed", r->succeeded,
                                 r->wanted, r->name, needed);
                        *ret_role = i;
                        return VERDICT_FAILED;
                }
        }
        if (required ? all_reached : all_ended) {
                snprintf(ret_text, VERDICT_TEXT_MAX, "%s",
                         required ? "every required role succeeded" : "every executor has ended");
                return VERDICT_SUCCEEDED;
        }
        return VERDICT_GO_ON;
}
