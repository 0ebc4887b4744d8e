/* SPDX-License-Identifier: Apache-2.0 */
/* The file by which an executor says that it is ready (ready: file): looked at in a child, since it is on a
 * file system of the user's choice. */
#pragma once

#include <stdint.h>

struct written {
        char *path; /* the starter's own word, from the private file "ready" */
        uint32_t uid;
};

/* From the unit's private directory. -ENOENT: no file is waited for. path is allocated. */
int written_find(const char *root, const char *unit, struct written *ret);
/* A child_function: job is a struct written. */
void written_look(void *job, int in, int out);
