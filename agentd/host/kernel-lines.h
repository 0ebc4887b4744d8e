/* SPDX-License-Identifier: Apache-2.0 */
/* Which of the kernel's lines mean that a host is not well. A table; pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/wire/condition.h"

struct kernel_complaint {
        enum condition_kind kind;
        enum condition_severity severity;
        char subject[CONDITION_SUBJECT_MAX +
                     1];   /* "ext4 sda1", "memory": what is complained of again replaces it */
        uint64_t for_usec; /* so long it counts */
};

/* It is about one of NVIDIA's GPUs, which is not judged here. */
bool kernel_line_is_gpu(const char *line);
/* Either of the two. Safe in any thread. */
bool kernel_line_wanted(const char *line);
/* True: it is one, and *ret says what. */
bool kernel_line_read(const char *line, struct kernel_complaint *ret);
