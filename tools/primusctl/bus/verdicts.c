/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/primusctl/bus/verdicts.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/format.h"
#include "lib/json/get.h"
#include "tools/primusctl/cli/text.h"

void verdicts_print(const struct cli *c, const json_t *verdicts) {
        const json_t *v;
        size_t i;

        json_array_foreach (verdicts, i, v) {
                char since[FORMAT_DURATION_MAX];
                _cleanup_free_ char *text = strdup(json_get_text(v, "text"));
                uint64_t usec =
                        usec_sub(now_real(), json_get_number(v, "since")) / USEC_PER_SEC * USEC_PER_SEC;

                if (text)
                        text_clean(text);
                printf("  %s%s%s for %s", c->color ? color_sequence(COLOR_YELLOW) : "",
                       json_get_text(v, "kind"), c->color ? COLOR_RESET : "",
                       format_duration(usec, since, sizeof(since)));
                if (json_object_get(v, "role"))
                        printf(": %s/%" PRIu64 " on %s", json_get_text(v, "role"),
                               json_get_number(v, "index"), json_get_text(v, "node"));
                printf(": %s", text ?: "");
                if (json_object_get(v, "acted"))
                        printf(" (%s)", json_get_text(v, "action"));
                putchar('\n');
        }
}
