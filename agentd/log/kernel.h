/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel logs, read from the journal: journald has read /dev/kmsg already and marks what is the
 * kernel's own (_TRANSPORT=kernel, which nobody can forge), so agentd needs neither CAP_SYSLOG nor the
 * device. A look every few seconds in a thread, at what is new. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "lib/base/cleanup.h"
#include "lib/base/worker.h"

struct kernel_log;

#define KERNEL_LINE_MAX 512u

struct kernel_log_options {
        const char *directory; /* NULL: the host's journal */
        uint64_t back_usec;    /* begin so far back, and no further than this boot */
        uint64_t every_usec;
        /* Whether a line is worth handing over; called in the thread. */
        bool (*wanted)(const char *line);
};

/* line: at most KERNEL_LINE_MAX bytes; age_usec: since it was logged. Called in the loop. */
typedef void (*kernel_line_handler)(const char *line, uint64_t age_usec, void *userdata);

int kernel_log_new(sd_event *event, struct worker *worker, const struct kernel_log_options *options,
                   kernel_line_handler handler, void *userdata, struct kernel_log **ret);
/* After the worker was freed. */
void kernel_log_free(struct kernel_log *k);
DEFINE_CLEANUP(struct kernel_log *, kernel_log_free)
