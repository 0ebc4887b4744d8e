/* SPDX-License-Identifier: Apache-2.0 */
/* Invariant: what has been appended is never more than max. How deep a message may be is sd-bus's to bound.
 */
#include "lib/wire/copy.h"

#include <errno.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/try.h"
#include "lib/wire/skip.h"

/* What a container or a number takes at the most, with what it is aligned by. */
#define ITEM_SIZE 8u

static int take_bytes(size_t *left, size_t size) {
        if (size > *left)
                return -E2BIG;
        *left -= size;
        return 0;
}

static int copy_next(sd_bus_message *to, sd_bus_message *from, size_t *left);

static int copy_container(sd_bus_message *to, sd_bus_message *from, char type, const char *contents,
                          size_t *left) {
        int r;

        TRY(take_bytes(left, ITEM_SIZE + strlen(contents)));
        TRY(sd_bus_message_enter_container(from, type, contents));
        TRY(sd_bus_message_open_container(to, type, contents));
        while ((r = copy_next(to, from, left)) > 0)
                ;
        TRY(r);
        TRY(sd_bus_message_close_container(to));
        TRY(sd_bus_message_exit_container(from));
        return 1;
}

static int copy_text(sd_bus_message *to, sd_bus_message *from, char type, size_t *left) {
        const char *text;

        TRY(sd_bus_message_read_basic(from, type, &text));
        TRY(take_bytes(left, ITEM_SIZE + strlen(text)));
        TRY(sd_bus_message_append_basic(to, type, text));
        return 1;
}

static int copy_numbers(sd_bus_message *to, sd_bus_message *from, char type, size_t *left) {
        const void *numbers;
        size_t size;

        TRY(sd_bus_message_read_array(from, type, &numbers, &size));
        TRY(take_bytes(left, ITEM_SIZE + size));
        TRY(sd_bus_message_append_array(to, type, numbers, size));
        return 1;
}

/* 1; 0: there is nothing any more here. */
static int copy_next(sd_bus_message *to, sd_bus_message *from, size_t *left) {
        const char *contents;
        uint64_t number = 0;
        char type;
        int r = sd_bus_message_peek_type(from, &type, &contents);

        if (r <= 0)
                return r;
        if (type == SD_BUS_TYPE_UNIX_FD)
                return -EOPNOTSUPP;
        if (message_is_numbers(type, contents))
                return copy_numbers(to, from, contents[0], left);
        if (message_is_container(type))
                return copy_container(to, from, type, contents, left);
        if (type == SD_BUS_TYPE_STRING || type == SD_BUS_TYPE_OBJECT_PATH || type == SD_BUS_TYPE_SIGNATURE)
                return copy_text(to, from, type, left);
        TRY(take_bytes(left, ITEM_SIZE));
        if (type == SD_BUS_TYPE_BOOLEAN) {
                int yes;

                TRY(sd_bus_message_read_basic(from, type, &yes));
                TRY(sd_bus_message_append_basic(to, type, &yes));
                return 1;
        }
        TRY(sd_bus_message_read_basic(from, type, &number)); /* none is larger */
        TRY(sd_bus_message_append_basic(to, type, &number));
        return 1;
}

int message_copy(sd_bus_message *to, sd_bus_message *from, size_t max, size_t *ret_size) {
        size_t left = max;
        int r;

        TRY(sd_bus_message_rewind(from, true));
        while ((r = copy_next(to, from, &left)) > 0)
                ;
        if (ret_size)
                *ret_size = max - left;
        return r;
}

int message_copy_answer(sd_bus_message *call, sd_bus_message *answer, size_t max, sd_bus_message **ret,
                        size_t *ret_size) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        const sd_bus_error *e = sd_bus_message_get_error(answer);

        *ret_size = 0;
        if (e)
                TRY(sd_bus_message_new_method_error(call, &reply, e));
        else {
                TRY(sd_bus_message_new_method_return(call, &reply));
                TRY(message_copy(reply, answer, max, ret_size));
        }
        *ret = TAKE_PTR(reply);
        return 0;
}
