/* SPDX-License-Identifier: Apache-2.0 */
/* Of a job's configuration (spec.h), what says how failures are met: who is restarted together, what an exit
 * status means, when an executor is ready, what it gets after it ran out of memory. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SPEC_EXIT_RULES_MAX 64u
#define SPEC_CODES_MAX 256u /* bytes of one rule's codes */

/* Who is stopped and started again with an executor that has to be. */
enum restart_scope {
        RESTART_SCOPE_EXECUTOR, /* nobody */
        RESTART_SCOPE_ROLE,     /* the others of its role */
        RESTART_SCOPE_JOB,      /* those of all roles with this scope */
        _RESTART_SCOPE_MAX,     /* of a role while it is read: not given, so the job's */
};

/* What follows from an exit that a rule of exitCodes is for. */
enum exit_action {
        EXIT_ACTION_RESTART, /* started again; counts as nothing */
        EXIT_ACTION_FAIL,    /* the job fails at once */
        EXIT_ACTION_SUCCESS, /* as exit status 0 */
        EXIT_ACTION_IGNORE,  /* neither success nor failure, and it does not come back */
        EXIT_ACTION_BLAME,   /* the host's fault: counts against the host, started again elsewhere */
        EXIT_ACTION_REQUEUE, /* another attempt of the job */
        EXIT_ACTION_NOTE,    /* is said, and the next rule is looked at */
        _EXIT_ACTION_MAX,
};

/* Each of the two that is given has to fit; one is. */
struct exit_rule_spec {
        char *codes;  /* exit_codes_valid() */
        char *output; /* pattern_valid(): of one of the last lines that it printed */
        uint32_t action;
};

/* What tells that an executor is ready. */
enum ready_kind {
        READY_STARTED, /* its process runs */
        READY_TCP,     /* one of its ports is listened on */
        READY_NOTIFY,  /* it said so by sd_notify(3) */
        READY_FILE,    /* a file is there, written since its start */
        _READY_KIND_MAX,
};

struct ready_spec {
        uint32_t kind; /* enum ready_kind; follows from the keys below (check-failure.c) */
        bool started, notify;
        uint32_t port; /* index of the port + 1; 0: not asked for */
        char *file;    /* a pattern as output is, or NULL */
        uint64_t timeout_usec;
};

/* After an end by lack of memory: the next attempt gets old × ratio or old + size, whichever is more, within
 * min and max. max 0: no more than it had. */
struct elastic_spec {
        uint32_t ratio_milli; /* 0: not given */
        uint64_t size, min, max;
};

/* Of a role. */
struct role_failure_spec {
        uint32_t restart_scope; /* enum restart_scope */
        struct exit_rule_spec *exit_rules;
        size_t n_exit_rules;
        uint32_t fail_percent; /* of num: so many failed for good fail the job; 0: not asked for */
        struct ready_spec ready;
        uint64_t watchdog_usec; /* WATCHDOG=1 has to come so often (sd_notify(3)); 0: not asked for */
        uint64_t delay_usec;    /* between the starts of two executors of the role */
        struct elastic_spec elastic;
};

/* Hosts that a job is kept off. */
struct blacklist_spec {
        bool enabled;
        uint32_t max_failed; /* so many executors may have failed on a host; one more excludes it */
        uint64_t timeout_usec;
        uint32_t max_nodes; /* excluded at a time */
};

/* Of the job; restart_scope, rules and budget are its roles' where they have none. */
struct job_failure_spec {
        uint32_t restart_scope;
        struct exit_rule_spec *exit_rules;
        size_t n_exit_rules;
        uint32_t max_role_failures;
        struct blacklist_spec blacklist;
};

extern const char *const exit_action_words[_EXIT_ACTION_MAX];
const char *ready_kind_to_string(enum ready_kind k);

/* An end by lack of memory or by the watchdog is known by that, not by the signal that enforced it. */
enum exit_kind {
        EXIT_KIND_STATUS,
        EXIT_KIND_OOM,
        EXIT_KIND_WATCHDOG,
        _EXIT_KIND_MAX,
};

/* "75", "130-140,SIGSEGV,oom,watchdog": exit statuses, ranges of them, signals by name, and those kinds. */
bool exit_codes_valid(const char *codes, const char **ret_why);
/* Whether an end with that status is meant. A signal's number is 128 more, as in a shell: so 139 and SIGSEGV
 * are the same, whether the command itself died of it or its shell says so. The status counts for
 * EXIT_KIND_STATUS alone. */
bool exit_codes_match(const char *codes, int status, enum exit_kind kind);
