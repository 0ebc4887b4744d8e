/* SPDX-License-Identifier: Apache-2.0 */
/* Reads an a{sv} into a struct, along a table of its keys. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-bus.h>

struct number_list {
        uint32_t *items;
        size_t n;
};

/* One key: the type of its value, and where that goes: s, ay -> char * (allocated, the one before is freed),
 * as -> char ** (NULL-ended), au -> struct number_list, b -> bool, numbers -> the C type of that width.
 * Other types: read, which enters and leaves the variant itself. */
struct field {
        const char *key;
        const char *type;
        size_t offset;
        int (*read)(sd_bus_message *m, void *target);
};

/* Keys that are not in the table are passed over. 0 or negative errno. */
int read_fields(sd_bus_message *m, const struct field *fields, size_t n, void *target);
