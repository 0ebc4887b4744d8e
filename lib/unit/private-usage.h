/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/* More than is ever put there of an executor. */
#define PRIVATE_FILES_MAX 4096u

/* What an executor's private directory takes of the file system that all of them share. */
struct private_usage {
        uint64_t bytes; /* that it holds, not what the files' sizes say */
        unsigned files; /* directories count as well; PRIVATE_FILES_MAX + 1: more than are looked at */
};
