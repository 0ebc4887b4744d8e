/* SPDX-License-Identifier: Apache-2.0 */
/* What every command of primusctl shares: the bus, how errors are said, exit statuses, how a job is named.
 * A function here that can fail prints one line to standard error and returns an exit status (0: go on). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-bus.h>

#include "lib/base/cleanup.h"
#include "lib/wire/master-bus.h"

#define MASTER_PATH "/org/primus/Master1"
#define MASTER_MANAGER "org.primus.Master1.Manager"
#define MASTER_JOB "org.primus.Master1.Job"
#define MASTER_NODE "org.primus.Master1.Node"

#define MASTER_ERROR_NO_SUCH_JOB "org.primus.Error.NoSuchJob"
#define MASTER_ERROR_NO_SUCH_NODE "org.primus.Error.NoSuchNode"
#define MASTER_ERROR_NOT_FOUND "org.primus.Error.NotFound"
#define MASTER_ERROR_BUSY "org.primus.Error.Busy"
#define MASTER_ERROR_BAD_CONFIG "org.primus.Error.BadConfig"
/* primusctl's own. */
#define ERROR_FAILED "org.primus.Error.Failed"
#define ERROR_USAGE "org.primus.Error.Usage"
#define ERROR_UNREACHABLE "org.primus.Error.Unreachable"

enum cli_exit {
        CLI_OK = 0,
        CLI_FAILED = 1,      /* the job failed, or the input is bad, or the master refused */
        CLI_USAGE = 2,       /* the command line is wrong */
        CLI_KILLED = 3,      /* the job was killed */
        CLI_UNREACHABLE = 4, /* no answer from masterd */
        CLI_DETACHED = 130,  /* Ctrl-C: the job goes on */
};

#define JOB_PATH_MAX 64

/* A job as the command line names it. */
struct job_ref {
        uint32_t number;
        char path[JOB_PATH_MAX];
};

struct watch;
struct cli {
        const char *program; /* as messages begin */
        const char *command; /* which one it is; NULL: none yet, or the program itself */
        const char *host;    /* -H, or login's; NULL: this host */
        char *login;         /* the latter */
        bool json;
        bool color;     /* standard output takes colours */
        sd_bus *bus;    /* NULL until cli_connect() */
        bool agent;     /* it is the socket of this host's agent, which hands on to a master elsewhere */
        sd_event *loop; /* that the bus is attached to, its caller's; NULL: none. A bus that has broken has
                           forgotten it */
        struct watch *watches;   /* bus/watch.h: whose bus is made anew where the agent is */
        sd_event_source *rejoin; /* when that is tried */
};

DEFINE_CLEANUP(sd_bus_message *, sd_bus_message_unref)

/* "primusctl: ..." to standard error, with --json as an object, see primusctl(1). Control characters of the
 * arguments are shown as '?'. Returns CLI_FAILED. */
int cli_fail(const struct cli *c, const char *format, ...) _printf_(2, 3);

/* The same with a name of the error. Returns CLI_FAILED, or CLI_UNREACHABLE where that is the name. */
int cli_fail_as(const struct cli *c, const char *name, const char *format, ...) _printf_(3, 4);

/* The same without the program's name, for what a person expects to begin with a file's name. */
int cli_complain(const char *format, ...) _printf_(1, 2);

/* While list is not NULL, what is complained of goes there as texts, and is not printed. */
struct json_t;
void cli_complaints_to(struct json_t *list);

/* What is no failure: a warning, and what a person at the terminal may want to know. */
void cli_warn(const char *format, ...) _printf_(1, 2);
void cli_note(const char *format, ...) _printf_(1, 2);

/* From here on, all that the functions above write is JSON. */
void cli_errors_as_json(void);

/* As cli_fail(), then a pointer to --help. Returns CLI_USAGE. */
int cli_usage(const struct cli *c, const char *format, ...) _printf_(2, 3);

int cli_oom(const struct cli *c); /* CLI_FAILED */

/* Without -H, on a machine that is of no cluster: the host of "primusctl login" as c->host, if there is one.
 */
void cli_choose_host(struct cli *c);
/* Opens the way to masterd: the bus here, or c->host's over ssh; once. */
int cli_connect(struct cli *c);

/* True for the errors that mean "nobody answers to the master's name just now". */
bool cli_error_unreachable(const sd_bus_error *error, int r);

/* True where masterd has taken nothing of the call: it has too much to do, or too much for this user. */
bool cli_error_busy(const sd_bus_error *error);

/* How long to wait before what was refused so is asked again, after that many refusals in a row: 10 ms,
 * 20 ms, ... 1 s, some 24 s together, for a master that has just come back to a crowd. */
#define CLI_BUSY_TRIES 30u
uint64_t cli_busy_pause(unsigned tries);

/* Reports a failed call: error if set, else r. file: whose BadConfig diagnostics these are, or NULL; job: for
 * "there is no job 7", or NULL. Returns CLI_FAILED or CLI_UNREACHABLE. */
int cli_call_failed(const struct cli *c, const sd_bus_error *error, int r, const char *file,
                    const struct job_ref *job);

/* sd_bus_call() that goes on over a restart of masterd: tried again for up to two seconds where that cannot
 * do anything twice. */
int cli_send(struct cli *c, sd_bus_message *m, sd_bus_error *ret_error, sd_bus_message **ret_reply);

/* Calls method m on the bus and reports a failure; job as above. */
int cli_call(struct cli *c, sd_bus_message *m, const struct job_ref *job, sd_bus_message **ret_reply);

/* A new call of the manager's method, or of a method of a job. */
int cli_manager_call(struct cli *c, const char *method, sd_bus_message **ret);
int cli_job_call(struct cli *c, const struct job_ref *job, const char *method, sd_bus_message **ret);

/* For a reply that is not what the contract says. Returns CLI_FAILED. */
int cli_bad_reply(const struct cli *c, int r);

/* "418[7]": an element of an array. */
bool element_parse(const char *text, uint32_t *ret_array, uint32_t *ret_index);

/* Is text a job's number? */
bool job_number_parse(const char *text, uint32_t *ret);
/* "NAME=VALUE": the name into buf, the value is returned; NULL: it is none, or the name is too long. */
const char *cli_key_value(const char *text, char *buf, size_t size);

/* 0 where text is a job's number or an element; else what is wrong with it is said. */
int cli_job_text(const struct cli *c, const char *text);

/* The job that text names (a number, or an element), or the caller's latest (NULL). */
int cli_job(struct cli *c, const char *text, struct job_ref *ret);

/* Calls a method of each job that is named, with one string for an argument (NULL: none), and says "Job N
 * SAYS". One that is refused does not keep the others from it. Returns the exit status. */
int cli_each_job(struct cli *c, char **args, size_t n, const char *method, const char *argument,
                 const char *says);

/* The exit status for a job's state: SUCCEEDED 0, FAILED 1, KILLED 3; -1: not ended. */
int job_state_exit(const char *state);

/* Prints a JSON value (taken) to standard output, indented; CLI_OK or CLI_FAILED. */
struct json_t;
int cli_print_json(const struct cli *c, struct json_t *value);
