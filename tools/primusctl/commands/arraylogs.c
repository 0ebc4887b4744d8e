/* SPDX-License-Identifier: Apache-2.0 */
/* The logs of an array. Invariant: an element is followed from when it has left the queue until everything of
 * it was shown, once; one that is not known yet is found by the next look at the list. */
#include "tools/primusctl/commands/arraylogs.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/element.h"

#define PAGE 1000u
#define LOOK_EVERY USEC_PER_SEC

enum element_state {
        ELEMENT_WAITS, /* in the queue: it has written nothing */
        ELEMENT_OPEN,  /* to be shown */
        ELEMENT_TAKEN,
};

struct element {
        uint32_t number, index;
        enum element_state state;
        bool old; /* it was there at the beginning: a tail is of such */
};

/* One that is being shown. */
struct shown {
        struct arraylogs *logs; /* NULL: a free place */
        struct element element;
        sd_bus_slot *call;
        struct watch *watch;
        struct logstream *stream;
        bool done;
};

struct arraylogs {
        struct cli *cli;
        sd_event *event;
        struct logstream_options options;
        struct logview *view;
        void (*done)(void *userdata);
        void *userdata;
        struct watch *watch;
        struct element *elements; /* by number; without follow by index, when all are known */
        size_t n_elements, allocated;
        struct element *found; /* of the look that is under way, the newest first */
        size_t n_found, found_allocated;
        struct shown shown[ARRAYLOGS_WINDOW];
        size_t n_shown;
        sd_bus_slot *call;
        sd_event_source *timer, *reap;
        bool listed;     /* at least once */
        bool last_look;  /* the look that is under way began behind the array's end */
        bool looked_end; /* and has come */
        bool done_told, window_told;
};

static void look(struct arraylogs *a, uint32_t before);

static void quit(struct arraylogs *a, int status) {
        (void)sd_event_exit(a->event, status);
}

static int look_later(struct arraylogs *a) {
        int r = sd_event_source_set_time_relative(a->timer, LOOK_EVERY);

        return r < 0 ? r : sd_event_source_set_enabled(a->timer, SD_EVENT_ONESHOT);
}

static void shown_done(struct shown *s) {
        sd_bus_slot_unref(s->call);
        watch_free(s->watch);
        logstream_free(s->stream);
        *s = (struct shown){ 0 };
}

void arraylogs_free(struct arraylogs *a) {
        if (!a)
                return;
        for (size_t i = 0; i < ARRAYLOGS_WINDOW; i++)
                shown_done(&a->shown[i]);
        watch_free(a->watch);
        sd_bus_slot_unref(a->call);
        sd_event_source_disable_unref(a->timer);
        sd_event_source_disable_unref(a->reap);
        free(a->elements);
        free(a->found);
        free(a);
}

bool arraylogs_done(const struct arraylogs *a) {
        return a->done_told;
}

size_t arraylogs_shown(const struct arraylogs *a) {
        return a->n_shown;
}

/* ---- showing ---- */

static void on_state(struct watch *w, void *userdata) {
        struct shown *s = userdata;

        if (watch_ended(w))
                logstream_job_ended(s->stream, w);
}

static void on_executor(struct watch *w, const struct executor *e, void *userdata) {
        struct shown *s = userdata;

        logstream_executor(s->stream, w, e);
}

static void on_synced(struct watch *w, void *userdata) {
        struct shown *s = userdata;

        logstream_synced(s->stream, w);
}

static const struct watch_handlers element_handlers = {
        .state = on_state,
        .executor = on_executor,
        .synced = on_synced,
};

static struct shown *free_place(struct arraylogs *a) {
        size_t n = a->options.follow ? ARRAYLOGS_WINDOW : 1;

        for (size_t i = 0; i < n; i++)
                if (!a->shown[i].logs)
                        return &a->shown[i];
        return NULL;
}

static void fill(struct arraylogs *a);

/* A stream that is done says so from within itself; it is freed from here. */
static int on_reap(sd_event_source *source, void *userdata) {
        struct arraylogs *a = userdata;

        for (size_t i = 0; i < ARRAYLOGS_WINDOW; i++)
                if (a->shown[i].done) {
                        a->n_shown += logstream_shown(a->shown[i].stream);
                        shown_done(&a->shown[i]);
                }
        fill(a);
        return 0;
}

static void on_element_done(void *userdata) {
        struct shown *s = userdata;
        struct arraylogs *a = s->logs;

        s->done = true;
        if (sd_event_source_set_enabled(a->reap, SD_EVENT_ONESHOT) < 0)
                quit(a, cli_oom(a->cli));
}

static int begin(struct shown *s, const char *path) {
        struct arraylogs *a = s->logs;
        struct logstream_options options = a->options;
        struct job_ref job = { .number = s->element.number };
        int r;

        snprintf(job.path, sizeof(job.path), "%s", path);
        options.element = s->element.index;
        options.has_element = true;
        if (!s->element.old)
                options.tail = 0;
        if (options.follow)
                options.window = LOGSTREAM_WINDOW / ARRAYLOGS_WINDOW;
        r = logstream_new(a->cli, &options, a->view, &s->stream);
        if (r)
                return r;
        logstream_on_done(s->stream, on_element_done, s);
        return watch_new(a->cli, a->event, &job, WATCH_ATTEMPTS, &element_handlers, s, &s->watch);
}

static int on_job(sd_bus_message *m, void *userdata, sd_bus_error *ret_error) {
        struct shown *s = userdata;
        struct arraylogs *a = s->logs;
        const sd_bus_error *error = sd_bus_message_get_error(m);
        const char *path;
        int r;

        (void)ret_error;
        if (error) {
                /* Where the master is merely away or busy, it is for the next look. */
                for (size_t i = 0; i < a->n_elements; i++)
                        if (a->elements[i].number == s->element.number)
                                a->elements[i].state = ELEMENT_OPEN;
                shown_done(s);
                if (!sd_bus_error_has_name(error, MASTER_ERROR_BUSY))
                        watch_call_failed(a->watch, error);
                else if (look_later(a) < 0)
                        quit(a, cli_oom(a->cli));
                return 0;
        }
        r = sd_bus_message_read(m, "o", &path);
        if (r < 0)
                quit(a, cli_bad_reply(a->cli, r));
        else if (begin(s, path))
                quit(a, CLI_FAILED);
        return 0;
}

static int show(struct arraylogs *a, struct shown *s, const struct element *e) {
        _cleanup_(sd_bus_message_unref_p) sd_bus_message *m = NULL;
        int r;

        /* One that ended long ago comes onto the bus only when it is asked for. */
        if (cli_manager_call(a->cli, "GetJob", &m))
                return -ENOMEM;
        *s = (struct shown){ .logs = a, .element = *e };
        r = sd_bus_message_append(m, "u", e->number);
        return r < 0 ? r : sd_bus_call_async(a->cli->bus, &s->call, m, on_job, s, 0);
}

static void fill(struct arraylogs *a) {
        struct shown *s;
        size_t i = 0;
        bool busy = false;

        for (; i < a->n_elements; i++) {
                if (a->elements[i].state != ELEMENT_OPEN)
                        continue;
                s = free_place(a);
                if (!s)
                        break;
                a->elements[i].state = ELEMENT_TAKEN;
                if (show(a, s, &a->elements[i]) < 0) {
                        quit(a, cli_oom(a->cli));
                        return;
                }
        }
        if (i < a->n_elements && a->options.follow && !a->window_told) {
                a->window_told = true;
                cli_note("primusctl: %u elements are followed at a time; what others write is shown when it "
                         "is their turn",
                         ARRAYLOGS_WINDOW);
        }
        for (i = 0; i < ARRAYLOGS_WINDOW; i++)
                busy |= a->shown[i].logs != NULL;
        if (busy || a->done_told || !a->listed || (a->options.follow && !a->looked_end))
                return;
        a->done_told = true;
        a->done(a->userdata);
}

/* ---- finding ---- */

static int by_index(const void *x, const void *y) {
        const struct element *a = x, *b = y;

        if (a->index != b->index)
                return a->index < b->index ? -1 : 1;
        return a->number > b->number ? -1 : a->number < b->number;
}

static int by_number(const void *x, const void *y) {
        const struct element *a = x, *b = y;

        return a->number < b->number ? -1 : a->number > b->number;
}

static int add(struct element **list, size_t *n, size_t *allocated, struct element e) {
        if (*n == *allocated) {
                size_t more = *allocated ? *allocated * 2 : 64;
                struct element *p = realloc(*list, more * sizeof(*p));
                if (!p)
                        return -ENOMEM;
                *list = p;
                *allocated = more;
        }
        (*list)[(*n)++] = e;
        return 0;
}

/* At the beginning: of what ran several times, the latest run is meant. */
static void latest_alone(struct arraylogs *a) {
        size_t n = 0;

        if (a->n_elements == 0)
                return;
        qsort(a->elements, a->n_elements, sizeof(*a->elements), by_index);
        for (size_t i = 0; i < a->n_elements; i++)
                if (i == 0 || a->elements[i].index != a->elements[n - 1].index) {
                        a->elements[n] = a->elements[i];
                        a->elements[n++].old = true;
                }
        a->n_elements = n;
        if (a->options.follow)
                qsort(a->elements, n, sizeof(*a->elements), by_number);
}

/* The numbers up to this one need not be looked at again. */
static uint32_t settled(const struct arraylogs *a) {
        if (!a->listed)
                return 0;
        for (size_t i = 0; i < a->n_elements; i++)
                if (a->elements[i].state == ELEMENT_WAITS)
                        return a->elements[i].number - 1;
        return a->n_elements > 0 ? a->elements[a->n_elements - 1].number : 0;
}

static int take_found(struct arraylogs *a) {
        uint32_t newest = a->n_elements > 0 ? a->elements[a->n_elements - 1].number : 0;
        int r = 0;

        for (size_t i = a->n_found; i > 0 && r >= 0; i--) {
                struct element *e = &a->found[i - 1], *known;

                if (e->number > newest) {
                        r = add(&a->elements, &a->n_elements, &a->allocated, *e);
                        continue;
                }
                known = bsearch(e, a->elements, a->n_elements, sizeof(*e), by_number);
                if (known && known->state == ELEMENT_WAITS)
                        known->state = e->state;
        }
        a->n_found = 0;
        if (r >= 0 && !a->listed)
                latest_alone(a);
        a->listed = true;
        return r;
}

/* 1: the rows are a whole page, of which the last is *ret_last. */
static int read_page(struct arraylogs *a, sd_bus_message *m, uint32_t *ret_last) {
        uint32_t n = 0;
        int r = sd_bus_message_enter_container(m, 'a', "(ussutttuusa{sv})");

        while (r >= 0 && (r = sd_bus_message_enter_container(m, 'r', "ussutttuusa{sv}")) > 0) {
                struct element e = { .index = ELEMENT_SEARCHER };
                const struct field fields[] = { { "index", "u", offsetof(struct element, index) } };
                const char *state;

                r = sd_bus_message_read(m, "us", &e.number, NULL);
                if (r >= 0)
                        r = sd_bus_message_read(m, "s", &state);
                if (r >= 0)
                        r = sd_bus_message_skip(m, "utttuus");
                if (r >= 0)
                        r = read_fields(m, fields, ELEMENTSOF(fields), &e);
                if (r >= 0)
                        r = sd_bus_message_exit_container(m);
                if (r < 0)
                        break;
                /* One that waits would take a place until it runs. */
                e.state = a->options.follow && strcmp(state, "QUEUED") == 0 ? ELEMENT_WAITS : ELEMENT_OPEN;
                r = add(&a->found, &a->n_found, &a->found_allocated, e);
                *ret_last = e.number;
                n++;
        }
        return r < 0 ? r : n >= PAGE;
}

static int on_listed(sd_bus_message *m, void *userdata, sd_bus_error *ret_error) {
        struct arraylogs *a = userdata;
        const sd_bus_error *error = sd_bus_message_get_error(m);
        uint32_t last = 0;
        int r;

        (void)ret_error;
        if (error && sd_bus_error_has_name(error, MASTER_ERROR_BUSY)) {
                if (look_later(a) < 0)
                        quit(a, cli_oom(a->cli));
                return 0;
        }
        if (error) {
                watch_call_failed(a->watch, error);
                return 0;
        }
        r = read_page(a, m, &last);
        if (r > 0 && last > settled(a) + 1) {
                look(a, last);
                return 0;
        }
        if (r >= 0)
                r = take_found(a);
        if (r < 0) {
                quit(a, r == -ENOMEM ? cli_oom(a->cli) : cli_bad_reply(a->cli, r));
                return 0;
        }
        a->looked_end |= a->last_look;
        if (a->options.follow && !a->looked_end && look_later(a) < 0)
                quit(a, cli_oom(a->cli));
        fill(a);
        return 0;
}

/* Lists the elements below that number (0: from the newest on), and goes on as far as there is something to
 * learn. */
static void look(struct arraylogs *a, uint32_t before) {
        _cleanup_(sd_bus_message_unref_p) sd_bus_message *m = NULL;
        int r = 0;

        if (before == 0) {
                a->n_found = 0;
                a->last_look = watch_ended(a->watch);
        }
        a->call = sd_bus_slot_unref(a->call);
        if (cli_manager_call(a->cli, "ListJobs", &m))
                r = -ENOMEM;
        if (r >= 0)
                r = sd_bus_message_open_container(m, 'a', "{sv}");
        if (r >= 0)
                r = sd_bus_message_append(m, "{sv}{sv}{sv}", "all", "b", true, "array", "u",
                                          watch_job(a->watch)->number, "limit", "u", PAGE);
        if (r >= 0 && before > 0)
                r = sd_bus_message_append(m, "{sv}", "before", "u", before);
        if (r >= 0)
                r = sd_bus_message_close_container(m);
        if (r >= 0)
                r = sd_bus_call_async(a->cli->bus, &a->call, m, on_listed, a, 0);
        if (r < 0)
                quit(a, cli_oom(a->cli));
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        struct arraylogs *a = userdata;

        if (a->options.follow || !a->listed)
                look(a, 0);
        else
                fill(a);
        return 0;
}

/* ---- the array ---- */

static void on_array_state(struct watch *w, void *userdata) {
        struct arraylogs *a = userdata;

        /* At once, also in the middle of another look: that one may have passed what came last. */
        if (a->listed && watch_ended(w))
                look(a, 0);
}

static void on_array_synced(struct watch *w, void *userdata) {
        struct arraylogs *a = userdata;

        if (!a->done_told && (a->options.follow || !a->listed))
                look(a, 0);
        else
                fill(a);
}

static void on_away(struct watch *w, void *userdata) {
        cli_note("masterd is away; waiting for it to come back ...");
}

static const struct watch_handlers array_handlers = {
        .state = on_array_state,
        .synced = on_array_synced,
        .away = on_away,
};

int arraylogs_new(struct cli *c, sd_event *event, const struct job_ref *array,
                  const struct logstream_options *options, struct logview *view, void (*done)(void *userdata),
                  void *userdata, struct arraylogs **ret) {
        struct arraylogs *a = calloc(1, sizeof(*a));
        int r;

        if (!a)
                return cli_oom(c);
        *a = (struct arraylogs){ .cli = c,
                                 .event = event,
                                 .options = *options,
                                 .view = view,
                                 .done = done,
                                 .userdata = userdata };
        r = sd_event_add_time_relative(event, &a->timer, CLOCK_BOOTTIME, LOOK_EVERY, 0, on_timer, a);
        if (r >= 0)
                r = sd_event_source_set_enabled(a->timer, SD_EVENT_OFF);
        if (r >= 0)
                r = sd_event_add_defer(event, &a->reap, on_reap, a);
        if (r >= 0)
                r = sd_event_source_set_enabled(a->reap, SD_EVENT_OFF);
        r = r < 0 ? cli_oom(c) : watch_new(c, event, array, WATCH_STATE, &array_handlers, a, &a->watch);
        if (r) {
                arraylogs_free(a);
                return r;
        }
        *ret = a;
        return 0;
}
