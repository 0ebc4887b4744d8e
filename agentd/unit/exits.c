/* SPDX-License-Identifier: Apache-2.0 */
/* Exit records. Invariant: nothing is changed here (the starter deletes a record, once masterd has it); what
 * is no record stays where it is, for a person to look at, and is logged once. */
#include "agentd/unit/exits.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/base/names.h"
#include "lib/base/parse.h"
#include "lib/base/unitname.h"
#include "lib/base/utf8.h"

struct exits {
        int dir, inotify;
        sd_event_source *source;
        exits_handler handler;
        void *userdata;
};

/* ---- the text ---- */

enum {
        SEEN_UID = 1,
        SEEN_JOB = 2,
        SEEN_ROLE = 4,
        SEEN_INDEX = 8,
        SEEN_ATTEMPT = 16,
        SEEN_ALL = 31
};

static int parse_text(const char *value, void *target, size_t size) {
        if (strlen(value) >= size || !utf8_valid(value, strlen(value)))
                return -EINVAL;
        strcpy(target, value);
        return 0;
}

static int parse_id(const char *value, void *target, size_t size) {
        return sd_id128_from_string(value, target);
}

static int parse_n32(const char *value, void *target, size_t size) {
        return parse_u32(value, 0, UINT32_MAX, target);
}

static int parse_n64(const char *value, void *target, size_t size) {
        return parse_u64(value, 0, UINT64_MAX, target);
}

static int parse_status(const char *value, void *target, size_t size) {
        uint32_t n;

        if (parse_u32(value, 0, 255, &n) >= 0) {
                *(int32_t *)target = (int32_t)n;
                return 0;
        }
        for (int i = 1; i < NSIG; i++) {
                const char *name = sigabbrev_np(i);
                if (name && strcmp(name, value) == 0) {
                        *(int32_t *)target = i;
                        return 0;
                }
        }
        if (strncmp(value, "RTMIN+", 6) == 0 && parse_u32(value + 6, 0, 64, &n) >= 0 &&
            SIGRTMIN + (int)n <= SIGRTMAX) {
                *(int32_t *)target = SIGRTMIN + (int)n;
                return 0;
        }
        return -EINVAL;
}

#define FIELD(key, parser, field, flag)                                                                      \
        {                                                                                                    \
                key, parser, offsetof(struct exit_report, field),                                            \
                        sizeof(((struct exit_report *)NULL)->field), flag                                    \
        }

static const struct {
        const char *key;
        int (*parse)(const char *value, void *target, size_t size);
        size_t offset, size;
        unsigned seen;
} fields[] = {
        FIELD("JOB_UID", parse_id, id.job_uid, SEEN_UID),
        FIELD("JOB", parse_n32, id.job, SEEN_JOB),
        FIELD("ROLE", parse_text, id.role, SEEN_ROLE),
        FIELD("INDEX", parse_n32, id.index, SEEN_INDEX),
        FIELD("ATTEMPT", parse_n32, id.attempt, SEEN_ATTEMPT),
        FIELD("INVOCATION", parse_id, invocation, 0),
        FIELD("RESULT", parse_text, result, 0),
        FIELD("CODE", parse_text, code, 0),
        FIELD("STATUS", parse_status, status, 0),
        FIELD("STARTED", parse_n64, started_real, 0),
        FIELD("ENDED", parse_n64, ended_real, 0),
        FIELD("MEMORY_PEAK", parse_n64, memory_peak, 0),
        FIELD("CPU_USEC", parse_n64, cpu_usec, 0),
        FIELD("IO_READ", parse_n64, io_read, 0),
        FIELD("IO_WRITE", parse_n64, io_write, 0),
        FIELD("OOM_KILLS", parse_n64, oom_kills, 0),
        FIELD("CGROUP", parse_n64, cgroup_id, 0),
        FIELD("OOM_TASK", parse_text, oom.task, 0),
        FIELD("OOM_PID", parse_n32, oom.pid, 0),
        FIELD("OOM_HELD", parse_n64, oom.held, 0),
        FIELD("OOM_AT", parse_text, oom.at, 0),
};
#undef FIELD

int exit_record_parse(char *text, struct exit_report *ret) {
        struct exit_report e = { .memory_peak = UINT64_MAX,
                                 .cpu_usec = UINT64_MAX,
                                 .io_read = UINT64_MAX,
                                 .io_write = UINT64_MAX };
        unsigned seen = 0;
        char *save;

        for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
                char *value = strchr(line, '=');

                if (!value)
                        return -EBADMSG;
                *value++ = 0;
                if (strcmp(line, "STOP") == 0) {
                        e.stop_requested = strcmp(value, "order") == 0;
                        e.stop_local = strcmp(value, "local") == 0;
                        continue;
                }
                for (size_t i = 0; i < ELEMENTSOF(fields); i++)
                        if (strcmp(line, fields[i].key) == 0) {
                                if (fields[i].parse(value, (char *)&e + fields[i].offset, fields[i].size) < 0)
                                        return -EBADMSG;
                                seen |= fields[i].seen;
                        }
        }
        if (seen != SEEN_ALL || sd_id128_is_null(e.id.job_uid) || e.id.job == 0 ||
            !role_name_valid(e.id.role) || e.id.attempt == 0)
                return -EBADMSG;
        /* Cut off before it, by a full disk say. masterd could not be told without, nor of the others with
         * it. */
        if (!*e.result)
                strcpy(e.result, "no-record");
        e.detail = strdup("");
        if (!e.detail)
                return -ENOMEM;
        *ret = e;
        return 0;
}

/* ---- the directory ---- */

static bool is_record_name(const char *name) {
        return strncmp(name, "primus-", 7) == 0 && strlen(name) < UNIT_NAME_MAX;
}

int exits_read(struct exits *e, const char *unit, struct exit_report *ret) {
        struct exit_report report;
        _cleanup_free_ char *text = NULL;
        char name[UNIT_NAME_MAX];
        int r;

        r = read_file_at(e->dir, unit, EXIT_RECORD_MAX, &text, NULL);
        if (r < 0)
                return r;
        r = exit_record_parse(text, &report);
        if (r < 0)
                return r;
        executor_unit_name(report.id.job, report.id.role, report.id.index, report.id.attempt, name);
        if (strcmp(name, unit) != 0) {
                exit_report_done(&report);
                return -EBADMSG;
        }
        *ret = report;
        return 0;
}

static void report_record(struct exits *e, const char *unit) {
        struct exit_report report;
        int r = exits_read(e, unit, &report);

        if (r == -ENOENT)
                return;
        if (r < 0) {
                log_warning_errno(r, "Ignoring " EXITS_DIR "/%s, which is not an exit record", unit);
                return;
        }
        e->handler(unit, &report, e->userdata);
        exit_report_done(&report);
}

static int on_inotify(sd_event_source *s, int fd, uint32_t revents, void *userdata) {
        struct exits *e = userdata;
        char buf[4096] __attribute__((aligned(8)));
        ssize_t n = read(fd, buf, sizeof(buf));

        if (n < 0)
                return 0;
        for (char *p = buf; p < buf + n;) {
                struct inotify_event *event = (struct inotify_event *)p;

                p += sizeof(*event) + event->len;
                if (event->mask & IN_Q_OVERFLOW)
                        (void)exits_scan(e);
                else if (event->len > 0 && is_record_name(event->name))
                        report_record(e, event->name);
        }
        return 0;
}

int exits_new(sd_event *event, const char *root, exits_handler handler, void *userdata, struct exits **ret) {
        _cleanup_(exits_free_p) struct exits *e = calloc(1, sizeof(*e));
        _cleanup_free_ char *path = NULL;
        int r;

        if (!e)
                return -ENOMEM;
        *e = (struct exits){ .dir = -EBADF, .inotify = -EBADF, .handler = handler, .userdata = userdata };
        if (asprintf(&path, "%s" EXITS_DIR, root) < 0)
                return -ENOMEM;
        e->dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (e->dir < 0)
                return -errno;
        e->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
        if (e->inotify < 0 || inotify_add_watch(e->inotify, path, IN_MOVED_TO | IN_ONLYDIR) < 0)
                return -errno;
        r = sd_event_add_io(event, &e->source, e->inotify, EPOLLIN, on_inotify, e);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(e);
        return 0;
}

void exits_free(struct exits *e) {
        if (!e)
                return;
        sd_event_source_disable_unref(e->source);
        close_fd(e->inotify);
        close_fd(e->dir);
        free(e);
}

int exits_scan(struct exits *e) {
        int fd = openat(e->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        struct dirent *entry;
        DIR *dir;

        if (fd < 0)
                return -errno;
        dir = fdopendir(fd);
        if (!dir) {
                close_fd(fd);
                return -ENOMEM;
        }
        while ((entry = readdir(dir)))
                if (is_record_name(entry->d_name))
                        report_record(e, entry->d_name);
        (void)closedir(dir);
        return 0;
}

bool exits_present(struct exits *e, const char *unit) {
        return faccessat(e->dir, unit, F_OK, AT_SYMLINK_NOFOLLOW) >= 0;
}
