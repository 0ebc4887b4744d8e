/* SPDX-License-Identifier: Apache-2.0 */
/* Manager.Submit: from the call's arguments to a submission. Invariant: every argument is bounded and checked
 * before anything is made of it. */
#include <string.h>

#include "lib/base/names.h"
#include "lib/base/utf8.h"
#include "lib/wire/errors.h"
#include "masterd/admit/keys.h"
#include "masterd/admit/restore.h"
#include "masterd/admit/submit-options.h"
#include "masterd/admit/submit.h"
#include "masterd/api/api-parts.h"
#include "masterd/api/api.h"
#include "masterd/api/audience.h"
#include "masterd/api/looking.h"
#include "masterd/api/options.h"
#include "masterd/caller/audit.h"
#include "masterd/caller/caller.h"
#include "masterd/caller/reply.h"
#include "masterd/core/manager.h"
#include "masterd/core/notices.h"
#include "masterd/core/record.h"
#include "masterd/life/depend.h"
#include "masterd/life/revive.h"
#include "masterd/life/savepoint-text.h"
#include "masterd/spec/valid.h"

#define ENV_STRING_MAX (127u << 10) /* less than what execve() takes, so that the end and a default fit */
#define ENV_BYTES_MAX (1u << 20)

static int read_env(sd_bus_message *m, struct submission *s, sd_bus_error *error) {
        size_t n = 0, total = 0;
        int r = sd_bus_message_enter_container(m, 'v', "aay");

        if (r >= 0)
                r = sd_bus_message_enter_container(m, 'a', "ay");
        while (r >= 0 && sd_bus_message_at_end(m, false) == 0) {
                const char *text, *equals;
                char name[256];
                size_t size;
                char **bigger;
                r = sd_bus_message_read_array(m, 'y', (const void **)&text, &size);
                if (r < 0)
                        return r;
                equals = memchr(text ? text : "", '=', size);
                if (!equals || (size_t)(equals - text) >= sizeof(name) || memchr(text, 0, size))
                        return sd_bus_error_set(error, SD_BUS_ERROR_INVALID_ARGS,
                                                "env: each must be NAME=VALUE without NUL");
                memcpy(name, text, (size_t)(equals - text));
                name[equals - text] = 0;
                if (!env_name_valid(name))
                        continue; /* shells export functions under odd names; such are left out */
                total += size;
                if (size > ENV_STRING_MAX || total > ENV_BYTES_MAX)
                        return sd_bus_error_setf(
                                error, SD_BUS_ERROR_INVALID_ARGS,
                                "env: %.64s: at most %u KiB for one variable, which is the kernel's "
                                "limit, and %u KiB together",
                                name, ENV_STRING_MAX >> 10, ENV_BYTES_MAX >> 10);
                if (n >= LINK_ENV_MAX / 2)
                        return sd_bus_error_setf(error, SD_BUS_ERROR_INVALID_ARGS,
                                                 "env: more than %u variables", LINK_ENV_MAX / 2);
                bigger = reallocarray(s->given.env, n + 2, sizeof(*bigger));
                if (!bigger)
                        return -ENOMEM;
                s->given.env = bigger;
                s->given.env[n] = strndup(text, size);
                s->given.env[n + 1] = NULL;
                if (!s->given.env[n++])
                        return -ENOMEM;
        }
        if (r >= 0)
                r = sd_bus_message_exit_container(m);
        return r < 0 ? r : sd_bus_message_exit_container(m);
}

static bool secret_name_valid(const char *s) {
        size_t n = strlen(s);

        if (n < 1 || n > 255 || s[0] == '.')
                return false;
        for (; *s; s++)
                if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-", *s))
                        return false;
        return true;
}

static int read_secrets(sd_bus_message *m, struct submission *s, sd_bus_error *error) {
        size_t total = 0;
        int r = sd_bus_message_enter_container(m, 'v', "a(say)");

        if (r >= 0)
                r = sd_bus_message_enter_container(m, 'a', "(say)");
        while (r >= 0 && (r = sd_bus_message_enter_container(m, 'r', "say")) > 0) {
                struct job_secret *bigger;
                const char *name;
                const void *data;
                size_t size;
                r = sd_bus_message_read_basic(m, 's', &name);
                if (r >= 0)
                        r = sd_bus_message_read_array(m, 'y', &data, &size);
                if (r < 0)
                        return r;
                total += size;
                if (!secret_name_valid(name) || s->given.n_secrets >= SECRETS_MAX || total > SECRET_BYTES_MAX)
                        return sd_bus_error_setf(error, SD_BUS_ERROR_INVALID_ARGS,
                                                 "secrets: at most %u with %u bytes together, names of "
                                                 "letters, digits, '.', '_' and '-'",
                                                 SECRETS_MAX, SECRET_BYTES_MAX);
                bigger = reallocarray(s->given.secrets, s->given.n_secrets + 1, sizeof(*bigger));
                if (!bigger)
                        return -ENOMEM;
                s->given.secrets = bigger;
                bigger[s->given.n_secrets] = (struct job_secret){ strdup(name), malloc(size + 1), size };
                if (!bigger[s->given.n_secrets].name || !bigger[s->given.n_secrets].data) {
                        free(bigger[s->given.n_secrets].name);
                        free(bigger[s->given.n_secrets].data);
                        return -ENOMEM;
                }
                if (size > 0)
                        memcpy(bigger[s->given.n_secrets].data, data, size);
                s->given.n_secrets++;
                r = sd_bus_message_exit_container(m);
        }
        if (r >= 0)
                r = sd_bus_message_exit_container(m);
        return r < 0 ? r : sd_bus_message_exit_container(m);
}

static int read_cwd(sd_bus_message *m, struct submission *s, sd_bus_error *error) {
        const char *bytes;
        size_t size;
        int r = sd_bus_message_enter_container(m, 'v', "ay");

        if (r >= 0)
                r = sd_bus_message_read_array(m, 'y', (const void **)&bytes, &size);
        if (r < 0)
                return r;
        if (size < 1 || size > SPEC_PATH_MAX || bytes[0] != '/' || memchr(bytes, 0, size))
                return sd_bus_error_set(error, SD_BUS_ERROR_INVALID_ARGS,
                                        "cwd: an absolute path is expected");
        s->given.cwd = strndup(bytes, size);
        if (!s->given.cwd)
                return -ENOMEM;
        if (!text_is_setting(s->given.cwd))
                return sd_bus_error_set(error, SD_BUS_ERROR_INVALID_ARGS,
                                        "cwd: the path " DIRECTORY_RULE ", and must be UTF-8");
        return sd_bus_message_exit_container(m);
}

static int read_name(sd_bus_message *m, struct submission *s, sd_bus_error *error) {
        const char *name, *why;
        int r = sd_bus_message_read(m, "v", "s", &name);

        if (r < 0)
                return r;
        if (!*name || strlen(name) > SPEC_NAME_MAX)
                return sd_bus_error_setf(error, SD_BUS_ERROR_INVALID_ARGS, "name: 1 to %u bytes are expected",
                                         SPEC_NAME_MAX);
        if (!valid_label(name, &why))
                return sd_bus_error_setf(error, SD_BUS_ERROR_INVALID_ARGS, "name: the name %s", why);
        s->name = strdup(name);
        return s->name ? 0 : -ENOMEM;
}

static int read_bundle(sd_bus_message *m, struct submission *s, sd_bus_error *error) {
        const char *sha;
        int r = sd_bus_message_read(m, "v", "s", &sha);

        if (r < 0)
                return r;
        if (strlen(sha) != 64 || strspn(sha, "0123456789abcdef") != 64)
                return sd_bus_error_set(error, SD_BUS_ERROR_INVALID_ARGS,
                                        "bundle: a SHA-256 in 64 lower-case hex digits is expected");
        memcpy(s->given.bundle, sha, 65);
        return 0;
}

static int read_savepoint(sd_bus_message *m, struct submission *s, sd_bus_error *error) {
        const char *name;
        int r = sd_bus_message_read(m, "v", "s", &name);

        if (r < 0)
                return r;
        if (!savepoint_name_valid(name))
                return sd_bus_error_setf(error, SD_BUS_ERROR_INVALID_ARGS,
                                         "savepoint: a name of 1 to %u letters, digits, '.', '_' and '-' is "
                                         "expected",
                                         SAVEPOINT_NAME_MAX);
        s->savepoint = strdup(name);
        return s->savepoint ? 0 : -ENOMEM;
}

static int read_key(sd_bus_message *m, struct submission *s, sd_bus_error *error) {
        const char *key;
        int r = sd_bus_message_read(m, "v", "s", &key);

        if (r < 0)
                return r;
        if (!key_valid(key))
                return sd_bus_error_set(error, SD_BUS_ERROR_INVALID_ARGS, "key: " KEY_RULE " are expected");
        if (s->trial)
                return sd_bus_error_set(error, SD_BUS_ERROR_INVALID_ARGS,
                                        "key: a trial submits nothing that could be submitted twice");
        s->key = strdup(key);
        return s->key ? 0 : -ENOMEM;
}

static int read_with_parent(sd_bus_message *m, struct submission *s, sd_bus_error *error) {
        int with, r = sd_bus_message_read(m, "v", "b", &with);

        s->with_parent = r >= 0 && with;
        return r;
}

static const struct {
        const char *key;
        int (*read)(sd_bus_message *m, struct submission *s, sd_bus_error *error);
} submit_options[] = {
        { "cwd", read_cwd },         { "env", read_env },
        { "secrets", read_secrets }, { "bundle", read_bundle },
        { "name", read_name },       { "savepoint", read_savepoint },
        { "key", read_key },         { "withParent", read_with_parent },
};

int api_read_submit_option(sd_bus_message *call, const char *key, struct submission *s, sd_bus_error *error) {
        int r = submit_option_read(call, key, &s->overrides);

        if (r != 0)
                return MIN(r, 0);
        for (size_t i = 0; i < ELEMENTSOF(submit_options); i++)
                if (strcmp(submit_options[i].key, key) == 0)
                        return submit_options[i].read(call, s, error);
        return sd_bus_error_setf(error, SD_BUS_ERROR_INVALID_ARGS, "Submit has no option '%.*s'",
                                 utf8_fit(key, 64), key);
}

static int read_option(sd_bus_message *call, const char *key, void *target, sd_bus_error *error) {
        return api_read_submit_option(call, key, target, error);
}

/* Of another user's job the caller is no child, however it came to be inside. */
static uint32_t parent_of(struct manager *m, sd_bus_message *call, uint32_t uid) {
        const struct job *j = manager_job(m, callers_job(m->api->callers, sd_bus_message_get_sender(call)));

        return j && j->owner == uid ? j->number : 0;
}

int api_read_submission(struct manager *m, sd_bus_message *call, struct submission *s, sd_bus_error *error) {
        int r = sd_bus_message_read_array(call, 'y', (const void **)&s->config, &s->config_size);

        if (r < 0)
                return r;
        s->parent = parent_of(m, call, s->owner);
        if (s->config_size > SPEC_TEXT_MAX)
                return sd_bus_error_setf(error, ERROR_BAD_CONFIG,
                                         "1:1: the configuration is larger than %u MiB", SPEC_TEXT_MAX >> 20);
        return options_each(call, read_option, s, error);
}

/* The answer, when the job is on disk. warnings: or NULL. */
static int answer_number(struct manager *m, sd_bus_message *call, uint32_t number, const char *warnings) {
        sd_bus_message *reply = NULL;
        char path[64];
        int r;

        audit_job(call, number);
        r = sd_bus_message_new_method_return(call, &reply);
        r = r < 0 ? r : sd_bus_message_append(reply, "uo", number, notice_job_path(number, path));
        r = r < 0 ? r : reply_append_words(reply, warnings, "\n");
        if (r < 0) {
                sd_bus_message_unref(reply);
                return r; /* the job is there all the same: the caller sees it in the list */
        }
        return manager_reply_later(m, reply);
}

int api_submitted(struct manager *m, sd_bus_message *call, struct job *j) {
        const char *host = callers_host(m->api->callers, sd_bus_message_get_sender(call));

        if (host && j->parent > 0)
                record_event(m, j, "submitted-from", NULL, "from inside job %u, on host %s", j->parent, host);
        else if (host)
                record_event(m, j, "submitted-from", NULL, "from host %s", host);
        notice_job_new(m, j);
        audience_add(j, call, j->owner, false);
        return answer_number(m, call, j->number, j->warnings);
}

/* It was submitted before, under the same key. */
static int answer_again(struct manager *m, sd_bus_message *call, uint32_t number) {
        struct job *j = manager_job(m, number);

        if (j)
                audience_add(j, call, j->owner, false);
        return answer_number(m, call, number, j ? j->warnings : NULL);
}

/* ---- a job that goes on from a savepoint ---- */

struct restoring {
        struct manager *manager;
        sd_bus_message *call; /* has the configuration, where the submission has none of its own */
        struct submit_key *key;
};

static void on_restored(void *userdata, struct job *j, const sd_bus_error *error) {
        struct restoring *q = userdata;
        int r;

        keys_end(q->manager, q->key, j);
        r = j ? api_submitted(q->manager, q->call, j) : 0;
        if (!j || r < 0)
                caller_answer(q->call, j ? r : -sd_bus_error_get_errno(error), error);
        sd_bus_message_unref(q->call);
        free(q);
}

static int restore(struct manager *m, sd_bus_message *call, struct submission *s, struct submit_key *key,
                   sd_bus_error *error) {
        struct restoring *q = malloc(sizeof(*q));
        int r;

        if (!q)
                return -ENOMEM;
        *q = (struct restoring){ m, sd_bus_message_ref(call), key };
        r = restore_job(m, s, on_restored, q, error);
        if (r < 0) {
                sd_bus_message_unref(q->call);
                free(q);
        }
        return r < 0 ? r : 1;
}

/* ---- a job that is made, while those that it waits for are looked up ---- */

struct admission {
        struct manager *manager;
        sd_bus_message *call;
        struct job *job;
        struct submit_key *key;
};

static void admission_free(struct admission *q) {
        sd_bus_message_unref(q->call);
        free(q);
}

int api_no_such_dependency(sd_bus_error *error, const char *name) {
        return sd_bus_error_setf(error, ERROR_NO_SUCH_JOB,
                                 "after: there is no job %s (primusctl list -a shows all)", name);
}

static void on_asked(void *userdata, int error, const char *unknown) {
        _cleanup_(sd_bus_error_free) sd_bus_error why = SD_BUS_ERROR_NULL;
        struct admission *q = userdata;

        if (error >= 0 && unknown)
                error = api_no_such_dependency(&why, unknown);
        keys_end(q->manager, q->key, error >= 0 ? submit_admit(q->manager, q->job) : NULL);
        if (error >= 0) {
                error = api_submitted(q->manager, q->call, TAKE_PTR(q->job));
        }
        if (error < 0)
                caller_answer(q->call, error, &why);
        revive_job_free(q->job);
        admission_free(q);
}

static int admit_keyed(struct manager *m, sd_bus_message *call, struct submission *s, struct submit_key *key,
                       sd_bus_error *error) {
        struct admission *q = calloc(1, sizeof(*q));
        int r = q ? submit_make(m, s, &q->job, error) : -ENOMEM;

        if (r != 0) {
                free(q);
                return r == SUBMIT_GOES_ON ? restore(m, call, s, key, error) : r;
        }
        q->manager = m;
        q->key = key;
        q->call = sd_bus_message_ref(call);
        r = depend_ask(m, q->job, on_asked, q);
        if (r < 0) {
                revive_job_free(q->job);
                admission_free(q);
        }
        return r < 0 ? r : 1;
}

int api_admit(struct manager *m, sd_bus_message *call, struct submission *s, sd_bus_error *error) {
        return admit_keyed(m, call, s, NULL, error);
}

int api_submit(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        struct manager *m = userdata;
        struct submission s = { .owner = uid };
        struct submit_key *key = NULL;
        uint32_t number = 0;
        int r = api_read_submission(m, call, &s, error);

        r = r < 0 ? r : keys_begin(m, &s, &key, &number, error);
        if (r > 0)
                r = answer_again(m, call, number);
        else if (r == 0) {
                r = s.savepoint ? restore(m, call, &s, key, error) : admit_keyed(m, call, &s, key, error);
                if (r < 0)
                        keys_end(m, key, NULL);
        }
        submission_done(&s);
        return r;
}
