/* SPDX-License-Identifier: Apache-2.0 */
/* Logging for the daemons: one event is one line that reads without the code, with fields beside it. Under
 * systemd it goes to journald through sd-journal, otherwise to standard error. Libraries log at LOG_DEBUG
 * only. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <syslog.h>

#include "lib/base/cleanup.h"

/* Context of a line; fields that are NULL or 0 are left out. They become PRIMUS_JOB=, PRIMUS_NODE= ... */
struct log_fields {
        uint32_t job;
        const char *node;
        const char *unit;
        const char *role;
};

/* Reads $PRIMUS_LOG_LEVEL (a syslog name or number; default info) and finds out where lines go. */
void log_open(const char *program);
/* Lines go to standard error as a person reads them, behind the program's name. */
void log_open_terminal(const char *program);
/* For a forked process that may end at once: journald asks who sent a datagram when it reads it, and finds no
 * unit of a process that is gone, so its lines are not among those of "journalctl -u". Standard error belongs
 * to the unit whoever writes into it. Fields are left out there. */
void log_open_child(void);
void log_set_level(int level);
int log_level(void);

/* Returns -abs(error), so that "return log_error(r, ...)" passes the error up. error may be 0. */
int log_full(int level, int error, const struct log_fields *fields, const char *format, ...) _printf_(4, 5);

/* A line with fields of its own, whatever the level that is set: for what has to be in the journal
 * (lib/base/audit.h). Names are constants of the program; values are one line of text. */
struct log_field {
        const char *name; /* "PRIMUS_AUDIT_UID" */
        const char *value;
};
#define LOG_FIELDS_MAX 24u
void log_with_fields(int level, const char *message, const struct log_field *fields, size_t n);

/* The text of the last line of LOG_ERR or worse; "": none yet. Of the thread that asks. */
const char *log_last_error(void);

#define log_debug(...) log_full(LOG_DEBUG, 0, NULL, __VA_ARGS__)
#define log_info(...) log_full(LOG_INFO, 0, NULL, __VA_ARGS__)
#define log_notice(...) log_full(LOG_NOTICE, 0, NULL, __VA_ARGS__)
#define log_warning(...) log_full(LOG_WARNING, 0, NULL, __VA_ARGS__)
/* error: a (negative) errno; its text is appended as ": <strerror>". */
#define log_warning_errno(error, ...) log_full(LOG_WARNING, error, NULL, __VA_ARGS__)
#define log_error(...) log_full(LOG_ERR, 0, NULL, __VA_ARGS__)
#define log_error_errno(error, ...) log_full(LOG_ERR, error, NULL, __VA_ARGS__)
#define log_oom() log_full(LOG_ERR, -ENOMEM, NULL, "Out of memory")
