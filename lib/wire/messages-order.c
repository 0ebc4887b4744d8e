/* SPDX-License-Identifier: Apache-2.0 */
/* The order to start an executor. What an
 * order may hold is checked by one function on both ends, so that nothing can be sent that the other end
 * would refuse. */
#include <ctype.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/names.h"
#include "lib/base/strv.h"
#include "lib/base/try.h"
#include "lib/base/utf8.h"
#include "lib/wire/messages-parts.h"

#define ORDER_FIELDS LINK_ID_SIGNATURE "yuaayayaayasa(say)tttuasasaqttsssuayb"
#define PIPE_SIZE_MAX (64u << 20)

/* ---- what an order may hold ---- */

static size_t strv_bytes(char *const *l) {
        size_t n = 0;
        for (size_t i = 0; l && l[i]; i++)
                n += strlen(l[i]);
        return n;
}

/* NAME=VALUE with a valid name. */
static bool assignment_valid(const char *s) {
        char name[256];
        const char *eq = strchr(s, '=');
        if (!eq || (size_t)(eq - s) >= sizeof name)
                return false;
        memcpy(name, s, (size_t)(eq - s));
        name[eq - s] = '\0';
        return env_name_valid(name);
}

static bool bundle_valid(const char *s) {
        if (s[0] == '\0')
                return true;
        for (size_t i = 0; i < 64; i++)
                if (!isdigit((unsigned char)s[i]) && !(s[i] >= 'a' && s[i] <= 'f'))
                        return false;
        return s[64] == '\0';
}

/* It becomes the name of a file. */
static bool secret_name_valid(const char *s) {
        size_t n = strlen(s);
        if (n == 0 || n > 64 || s[0] == '.')
                return false;
        for (size_t i = 0; i < n; i++)
                if (!isalnum((unsigned char)s[i]) && !strchr("._-", s[i]))
                        return false;
        return true;
}

static bool path_or_empty(const char *s) {
        return s[0] == '\0' || (s[0] == '/' && strlen(s) <= LINK_PATH_MAX);
}

static bool gpu_names_valid(char *const *l) {
        for (size_t i = 0; l && l[i]; i++)
                if (l[i][0] == '\0' || strlen(l[i]) > LINK_GPU_NAME_MAX)
                        return false;
        return true;
}

/* 0, -EINVAL: something is malformed, -E2BIG: too much of something. */
static int start_order_check(const struct start_order *o) {
        if (strings_count(o->argv) > LINK_ARGV_MAX || strings_count(o->env) > LINK_ENV_MAX ||
            strings_count(o->identity) > LINK_IDENTITY_MAX || o->n_secrets > LINK_SECRETS_MAX ||
            strings_count(o->gpus) > LINK_GPUS_MAX || strings_count(o->visible_gpus) > LINK_GPUS_MAX ||
            o->n_ports > LINK_PORTS_MAX)
                return -E2BIG;
        size_t bytes = strv_bytes(o->argv) + strv_bytes(o->env) + strv_bytes(o->identity);
        for (size_t i = 0; i < o->n_secrets; i++) {
                if (!o->secrets[i].name || !secret_name_valid(o->secrets[i].name))
                        return -EINVAL;
                if (o->secrets[i].size > LINK_BYTES_MAX)
                        return -E2BIG;
                bytes += o->secrets[i].size;
        }
        if (bytes > LINK_BYTES_MAX)
                return -E2BIG;
        if ((unsigned)o->kind >= _ORDER_KIND_MAX || strings_count(o->argv) == 0 || o->argv[0][0] == '\0')
                return -EINVAL;
        for (size_t i = 0; o->env && o->env[i]; i++)
                if (!assignment_valid(o->env[i]))
                        return -EINVAL;
        for (size_t i = 0; o->identity && o->identity[i]; i++)
                if (!assignment_valid(o->identity[i]) || strncmp(o->identity[i], "PRIMUS_", 7) != 0)
                        return -EINVAL;
        for (size_t i = 0; i < o->n_ports; i++)
                if (o->ports[i] == 0)
                        return -EINVAL;
        if (!gpu_names_valid(o->gpus) || !gpu_names_valid(o->visible_gpus) || !bundle_valid(o->bundle) ||
            !path_or_empty(o->cwd ? o->cwd : "") || strlen(o->output ? o->output : "") > LINK_PATH_MAX ||
            o->pipe_size > PIPE_SIZE_MAX)
                return -EINVAL;
        return on_partition_to_string(o->on_partition) && ack_mode_to_string(o->ack) ? 0 : -EINVAL;
}

static bool all_lines(char *const *l) {
        for (size_t i = 0; l && l[i]; i++)
                if (!text_is_line(l[i]))
                        return false;
        return true;
}

static bool line_or_none(const char *s) {
        return !s || text_is_line(s);
}

static bool io_lines(const struct start_extra *x) {
        for (size_t i = 0; i < x->n_io; i++)
                if (!line_or_none(x->io[i].path))
                        return false;
        return true;
}

const char *start_order_bad_text(const struct start_order *o) {
        const struct start_extra *x = &o->extra;
        const struct {
                const char *name;
                bool good;
        } texts[] = {
                { "working directory", !o->cwd || text_is_setting(o->cwd) },
                { "output file", line_or_none(o->output) },
                { "identity", all_lines(o->identity) },
                { "list of GPUs", all_lines(o->gpus) && all_lines(o->visible_gpus) && line_or_none(x->gpus) },
                { "list of CPUs", line_or_none(x->cpus) },
                { "kind of readiness", text_is_line(x->ready) },
                { "file of readiness", line_or_none(x->ready_file) },
                { "NUMA policy", text_is_line(x->numa) },
                { "path of an io limit", io_lines(x) },
        };

        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
                if (!texts[i].good)
                        return texts[i].name;
        return NULL;
}

/* ---- orders: append ---- */

static int append_byte_strings(sd_bus_message *m, char *const *l) {
        int r = sd_bus_message_open_container(m, 'a', "ay");
        for (size_t i = 0; r >= 0 && l && l[i]; i++)
                r = link_append_byte_string(m, l[i]);
        return r < 0 ? r : sd_bus_message_close_container(m);
}

static int append_secrets(sd_bus_message *m, const struct start_order *o) {
        int r = sd_bus_message_open_container(m, 'a', "(say)");
        for (size_t i = 0; r >= 0 && i < o->n_secrets; i++) {
                const struct secret *s = &o->secrets[i];
                if ((r = sd_bus_message_open_container(m, 'r', "say")) < 0 ||
                    (r = sd_bus_message_append(m, "s", s->name)) < 0 ||
                    (r = sd_bus_message_append_array(m, 'y', s->data, s->size)) < 0 ||
                    (r = sd_bus_message_close_container(m)) < 0)
                        return r;
        }
        return r < 0 ? r : sd_bus_message_close_container(m);
}

int start_order_append(sd_bus_message *m, const struct start_order *o) {
        int r = start_order_check(o);
        if (r < 0)
                return r;
        TRY(sd_bus_message_open_container(m, 'r', ORDER_FIELDS));
        TRY(executor_id_append(m, &o->id));
        TRY(sd_bus_message_append(m, "yu", (uint8_t)o->kind, o->uid));
        TRY(append_byte_strings(m, o->argv));
        TRY(link_append_byte_string(m, o->cwd));
        TRY(append_byte_strings(m, o->env));
        TRY(sd_bus_message_append_strv(m, o->identity));
        TRY(append_secrets(m, o));
        TRY(sd_bus_message_append(m, "tttu", o->cpu_usec_per_sec, o->memory_max, o->job_memory_max,
                                  o->tasks_max));
        TRY(sd_bus_message_append_strv(m, o->gpus));
        TRY(sd_bus_message_append_strv(m, o->visible_gpus));
        TRY(sd_bus_message_append_array(m, 'q', o->ports, o->n_ports * sizeof *o->ports));
        TRY(sd_bus_message_append(m, "ttsssu", o->runtime_max_usec, o->grace_usec,
                                  on_partition_to_string(o->on_partition), o->bundle,
                                  ack_mode_to_string(o->ack), o->pipe_size));
        TRY(link_append_byte_string(m, o->output));
        TRY(sd_bus_message_append(m, "b", (int)o->new_privileges));
        return sd_bus_message_close_container(m);
}

/* ---- orders: read ---- */

static void secret_done(struct secret *s) {
        free(s->name);
        if (s->data)
                explicit_bzero(s->data, s->size);
        free(s->data);
        *s = (struct secret){};
}

void start_order_done(struct start_order *o) {
        strings_free(o->argv);
        free(o->cwd);
        strings_free(o->env);
        strings_free(o->identity);
        for (size_t i = 0; i < o->n_secrets; i++)
                secret_done(&o->secrets[i]);
        free(o->secrets);
        strings_free(o->gpus);
        strings_free(o->visible_gpus);
        free(o->ports);
        free(o->output);
        start_extra_done(&o->extra);
        *o = (struct start_order){};
}

typedef int (*string_reader)(sd_bus_message *m, size_t max, char **ret);

/* An array of at most max_n strings, each at most max_bytes, read by read_one. NULL-ended, never NULL. */
static int read_strings(sd_bus_message *m, const char *contents, string_reader read_one, size_t max_n,
                        size_t max_bytes, char ***ret) {
        _cleanup_(strings_free_p) char **l = NULL;
        size_t n = 0, space = 0;
        int r = sd_bus_message_enter_container(m, 'a', contents);
        if (r <= 0)
                return link_bad(r);
        for (;;) {
                if (n + 1 >= space) {
                        space = space ? 2 * space : 8;
                        char **bigger = realloc(l, space * sizeof *l);
                        if (!bigger)
                                return -ENOMEM;
                        l = bigger;
                        l[n] = NULL;
                }
                char *s = NULL;
                r = read_one(m, max_bytes, &s);
                if (r < 0)
                        return r;
                if (r == 0)
                        break;
                l[n++] = s;
                l[n] = NULL;
                if (n > max_n)
                        return -EBADMSG;
        }
        if ((r = sd_bus_message_exit_container(m)) < 0)
                return link_bad(r);
        *ret = TAKE_PTR(l);
        return 1;
}

/* A string without a bound on its characters other than D-Bus's own. */
static int read_string(sd_bus_message *m, size_t max, char **ret) {
        const char *s;
        int r = sd_bus_message_read_basic(m, 's', &s);
        if (r <= 0)
                return r < 0 ? link_bad(r) : 0;
        if (strlen(s) > max)
                return -EBADMSG;
        *ret = strdup(s);
        return *ret ? 1 : -ENOMEM;
}

static int secret_read(sd_bus_message *m, struct secret *ret) {
        _cleanup_(secret_done) struct secret s = {};
        const void *p;
        size_t n;
        int r = sd_bus_message_enter_container(m, 'r', "say");
        if (r <= 0)
                return r < 0 ? link_bad(r) : 0;
        if ((r = link_read_text(m, 64, &s.name)) <= 0 ||
            (r = link_read_bytes(m, LINK_BYTES_MAX, &p, &n)) <= 0)
                return link_bad(r);
        s.data = malloc(n + 1);
        if (!s.data)
                return -ENOMEM;
        if (n > 0)
                memcpy(s.data, p, n);
        ((char *)s.data)[n] = '\0';
        s.size = n;
        if ((r = sd_bus_message_exit_container(m)) < 0)
                return link_bad(r);
        *ret = s;
        s = (struct secret){};
        return 1;
}

static int secrets_read(sd_bus_message *m, struct start_order *o) {
        int r = sd_bus_message_enter_container(m, 'a', "(say)");
        if (r <= 0)
                return link_bad(r);
        for (;;) {
                struct secret s;
                r = secret_read(m, &s);
                if (r < 0)
                        return r;
                if (r == 0)
                        break;
                struct secret *bigger =
                        o->n_secrets < LINK_SECRETS_MAX
                                ? reallocarray(o->secrets, o->n_secrets + 1, sizeof *o->secrets)
                                : NULL;
                if (!bigger) {
                        secret_done(&s);
                        return o->n_secrets < LINK_SECRETS_MAX ? -ENOMEM : -EBADMSG;
                }
                o->secrets = bigger;
                o->secrets[o->n_secrets++] = s;
        }
        if ((r = sd_bus_message_exit_container(m)) < 0)
                return link_bad(r);
        return 1;
}

static int ports_read(sd_bus_message *m, struct start_order *o) {
        const void *p;
        size_t size;
        int r = sd_bus_message_read_array(m, 'q', &p, &size);
        if (r <= 0)
                return link_bad(r);
        if (size > LINK_PORTS_MAX * sizeof *o->ports)
                return -EBADMSG;
        if (size == 0)
                return 1;
        o->ports = malloc(size);
        if (!o->ports)
                return -ENOMEM;
        memcpy(o->ports, p, size);
        o->n_ports = size / sizeof *o->ports;
        return 1;
}

static int start_order_read_fields(sd_bus_message *m, struct start_order *o) {
        uint8_t kind;
        const char *on_partition, *ack;
        int r;
        if ((r = executor_id_read(m, &o->id)) <= 0 ||
            (r = sd_bus_message_read(m, "yu", &kind, &o->uid)) <= 0 ||
            (r = read_strings(m, "ay", link_read_byte_string, LINK_ARGV_MAX, LINK_BYTES_MAX, &o->argv)) <=
                    0 ||
            (r = link_read_byte_string(m, LINK_PATH_MAX, &o->cwd)) <= 0 ||
            (r = read_strings(m, "ay", link_read_byte_string, LINK_ENV_MAX, LINK_BYTES_MAX, &o->env)) <= 0 ||
            (r = read_strings(m, "s", read_string, LINK_IDENTITY_MAX, LINK_BYTES_MAX, &o->identity)) <= 0 ||
            (r = secrets_read(m, o)) <= 0 ||
            (r = sd_bus_message_read(m, "tttu", &o->cpu_usec_per_sec, &o->memory_max, &o->job_memory_max,
                                     &o->tasks_max)) <= 0 ||
            (r = read_strings(m, "s", link_read_text, LINK_GPUS_MAX, LINK_GPU_NAME_MAX, &o->gpus)) <= 0 ||
            (r = read_strings(m, "s", link_read_text, LINK_GPUS_MAX, LINK_GPU_NAME_MAX, &o->visible_gpus)) <=
                    0 ||
            (r = ports_read(m, o)) <= 0 ||
            (r = sd_bus_message_read(m, "tts", &o->runtime_max_usec, &o->grace_usec, &on_partition)) <= 0 ||
            (r = link_read_text_into(m, o->bundle, sizeof o->bundle)) <= 0 ||
            (r = sd_bus_message_read(m, "su", &ack, &o->pipe_size)) <= 0 ||
            (r = link_read_byte_string(m, LINK_PATH_MAX, &o->output)) <= 0 ||
            (r = link_read_bool(m, &o->new_privileges)) <= 0)
                return link_bad(r);
        o->kind = (enum order_kind)kind;
        o->on_partition = on_partition_from_string(on_partition);
        o->ack = ack_mode_from_string(ack);
        return start_order_check(o) < 0 ? -EBADMSG : 1;
}

int start_order_read(sd_bus_message *m, struct start_order *ret) {
        _cleanup_(start_order_done) struct start_order o = {};
        int r = sd_bus_message_enter_container(m, 'r', ORDER_FIELDS);
        if (r <= 0)
                return r < 0 ? link_bad(r) : 0;
        TRY(start_order_read_fields(m, &o));
        if ((r = sd_bus_message_exit_container(m)) < 0)
                return link_bad(r);
        *ret = o;
        o = (struct start_order){};
        return 1;
}

/* ---- changes of units that run ---- */

static int rendezvous_order_check(const struct rendezvous_order *o) {
        if (strings_count(o->env) > LINK_ENV_MAX || strv_bytes(o->env) > LINK_BYTES_MAX)
                return -E2BIG;
        if (o->epoch == 0 || o->signal >= 65)
                return -EINVAL;
        for (size_t i = 0; o->env && o->env[i]; i++)
                if (!assignment_valid(o->env[i]))
                        return -EINVAL;
        return 0;
}

int rendezvous_order_append(sd_bus_message *m, const struct rendezvous_order *o) {
        int r = rendezvous_order_check(o);
        if (r < 0)
                return r;
        TRY(sd_bus_message_append(m, "tu", o->epoch, o->signal));
        TRY(append_byte_strings(m, o->env));
        return link_append_extra_empty(m);
}

void rendezvous_order_done(struct rendezvous_order *o) {
        strings_free(o->env);
        *o = (struct rendezvous_order){};
}

int rendezvous_order_read(sd_bus_message *m, struct rendezvous_order *ret) {
        _cleanup_(rendezvous_order_done) struct rendezvous_order o = {};
        int r;
        if ((r = sd_bus_message_read(m, "tu", &o.epoch, &o.signal)) <= 0 ||
            (r = read_strings(m, "ay", link_read_byte_string, LINK_ENV_MAX, LINK_BYTES_MAX, &o.env)) <= 0 ||
            (r = link_skip_extra(m)) < 0)
                return link_bad(r);
        if (rendezvous_order_check(&o) < 0)
                return -EBADMSG;
        *ret = o;
        o = (struct rendezvous_order){};
        return 1;
}
