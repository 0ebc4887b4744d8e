/* SPDX-License-Identifier: Apache-2.0 */
/* The devices of the host and the agent's probes, as metrics. node: the label, from exposition_labels(). */
#pragma once

#include "agentd/device/gpu-state.h"
#include "agentd/metrics/exposition.h"
#include "agentd/net/links.h"
#include "agentd/probe/probe.h"

void page_add_gpus(struct exposition *x, const char *node, const struct gpu_state *gpus, size_t n);
void page_add_links(struct exposition *x, const char *node, const struct link_facts *links, size_t n);
void page_add_probes(struct exposition *x, const char *node, const struct probe *probe);
