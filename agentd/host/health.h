/* SPDX-License-Identifier: Apache-2.0 */
/* The site's health hook, and telling masterd how hooks went. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct manager;

/* Runs it now, and then every HealthSec=, where there is one. */
int health_start(struct manager *m);
/* masterd is there (again): it is told how the host is. */
void health_link_up(struct manager *m);
/* HookResult; nothing where masterd is not connected. */
void health_tell(struct manager *m, const char *hook, uint32_t job, bool ok, const char *text);
