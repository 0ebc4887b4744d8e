/* SPDX-License-Identifier: Apache-2.0 */
/* What the master's site says of all jobs. */
#pragma once

#include "masterd/spec/layers.h"
#include "tools/primusctl/cli/cli.h"

/* Asks the master. *ret is NULL where its version knows of none. 0 or an exit status. */
int site_layers(struct cli *c, struct layers **ret);
