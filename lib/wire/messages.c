/* SPDX-License-Identifier: Apache-2.0 */
/* What all messages of the link share: ids, bounded bytes and lines, the trailing dictionary, executor
 * identity and the string tables. Invariant: nothing that a reader hands out lies outside the bounds of
 * messages.h. */
#include "lib/wire/messages-parts.h"

#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/names.h"
#include "lib/base/utf8.h"
#include "lib/wire/skip.h"

int link_bad(int r) {
        return r == -ENOMEM ? r : -EBADMSG;
}

int link_append_extra_empty(sd_bus_message *m) {
        return sd_bus_message_append(m, "a{sv}", 0);
}

int link_skip_extra(sd_bus_message *m) {
        int r = message_skip(m, "a{sv}");
        if (r < 0)
                return link_bad(r);
        r = sd_bus_message_at_end(m, true);
        if (r < 0)
                return link_bad(r);
        return r > 0 ? 1 : -EBADMSG;
}

int link_read_entries(sd_bus_message *m, link_entry_reader f, void *userdata) {
        int r = sd_bus_message_enter_container(m, 'a', "{sv}");

        if (r <= 0)
                return link_bad(r);
        while ((r = sd_bus_message_enter_container(m, 'e', "sv")) > 0) {
                const char *key;

                if ((r = sd_bus_message_read_basic(m, 's', &key)) <= 0 || (r = f(m, key, userdata)) < 0 ||
                    (r = sd_bus_message_exit_container(m)) < 0)
                        return link_bad(r);
        }
        if (r < 0 || (r = sd_bus_message_exit_container(m)) < 0)
                return link_bad(r);
        return 1;
}

int link_append_id128(sd_bus_message *m, sd_id128_t id) {
        return sd_bus_message_append_array(m, 'y', id.bytes, sizeof id.bytes);
}

int link_read_bytes(sd_bus_message *m, size_t max, const void **ret, size_t *ret_size) {
        const void *p = NULL;
        size_t n = 0;
        int r = sd_bus_message_read_array(m, 'y', &p, &n);
        if (r < 0)
                return link_bad(r);
        if (r == 0)
                return 0;
        if (n > max)
                return -EBADMSG;
        *ret = p;
        *ret_size = n;
        return 1;
}

int link_read_id128(sd_bus_message *m, sd_id128_t *ret) {
        const void *p;
        size_t n;
        sd_id128_t id;
        int r = link_read_bytes(m, sizeof id.bytes, &p, &n);
        if (r <= 0)
                return r;
        if (n != sizeof id.bytes)
                return -EBADMSG;
        memcpy(id.bytes, p, n);
        if (sd_id128_is_null(id))
                return -EBADMSG;
        *ret = id;
        return 1;
}

/* True for C0 controls, DEL, and the two-byte form of a C1 control. */
static bool control_at(const unsigned char *s) {
        return s[0] < 0x20 || s[0] == 0x7f || (s[0] == 0xc2 && s[1] >= 0x80 && s[1] < 0xa0);
}

static bool text_valid(const char *s, size_t max) {
        size_t i = 0;
        for (const unsigned char *p = (const unsigned char *)s; p[i] != '\0'; i++)
                if (i >= max || control_at(p + i))
                        return false;
        return true;
}

/* Gives the string of the message itself, checked. */
static int read_line(sd_bus_message *m, size_t max, const char **ret) {
        const char *s;
        int r = sd_bus_message_read_basic(m, 's', &s);
        if (r < 0)
                return link_bad(r);
        if (r == 0)
                return 0;
        if (!text_valid(s, max))
                return -EBADMSG;
        *ret = s;
        return 1;
}

int link_read_text(sd_bus_message *m, size_t max, char **ret) {
        const char *s = NULL;
        int r = read_line(m, max, &s);
        if (r <= 0)
                return r;
        char *copy = strdup(s);
        if (!copy)
                return -ENOMEM;
        *ret = copy;
        return 1;
}

int link_read_text_into(sd_bus_message *m, char *buf, size_t size) {
        const char *s = NULL;
        int r = read_line(m, size - 1, &s);
        if (r <= 0)
                return r;
        memcpy(buf, s, strlen(s) + 1);
        return 1;
}

int link_append_text(sd_bus_message *m, const char *s, size_t max) {
        char buf[LINK_TEXT_MAX + 1];
        s = s ? s : "";
        utf8_clean(s, strnlen(s, LINK_TEXT_MAX), buf, MIN(max, (size_t)LINK_TEXT_MAX) + 1);
        for (unsigned char *p = (unsigned char *)buf; *p != '\0'; p++)
                if (control_at(p)) {
                        if (*p == 0xc2)
                                *p++ = '?';
                        *p = '?';
                }
        return sd_bus_message_append_basic(m, 's', buf);
}

int link_append_byte_string(sd_bus_message *m, const char *s) {
        return sd_bus_message_append_array(m, 'y', s ? s : "", s ? strlen(s) : 0);
}

int link_read_byte_string(sd_bus_message *m, size_t max, char **ret) {
        const void *p;
        size_t n;
        int r = link_read_bytes(m, max, &p, &n);
        if (r <= 0)
                return r;
        if (n > 0 && memchr(p, 0, n))
                return -EBADMSG;
        char *copy = malloc(n + 1);
        if (!copy)
                return -ENOMEM;
        if (n > 0)
                memcpy(copy, p, n);
        copy[n] = '\0';
        *ret = copy;
        return 1;
}

int link_read_bool(sd_bus_message *m, bool *ret) {
        int b;
        int r = sd_bus_message_read_basic(m, 'b', &b);
        if (r <= 0)
                return r < 0 ? link_bad(r) : 0;
        *ret = b;
        return 1;
}

/* ---- identity ---- */

int executor_id_append(sd_bus_message *m, const struct executor_id *id) {
        if (!role_name_valid(id->role) || id->attempt == 0 || sd_id128_is_null(id->job_uid))
                return -EINVAL;
        int r = sd_bus_message_open_container(m, 'r', "ayusuu");
        if (r < 0)
                return r;
        r = link_append_id128(m, id->job_uid);
        if (r < 0)
                return r;
        r = sd_bus_message_append(m, "usuu", id->job, id->role, id->index, id->attempt);
        if (r < 0)
                return r;
        return sd_bus_message_close_container(m);
}

int executor_id_read(sd_bus_message *m, struct executor_id *ret) {
        struct executor_id id = {};
        int r = sd_bus_message_enter_container(m, 'r', "ayusuu");
        if (r <= 0)
                return r < 0 ? link_bad(r) : 0;
        const char *role;
        if ((r = link_read_id128(m, &id.job_uid)) <= 0)
                return link_bad(r);
        if ((r = sd_bus_message_read(m, "usuu", &id.job, &role, &id.index, &id.attempt)) <= 0)
                return link_bad(r);
        if (!role_name_valid(role) || strlen(role) >= sizeof id.role || id.attempt == 0)
                return -EBADMSG;
        memcpy(id.role, role, strlen(role) + 1);
        if ((r = sd_bus_message_exit_container(m)) < 0)
                return link_bad(r);
        *ret = id;
        return 1;
}

bool executor_id_equal(const struct executor_id *a, const struct executor_id *b) {
        return sd_id128_equal(a->job_uid, b->job_uid) && a->job == b->job && a->index == b->index &&
               a->attempt == b->attempt && strcmp(a->role, b->role) == 0;
}

/* ---- string tables ---- */

static const char *const unit_state_table[_UNIT_STATE_MAX] = {
        [UNIT_STARTING] = "starting",
        [UNIT_RUNNING] = "running",
        [UNIT_STOPPING] = "stopping",
};
static const char *const on_partition_table[_ON_PARTITION_MAX] = {
        [ON_PARTITION_REPLACE] = "replace",
        [ON_PARTITION_STOP] = "stop",
        [ON_PARTITION_WAIT] = "wait",
};

static const char *table_name(const char *const *table, int n, int value) {
        return value >= 0 && value < n ? table[value] : NULL;
}

static int table_value(const char *const *table, int n, const char *s) {
        for (int i = 0; s && i < n; i++)
                if (strcmp(table[i], s) == 0)
                        return i;
        return -EINVAL;
}

#define DEFINE_TABLE(name, max)                                                                              \
        const char *name##_to_string(enum name v) {                                                          \
                return table_name(name##_table, max, (int)v);                                                \
        }                                                                                                    \
        enum name name##_from_string(const char *s) {                                                        \
                return (enum name)table_value(name##_table, max, s);                                         \
        }

DEFINE_TABLE(unit_state, _UNIT_STATE_MAX)
DEFINE_TABLE(on_partition, _ON_PARTITION_MAX)
