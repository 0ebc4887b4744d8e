/* SPDX-License-Identifier: Apache-2.0 */
/* Hooks as units. Invariant: a run that was taken is answered once, by the end of its start job: the units
 * are of Type=oneshot, so the job lasts as long as the hook. */
#include "agentd/unit/hooks.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <utlist.h>

#include "lib/base/clock.h"
#include "lib/base/format.h"
#include "lib/base/log.h"
#include "lib/base/strv.h"
#include "lib/base/try.h"
#include "lib/base/unitname.h"
#include "lib/base/utf8.h"
#include "lib/unit/ours.h"

#define HOOKS_DIR PRIMUS_SYSCONFDIR "/hooks"
#define LINES_MAX 200u /* logged of a run */

struct run {
        struct hooks *hooks;
        char unit[UNIT_NAME_MAX], name[16];
        uint32_t job;
        char **env;
        hook_handler handler;
        void *userdata;
        bool running;
        uint64_t started;
        int fd; /* of its output */
        sd_event_source *output;
        char line[HOOK_TEXT_MAX], last[HOOK_TEXT_MAX]; /* the one that comes, the one before */
        size_t n_line;
        uint32_t n_lines;
        struct run *next, *prev;
};

struct hooks {
        sd_event *event;
        struct systemd *systemd;
        uint64_t timeout_usec;
        struct run *runs;
        unsigned running;
        uint64_t count;
};

bool hooks_present(const char *name) {
        char path[sizeof(HOOKS_DIR) + 32];
        struct stat st;

        snprintf(path, sizeof(path), HOOKS_DIR "/%s", name);
        if (lstat(path, &st) >= 0)
                return true;
        snprintf(path, sizeof(path), HOOKS_DIR "/%s.d", name);
        return lstat(path, &st) >= 0;
}

bool hooks_stale(const char *unit) {
        return strncmp(unit, HOOK_UNIT_PREFIX, strlen(HOOK_UNIT_PREFIX)) == 0 && !strchr(unit, '@');
}

static void run_free(struct run *r) {
        DL_DELETE(r->hooks->runs, r);
        r->hooks->running -= r->running;
        sd_event_source_disable_unref(r->output);
        (void)close_fd(r->fd);
        strings_free(r->env);
        free(r);
}

/* ---- what it says ---- */

static void end_line(struct run *r) {
        char clean[sizeof(r->line)];

        r->line[r->n_line] = 0;
        r->n_line = 0;
        (void)utf8_clean(r->line, strlen(r->line), clean, sizeof(clean));
        for (char *p = clean; *p; p++)
                if ((unsigned char)*p < ' ' || *p == 0x7f)
                        *p = ' ';
        if (!clean[strspn(clean, " ")])
                return;
        memcpy(r->last, clean, sizeof(clean));
        if (r->n_lines++ < LINES_MAX)
                log_full(LOG_INFO, 0, &(struct log_fields){ .job = r->job, .unit = r->unit }, "%s: %s",
                         r->unit, clean);
}

static void take_output(struct run *r, const char *p, size_t n) {
        for (; n > 0; p++, n--)
                if (*p == '\n')
                        end_line(r);
                else if (r->n_line < sizeof(r->line) - 1)
                        r->line[r->n_line++] = *p;
}

/* False: there will be no more. */
static bool read_output(struct run *r, unsigned pieces) {
        char buf[4096];
        ssize_t n = 0;

        while (pieces-- > 0 && (n = read(r->fd, buf, sizeof(buf))) > 0)
                take_output(r, buf, (size_t)n);
        return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

static int on_output(sd_event_source *s, int fd, uint32_t events, void *userdata) {
        struct run *r = userdata;

        if (!read_output(r, 4))
                (void)sd_event_source_set_enabled(s, SD_EVENT_OFF);
        return 0;
}

/* ---- its unit ---- */

static void start_next(struct hooks *h);

static void finish_run(struct run *r, bool ok, const char *why) {
        struct hooks *h = r->hooks;
        char text[2 * HOOK_TEXT_MAX];

        if (r->fd >= 0)
                (void)read_output(r, 256);
        if (r->n_line > 0)
                end_line(r);
        if (*r->last)
                snprintf(text, sizeof(text), "%s%s%s", why, *why ? ": " : "", r->last);
        else
                snprintf(text, sizeof(text), "%s", *why ? why : ok ? "" : "it failed and said nothing");
        text[utf8_fit(text, HOOK_TEXT_MAX - 1)] = 0;
        r->handler(ok, text, r->userdata);
        run_free(r);
        start_next(h);
}

bool hooks_job_removed(struct hooks *h, const char *unit, const char *result) {
        char why[96] = "", limit[FORMAT_DURATION_MAX];
        struct run *r;

        if (!hooks_stale(unit))
                return false;
        DL_FOREACH (h->runs, r)
                if (r->running && strcmp(r->unit, unit) == 0) {
                        /* systemd calls both a failure. */
                        if (strcmp(result, "failed") == 0 &&
                            now_boot() >= usec_add(r->started, h->timeout_usec))
                                snprintf(why, sizeof(why), "it did not end within %s",
                                         format_duration(h->timeout_usec, limit, sizeof(limit)));
                        else if (strcmp(result, "done") != 0 && strcmp(result, "failed") != 0)
                                snprintf(why, sizeof(why), "systemd did not run it (%.32s)", result);
                        finish_run(r, strcmp(result, "done") == 0, why);
                        break;
                }
        return true;
}

static void on_reply(sd_bus_message *reply, void *userdata) {
        const sd_bus_error *e = sd_bus_message_get_error(reply);
        struct run *r = userdata;

        if (e) /* else its job's end tells */
                finish_run(r, false, e->message ? e->message : e->name);
}

static int start_run(struct run *r) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        _cleanup_close_ int output = -EBADF;
        int fds[2];

        if (pipe2(fds, O_CLOEXEC) < 0)
                return -errno;
        r->fd = fds[0];
        output = fds[1];
        if (fcntl(r->fd, F_SETFL, O_NONBLOCK) < 0)
                return -errno;
        TRY(sd_event_add_io(r->hooks->event, &r->output, r->fd, EPOLLIN, on_output, r));
        TRY(starter_message(r->hooks->systemd, "StartHook", &m));
        TRY(sd_bus_message_append(m, "ss", r->unit, r->name));
        TRY(sd_bus_message_append_strv(m, r->env));
        TRY(sd_bus_message_append(m, "th", r->hooks->timeout_usec, output));
        r->started = now_boot();
        log_full(LOG_DEBUG, 0, &(struct log_fields){ .job = r->job, .unit = r->unit }, "Running %s", r->unit);
        return systemd_call_job(r->hooks->systemd, 0, r->unit, m, on_reply, r);
}

static void start_next(struct hooks *h) {
        struct run *r = h->runs, *next;
        int k;

        for (; r && h->running < HOOKS_MAX; r = next) {
                next = r->next;
                if (r->running)
                        continue;
                r->running = true;
                h->running++;
                k = start_run(r);
                if (k < 0) {
                        finish_run(r, false, strerror(-k)); /* which goes on from here */
                        return;
                }
        }
}

int hooks_run(struct hooks *h, const char *name, const char *instance, char *const *env, uint32_t job,
              hook_handler handler, void *userdata) {
        struct run *r = calloc(1, sizeof(*r));

        if (!r)
                return -ENOMEM;
        *r = (struct run){ .hooks = h, .job = job, .handler = handler, .userdata = userdata, .fd = -EBADF };
        snprintf(r->name, sizeof(r->name), "%s", name);
        /* A number of its own: what an earlier agentd started may still be there. */
        snprintf(r->unit, sizeof(r->unit), HOOK_UNIT_PREFIX "%s-%s-%llu.%llu.service", name, instance,
                 (unsigned long long)(now_boot() / USEC_PER_MSEC), (unsigned long long)++h->count);
        DL_APPEND(h->runs, r);
        if (strings_copy(env, strings_count(env), &r->env) < 0) {
                run_free(r);
                return -ENOMEM;
        }
        start_next(h);
        return 0;
}

int hooks_new(sd_event *event, struct systemd *systemd, uint64_t timeout_usec, struct hooks **ret) {
        struct hooks *h = calloc(1, sizeof(*h));

        if (!h)
                return -ENOMEM;
        *h = (struct hooks){ .event = sd_event_ref(event), .systemd = systemd, .timeout_usec = timeout_usec };
        *ret = h;
        return 0;
}

void hooks_free(struct hooks *h) {
        if (!h)
                return;
        while (h->runs)
                run_free(h->runs);
        sd_event_unref(h->event);
        free(h);
}
