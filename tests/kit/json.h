/* SPDX-License-Identifier: Apache-2.0 */
/* JSON in a test as it is in a file, without a backslash before each quotation mark. */
#pragma once

#include <stdlib.h>
#include <string.h>

/* The text of the object or list between the parentheses, a string literal; a conversion such as %s in a
 * string of it stays one. What is no string has blanks wherever the formatter puts some, and no line breaks:
 * where these matter, where columns are counted, for parts of JSON and for comments in it, json_text() or a
 * file is needed. */
#define JSON(...) #__VA_ARGS__

/* The text with each ' as ", for as long as the program runs. */
static inline const char *json_text(const char *text) {
        static struct kept {
                struct kept *next;
                char text[];
        } * all_kept;
        size_t size = strlen(text) + 1;
        struct kept *k = malloc(sizeof(*k) + size);

        if (!k)
                abort();
        memcpy(k->text, text, size);
        for (char *c = k->text; *c; c++)
                if (*c == '\'')
                        *c = '"';
        k->next = all_kept;
        all_kept = k;
        return k->text;
}
