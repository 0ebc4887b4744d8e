/* SPDX-License-Identifier: Apache-2.0 */
/* Rules for texts. Invariant: a reason is a clause that goes on behind the text itself: "must ...". */
#include "masterd/spec/valid.h"

#include <string.h>

#include "lib/base/names.h"
#include "lib/base/utf8.h"
#include "masterd/spec/spec.h"

/* Says why when the rule does not hold. */
static bool rule(bool holds, const char *why, const char **ret_why) {
        if (!holds)
                *ret_why = why;
        return holds;
}

#define LINE_RULE "must not have line breaks or other control characters"

bool valid_role_name(const char *s, const char **ret_why) {
        return rule(role_name_valid(s),
                    "must be 1 to 32 letters, digits and '_', not beginning with a digit (it becomes part of "
                    "unit and "
                    "variable names)",
                    ret_why);
}

bool valid_env_name(const char *s, const char **ret_why) {
        return rule(env_name_valid(s), "must be letters, digits and '_', not beginning with a digit",
                    ret_why);
}

bool valid_label(const char *s, const char **ret_why) {
        return rule(text_is_line(s) && !strchr(s, '/'), "must not have '/' or control characters", ret_why);
}

bool valid_line(const char *s, const char **ret_why) {
        return rule(text_is_line(s), "must not have control characters", ret_why);
}

bool valid_queue(const char *s, const char **ret_why) {
        bool good = *s && strlen(s) < 64;

        for (const char *p = s; *p; p++)
                good = good &&
                       strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-", *p);
        return rule(good, "must be a pool's name: 1 to 63 letters, digits, '.', '_' and '-'", ret_why);
}

bool valid_signal(const char *s, const char **ret_why) {
        uint64_t before;
        int32_t number;

        return rule(spec_signal_parse(s, &number, &before) == 0,
                    "must be a signal that can be caught and how long before the end it comes, such as "
                    "\"USR1@60s\" (at most a day)",
                    ret_why);
}

bool valid_file(const char *s, const char **ret_why) {
        return rule(*s && strlen(s) <= 4095, "must be a path of 1 to 4095 bytes", ret_why) &&
               rule(!strstr(s, "://"), "must be a local file or directory: URLs are not fetched", ret_why) &&
               rule(text_is_line(s), LINE_RULE, ret_why);
}

bool valid_directory(const char *s, const char **ret_why) {
        return rule(*s == '/', "must be an absolute path, which every host has", ret_why) &&
               rule(text_is_setting(s), DIRECTORY_RULE, ret_why);
}

bool valid_output(const char *s, const char **ret_why) {
        for (const char *p = strchr(s, '%'); p; p = strchr(p + 2, '%'))
                if (!p[1] || !strchr("jrian%", p[1]))
                        return rule(false, "must have only j, r, i, a, n or % behind each '%'", ret_why);
        return rule(text_is_line(s), LINE_RULE, ret_why);
}

bool valid_stack_signal(const char *s, const char **ret_why) {
        int32_t number;

        return rule(spec_stack_signal_parse(s, &number) == 0,
                    "must be a signal that can be caught, such as \"USR2\", or \"none\"", ret_why);
}

bool valid_plain_signal(const char *s, const char **ret_why) {
        int32_t number;
        uint64_t before;

        return rule(!strchr(s, '@') && spec_signal_parse(s, &number, &before) == 0,
                    "must be a signal that can be caught, such as \"USR1\"", ret_why);
}
