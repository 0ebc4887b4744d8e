/* SPDX-License-Identifier: Apache-2.0 */
/* org.primus.Agent1 on the system bus. */
#pragma once

struct manager;

int agent_bus_offer(struct manager *m);
/* A property of it has another value. */
void agent_bus_changed(struct manager *m, const char *property);
