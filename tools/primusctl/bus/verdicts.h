/* SPDX-License-Identifier: Apache-2.0 */
/* What executors of a job suffer from, as masterd says it. */
#pragma once

#include <jansson.h>

#include "tools/primusctl/cli/cli.h"

struct verdict_status {
        char *kind, *role, *node, *text, *action; /* role NULL: all of the job, and nobody stands out */
        uint32_t index;
        uint64_t since, found, acted; /* acted 0: nothing was done */
        bool all;                     /* it is about all of them; role and index are the odd one out */
        json_t *numbers;
};
struct verdicts_status {
        struct verdict_status *list;
        size_t n;
};
void verdicts_done(struct verdicts_status *v);
/* The value of the key "verdicts", a variant. */
int verdicts_read(sd_bus_message *m, void *verdicts);
json_t *verdicts_json(const struct verdicts_status *v);
/* Nothing when there are none. */
void verdicts_print(const struct cli *c, const struct verdicts_status *v);
