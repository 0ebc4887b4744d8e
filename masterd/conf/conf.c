/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of masterd. Invariant: after conf_read() every value is within what the code can work with. */
#include "masterd/conf/conf.h"

#include <string.h>
#include <sysexits.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/conf.h"
#include "lib/base/log.h"
#include "lib/base/parse.h"
#include "lib/policy/serve.h"
#include "masterd/conf/job-defaults.h"

#define PORT_DEFAULT 7747
#define STATE_DIRECTORY_MAX 1024u
#define POLICY(member) offsetof(struct conf, pools.policy.member)

/* "*:7747 192.0.2.1:7747 [2001:db8::1]:7747": replaces the whole list. */
static int parse_listen(const char *value, void *target, const char **ret_why) {
        struct conf *c = target; /* offset 0 of the struct, see the table */
        _cleanup_free_ char *copy = strdup(value);
        struct addr list[LISTEN_MAX];
        size_t n = 0;
        char *save = NULL;

        *ret_why = "expected up to 8 addresses like *:7747, 192.0.2.1:7747 or [2001:db8::1]:7747";
        if (!copy)
                return -ENOMEM;
        for (char *word = strtok_r(copy, " \t", &save); word; word = strtok_r(NULL, " \t", &save)) {
                char with_any[ADDR_TEXT_MAX];
                if (word[0] == '*' && (word[1] == ':' || !word[1])) {
                        /* A socket for each family: the listener takes v6 alone on a v6 address. */
                        snprintf(with_any, sizeof(with_any), "0.0.0.0%s", word + 1);
                        if (n == LISTEN_MAX || addr_parse(with_any, PORT_DEFAULT, list + n) < 0)
                                return -EINVAL;
                        n++;
                        snprintf(with_any, sizeof(with_any), "[::]%s", word + 1);
                        word = with_any;
                }
                if (n == LISTEN_MAX || addr_parse(word, PORT_DEFAULT, list + n) < 0)
                        return -EINVAL;
                n++;
        }
        if (n == 0)
                return -EINVAL;
        memcpy(c->listen, list, n * sizeof(*list));
        c->n_listen = n;
        return 0;
}

static int parse_directory(const char *value, void *target, const char **ret_why) {
        *ret_why = "expected an absolute path";
        return *value == '/' && strlen(value) <= STATE_DIRECTORY_MAX
                       ? conf_parse_string(value, target, ret_why)
                       : -EINVAL;
}

/* A score from 1 on; 0: hosts are not kept out. */
static int parse_score(const char *value, void *target, const char **ret_why) {
        uint32_t score;

        *ret_why = "expected a whole number from 0 (never) to 1000";
        if (parse_u32(value, 0, 1000, &score) < 0)
                return -EINVAL;
        *(uint32_t *)target = score * 1000;
        return 0;
}

static int parse_users(const char *value, void *target, const char **ret_why) {
        *ret_why = "expected a whole number from 1 to 16";
        return parse_u32(value, 1, 16, target);
}

static int parse_condition(const char *value, void *target, const char **ret_why) {
        enum condition_severity s =
                strcmp(value, "ignore") == 0 ? CONDITION_FINE : condition_severity_from_string(value);

        *ret_why = "expected ignore, note, warn or drain";
        if (s < 0 || strcmp(value, "fine") == 0)
                return -EINVAL;
        *(enum condition_severity *)target = s;
        return 0;
}

#define CONDITION(kind) offsetof(struct conf, conditions) + sizeof(enum condition_severity) * (kind)

#define HEALTH_AFTER(kind)                                                                                   \
        offsetof(struct conf, health.rules) + offsetof(struct health_rules, of) +                            \
                sizeof(struct health_rule) * (kind) + offsetof(struct health_rule, after_usec)
#define HEALTH_WITHIN(kind)                                                                                  \
        offsetof(struct conf, health.rules) + offsetof(struct health_rules, of) +                            \
                sizeof(struct health_rule) * (kind) + offsetof(struct health_rule, within_usec)
#define HEALTH_ACTION(kind) offsetof(struct conf, health.actions) + sizeof(uint32_t) * (kind)

static const struct conf_key keys[] = {
        { "Master", "Listen", parse_listen, 0, true, "*:7747" },
        { "Master", "HeartbeatSec", conf_parse_duration, offsetof(struct conf, heartbeat_usec), false, "1s" },
        { "Master", "SuspectSec", conf_parse_duration, offsetof(struct conf, suspect_usec), false, "3s" },
        { "Master", "LostSec", conf_parse_duration, offsetof(struct conf, lost_usec), false, "60s" },
        { "Master", "SpreadSec", conf_parse_duration, offsetof(struct conf, spread_usec), false, "1s" },
        { "Master", "CertificateSec", conf_parse_duration, offsetof(struct conf, certificate_usec), true,
          "365d" },
        { "Master", "AuthoritySec", conf_parse_duration, offsetof(struct conf, authority_usec), true,
          "7300d" },
        { "Master", "JobsMax", conf_parse_u32, offsetof(struct conf, jobs_max), false, "10000" },
        { "Master", "JobsPerUserMax", conf_parse_u32, offsetof(struct conf, jobs_per_user_max), false,
          "1000" },
        { "Master", "BytesPerUserMax", conf_parse_size, offsetof(struct conf, bytes_per_user_max), false,
          "128M" },
        { "Master", "MetricsMax", conf_parse_size, offsetof(struct conf, metrics_max), false, "256M" },
        { "Master", "KeepSec", conf_parse_duration, offsetof(struct conf, keep_usec), false, "30d" },
        { "Master", "KeepJobs", conf_parse_u32, offsetof(struct conf, keep_jobs), false, "1000" },
        { "Master", "MinUid", serve_parse_min_uid, offsetof(struct conf, min_uid), true, "1000" },
        { "Master", "KeepBytes", conf_parse_size, offsetof(struct conf, keep_bytes), false, "4G" },
        { "Master", "KeepFree", conf_parse_size, offsetof(struct conf, keep_free), false, "256M" },
        { "Master", "BundleMax", conf_parse_size, offsetof(struct conf, bundle_max), false, "4G" },
        { "Master", "BundlesPerUserMax", conf_parse_size, offsetof(struct conf, bundles_per_user_max), false,
          "16G" },
        { "Master", "MaintenanceLeadSec", conf_parse_duration, offsetof(struct conf, maintenance_lead_usec),
          false, "1h" },
        { "Master", "QuarantineScore", parse_score, offsetof(struct conf, blame.threshold_milli), false,
          "5" },
        { "Master", "QuarantineUsers", parse_users, offsetof(struct conf, blame.users), false, "2" },
        { "Master", "QuarantineSec", conf_parse_duration, offsetof(struct conf, blame.quarantine_usec), false,
          "30min" },
        { "Master", "BlameHalfLifeSec", conf_parse_duration, offsetof(struct conf, blame.half_life_usec),
          false, "1h" },
        { "Master", "ConditionLink", parse_condition, CONDITION(CONDITION_LINK), false, "warn" },
        { "Master", "ConditionLinkSpeed", parse_condition, CONDITION(CONDITION_LINK_SPEED), false, "note" },
        { "Master", "ConditionClock", parse_condition, CONDITION(CONDITION_CLOCK), false, "warn" },
        { "Master", "ConditionDisk", parse_condition, CONDITION(CONDITION_DISK), false, "drain" },
        { "Master", "ConditionGPU", parse_condition, CONDITION(CONDITION_GPU), false, "drain" },
        { "Master", "ConditionKernel", parse_condition, CONDITION(CONDITION_KERNEL), false, "drain" },
        { "Master", "Visible", pools_parse_visible_default, offsetof(struct conf, pools.visible), true, "" },
        { "Master", "SharedGroups", pools_parse_names, offsetof(struct conf, pools.shared_groups), true,
          "users" },
        { "Master", "RelayFrom", relay_parse_from, offsetof(struct conf, relay), true, "*" },
        { "Master", "StateDirectory", parse_directory, offsetof(struct conf, state_directory), true,
          "/var/lib/primus" },
        { "Scheduler", "HalfLifeSec", conf_parse_duration, POLICY(half_life_usec), false, "7d" },
        { "Scheduler", "AgingSec", conf_parse_duration, POLICY(aging_usec), false, "1h" },
        { "Scheduler", "AgingMax", pools_parse_priority, POLICY(aging_max), false, "10" },
        { "Scheduler", "ReservationsMax", conf_parse_u32, POLICY(reservations), false, "64" },
        { "Scheduler", "AheadSec", conf_parse_duration, POLICY(ahead_usec), false, "1h" },
        { "Scheduler", "PatienceSec", conf_parse_duration, POLICY(patience_usec), false, "10min" },
        { "Scheduler", "MinRunSec", conf_parse_duration, POLICY(min_run_usec), false, "60s" },
        { "Scheduler", "Topology", placement_parse_topology, offsetof(struct conf, placement), false, "" },
        { "Scheduler", "Licences", placement_parse_licences, offsetof(struct conf, placement), false, "" },
        { "Health", "HungSec", health_conf_parse_after, HEALTH_AFTER(VERDICT_HUNG), false, "10min" },
        { "Health", "HungAction", health_conf_parse_action, HEALTH_ACTION(VERDICT_HUNG), false, "note" },
        { "Health", "StragglerSec", health_conf_parse_after, HEALTH_AFTER(VERDICT_STRAGGLER), false,
          "10min" },
        { "Health", "StragglerAction", health_conf_parse_action, HEALTH_ACTION(VERDICT_STRAGGLER), false,
          "note" },
        { "Health", "IdleSec", health_conf_parse_after, HEALTH_AFTER(VERDICT_IDLE), false, "30min" },
        { "Health", "IdleAction", health_conf_parse_action, HEALTH_ACTION(VERDICT_IDLE), false, "note" },
        { "Health", "StarvedSec", health_conf_parse_after, HEALTH_AFTER(VERDICT_STARVED), false, "10min" },
        { "Health", "StarvedAction", health_conf_parse_action, HEALTH_ACTION(VERDICT_STARVED), false,
          "note" },
        { "Health", "ThrashingSec", health_conf_parse_after, HEALTH_AFTER(VERDICT_THRASHING), false, "5min" },
        { "Health", "ThrashingAction", health_conf_parse_action, HEALTH_ACTION(VERDICT_THRASHING), false,
          "note" },
        { "Health", "LeakingSec", health_conf_parse_after, HEALTH_AFTER(VERDICT_LEAKING), false, "30min" },
        { "Health", "LeakingAction", health_conf_parse_action, HEALTH_ACTION(VERDICT_LEAKING), false,
          "note" },
        { "Health", "OOMAction", health_conf_parse_action, HEALTH_ACTION(VERDICT_OOM), false, "note" },
        { "Health", "CrashLoopSec", health_conf_parse_after, HEALTH_WITHIN(VERDICT_CRASH_LOOP), false,
          "30min" },
        { "Health", "CrashLoopAction", health_conf_parse_action, HEALTH_ACTION(VERDICT_CRASH_LOOP), false,
          "note" },
        { "ExitRule", "Codes", exit_rules_parse_codes, offsetof(struct exit_rule_spec, codes), false, "" },
        { "ExitRule", "Output", exit_rules_parse_output, offsetof(struct exit_rule_spec, output), false, "" },
        { "ExitRule", "Action", exit_rules_parse_action, offsetof(struct exit_rule_spec, action), false, "" },
        { "Pool", "Weight", conf_parse_u32, offsetof(struct pool, policy.weight), false, "1" },
        { "Pool", "Guarantee", pools_parse_guarantee, offsetof(struct pool, policy.guarantee), false, "" },
        { "Pool", "Limit", pools_parse_limit, offsetof(struct pool, policy.limit), true, "" },
        { "Pool", "UserLimit", pools_parse_limit, offsetof(struct pool, policy.user_limit), true, "" },
        { "Pool", "Preempts", conf_parse_bool, offsetof(struct pool, policy.preempts), false, "no" },
        { "Pool", "Preemptible", conf_parse_bool, offsetof(struct pool, preemptible), false, "no" },
        { "Pool", "DefaultTime", conf_parse_duration, offsetof(struct pool, default_time_usec), false,
          "infinity" },
        { "Pool", "MaxTime", conf_parse_duration, offsetof(struct pool, max_time_usec), true, "infinity" },
        { "Pool", "Priority", pools_parse_priority, offsetof(struct pool, priority), false, "0" },
        { "Pool", "MaxPriority", pools_parse_priority, offsetof(struct pool, max_priority), true, "1000" },
        { "Pool", "Users", pools_parse_names, offsetof(struct pool, users), true, "" },
        { "Pool", "Groups", pools_parse_names, offsetof(struct pool, groups), true, "" },
        { "Pool", "Group", pools_parse_group, offsetof(struct pool, group), true, "" },
        { "Pool", "Visible", pools_parse_visible_default, offsetof(struct pool, visible), true, "" },
        { "Pool", "VisibleMax", pools_parse_visible, offsetof(struct pool, visible_max), true, "all" },
        {},
};

static const struct conf_group groups[] = {
        { "Pool", pools_find_section },
        { "ExitRule", exit_rules_find_section },
        {},
};

int conf_read(struct conf *c, struct conf_report *report) {
        int r;

        *c = (struct conf){
                .listen = { { .family = AF_INET, .port = PORT_DEFAULT },
                            { .family = AF_INET6, .port = PORT_DEFAULT } },
                .n_listen = 2,
                .heartbeat_usec = USEC_PER_SEC,
                .suspect_usec = 3 * USEC_PER_SEC,
                .lost_usec = 60 * USEC_PER_SEC,
                .spread_usec = USEC_PER_SEC,
                .certificate_usec = 365 * 86400 * USEC_PER_SEC,
                .authority_usec = UINT64_C(7300) * 86400 * USEC_PER_SEC,
                .jobs_max = 10000,
                .jobs_per_user_max = 1000,
                .bytes_per_user_max = 128 << 20,
                .metrics_max = 256 << 20,
                .keep_usec = 30 * 86400 * USEC_PER_SEC,
                .keep_jobs = 1000,
                .keep_bytes = UINT64_C(4) << 30,
                .keep_free = 256 << 20,
                .bundle_max = UINT64_C(4) << 30,
                .bundles_per_user_max = UINT64_C(16) << 30,
                .maintenance_lead_usec = 3600 * USEC_PER_SEC,
                .conditions = { [CONDITION_LINK] = CONDITION_WARN,
                                [CONDITION_LINK_SPEED] = CONDITION_NOTE,
                                [CONDITION_CLOCK] = CONDITION_WARN,
                                [CONDITION_DISK] = CONDITION_DRAIN,
                                [CONDITION_GPU] = CONDITION_DRAIN,
                                [CONDITION_KERNEL] = CONDITION_DRAIN },
                .blame = { .threshold_milli = 5000,
                           .half_life_usec = 3600 * USEC_PER_SEC,
                           .quarantine_usec = 1800 * USEC_PER_SEC,
                           .users = 2 },
                .state_directory = strdup("/var/lib/primus"),
        };
        if (!c->state_directory)
                return -ENOMEM;
        health_conf_init(&c->health);
        r = pools_new(&c->pools);
        r = r < 0 ? r : relay_conf_init(&c->relay);
        if (r >= 0)
                r = conf_load_groups(NULL, "masterd.conf", keys, groups, c, report);
        if (r < 0)
                return r;
        if (c->min_uid == 0)
                c->min_uid = serve_login_min_uid("");
        r = job_defaults_read(JOB_DEFAULTS_DIRECTORY, &c->pools, &c->layers);
        if (r < 0)
                return r;
        r = pools_check(&c->pools) + (int)exit_rules_check(&c->exit_rules);
        if (report)
                report->warnings += (unsigned)r;
        /* The order of these matters to every timer: heartbeat < suspect < lost. */
        if (c->heartbeat_usec < 50 * USEC_PER_MSEC || c->suspect_usec < 2 * c->heartbeat_usec ||
            c->lost_usec <= c->suspect_usec || c->lost_usec == USEC_INFINITY) {
                if (report)
                        report->warnings++;
                log_warning("masterd.conf: HeartbeatSec (at least 50ms), SuspectSec (at least twice that) "
                            "and LostSec (more than "
                            "that) do not fit together; using 1s, 3s and 60s");
                c->heartbeat_usec = USEC_PER_SEC;
                c->suspect_usec = 3 * USEC_PER_SEC;
                c->lost_usec = 60 * USEC_PER_SEC;
        }
        return 0;
}

void conf_done(struct conf *c) {
        free(c->state_directory);
        c->state_directory = NULL;
        pools_done(&c->pools);
        exit_rules_done(&c->exit_rules);
        relay_conf_done(&c->relay);
        c->layers = layers_free(c->layers);
}

int conf_resolve(struct conf *c, char **ret_unknown) {
        int r = pools_resolve(&c->pools, ret_unknown);

        return r < 0 ? r : relay_conf_resolve(&c->relay);
}

int conf_command(FILE *f) {
        _cleanup_(conf_report_done) struct conf_report report = {};
        _cleanup_(conf_done) struct conf c = {};
        _cleanup_free_ char *unknown = NULL;
        int r = conf_read(&c, &report);

        if (r >= 0 && conf_resolve(&c, &unknown) >= 0 && unknown) {
                pools_say_unknown(unknown);
                report.warnings++;
        }
        if (f)
                conf_show(f, keys, groups, &report);
        return r < 0 ? EX_CONFIG : report.warnings > 0;
}
