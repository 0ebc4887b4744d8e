/* SPDX-License-Identifier: Apache-2.0 */
/* What the threads of an executor are doing, on the wire. */
#include "lib/wire/capture.h"

#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/try.h"
#include "lib/wire/messages-parts.h"
#include "lib/wire/skip.h"

static const char *const classes[_CAPTURE_CLASS_MAX] = {
        [CAPTURE_RUNNING] = "running", [CAPTURE_NETWORK] = "network", [CAPTURE_FUTEX] = "futex",
        [CAPTURE_SLEEP] = "sleep",     [CAPTURE_DISK] = "disk",       [CAPTURE_PIPE] = "pipe",
        [CAPTURE_DEVICE] = "device",   [CAPTURE_STOPPED] = "stopped", [CAPTURE_OTHER] = "other",
};

const char *capture_class_to_string(enum capture_class c) {
        return c >= 0 && c < _CAPTURE_CLASS_MAX ? classes[c] : NULL;
}

enum capture_class capture_class_from_string(const char *s) {
        for (int i = 0; i < _CAPTURE_CLASS_MAX; i++)
                if (strcmp(classes[i], s) == 0)
                        return (enum capture_class)i;
        return _CAPTURE_CLASS_INVALID;
}

void capture_thread_done(struct capture_thread *t) {
        free(t->stack);
        free(t->python);
        *t = (struct capture_thread){};
}

void capture_done(struct capture *c) {
        for (size_t i = 0; i < c->n; i++)
                capture_thread_done(c->threads + i);
        free(c->threads);
        free(c->note);
        *c = (struct capture){};
}

struct capture_thread *capture_find(const struct capture *c, uint32_t tid) {
        for (size_t i = 0; i < c->n; i++)
                if (c->threads[i].tid == tid)
                        return c->threads + i;
        return NULL;
}

/* ---- append ---- */

static int append_thread(sd_bus_message *m, const struct capture_thread *t) {
        char state[] = { t->state, 0 };
        int r = sd_bus_message_open_container(m, 'r', "uusssss");

        if (r < 0 || (r = sd_bus_message_append(m, "uu", t->pid, t->tid)) < 0 ||
            (r = link_append_text(m, state, 1)) < 0 ||
            (r = sd_bus_message_append(m, "s", capture_class_to_string(t->class) ?: "other")) < 0 ||
            (r = link_append_text(m, t->name, sizeof(t->name) - 1)) < 0 ||
            (r = link_append_text(m, t->call, sizeof(t->call) - 1)) < 0 ||
            (r = link_append_text(m, t->stack, CAPTURE_STACK_MAX)) < 0)
                return r;
        return sd_bus_message_close_container(m);
}

/* Lines stay lines; what is no text becomes '?'. */
static int append_python(sd_bus_message *m, const struct capture_thread *t) {
        size_t size = strlen(t->python), skip = size > CAPTURE_PYTHON_MAX ? size - CAPTURE_PYTHON_MAX : 0;
        _cleanup_free_ char *text = strdup(t->python + skip);

        if (!text)
                return -ENOMEM;
        for (unsigned char *p = (unsigned char *)text; *p; p++)
                if ((*p < 0x20 && *p != '\n' && *p != '\t') || *p >= 0x7f)
                        *p = '?';
        return sd_bus_message_append(m, "(us)", t->pid, text);
}

static int append_pythons(sd_bus_message *m, const struct capture *c) {
        unsigned n = 0;
        int r;

        if ((r = sd_bus_message_open_container(m, 'e', "sv")) < 0 ||
            (r = sd_bus_message_append_basic(m, 's', "python")) < 0 ||
            (r = sd_bus_message_open_container(m, 'v', "a(us)")) < 0 ||
            (r = sd_bus_message_open_container(m, 'a', "(us)")) < 0)
                return r;
        for (size_t i = 0; r >= 0 && i < c->n; i++)
                if (c->threads[i].python && n++ < CAPTURE_PYTHONS_MAX)
                        r = append_python(m, c->threads + i);
        for (int i = 0; i < 3 && r >= 0; i++)
                r = sd_bus_message_close_container(m);
        return r;
}

static int append_note(sd_bus_message *m, const char *note) {
        if (!note)
                return 0;
        TRY(sd_bus_message_open_container(m, 'e', "sv"));
        TRY(sd_bus_message_append_basic(m, 's', "note"));
        TRY(sd_bus_message_open_container(m, 'v', "s"));
        TRY(link_append_text(m, note, LINK_TEXT_MAX));
        TRY(sd_bus_message_close_container(m));
        return sd_bus_message_close_container(m);
}

int capture_append(sd_bus_message *m, const struct capture *c) {
        int r = sd_bus_message_open_container(m, 'a', LINK_THREAD_SIGNATURE);

        for (size_t i = 0; r >= 0 && i < c->n && i < CAPTURE_THREADS_MAX; i++)
                r = append_thread(m, c->threads + i);
        if (r < 0 || (r = sd_bus_message_close_container(m)) < 0 ||
            (r = sd_bus_message_open_container(m, 'a', "{sv}")) < 0 ||
            (r = sd_bus_message_append(m, "{sv}", "total", "u", c->total)) < 0 ||
            (r = append_pythons(m, c)) < 0 || (r = append_note(m, c->note)) < 0)
                return r;
        return sd_bus_message_close_container(m);
}

/* ---- read ---- */

static int copy_text(char **target, const char *text, size_t max) {
        if (!*text)
                return 0;
        if (strlen(text) > max)
                return -EBADMSG;
        free(*target);
        *target = strdup(text);
        return *target ? 0 : -ENOMEM;
}

static int read_thread(sd_bus_message *m, struct capture_thread *t) {
        const char *state, *class, *name, *call, *stack;
        int r = sd_bus_message_read(m, LINK_THREAD_SIGNATURE, &t->pid, &t->tid, &state, &class, &name, &call,
                                    &stack);

        if (r <= 0)
                return r < 0 ? link_bad(r) : 0;
        t->class = capture_class_from_string(class);
        if (t->class < 0) /* of a newer agent */
                t->class = CAPTURE_OTHER;
        if (strlen(state) > 1 || strlen(name) >= sizeof(t->name) || strlen(call) >= sizeof(t->call))
                return -EBADMSG;
        t->state = *state ? *state : '?';
        strcpy(t->name, name);
        strcpy(t->call, call);
        r = copy_text(&t->stack, stack, CAPTURE_STACK_MAX);
        return r < 0 ? r : 1;
}

static int read_threads(sd_bus_message *m, struct capture *c) {
        struct capture_thread *t;
        int r = sd_bus_message_enter_container(m, 'a', LINK_THREAD_SIGNATURE);

        if (r <= 0)
                return link_bad(r);
        for (;;) {
                struct capture_thread one = {};

                r = read_thread(m, &one);
                if (r > 0 && c->n == CAPTURE_THREADS_MAX)
                        r = -EBADMSG;
                t = r > 0 ? realloc(c->threads, (c->n + 1) * sizeof(*t)) : NULL;
                if (r > 0 && !t)
                        r = -ENOMEM;
                if (r <= 0) {
                        capture_thread_done(&one);
                        break;
                }
                c->threads = t;
                t[c->n++] = one;
        }
        return r < 0 ? r : sd_bus_message_exit_container(m);
}

static int read_pythons(sd_bus_message *m, struct capture *c) {
        const char *text;
        uint32_t pid;
        int r;

        TRY(sd_bus_message_enter_container(m, 'v', "a(us)"));
        TRY(sd_bus_message_enter_container(m, 'a', "(us)"));
        while ((r = sd_bus_message_read(m, "(us)", &pid, &text)) > 0) {
                struct capture_thread *t = capture_find(c, pid);

                if (t && (r = copy_text(&t->python, text, CAPTURE_PYTHON_MAX)) < 0)
                        return r;
        }
        if (r < 0 || (r = sd_bus_message_exit_container(m)) < 0)
                return r;
        return sd_bus_message_exit_container(m);
}

static int read_entry(sd_bus_message *m, const char *key, void *userdata) {
        struct capture *c = userdata;
        const char *text;
        int r;

        if (strcmp(key, "total") == 0)
                return sd_bus_message_read(m, "v", "u", &c->total);
        if (strcmp(key, "python") == 0)
                return read_pythons(m, c);
        if (strcmp(key, "note") == 0) {
                r = sd_bus_message_read(m, "v", "s", &text);
                return r < 0 ? r : copy_text(&c->note, text, LINK_TEXT_MAX);
        }
        return message_skip(m, "v");
}

int capture_read(sd_bus_message *m, struct capture *ret) {
        _cleanup_(capture_done) struct capture c = {};
        int r;

        if ((r = read_threads(m, &c)) < 0 || (r = link_read_entries(m, read_entry, &c)) < 0)
                return link_bad(r);
        if (c.total < c.n)
                c.total = (uint32_t)c.n;
        *ret = c;
        c = (struct capture){};
        return 1;
}
