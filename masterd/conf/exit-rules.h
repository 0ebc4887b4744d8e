/* SPDX-License-Identifier: Apache-2.0 */
/* The site's own rules of what an end means: [ExitRule NAME] in masterd.conf. */
#pragma once

#include <stddef.h>

#include "lib/base/conf.h"
#include "masterd/spec/spec-failure.h"

#define SITE_EXIT_RULES_MAX 32u

struct exit_rules_conf {
        struct exit_rule_spec rules[SITE_EXIT_RULES_MAX]; /* in the order of the files */
        char names[SITE_EXIT_RULES_MAX][SECTION_NAME_MAX + 1];
        size_t n;
};

/* For conf_load_groups(); target is struct conf. */
void *exit_rules_find_section(void *target, const char *name, const char **ret_why);
int exit_rules_parse_codes(const char *value, void *target, const char **ret_why);  /* char * */
int exit_rules_parse_output(const char *value, void *target, const char **ret_why); /* char * */
int exit_rules_parse_action(const char *value, void *target, const char **ret_why); /* uint32_t */

/* Drops those that lack something, with a warning; their number. */
unsigned exit_rules_check(struct exit_rules_conf *c);
void exit_rules_done(struct exit_rules_conf *c);
