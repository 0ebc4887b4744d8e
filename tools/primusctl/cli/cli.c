/* SPDX-License-Identifier: Apache-2.0 */
/* What the commands share: connection, error sentences, job numbers. Invariant: a failure is reported exactly
 * once, in one line without control characters. */
#include "tools/primusctl/cli/cli.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

#include "lib/base/addr.h"
#include "lib/base/clock.h"
#include "lib/base/element.h"
#include "lib/base/parse.h"
#include "lib/wire/copy.h"
#include "tools/primusctl/cli/agent-setting.h"
#include "tools/primusctl/cli/login.h"
#include "tools/primusctl/cli/master.h"
#include "tools/primusctl/cli/remote.h"
#include "tools/primusctl/cli/text.h"

/* Standard error is the process's, and so is how it is written: a line each, with --json an object each. */
static bool errors_json;

void cli_errors_as_json(void) {
        errors_json = true;
}

static void print_object(const char *kind, const char *name, const char *text) {
        json_t *o = name ? json_pack("{s:{s:s, s:s}}", kind, "name", name, "message", text)
                         : json_pack("{s:{s:s}}", kind, "message", text);

        if (!o || json_dumpf(o, stderr, JSON_COMPACT) < 0)
                fputs("{\"error\":{\"name\":\"" ERROR_FAILED "\",\"message\":\"out of memory\"}}", stderr);
        json_decref(o);
        putc('\n', stderr);
}

/* kind, name: of the JSON. */
static void say(const char *kind, const char *name, const char *program, const char *format, va_list ap)
        _printf_(4, 0);
static void say(const char *kind, const char *name, const char *program, const char *format, va_list ap) {
        _cleanup_free_ char *text = NULL;

        if (vasprintf(&text, format, ap) < 0)
                text = NULL;
        if (text)
                text_clean(text);
        fflush(stdout);
        if (errors_json)
                print_object(kind, name, text ? text : "out of memory");
        else
                fprintf(stderr, "%s%s%s\n", program ? program : "", program ? ": " : "",
                        text ? text : "out of memory");
}

int cli_fail(const struct cli *c, const char *format, ...) {
        va_list ap;

        va_start(ap, format);
        say("error", ERROR_FAILED, c->program, format, ap);
        va_end(ap);
        return CLI_FAILED;
}

int cli_fail_as(const struct cli *c, const char *name, const char *format, ...) {
        va_list ap;

        va_start(ap, format);
        say("error", name, c->program, format, ap);
        va_end(ap);
        return strcmp(name, ERROR_UNREACHABLE) == 0 ? CLI_UNREACHABLE : CLI_FAILED;
}

static json_t *complaints;

void cli_complaints_to(json_t *list) {
        complaints = list;
}

static void collect(const char *format, va_list ap) _printf_(1, 0);
static void collect(const char *format, va_list ap) {
        _cleanup_free_ char *text = NULL;

        if (vasprintf(&text, format, ap) < 0)
                text = NULL;
        if (text)
                text_clean(text);
        (void)json_array_append_new(complaints, json_string(text ? text : "out of memory"));
}

int cli_complain(const char *format, ...) {
        va_list ap;

        va_start(ap, format);
        if (complaints)
                collect(format, ap);
        else
                say("error", MASTER_ERROR_BAD_CONFIG, NULL, format, ap);
        va_end(ap);
        return CLI_FAILED;
}

void cli_warn(const char *format, ...) {
        va_list ap;

        va_start(ap, format);
        say("warning", NULL, NULL, format, ap);
        va_end(ap);
}

void cli_note(const char *format, ...) {
        va_list ap;

        va_start(ap, format);
        say("note", NULL, NULL, format, ap);
        va_end(ap);
}

int cli_usage(const struct cli *c, const char *format, ...) {
        va_list ap;

        va_start(ap, format);
        say("error", ERROR_USAGE, c->program, format, ap);
        va_end(ap);
        if (!errors_json)
                fprintf(stderr, "Try '%s%s%s --help'.\n", c->program, c->command ? " " : "",
                        c->command ?: "");
        return CLI_USAGE;
}

int cli_oom(const struct cli *c) {
        return cli_fail(c, "out of memory");
}

/* No master here: where one is, as far as this host knows. */
static void say_elsewhere(const struct cli *c, const char *why) {
        _cleanup_free_ char *master = NULL, *host = NULL;
        uint16_t port;

        if (agent_setting("", "Master", &master) >= 0 && addr_split(master, 1, &host, &port) >= 0 &&
            strncmp(host, "127.", 4) != 0)
                cli_fail_as(
                        c, ERROR_UNREACHABLE,
                        "cannot reach masterd on this host, which is not the master's; ask %s, by ssh: %s "
                        "-H %s ...",
                        host, c->program, host);
        else
                cli_fail_as(c, ERROR_UNREACHABLE,
                            "cannot reach masterd on this host: %s; name the master's by -H, or make it "
                            "this one: systemctl enable --now primus-masterd primus-agentd",
                            why);
}

static int failed_for_good(const struct cli *c, const char *why) {
        cli_fail_as(c, ERROR_UNREACHABLE,
                    "masterd has failed to start (systemctl %s%s%sstatus primus-masterd)%s%s",
                    c->host ? "-H " : "", c->host ? c->host : "", c->host ? " " : "", *why ? ": " : "", why);
        return CLI_UNREACHABLE;
}

static int unreachable(const struct cli *c, const char *why) {
        _cleanup_free_ char *failure = c->bus && sd_bus_is_open(c->bus) > 0 ? master_failure(c->bus) : NULL;

        if (failure)
                return failed_for_good(c, failure);
        if (c->host && (strcmp(why, strerror(ENOTCONN)) == 0 || strcmp(why, strerror(ECONNRESET)) == 0))
                cli_fail_as(c, ERROR_UNREACHABLE,
                            "cannot reach masterd on %s: ssh does not get there; does this work? ssh %s true",
                            c->host, c->host);
        else if (c->host)
                cli_fail_as(
                        c, ERROR_UNREACHABLE,
                        "cannot reach masterd on %s: %s; check with: systemctl -H %s status primus-masterd",
                        c->host, why, c->host);
        else if (c->agent || strcmp(why, strerror(ECONNREFUSED)) == 0)
                cli_fail_as(c, ERROR_UNREACHABLE, "cannot reach the master by this host's agent: %s", why);
        else if (access(MASTER_ENABLED, F_OK) < 0)
                say_elsewhere(c, "no master is set up here");
        else
                cli_fail_as(
                        c, ERROR_UNREACHABLE,
                        "cannot reach masterd on this host: %s; check with: systemctl status primus-masterd",
                        why);
        return CLI_UNREACHABLE;
}

#define AGENT_AWAY_MAX (10 * USEC_PER_SEC) /* that is started again in the middle of a call */

static void sleep_usec(uint64_t usec) {
        (void)nanosleep(
                &(struct timespec){ (time_t)(usec / USEC_PER_SEC), (long)(usec % USEC_PER_SEC) * 1000 },
                NULL);
}

/* An agent that is started again listens in a moment. */
static int open_here(struct cli *c, uint64_t patience) {
        uint64_t since = now_boot();
        int r;

        while ((r = master_bus_open(&c->bus, &c->agent)) == -ECONNREFUSED &&
               now_boot() < usec_add(since, patience))
                sleep_usec(100 * USEC_PER_MSEC);
        return r;
}

void cli_choose_host(struct cli *c) {
        if (c->host || master_is_here() || access(MASTER_SOCKET, F_OK) == 0)
                return;
        c->login = login_host();
        c->host = c->login;
}

int cli_connect(struct cli *c) {
        _cleanup_free_ char *failure = NULL;
        int r;

        if (c->bus)
                return 0;
        cli_choose_host(c);
        r = c->host ? remote_open(c->host, &c->bus) : open_here(c, 2 * USEC_PER_SEC);
        if (r == -EINVAL && c->host) {
                cli_usage(c, "not a host: %s", c->host);
                return CLI_USAGE;
        }
        if (r < 0)
                return unreachable(c, r == -ENOENT ? "there is no system bus" : strerror(-r));
        failure = master_failure(c->bus);
        return failure ? failed_for_good(c, failure) : 0;
}

bool cli_error_unreachable(const sd_bus_error *error, int r) {
        static const char *const names[] = {
                SD_BUS_ERROR_SERVICE_UNKNOWN,
                SD_BUS_ERROR_NAME_HAS_NO_OWNER,
                SD_BUS_ERROR_NO_REPLY,
                SD_BUS_ERROR_DISCONNECTED,
                SD_BUS_ERROR_TIMEOUT,
                SD_BUS_ERROR_NO_SERVER,
                "org.freedesktop.DBus.Error.TimedOut", /* activation */
        };

        if (error && sd_bus_error_is_set(error)) {
                for (size_t i = 0; i < ELEMENTSOF(names); i++)
                        if (sd_bus_error_has_name(error, names[i]))
                                return true;
                /* What libsystemd itself says of a connection that broke, such as one over ssh. */
                if (strncmp(error->name, "System.Error.", 13) == 0)
                        return cli_error_unreachable(NULL, -sd_bus_error_get_errno(error));
                /* Activation that did not work: org.freedesktop.DBus.Error.Spawn.*,
                 * org.freedesktop.systemd1.* */
                return strncmp(error->name, "org.freedesktop.DBus.Error.Spawn.", 33) == 0 ||
                       strncmp(error->name, "org.freedesktop.systemd1.", 25) == 0;
        }
        return r == -ENOTCONN || r == -ECONNRESET || r == -ECONNREFUSED || r == -ENOENT || r == -EPIPE ||
               r == -ETIMEDOUT || r == -EHOSTDOWN;
}

int cli_call_failed(const struct cli *c, const sd_bus_error *error, int r, const char *file,
                    const struct job_ref *job) {
        bool set = error && sd_bus_error_is_set(error);
        const char *message =
                set && error->message ? error->message : strerror(set ? sd_bus_error_get_errno(error) : -r);

        if (cli_error_unreachable(error, r))
                return unreachable(c, message);
        if (!set)
                return cli_fail(c, "the call failed: %s", message);
        if (file && sd_bus_error_has_name(error, MASTER_ERROR_BAD_CONFIG))
                return cli_complain("%s:%s", file, message);
        if (job && (sd_bus_error_has_name(error, MASTER_ERROR_NO_SUCH_JOB) ||
                    sd_bus_error_has_name(error, SD_BUS_ERROR_UNKNOWN_OBJECT)))
                return cli_fail_as(c, MASTER_ERROR_NO_SUCH_JOB,
                                   "there is no job %" PRIu32 "; 'primusctl list -a' shows the jobs",
                                   job->number);
        return cli_fail_as(c, error->name, "%s", message);
}

/* Not twice, when it is not known whether masterd has taken the first. */
static bool repeatable(sd_bus_message *m) {
        static const char *const once[] = { "CreateToken",     "RemoveNode",      "DeclareDead",
                                            "CreateSavepoint", "DeleteSavepoint", "OpenSession" };

        for (size_t i = 0; i < ELEMENTSOF(once); i++)
                if (strcmp(sd_bus_message_get_member(m), once[i]) == 0)
                        return false;
        return true;
}

/* masterd is not there at this moment: it is being started again, which takes less than a second. */
static bool restarting(const sd_bus_error *error, sd_bus_message *m) {
        if (sd_bus_error_has_name(error, SD_BUS_ERROR_NO_REPLY))
                return repeatable(m);
        return sd_bus_error_has_name(error, SD_BUS_ERROR_SERVICE_UNKNOWN) ||
               sd_bus_error_has_name(error, SD_BUS_ERROR_NAME_HAS_NO_OWNER) ||
               sd_bus_error_has_name(error, "org.freedesktop.systemd1.NoSuchUnit");
}

bool cli_error_busy(const sd_bus_error *error) {
        return sd_bus_error_has_name(error, MASTER_ERROR_BUSY) ||
               sd_bus_error_has_name(error, SD_BUS_ERROR_LIMITS_EXCEEDED);
}

uint64_t cli_busy_pause(unsigned tries) {
        return MIN(UINT64_C(10000) << MIN(tries, 7u), USEC_PER_SEC);
}

/* The agent has ended in the middle of it: the same for another connection, in place of *again. */
static int make_anew(struct cli *c, sd_bus_message *m, sd_bus_message **again) {
        _cleanup_(sd_bus_message_unref_p) sd_bus_message *copy = NULL;
        int r;

        c->bus = sd_bus_close_unref(c->bus);
        r = open_here(c, AGENT_AWAY_MAX);
        r = r < 0 ? r
                  : sd_bus_message_new_method_call(
                            c->bus, &copy, sd_bus_message_get_destination(m), sd_bus_message_get_path(m),
                            sd_bus_message_get_interface(m), sd_bus_message_get_member(m));
        (void)sd_bus_message_seal(m, 1, 0); /* where it was not even sent; else it is */
        r = r < 0 ? r : message_copy(copy, m, SIZE_MAX, NULL);
        if (r < 0)
                return r;
        sd_bus_message_unref(*again);
        *again = TAKE_PTR(copy);
        return 0;
}

/* A loop has watches, which see to that themselves. */
static bool may_make_anew(const struct cli *c, sd_bus_message *m, uint64_t since) {
        return sd_bus_is_open(c->bus) <= 0 && c->agent && !c->loop && repeatable(m) &&
               now_boot() < usec_add(since, AGENT_AWAY_MAX);
}

int cli_send(struct cli *c, sd_bus_message *m, sd_bus_error *ret_error, sd_bus_message **ret_reply) {
        _cleanup_(sd_bus_message_unref_p) sd_bus_message *again = NULL;
        unsigned away = 0, waited = 0;
        uint64_t since = now_boot();
        int r;

        for (;;) {
                uint64_t pause;
                r = sd_bus_call(c->bus, again ?: m, 0, ret_error, ret_reply);
                if (r < 0 && may_make_anew(c, m, since) && make_anew(c, m, &again) >= 0) {
                        sd_bus_error_free(ret_error);
                        continue;
                }
                if (r >= 0 || sd_bus_is_open(c->bus) <= 0)
                        return r;
                if (restarting(ret_error, m) && away++ < 20)
                        pause = 100 * USEC_PER_MSEC;
                else if (cli_error_busy(ret_error) && waited < CLI_BUSY_TRIES)
                        pause = cli_busy_pause(waited++);
                else
                        return r;
                sd_bus_error_free(ret_error);
                sleep_usec(pause);
        }
}

int cli_call(struct cli *c, sd_bus_message *m, const struct job_ref *job, sd_bus_message **ret_reply) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        int r = cli_send(c, m, &error, ret_reply);

        return r < 0 ? cli_call_failed(c, &error, r, NULL, job) : 0;
}

static int new_call(struct cli *c, const char *path, const char *interface, const char *method,
                    sd_bus_message **ret) {
        int r = cli_connect(c);

        if (r)
                return r;
        r = sd_bus_message_new_method_call(c->bus, ret, MASTER_NAME, path, interface, method);
        if (r < 0)
                return cli_fail(c, "cannot make a call: %s", strerror(-r));
        /* A desktop's or tty's polkit agent may ask the person for a password. */
        (void)sd_bus_message_set_allow_interactive_authorization(*ret, true);
        return 0;
}

int cli_manager_call(struct cli *c, const char *method, sd_bus_message **ret) {
        return new_call(c, MASTER_PATH, MASTER_MANAGER, method, ret);
}

int cli_job_call(struct cli *c, const struct job_ref *job, const char *method, sd_bus_message **ret) {
        return new_call(c, job->path, MASTER_JOB, method, ret);
}

int cli_bad_reply(const struct cli *c, int r) {
        return cli_fail(c, "masterd gave an answer that this primusctl (%s) cannot read: %s", PRIMUS_VERSION,
                        strerror(-r));
}

bool job_number_parse(const char *text, uint32_t *ret) {
        return parse_u32(text, 1, UINT32_MAX, ret) >= 0;
}

const char *cli_key_value(const char *text, char *buf, size_t size) {
        const char *equals = strchr(text, '=');

        if (!equals || equals == text || (size_t)(equals - text) >= size)
                return NULL;
        snprintf(buf, size, "%.*s", (int)(equals - text), text);
        return equals + 1;
}

bool element_parse(const char *text, uint32_t *ret_array, uint32_t *ret_index) {
        const char *bracket = strchr(text, '['), *end = bracket ? strchr(bracket, ']') : NULL;
        char array[16], index[16];

        if (!end || end[1] || (size_t)(bracket - text) >= sizeof(array) ||
            (size_t)(end - bracket) > sizeof(index))
                return false;
        snprintf(array, sizeof(array), "%.*s", (int)(bracket - text), text);
        snprintf(index, sizeof(index), "%.*s", (int)(end - bracket - 1), bracket + 1);
        *ret_index = ELEMENT_SEARCHER;
        return parse_u32(array, 1, UINT32_MAX, ret_array) >= 0 &&
               (strcmp(index, ELEMENT_SEARCHER_NAME) == 0 || parse_u32(index, 0, UINT32_MAX, ret_index) >= 0);
}

/* "418/worker/3" is what one tries who has seen executors written as ROLE/INDEX. */
static int not_a_job(const struct cli *c, const char *text) {
        const char *slash = strchr(text, '/');
        char number[16];
        uint32_t job;

        if (slash && (size_t)(slash - text) < sizeof(number)) {
                snprintf(number, sizeof(number), "%.*s", (int)(slash - text), text);
                if (job_number_parse(number, &job))
                        return cli_usage(c, "an executor is a word behind its job: %" PRIu32 " %s, not %s",
                                         job, slash[1] ? slash + 1 : "ROLE/INDEX", text);
        }
        return cli_usage(c, "not a job's number: %s", text);
}

int cli_job_text(const struct cli *c, const char *text) {
        uint32_t job, index;

        return element_parse(text, &job, &index) || job_number_parse(text, &job) ? 0 : not_a_job(c, text);
}

int cli_job(struct cli *c, const char *text, struct job_ref *ret) {
        _cleanup_(sd_bus_message_unref_p) sd_bus_message *m = NULL, *reply = NULL;
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        struct job_ref job = { 0 };
        const char *path, *tail;
        uint32_t index;
        bool element;
        int r;

        element = text && element_parse(text, &job.number, &index);
        if (text && !element && !job_number_parse(text, &job.number))
                return not_a_job(c, text);
        /* Also for a number that is given: this brings a job that ended long ago back onto the bus. */
        r = cli_manager_call(c, element ? "GetElement" : "GetJob", &m);
        if (r)
                return r;
        r = sd_bus_message_append(m, "u", job.number);
        if (r >= 0 && element)
                r = sd_bus_message_append(m, "u", index);
        if (r < 0)
                return cli_oom(c);
        r = cli_send(c, m, &error, &reply);
        if (r < 0 && !text && sd_bus_error_has_name(&error, MASTER_ERROR_NO_SUCH_JOB))
                return cli_fail_as(c, MASTER_ERROR_NO_SUCH_JOB,
                                   "you have no job yet; give a number ('primusctl list -a' shows the jobs)");
        if (r < 0)
                return cli_call_failed(c, &error, r, NULL, element ? NULL : &job);
        r = sd_bus_message_read(reply, "o", &path);
        if (r < 0)
                return cli_bad_reply(c, r);
        tail = strrchr(path, '/');
        if (strlen(path) >= sizeof(job.path) || !tail || !job_number_parse(tail + 1, &job.number))
                return cli_bad_reply(c, -EBADMSG);
        strcpy(job.path, path);
        *ret = job;
        return 0;
}

int job_state_exit(const char *state) {
        static const struct {
                const char *state;
                int status;
        } ends[] = { { "SUCCEEDED", CLI_OK }, { "FAILED", CLI_FAILED }, { "KILLED", CLI_KILLED } };

        for (size_t i = 0; i < ELEMENTSOF(ends); i++)
                if (strcmp(state, ends[i].state) == 0)
                        return ends[i].status;
        return -1;
}

int cli_print_json(const struct cli *c, json_t *value) {
        int r;

        if (!value)
                return cli_oom(c);
        r = json_dumpf(value, stdout, JSON_INDENT(2) | JSON_ENCODE_ANY);
        json_decref(value);
        if (r < 0 || putchar('\n') == EOF || fflush(stdout) == EOF)
                return cli_fail(c, "cannot write to standard output: %s", strerror(errno));
        return CLI_OK;
}

int cli_each_job(struct cli *c, char **args, size_t n, const char *method, const char *argument,
                 const char *says) {
        int worst = CLI_OK;

        for (size_t i = 0; i < n; i++) {
                _cleanup_(sd_bus_message_unref_p) sd_bus_message *m = NULL, *reply = NULL;
                struct job_ref job;
                int r = cli_job(c, args[i], &job);

                if (!r)
                        r = cli_job_call(c, &job, method, &m);
                if (!r && argument && sd_bus_message_append(m, "s", argument) < 0)
                        r = cli_usage(c, "'%s' is not valid UTF-8", argument);
                if (!r)
                        r = cli_call(c, m, &job, &reply);
                if (r == CLI_UNREACHABLE || r == CLI_USAGE)
                        return r;
                if (r)
                        worst = r;
                else if (!c->json)
                        printf("Job %" PRIu32 " %s\n", job.number, says);
        }
        return worst;
}
