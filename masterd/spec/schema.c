/* SPDX-License-Identifier: Apache-2.0 */
/* What can be done with a table without a configuration at hand: look up, preset, free, weigh. */
#include "masterd/spec/schema.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/heap.h"
#include "lib/base/strv.h"
#include "masterd/spec/locate.h"

const struct key *schema_find(const struct schema *s, const char *name) {
        size_t n = strlen(name);

        for (size_t i = 0; i < s->n; i++)
                if (member_is_called(name, n, s->keys[i].name))
                        return &s->keys[i];
        return NULL;
}

int schema_preset(const struct schema *s, void *message) {
        for (size_t i = 0; i < s->n; i++) {
                const struct key *k = &s->keys[i];
                void *target = key_target(k, message);
                int r;

                if (!target || k->status == STATUS_SLIP || k->unwritten)
                        continue;
                switch (k->type) {
                case KEY_BOOL:
                        *(bool *)target = k->preset;
                        break;
                case KEY_U32:
                case KEY_INDEX:
                case KEY_I32:
                case KEY_MILLI:
                case KEY_ENUM:
                        *(uint32_t *)target = (uint32_t)k->preset;
                        break;
                case KEY_SCALED:
                case KEY_DURATION:
                case KEY_SIZE:
                        *(uint64_t *)target = k->preset;
                        break;
                case KEY_TEXT:
                        if (k->preset_text && !(*(char **)target = strdup(k->preset_text)))
                                return -ENOMEM;
                        break;
                case KEY_TEXTS:
                case KEY_NODES:
                case KEY_MAP:
                        *(char ***)target = calloc(1, sizeof(char *));
                        if (!*(char ***)target)
                                return -ENOMEM;
                        break;
                case KEY_MESSAGE:
                        r = schema_preset(k->message, target);
                        if (r < 0)
                                return r;
                        break;
                case KEY_NUMBER:
                case KEY_TIME:
                case KEY_JSON:
                case KEY_LIST:
                        break;
                }
        }
        return 0;
}

void schema_done(const struct schema *s, void *message) {
        for (size_t i = 0; i < s->n; i++) {
                const struct key *k = &s->keys[i];
                void *target = key_target(k, message);

                if (!target)
                        continue;
                switch (k->type) {
                case KEY_TEXT:
                case KEY_JSON:
                        free(*(char **)target);
                        *(char **)target = NULL;
                        break;
                case KEY_TEXTS:
                case KEY_NODES:
                case KEY_MAP:
                        strings_free(*(char ***)target);
                        *(char ***)target = NULL;
                        break;
                case KEY_MESSAGE:
                        schema_done(k->message, target);
                        break;
                case KEY_LIST: {
                        size_t n = *(size_t *)((char *)message + k->count);
                        char *items = *(char **)target;
                        for (size_t j = 0; j < n; j++)
                                schema_done(k->message, items + j * k->item_size);
                        free(items);
                        *(char **)target = NULL;
                        break;
                }
                default:
                        break;
                }
        }
}

size_t schema_bytes(const struct schema *s, const void *message) {
        size_t sum = 0;

        for (size_t i = 0; i < s->n; i++) {
                const struct key *k = &s->keys[i];
                /* The tables' targets are not const; nothing is written through them here. */
                const void *target = key_target(k, (void *)message);

                if (!target || k->unwritten)
                        continue;
                switch (k->type) {
                case KEY_TEXT:
                case KEY_JSON:
                        sum += heap_of_string(*(char *const *)target);
                        break;
                case KEY_TEXTS:
                case KEY_NODES:
                case KEY_MAP:
                        sum += heap_of_strings(*(char **const *)target);
                        break;
                case KEY_MESSAGE:
                        sum += schema_bytes(k->message, target);
                        break;
                case KEY_LIST: {
                        size_t n = *(const size_t *)((const char *)message + k->count);
                        const char *items = *(char *const *)target;
                        if (items)
                                sum += heap_of(n * k->item_size);
                        for (size_t j = 0; j < n; j++)
                                sum += schema_bytes(k->message, items + j * k->item_size);
                        break;
                }
                default:
                        break;
                }
        }
        return sum;
}
