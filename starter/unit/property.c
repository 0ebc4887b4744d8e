/* SPDX-License-Identifier: Apache-2.0 */
/* Single properties of units. */
#include "lib/base/try.h"
#include "starter/unit/property.h"

#include "starter/unit/environment.h"

int property_string(sd_bus_message *m, const char *name, const char *value) {
        return sd_bus_message_append(m, "(sv)", name, "s", value);
}

int property_u64(sd_bus_message *m, const char *name, uint64_t value) {
        return sd_bus_message_append(m, "(sv)", name, "t", value);
}

int property_u32(sd_bus_message *m, const char *name, uint32_t value) {
        return sd_bus_message_append(m, "(sv)", name, "u", value);
}

int property_bool(sd_bus_message *m, const char *name, bool value) {
        return sd_bus_message_append(m, "(sv)", name, "b", (int)value);
}

int property_open(sd_bus_message *m, const char *name, const char *signature) {
        TRY(sd_bus_message_open_container(m, 'r', "sv"));
        TRY(sd_bus_message_append(m, "s", name));
        return sd_bus_message_open_container(m, 'v', signature);
}

int property_close(sd_bus_message *m) {
        TRY(sd_bus_message_close_container(m));
        return sd_bus_message_close_container(m);
}
