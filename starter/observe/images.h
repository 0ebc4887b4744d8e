/* SPDX-License-Identifier: Apache-2.0 */
/* The compiled objects of bpf/, as parts of this program (made by bpf/embed.py). */
#pragma once

#include <stddef.h>

struct probe_image {
        const char *name;
        const unsigned char *data;
        size_t size;
};

extern const struct probe_image probe_image_base, probe_image_trace;
