/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of the site. Invariant: after exit_rules_check() each has an action, and codes or output. */
#include "masterd/conf/exit-rules.h"

#include <errno.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/conf.h"
#include "lib/base/log.h"
#include "lib/base/pattern.h"
#include "masterd/conf/conf.h"

void *exit_rules_find_section(void *target, const char *name, const char **ret_why) {
        struct exit_rules_conf *c = &((struct conf *)target)->exit_rules;

        for (size_t i = 0; i < c->n; i++)
                if (strcmp(c->names[i], name) == 0)
                        return c->rules + i;
        if (!conf_name_valid(name)) {
                *ret_why = "a rule's name is 1 to 40 letters, digits, '.', '_' and '-'";
                return NULL;
        }
        if (c->n == SITE_EXIT_RULES_MAX) {
                *ret_why = "there are 32 rules already, which is the most";
                return NULL;
        }
        strcpy(c->names[c->n], name);
        c->rules[c->n] = (struct exit_rule_spec){ .action = _EXIT_ACTION_MAX };
        return c->rules + c->n++;
}

/* "": as if it were not written. */
static int parse_checked(const char *value, char **target, size_t max,
                         bool (*valid)(const char *text, const char **ret_why), const char **ret_why) {
        if (!*value) {
                free(TAKE_PTR(*target));
                return 0;
        }
        *ret_why = "expected at most 256 bytes";
        if (strlen(value) > max || !valid(value, ret_why))
                return -EINVAL;
        return conf_parse_string(value, target, ret_why);
}

int exit_rules_parse_codes(const char *value, void *target, const char **ret_why) {
        return parse_checked(value, target, SPEC_CODES_MAX, exit_codes_valid, ret_why);
}

int exit_rules_parse_output(const char *value, void *target, const char **ret_why) {
        return parse_checked(value, target, PATTERN_MAX, pattern_valid, ret_why);
}

int exit_rules_parse_action(const char *value, void *target, const char **ret_why) {
        *ret_why = "expected restart, fail, success, ignore, blame, requeue or note";
        for (uint32_t i = 0; i < _EXIT_ACTION_MAX; i++)
                if (strcmp(exit_action_words[i], value) == 0) {
                        *(uint32_t *)target = i;
                        return 0;
                }
        return -EINVAL;
}

static void rule_done(struct exit_rule_spec *rule) {
        free(TAKE_PTR(rule->codes));
        free(TAKE_PTR(rule->output));
}

unsigned exit_rules_check(struct exit_rules_conf *c) {
        unsigned dropped = 0;

        for (size_t i = 0; i < c->n;) {
                struct exit_rule_spec *rule = c->rules + i;
                bool fits = rule->codes || rule->output;

                if (fits && rule->action < _EXIT_ACTION_MAX) {
                        i++;
                        continue;
                }
                log_warning("masterd.conf: [ExitRule %s]: %s; ignoring the rule", c->names[i],
                            fits ? "Action= is missing" : "it has neither Codes= nor Output=");
                rule_done(rule);
                c->n--;
                memmove(c->rules + i, c->rules + i + 1, (c->n - i) * sizeof(*c->rules));
                memmove(c->names + i, c->names + i + 1, (c->n - i) * sizeof(*c->names));
                dropped++;
        }
        return dropped;
}

void exit_rules_done(struct exit_rules_conf *c) {
        while (c->n > 0)
                rule_done(c->rules + --c->n);
}
