/* SPDX-License-Identifier: Apache-2.0 */
/* What is in memory, as records of the store's open batch. */
#pragma once

#include "lib/base/cleanup.h"
#include "masterd/manager.h"

void record_node(struct manager *m, const struct node *node);
/* body: also the configuration and what came with it (once, at submission). */
void record_job(struct manager *m, const struct job *j, const char *warnings, bool body);
void record_executor(struct manager *m, const struct executor *e);
/* An event of the job: stored, logged, and counted. role NULL: of the job itself. */
void record_event(struct manager *m, struct job *j, const char *kind, const struct executor *e, const char *format, ...)
        _printf_(5, 6);
