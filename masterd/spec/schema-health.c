/* SPDX-License-Identifier: Apache-2.0 */
/* The schema of when an executor counts as sick: a rule for each verdict, with the keys that mean something
 * to it. */
#include "masterd/spec/schema-health.h"

#include <string.h>

#define AFTER_MAX_USEC (UINT64_C(30) * 86400 * 1000000)

static const char *const action_words[_HEALTH_ACTION_MAX] = { "off",     "note",       "warn", "restart",
                                                              "replace", "quarantine", "stop" };

const char *health_action_to_string(enum health_action a) {
        return a < 0 || a >= _HEALTH_ACTION_MAX ? NULL : action_words[a];
}

enum health_action health_action_from_string(const char *s) {
        for (size_t i = 0; i < _HEALTH_ACTION_MAX; i++)
                if (strcmp(action_words[i], s) == 0)
                        return (enum health_action)i;
        return _HEALTH_ACTION_MAX;
}

static bool has_action(const void *target) {
        return ((const struct health_rule_spec *)target)->action < _HEALTH_ACTION_MAX;
}
static bool has_after(const void *target) {
        return ((const struct health_rule_spec *)target)->after_usec > 0;
}
static bool has_share(const void *target) {
        return ((const struct health_rule_spec *)target)->share > 0;
}
static bool has_count(const void *target) {
        return ((const struct health_rule_spec *)target)->count > 0;
}
static bool has_within(const void *target) {
        return ((const struct health_rule_spec *)target)->within_usec > 0;
}

#define ACTION                                                                                               \
        {                                                                                                    \
                "action", KEY_ENUM, AT(health_rule_spec, action), WORDS(action_words),                       \
                        .preset = _HEALTH_ACTION_MAX, .written = has_action                                  \
        }
#define AFTER                                                                                                \
        {                                                                                                    \
                "after", KEY_DURATION, AT(health_rule_spec, after_usec), RANGE(1000000, AFTER_MAX_USEC),     \
                        .written = has_after                                                                 \
        }
#define SHARE                                                                                                \
        { "share", KEY_U32, AT(health_rule_spec, share), RANGE(1, 100), .written = has_share }
#define WITHIN                                                                                               \
        {                                                                                                    \
                "within", KEY_DURATION, AT(health_rule_spec, within_usec), RANGE(1000000, AFTER_MAX_USEC),   \
                        .written = has_within                                                                \
        }

static const struct key timed_keys[] = { ACTION, AFTER };
static const struct schema timed_schema = SCHEMA(timed_keys);
static const struct key shared_keys[] = { ACTION, AFTER, SHARE };
static const struct schema shared_schema = SCHEMA(shared_keys);
static const struct key leaking_keys[] = { ACTION, AFTER, WITHIN };
static const struct schema leaking_schema = SCHEMA(leaking_keys);
static const struct key oom_keys[] = { ACTION };
static const struct schema oom_schema = SCHEMA(oom_keys);
static const struct key crash_keys[] = {
        ACTION,
        { "count", KEY_U32, AT(health_rule_spec, count), RANGE(2, 1000), .written = has_count },
        WITHIN,
};
static const struct schema crash_schema = SCHEMA(crash_keys);

static bool is_given(const struct health_rule_spec *r) {
        return has_action(r) || has_after(r) || has_share(r) || has_count(r) || has_within(r);
}
static bool has_hung(const void *t) {
        return is_given(&((const struct health_spec *)t)->of[HEALTH_HUNG]);
}
static bool has_straggler(const void *t) {
        return is_given(&((const struct health_spec *)t)->of[HEALTH_STRAGGLER]);
}
static bool has_idle(const void *t) {
        return is_given(&((const struct health_spec *)t)->of[HEALTH_IDLE]);
}
static bool has_starved(const void *t) {
        return is_given(&((const struct health_spec *)t)->of[HEALTH_STARVED]);
}
static bool has_thrashing(const void *t) {
        return is_given(&((const struct health_spec *)t)->of[HEALTH_THRASHING]);
}
static bool has_leaking(const void *t) {
        return is_given(&((const struct health_spec *)t)->of[HEALTH_LEAKING]);
}
static bool has_oom(const void *t) {
        return is_given(&((const struct health_spec *)t)->of[HEALTH_OOM]);
}
static bool has_crash(const void *t) {
        return is_given(&((const struct health_spec *)t)->of[HEALTH_CRASH_LOOP]);
}

static const struct key health_keys[] = {
        { "hung", KEY_MESSAGE, AT(health_spec, of[HEALTH_HUNG]), .message = &timed_schema,
          .written = has_hung },
        { "straggler", KEY_MESSAGE, AT(health_spec, of[HEALTH_STRAGGLER]), .message = &shared_schema,
          .written = has_straggler },
        { "idle", KEY_MESSAGE, AT(health_spec, of[HEALTH_IDLE]), .message = &shared_schema,
          .written = has_idle },
        { "starved", KEY_MESSAGE, AT(health_spec, of[HEALTH_STARVED]), .message = &shared_schema,
          .written = has_starved },
        { "thrashing", KEY_MESSAGE, AT(health_spec, of[HEALTH_THRASHING]), .message = &shared_schema,
          .written = has_thrashing },
        { "leaking", KEY_MESSAGE, AT(health_spec, of[HEALTH_LEAKING]), .message = &leaking_schema,
          .written = has_leaking },
        { "oom", KEY_MESSAGE, AT(health_spec, of[HEALTH_OOM]), .message = &oom_schema, .written = has_oom },
        { "crashLoop", KEY_MESSAGE, AT(health_spec, of[HEALTH_CRASH_LOOP]), .message = &crash_schema,
          .written = has_crash },
};
const struct schema health_schema = SCHEMA(health_keys);

static bool is_any_given(const struct health_spec *h) {
        for (size_t i = 0; i < _HEALTH_KIND_MAX; i++)
                if (is_given(h->of + i))
                        return true;
        return false;
}

bool role_has_health(const void *target) {
        return is_any_given(&((const struct role_spec *)target)->health);
}

bool job_has_health(const void *target) {
        return is_any_given(&((const struct job_spec *)target)->health);
}
