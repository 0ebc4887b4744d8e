/* SPDX-License-Identifier: Apache-2.0 */
/* Single properties of units. Invariant: every text of every property comes through append_text() or
 * append_argument(). systemd writes the properties of a transient unit into a file and reads that at its next
 * daemon-reload; some of them (WorkingDirectory=, Description=, paths) it writes as they are, where a line
 * break would begin a property of its own, such as an ExecStopPost= of root's. */
#include "starter/unit/property.h"

#include <string.h>

#include "lib/base/log.h"
#include "lib/base/try.h"
#include "lib/base/utf8.h"

static int append_text(sd_bus_message *m, const char *name, const char *value) {
        if (text_is_setting(value))
                return sd_bus_message_append_basic(m, 's', value);
        /* None comes so far: it has been refused with a sentence. */
        log_full(LOG_ERR, 0, NULL,
                 "A text for %s= of a unit has characters that systemd would not keep apart", name);
        return -EBADMSG;
}

int property_text(sd_bus_message *m, const char *value) {
        return append_text(m, "a list", value);
}

int property_string(sd_bus_message *m, const char *name, const char *value) {
        TRY(property_open(m, name, "s"));
        TRY(append_text(m, name, value));
        return property_close(m);
}

int property_strings(sd_bus_message *m, const char *name, char *const *values) {
        TRY(property_open(m, name, "as"));
        TRY(sd_bus_message_open_container(m, 'a', "s"));
        for (; values && *values; values++)
                TRY(append_text(m, name, *values));
        TRY(sd_bus_message_close_container(m));
        return property_close(m);
}

int property_pair(sd_bus_message *m, const char *first, const char *second) {
        TRY(sd_bus_message_open_container(m, 'r', "ss"));
        TRY(property_text(m, first));
        TRY(property_text(m, second));
        return sd_bus_message_close_container(m);
}

int property_unit_begin(sd_bus_message *m, const char *unit) {
        TRY(sd_bus_message_append(m, "ss", unit, "fail"));
        return sd_bus_message_open_container(m, 'a', "(sv)");
}

int property_unit_end(sd_bus_message *m) {
        TRY(sd_bus_message_close_container(m));
        return sd_bus_message_append(m, "a(sa(sv))", 0);
}

int property_control(sd_bus_message *m, int fd) {
        TRY(property_descriptor(m, "StandardInputFileDescriptor", fd));
        TRY(property_string(m, "StandardOutput", "null"));
        return property_string(m, "StandardError", "journal");
}

int property_environment_file(sd_bus_message *m, const char *path) {
        TRY(property_open(m, "EnvironmentFiles", "a(sb)"));
        TRY(sd_bus_message_open_container(m, 'a', "(sb)"));
        TRY(sd_bus_message_open_container(m, 'r', "sb"));
        TRY(property_text(m, path));
        TRY(sd_bus_message_append(m, "b", 0)); /* it has to be there */
        TRY(sd_bus_message_close_container(m));
        TRY(sd_bus_message_close_container(m));
        return property_close(m);
}

/* An argument may be any UTF-8: systemd writes it in quotes and with escapes. It expands $NAME; $$ is a
 * dollar. (ExecStartEx= with no-env-expand would spare us that, but it is not known in unit files, into which
 * systemd writes transient units, and so is lost at a daemon-reload.) */
static int append_argument(sd_bus_message *m, const char *argument) {
        _cleanup_free_ char *escaped = NULL;
        char *p;

        if (!utf8_valid(argument, strlen(argument)))
                return -EBADMSG;
        if (!strchr(argument, '$'))
                return sd_bus_message_append_basic(m, 's', argument);
        p = escaped = malloc(2 * strlen(argument) + 1);
        if (!p)
                return -ENOMEM;
        for (const char *a = argument; *a; a++) {
                if (*a == '$')
                        *p++ = '$';
                *p++ = *a;
        }
        *p = 0;
        return sd_bus_message_append_basic(m, 's', escaped);
}

/* The program is an absolute path of ours: a word that begins with one of "@-:+!", and is looked for along a
 * path, would be read back as a prefix, of which "+" gives it root's rights. */
int property_exec(sd_bus_message *m, const char *name, const char *const *head, char *const *tail) {
        if (!head || !*head || **head != '/')
                return -EINVAL;
        TRY(property_open(m, name, "a(sasb)"));
        TRY(sd_bus_message_open_container(m, 'a', "(sasb)"));
        TRY(sd_bus_message_open_container(m, 'r', "sasb"));
        TRY(append_text(m, name, *head));
        TRY(sd_bus_message_open_container(m, 'a', "s"));
        for (const char *const *a = head; *a; a++)
                TRY(append_argument(m, *a));
        for (char *const *a = tail; a && *a; a++)
                TRY(append_argument(m, *a));
        TRY(sd_bus_message_close_container(m));
        TRY(sd_bus_message_append(m, "b", 0)); /* a failure is one */
        TRY(sd_bus_message_close_container(m));
        TRY(sd_bus_message_close_container(m));
        return property_close(m);
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

int property_descriptor(sd_bus_message *m, const char *name, int fd) {
        return sd_bus_message_append(m, "(sv)", name, "h", fd);
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
