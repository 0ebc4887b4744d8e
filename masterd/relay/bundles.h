/* SPDX-License-Identifier: Apache-2.0 */
/* Files of jobs: uploaded by primusctl, content-addressed per user in STATE/bundles/UID/SHA256, fetched by
 * agents. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-bus.h>

struct manager;
struct node;
struct bundles;

int bundles_new(struct manager *m, struct bundles **ret);
void bundles_free(struct bundles *b);

/* Whether the user has uploaded that file completely. */
bool bundles_have(struct manager *m, uint32_t uid, const char *sha256);

/* Manager.PutBundle(s sha256, t size, t offset, ay chunk) -> (t next) for a caller whose uid is known.
 * Returns like a method handler. */
int bundles_put(struct manager *m, uint32_t uid, sd_bus_message *call);

/* Link1.GetBundle(u uid, s sha256, t offset, u max, a{sv}) -> (t size, ay chunk, a{sv}): for a node on which
 * a job of that user uses that bundle, nobody else. Returns like a method handler. */
int bundles_serve(struct manager *m, struct node *node, sd_bus_message *call);
