/* SPDX-License-Identifier: Apache-2.0 */
/* Records of a look. Invariant: a record is taken if its size is exactly what its type has, text up to
 * its bound; nothing behind size is read. */
#include "lib/observe/stream.h"

#include <string.h>

#include "lib/base/cleanup.h"

struct head {
        uint32_t type, size; /* of the body */
};
_Static_assert(sizeof(struct head) == STREAM_HEAD_SIZE, "no padding");
_Static_assert(sizeof(struct stream_thread) == 32 && sizeof(struct stream_usage) == 40, "no padding");

static const struct {
        size_t fixed, text; /* text: at most */
} shapes[_STREAM_TYPE_MAX] = {
        [STREAM_TOTAL] = { sizeof(uint32_t), 0 },
        [STREAM_THREAD] = { sizeof(struct stream_thread), CAPTURE_STACK_MAX },
        [STREAM_STACK] = { sizeof(uint32_t), CAPTURE_STACK_MAX },
        [STREAM_PYTHON] = { sizeof(uint32_t), CAPTURE_PYTHON_MAX },
        [STREAM_USAGE] = { sizeof(struct stream_usage), 0 },
        [STREAM_END] = { 0, 0 },
};

/* Where the fixed part of an item is. */
static void *fixed_part(struct stream_item *i, enum stream_type type) {
        return type == STREAM_THREAD  ? (void *)&i->thread
               : type == STREAM_USAGE ? (void *)&i->usage
                                      : (void *)&i->number;
}

int stream_read(const uint8_t *data, size_t size, struct stream_item *ret) {
        struct head head;
        size_t text;

        if (size < sizeof(head))
                return 0;
        memcpy(&head, data, sizeof(head));
        if (head.type < STREAM_TOTAL || head.type >= _STREAM_TYPE_MAX ||
            head.size < shapes[head.type].fixed ||
            head.size > shapes[head.type].fixed + shapes[head.type].text)
                return -EBADMSG;
        if (size < sizeof(head) + head.size)
                return 0;
        data += sizeof(head);
        ret->type = (enum stream_type)head.type;
        memcpy(fixed_part(ret, ret->type), data, shapes[head.type].fixed);
        text = head.size - shapes[head.type].fixed;
        memcpy(ret->text, data + shapes[head.type].fixed, text);
        ret->text[text] = 0;
        if (ret->type == STREAM_THREAD) {
                ret->thread.name[sizeof(ret->thread.name) - 1] = 0;
                if (ret->thread.class >= _CAPTURE_CLASS_MAX || ret->thread.call < STREAM_NO_CALL)
                        return -EBADMSG;
        }
        return (int)(sizeof(head) + head.size);
}

size_t stream_write(const struct stream_item *item, const char *text, uint8_t ret[static STREAM_RECORD_MAX]) {
        struct stream_item *i =
                (struct stream_item *)(uintptr_t)item; /* fixed_part() is of both directions */
        size_t n = text ? strlen(text) : 0, max = shapes[item->type].text, fixed = shapes[item->type].fixed;
        struct head head;

        if (n > max) {
                text += n - max;
                n = max;
        }
        head = (struct head){ item->type, (uint32_t)(fixed + n) };
        memcpy(ret, &head, sizeof(head));
        memcpy(ret + sizeof(head), fixed_part(i, item->type), fixed);
        if (n > 0)
                memcpy(ret + sizeof(head) + fixed, text, n);
        return sizeof(head) + fixed + n;
}
