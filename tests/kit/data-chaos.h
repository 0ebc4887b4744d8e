/* SPDX-License-Identifier: Apache-2.0 */
/* What happens to the data of a job, at random: it is listed, granted, reported, cut, lost, steered. */
#pragma once

#include "tests/kit/data-world.h"

/* Orders, epochs, weights and samples of all kinds. */
#define WORLD_CONFIGS 5u
extern const struct data_config world_configs[WORLD_CONFIGS];

struct world_chaos {
        unsigned restart, die, fail, trim, skip, steer, append; /* one step in so many; 0: never */
};

/* One thing of what always happens. exact: whatever is told becomes durable where nobody else would know it.
 */
void world_step(struct world *w, const struct world_chaos *c, bool exact);
/* So many of these with the chaos, then to the end of the data. */
void world_run(struct world *w, const struct world_chaos *c, unsigned steps, bool exact);
/* No source is paused. */
void world_resume_all(struct world *w);
