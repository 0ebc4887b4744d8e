/* SPDX-License-Identifier: Apache-2.0 */
/* The state of life. */
#pragma once

struct manager;

int life_new(struct manager *m); /* -ENOMEM */
/* No job is left. */
void life_free(struct manager *m);
