/* SPDX-License-Identifier: Apache-2.0 */
/* Logging for the daemons. Invariant: logging never fails the caller and never changes errno. */
#include "lib/base/log.h"

#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>

#define SD_JOURNAL_SUPPRESS_LOCATION
#include <systemd/sd-journal.h>

#include "lib/base/parse.h"

static struct {
        int level;
        bool journal, terminal;
        const char *program;
} log_state = { .level = LOG_INFO };

static _Thread_local char last_error[1536];

static const char *const level_names[] = {
        [LOG_EMERG] = "emerg",     [LOG_ALERT] = "alert",   [LOG_CRIT] = "crit", [LOG_ERR] = "err",
        [LOG_WARNING] = "warning", [LOG_NOTICE] = "notice", [LOG_INFO] = "info", [LOG_DEBUG] = "debug",
};

/* $JOURNAL_STREAM names the device and inode of the stream that systemd connected us to. */
static bool stderr_is_journal(void) {
        const char *e = getenv("JOURNAL_STREAM");
        unsigned long long dev, ino;
        struct stat st;

        return e && sscanf(e, "%llu:%llu", &dev, &ino) == 2 && fstat(STDERR_FILENO, &st) >= 0 &&
               st.st_dev == dev && st.st_ino == ino;
}

void log_open(const char *program) {
        const char *e = getenv("PRIMUS_LOG_LEVEL");
        uint64_t n;

        log_state.program = program;
        log_state.journal = stderr_is_journal();
        if (!e)
                return;
        for (size_t i = 0; i < ELEMENTSOF(level_names); i++)
                if (strcmp(e, level_names[i]) == 0)
                        log_state.level = (int)i;
        if (parse_u64(e, 0, LOG_DEBUG, &n) >= 0)
                log_state.level = (int)n;
}

void log_open_terminal(const char *program) {
        log_state.program = program;
        log_state.journal = false;
        log_state.terminal = true;
}

void log_open_child(void) {
        log_state.journal = false;
}

void log_set_level(int level) {
        log_state.level = level;
}

int log_level(void) {
        return log_state.level;
}

const char *log_last_error(void) {
        return last_error;
}

int log_full(int level, int error, const struct log_fields *fields, const char *format, ...) {
        int saved = errno, n = 0;
        char message[2048], priority[16], job[32], node[160], role[160], unit[300];
        struct iovec iov[6];
        va_list ap;

        error = error > 0 ? -error : error;
        if (level > log_state.level && level > LOG_ERR)
                return error;

        strcpy(message, "MESSAGE=");
        va_start(ap, format);
        vsnprintf(message + 8, sizeof(message) - 8, format, ap);
        va_end(ap);
        if (error < 0) {
                size_t l = strlen(message);
                snprintf(message + l, sizeof(message) - l, ": %s", strerror(-error));
        }

        if (level <= LOG_ERR)
                memccpy(last_error, message + 8, 0, sizeof(last_error) - 1);
        if (level > log_state.level)
                ;
        else if (log_state.terminal)
                fprintf(stderr, "%s: %s\n", log_state.program, message + 8);
        else if (!log_state.journal)
                fprintf(stderr, "<%d>%s\n", level, message + 8);
        else {
#define FIELD(buffer, ...)                                                                                   \
        do {                                                                                                 \
                snprintf(buffer, sizeof(buffer), __VA_ARGS__);                                               \
                iov[n++] = (struct iovec){ buffer, strlen(buffer) };                                         \
        } while (0)
                iov[n++] = (struct iovec){ message, strlen(message) };
                FIELD(priority, "PRIORITY=%d", level);
                if (fields && fields->job)
                        FIELD(job, "PRIMUS_JOB=%u", fields->job);
                if (fields && fields->node)
                        FIELD(node, "PRIMUS_NODE=%s", fields->node);
                if (fields && fields->role)
                        FIELD(role, "PRIMUS_ROLE=%s", fields->role);
                if (fields && fields->unit)
                        FIELD(unit, "PRIMUS_UNIT=%s", fields->unit);
#undef FIELD
                (void)sd_journal_sendv(iov, n);
        }
        errno = saved;
        return error;
}

void log_with_fields(int level, const char *message, const struct log_field *fields, size_t n) {
        int saved = errno;
        char *lines[LOG_FIELDS_MAX + 2] = {};
        struct iovec iov[LOG_FIELDS_MAX + 2];
        int used = 0;

        if (!log_state.journal) {
                fprintf(stderr, "<%d>%s\n", level, message);
                errno = saved;
                return;
        }
        for (size_t i = 0; i < MIN(n, LOG_FIELDS_MAX) + 2; i++) {
                int size = i == 0 ? asprintf(lines + used, "MESSAGE=%s", message)
                           : i == 1
                                   ? asprintf(lines + used, "PRIORITY=%d", level)
                                   : asprintf(lines + used, "%s=%s", fields[i - 2].name, fields[i - 2].value);
                if (size < 0)
                        continue; /* a line that lacks a field rather than no line */
                iov[used] = (struct iovec){ lines[used], (size_t)size };
                used++;
        }
        (void)sd_journal_sendv(iov, used);
        while (used > 0)
                free(lines[--used]);
        errno = saved;
}
