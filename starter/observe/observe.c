/* SPDX-License-Identifier: Apache-2.0 */
/* The calls. Invariant: nothing that comes in a call is more than a name that is checked here, a word of a
 * table or a bounded number; and no call waits for anything that a user's process can hold up. */
#include "starter/observe/observe.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/try.h"
#include "lib/base/unitname.h"
#include "lib/observe/observe.h"
#include "starter/observe/child.h"
#include "starter/observe/look.h"
#include "starter/observe/place.h"
#include "starter/observe/programs.h"
#include "starter/observe/tell.h"
#include "starter/observe/tracing.h"
#include "starter/observe/written.h"

#define WORK_DIR "/var/lib/primus-agent/work"
#define PRIVATE_DIR "/run/primus/x"
#define CAPABILITY(c) (UINT64_C(1) << (c))
/* Threads of others; open files and memory of theirs; their own words, in directories of theirs; their
 * stacks. */
#define CAPTURE_CAPABILITIES                                                                                 \
        (CAPABILITY(CAP_SYS_PTRACE) | CAPABILITY(CAP_DAC_OVERRIDE) | CAPABILITY(CAP_KILL) |                  \
         CAPABILITY(CAP_BPF) | CAPABILITY(CAP_PERFMON))
#define WRITTEN_CAPABILITIES CAPABILITY(CAP_DAC_OVERRIDE)
#define USAGE_CAPABILITIES (CAPABILITY(CAP_SYS_PTRACE) | CAPABILITY(CAP_DAC_OVERRIDE))
/* Owners of children that are no user's. */
#define OWNER_NOBODY UINT32_MAX
#define OWNER_USAGE (UINT32_MAX - 1)

struct observe {
        sd_event *event;
        sd_bus_slot *slot;
        struct observe_options options;
        int hierarchy; /* < 0: there is no cgroup v2 */
        struct programs *programs;
        struct tracing *tracings[_OBSERVE_TRACE_MAX];
        sd_event_source *leases[_OBSERVE_TRACE_MAX];
        struct children *children;
};

static int bad(sd_bus_error *error, const char *text) {
        return sd_bus_error_set(error, SD_BUS_ERROR_INVALID_ARGS, text);
}

static int unknown_unit(sd_bus_error *error, int r) {
        return r == -EINVAL ? bad(error, "that is not the name of an executor's unit")
                            : sd_bus_error_set(error, OBSERVE_ERROR_NOT_FOUND,
                                               "this host has no control group of that unit (cgroup v2)");
}

/* ---- programs that always count ---- */

static int append_descriptors(sd_bus_message *m, const struct programs *p) {
        static const char *const names[] = { OBSERVE_MAP_STATE, OBSERVE_MAP_UNITS, OBSERVE_MAP_FLOWS,
                                             OBSERVE_MAP_EVENTS, OBSERVE_LINK_TASKS };
        int r = sd_bus_message_open_container(m, 'a', "{sh}");

        for (size_t i = 0; r >= 0 && i < ELEMENTSOF(names); i++) {
                int fd = programs_descriptor(p, names[i]);

                if (fd >= 0)
                        r = sd_bus_message_append(m, "{sh}", names[i], fd);
        }
        return r < 0 ? r : sd_bus_message_close_container(m);
}

static int append_states(sd_bus_message *m, const struct programs *p) {
        const struct program_state *s = programs_states(p);
        int r = sd_bus_message_open_container(m, 'a', "(sbbs)");

        for (size_t i = 0; r >= 0 && i < _OBSERVE_PROGRAM_MAX; i++)
                r = sd_bus_message_append(m, "(sbbs)", s[i].name, (int)s[i].up, (int)s[i].out_of_place,
                                          s[i].why);
        return r < 0 ? r : sd_bus_message_close_container(m);
}

static int method_probes(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        struct observe *o = userdata;
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        _cleanup_close_ int slice = o->hierarchy < 0 ? -EBADF : place_slice(o->hierarchy);
        int r;

        if (!o->programs && (r = programs_new(&o->programs)) < 0)
                return r;
        TRY(programs_set_slice(o->programs, slice));
        TRY(sd_bus_message_new_method_return(call, &m));
        TRY(append_descriptors(m, o->programs));
        TRY(append_states(m, o->programs));
        return sd_bus_send(NULL, m, NULL);
}

/* ---- programs on demand ---- */

static void end_trace(struct observe *o, enum observe_trace k) {
        o->leases[k] = sd_event_source_disable_unref(o->leases[k]);
        tracing_free(o->tracings[k]);
        o->tracings[k] = NULL;
}

static int on_lease_over(sd_event_source *s, uint64_t usec, void *userdata) {
        struct observe *o = userdata;

        for (int k = 0; k < _OBSERVE_TRACE_MAX; k++)
                if (o->leases[k] == s) {
                        end_trace(o, (enum observe_trace)k);
                        break;
                }
        return 0;
}

static int renew(struct observe *o, enum observe_trace k) {
        o->leases[k] = sd_event_source_disable_unref(o->leases[k]);
        return sd_event_add_time_relative(o->event, &o->leases[k], CLOCK_MONOTONIC, OBSERVE_TRACE_LEASE_USEC,
                                          USEC_PER_SEC, on_lease_over, o);
}

static int read_kind(sd_bus_message *call, enum observe_trace *ret) {
        const char *text;
        int r = sd_bus_message_read(call, "s", &text);

        *ret = r > 0 ? observe_trace_from_string(text) : _OBSERVE_TRACE_INVALID;
        return *ret < 0 ? -EINVAL : 0;
}

static int method_trace(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        struct observe *o = userdata;
        char why[OBSERVE_WHY_MAX] = "";
        enum observe_trace k;
        int r;

        if (read_kind(call, &k) < 0)
                return bad(error, "there is no trace of that name");
        if (!o->tracings[k]) {
                _cleanup_close_ int slice = o->hierarchy < 0 ? -EBADF : place_slice(o->hierarchy);
                struct stat st;

                if (slice < 0 || fstat(slice, &st) < 0)
                        return sd_bus_error_set(error, OBSERVE_ERROR_NOT_FOUND,
                                                "there is no primus.slice on a cgroup v2 hierarchy");
                r = tracing_new(k, st.st_ino, why, &o->tracings[k]);
                if (r < 0)
                        return *why ? sd_bus_error_set(error, OBSERVE_ERROR_REFUSED, why) : r;
        }
        r = renew(o, k);
        if (r < 0) {
                end_trace(o, k);
                return r;
        }
        return sd_bus_reply_method_return(call, "hh", tracing_settings(o->tracings[k]),
                                          tracing_latencies(o->tracings[k]));
}

static int method_untrace(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        enum observe_trace k;

        if (read_kind(call, &k) < 0)
                return bad(error, "there is no trace of that name");
        end_trace(userdata, k);
        return sd_bus_reply_method_return(call, NULL);
}

/* ---- files ---- */

static int open_in(int directory, const char *name) {
        _cleanup_close_ int fd = place_open_below(directory, name, O_RDWR | O_NONBLOCK | O_NOCTTY);
        struct stat st;

        if (fd < 0)
                return fd;
        if (fstat(fd, &st) < 0)
                return -errno;
        return S_ISREG(st.st_mode) ? TAKE_FD(fd) : -EINVAL;
}

static int open_private(const struct observe *o, const char *unit, const char *name) {
        _cleanup_free_ char *path = NULL, *below = NULL;
        _cleanup_close_ int fd = -EBADF;

        if (!executor_unit_name_valid(unit))
                return -EINVAL;
        if (asprintf(&path, "%s%s", o->options.root, o->options.private_dir) < 0) {
                path = NULL;
                return -ENOMEM;
        }
        if (asprintf(&below, "%s/%s", unit, name) < 0) {
                below = NULL;
                return -ENOMEM;
        }
        fd = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        return fd < 0 ? -errno : open_in(fd, below);
}

static int method_open(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        static const struct {
                const char *name;
                bool group;
        } files[] = {
                { OBSERVE_FILE_MEMORY_PRESSURE, true },
                { OBSERVE_FILE_IO_PRESSURE, true },
                { OBSERVE_FILE_PROGRESS, false },
        };
        struct observe *o = userdata;
        _cleanup_close_ int directory = -EBADF, fd = -EBADF;
        const char *unit, *name;
        size_t i;
        int r = sd_bus_message_read(call, "ss", &unit, &name);

        if (r < 0)
                return r;
        for (i = 0; i < ELEMENTSOF(files) && strcmp(files[i].name, name) != 0; i++)
                ;
        if (i == ELEMENTSOF(files))
                return bad(error, "that is none of the files of a unit that are handed out");
        if (files[i].group) {
                directory = place_unit(o->hierarchy, unit);
                if (directory < 0)
                        return unknown_unit(error, directory);
                fd = open_in(directory, name);
        } else {
                fd = open_private(o, unit, name);
        }
        if (fd < 0)
                return fd == -EINVAL ? unknown_unit(error, fd)
                                     : sd_bus_error_set_errnof(error, -fd, "%s of %s cannot be opened: %s",
                                                               name, unit, strerror(-fd));
        return sd_bus_reply_method_return(call, "h", fd);
}

/* ---- signals ---- */

static int method_signal(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        struct observe *o = userdata;
        pid_t pids[PLACE_PROCESSES_MAX];
        _cleanup_close_ int group = -EBADF;
        const char *unit;
        uint32_t told = 0;
        int32_t number;
        size_t n;
        int r = sd_bus_message_read(call, "si", &unit, &number);

        if (r < 0)
                return r;
        if (!signal_allowed(number))
                return bad(error, "that signal is not one that a program can be told something by");
        group = place_unit(o->hierarchy, unit);
        if (group < 0 && group != -EINVAL)
                group = place_unit_of_systemd(o->options.root, unit);
        if (group < 0)
                return unknown_unit(error, group);
        n = place_processes(group, pids);
        for (size_t i = 0; i < n; i++)
                told += signal_process("/proc", pids[i], unit, number);
        return sd_bus_reply_method_return(call, "uu", told, (uint32_t)n);
}

/* ---- looks, by children ---- */

static int answer_child(sd_bus_message *call, sd_bus_error *error, int r, int fd) {
        _cleanup_close_ int records = fd;

        if (r == -EBUSY)
                return sd_bus_error_set(
                        error, OBSERVE_ERROR_BUSY,
                        "too many are looking at executors of this user, or hang in it; try again "
                        "later");
        return r < 0 ? r : sd_bus_reply_method_return(call, "h", records);
}

/* The job's work directory: its path is made of a name that is a job's, of the unit's job. */
static int find_work(const struct observe *o, const char *unit, const char *work, char **ret,
                     uint32_t *ret_uid) {
        sd_id128_t uid;
        struct stat st;
        uint32_t job;
        char *path;

        if (work_name_parse(work, &job, &uid) < 0 || job != place_job(unit))
                return -EINVAL;
        if (asprintf(&path, "%s%s/%s", o->options.root, o->options.work_dir, work) < 0)
                return -ENOMEM;
        /* root's own: there is none yet, or not any more. */
        if (lstat(path, &st) < 0 || !S_ISDIR(st.st_mode) || st.st_uid == 0) {
                free(path);
                path = NULL;
        } else
                *ret_uid = st.st_uid;
        *ret = path;
        return 0;
}

static int method_capture(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        struct observe *o = userdata;
        struct look_capture q = { .proc = "/proc", .uid = OWNER_NOBODY };
        _cleanup_close_ int group = -EBADF, slice = -EBADF;
        _cleanup_free_ char *directory = NULL;
        const char *unit, *work;
        struct stat st;
        int fd = -EBADF, r = sd_bus_message_read(call, "ssi", &unit, &work, &q.signal);

        if (r < 0)
                return r;
        if (q.signal != 0 && !signal_allowed(q.signal))
                return bad(error, "that signal is not one that a program can be told something by");
        group = place_unit(o->hierarchy, unit);
        if (group >= 0 && fstat(group, &st) >= 0) {
                q.cgroup_id = st.st_ino;
                slice = place_slice(o->hierarchy);
                q.slice = slice >= 0 && fstat(slice, &st) >= 0 ? st.st_ino : 0;
        } else if (group != -EINVAL)
                group = place_unit_of_systemd(o->options.root, unit);
        if (group < 0)
                return unknown_unit(error, group);
        r = find_work(o, unit, work, &directory, &q.uid);
        if (r < 0)
                return r == -EINVAL ? bad(error, "that is not the work directory of the unit's job") : r;
        snprintf(q.unit, sizeof(q.unit), "%s", unit);
        q.directory = directory;
        r = child_run(o->children, q.uid, CAPTURE_CAPABILITIES, look_capture, &q, group, &fd);
        return answer_child(call, error, r, fd);
}

static int method_written(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        struct observe *o = userdata;
        struct written w = {};
        const char *unit;
        int fd = -EBADF, r = sd_bus_message_read(call, "s", &unit);

        if (r < 0)
                return r;
        if (!executor_unit_name_valid(unit))
                return bad(error, "that is not the name of an executor's unit");
        r = written_find(o->options.root, unit, &w);
        if (r < 0)
                return sd_bus_error_set(error, OBSERVE_ERROR_NOT_FOUND, "no file is waited for of that unit");
        r = child_run(o->children, w.uid, WRITTEN_CAPABILITIES, written_look, &w, STDIN_FILENO, &fd);
        free(w.path);
        return answer_child(call, error, r, fd);
}

static int read_units(sd_bus_message *call, char (*units)[UNIT_NAME_MAX], size_t *ret_n) {
        const char *unit;
        size_t n = 0;
        int r = sd_bus_message_enter_container(call, 'a', "s");

        while (r >= 0 && (r = sd_bus_message_read(call, "s", &unit)) > 0) {
                if (n == OBSERVE_USAGE_UNITS_MAX || !executor_unit_name_valid(unit))
                        return -EINVAL;
                snprintf(units[n++], UNIT_NAME_MAX, "%s", unit);
        }
        *ret_n = n;
        return r;
}

static int method_usage(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        struct observe *o = userdata;
        struct look_usage q = { .proc = "/proc" };
        _cleanup_free_ char(*units)[UNIT_NAME_MAX] = calloc(OBSERVE_USAGE_UNITS_MAX, UNIT_NAME_MAX);
        int fd = -EBADF, r;

        if (!units)
                return -ENOMEM;
        r = read_units(call, units, &q.n);
        if (r < 0)
                return r == -EINVAL ? bad(error, "that are not the names of 1024 executors' units at most")
                                    : r;
        if (o->hierarchy < 0)
                return unknown_unit(error, -ENOENT);
        q.units = units;
        r = child_run(o->children, OWNER_USAGE, USAGE_CAPABILITIES, look_usage, &q, o->hierarchy, &fd);
        return answer_child(call, error, r, fd);
}

/* ---- pipes ---- */

static int method_widen(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        struct observe *o = userdata;
        uint32_t size;
        int fd, r = sd_bus_message_read(call, "hu", &fd, &size);

        if (r < 0)
                return r;
        if (size == 0 || size > OBSERVE_PIPE_MAX)
                return bad(error, "that is not a size from 1 byte to 1 MiB");
        r = widened_take(o->options.widened, fd, size, now_boot(), &size);
        if (r == -EMEDIUMTYPE)
                return bad(error, "that is not a pipe, or one that has a name");
        if (r == -EDQUOT)
                return sd_bus_error_setf(error, OBSERVE_ERROR_BUSY,
                                         "%u pipes of this host, or %u MiB of them, were made larger and are "
                                         "still open; try again when some have been closed",
                                         WIDENED_MAX, (unsigned)(WIDENED_BYTES_MAX >> 20));
        return r < 0 ? r : sd_bus_reply_method_return(call, "u", size);
}

/* ---- life ---- */

static const sd_bus_vtable vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_METHOD("Probes", NULL, "a{sh}a(sbbs)", method_probes, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("Trace", "s", "hh", method_trace, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("Untrace", "s", NULL, method_untrace, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("Open", "ss", "h", method_open, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("Signal", "si", "uu", method_signal, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("Capture", "ssi", "h", method_capture, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("Usage", "as", "h", method_usage, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("Written", "s", "h", method_written, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("Widen", "hu", "u", method_widen, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_VTABLE_END,
};

int observe_offer(sd_bus *connection, sd_event *event, const struct observe_options *options,
                  struct observe **ret) {
        _cleanup_(observe_free_p) struct observe *o = calloc(1, sizeof(*o));
        int r;

        if (!o)
                return -ENOMEM;
        o->options = *options;
        o->options.root = o->options.root ?: "";
        o->options.work_dir = o->options.work_dir ?: WORK_DIR;
        o->options.private_dir = o->options.private_dir ?: PRIVATE_DIR;
        o->event = sd_event_ref(event);
        o->hierarchy = place_hierarchy(o->options.root);
        if ((r = children_new(event, &o->children)) < 0 ||
            (r = sd_bus_add_object_vtable(connection, &o->slot, STARTER_PATH, STARTER_OBSERVE, vtable, o)) <
                    0)
                return r;
        *ret = TAKE_PTR(o);
        return 0;
}

void observe_free(struct observe *o) {
        if (!o)
                return;
        sd_bus_slot_unref(o->slot);
        for (int k = 0; k < _OBSERVE_TRACE_MAX; k++)
                end_trace(o, (enum observe_trace)k);
        programs_free(o->programs);
        children_free(o->children);
        close_fd(o->hierarchy);
        sd_event_unref(o->event);
        free(o);
}
