/* SPDX-License-Identifier: Apache-2.0 */
/* A job of a trace that is a search: the settings of a job's own (primus-job(5)), but for what trials are
 * given, since nothing is trained. */
#include <errno.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/try.h"
#include "sim/trace.h"

static int find_name(const json_t *v, const char *const names[], uint32_t n) {
        const char *text = json_string_value(v);

        for (uint32_t i = 0; text && i < n; i++)
                if (strcmp(text, names[i]) == 0)
                        return (int)i;
        return -EINVAL;
}

static int take_u32(const json_t *v, uint32_t least, uint32_t most, uint32_t *ret) {
        json_int_t n = json_integer_value(v);

        if (!json_is_integer(v) || n < least || n > most)
                return -EINVAL;
        *ret = (uint32_t)n;
        return 0;
}

static int take_value(struct trace_search *s, const char *key, const json_t *v) {
        struct search_settings *is = &s->settings;
        int n;

        if (strcmp(key, "method") == 0) {
                n = find_name(v, search_method_names, _SEARCH_METHOD_MAX);
                is->method = (enum search_method)MAX(n, 0);
                return n < 0 || n == SEARCH_EXTERNAL ? -EINVAL : 0;
        }
        if (strcmp(key, "mode") == 0) {
                n = find_name(v, search_mode_names, _SEARCH_MODE_MAX);
                is->mode = (enum search_mode)MAX(n, 0);
                return MIN(n, 0);
        }
        if (strcmp(key, "maxTime") == 0) {
                is->max_time = (uint64_t)json_integer_value(v);
                return is->max_time >= 1 && is->max_time <= SEARCH_TIME_MAX ? 0 : -EINVAL;
        }
        if (strcmp(key, "seed") == 0) {
                s->seed = (uint64_t)json_integer_value(v);
                return json_is_integer(v) ? 0 : -EINVAL;
        }
        if (strcmp(key, "maxTrials") == 0)
                return take_u32(v, 1, SEARCH_TRIALS_MAX, &is->max_trials);
        if (strcmp(key, "maxConcurrent") == 0)
                return take_u32(v, 0, SEARCH_TRIALS_MAX, &is->max_concurrent);
        if (strcmp(key, "divisor") == 0)
                return take_u32(v, 2, SEARCH_DIVISOR_MAX, &is->divisor);
        if (strcmp(key, "maxRungs") == 0)
                return take_u32(v, 1, SEARCH_RUNGS_MAX, &is->max_rungs);
        return -ENOENT;
}

int trace_read_search(const json_t *object, struct trace_search *ret, const char **ret_key) {
        const char *key;
        json_t *v;

        *ret = (struct trace_search){ .settings = { .method = SEARCH_ASHA, .divisor = 4, .max_rungs = 5 } };
        *ret_key = "search";
        if (!json_is_object(object))
                return -EINVAL;
        json_object_foreach ((json_t *)(uintptr_t)object, key, v) {
                *ret_key = key;
                TRY(take_value(ret, key, v));
        }
        *ret_key = "maxTrials";
        if (ret->settings.max_trials == 0)
                return -EINVAL;
        *ret_key = "maxTime";
        return ret->settings.max_time == 0 ? -EINVAL : 0;
}
