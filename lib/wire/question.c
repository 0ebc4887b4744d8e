/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/wire/question.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

int question_refuse(char why[static QUESTION_WHY_MAX], const char *text) {
        snprintf(why, QUESTION_WHY_MAX, "%s", text);
        return -EINVAL;
}

static bool may_have(const struct question_op *op, const char *key) {
        for (const char *const *k = op->keys; *k; k++)
                if (strcmp(*k, key) == 0)
                        return true;
        return strcmp(key, "op") == 0;
}

static int check_keys(json_t *j, const struct question_op *op, char why[static QUESTION_WHY_MAX]) {
        const char *key;
        json_t *v;

        json_object_foreach (j, key, v)
                if (!may_have(op, key)) {
                        snprintf(why, QUESTION_WHY_MAX, "%s has no \"%.100s\"", op->name, key);
                        return -EINVAL;
                }
        return 0;
}

int question_read(const char *text, size_t max, const struct question_op *ops, json_t **ret, unsigned *ret_op,
                  char why[static QUESTION_WHY_MAX]) {
        json_t *j = strlen(text) <= max ? json_loads(text, JSON_REJECT_DUPLICATES, NULL) : NULL;
        const char *name = json_string_value(json_object_get(j, "op"));
        unsigned op = 0;
        int r = 0;

        while (ops[op].name && (!name || strcmp(ops[op].name, name) != 0))
                op++;
        if (!json_is_object(j))
                r = -EBADMSG;
        else if (!ops[op].name)
                r = -ENOENT;
        else
                r = check_keys(j, ops + op, why);
        if (r < 0) {
                json_decref(j);
                return r;
        }
        *ret = j;
        *ret_op = op;
        return 0;
}

int question_number(const json_t *j, const char *key, uint64_t max, uint64_t *ret,
                    char why[static QUESTION_WHY_MAX]) {
        const json_t *v = json_object_get(j, key);

        if (!json_is_integer(v) || json_integer_value(v) < 0 || (uint64_t)json_integer_value(v) > max) {
                snprintf(why, QUESTION_WHY_MAX, "%s must be an integer of 0 to %" PRIu64, key, max);
                return -EINVAL;
        }
        *ret = (uint64_t)json_integer_value(v);
        return 0;
}

int question_answer(json_t *j, char **ret) {
        if (!j)
                return -ENOMEM;
        *ret = json_dumps(j, JSON_COMPACT);
        json_decref(j);
        return *ret ? 0 : -ENOMEM;
}
