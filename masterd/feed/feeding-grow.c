/* SPDX-License-Identifier: Apache-2.0 */
/* Sources that a job gets while it exists. Invariant: the configuration that has them is recorded before
 * their step in the order of tasks, and a feeder is told of a source before any of its tasks. */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/log.h"
#include "lib/base/try.h"
#include "masterd/core/manager.h"
#include "masterd/feed/feeding-parts.h"

struct feeding_growth {
        struct input *input; /* all of it, as it is then */
        char *text;
        struct source *sources;
        size_t n_before;
        char **texts; /* of the new sources, each as its feeders are told it */
};

struct feeding_growth *feeding_growth_free(struct feeding_growth *g) {
        if (!g)
                return NULL;
        for (size_t i = 0; g->texts && i < g->input->n_sources - g->n_before; i++)
                free(g->texts[i]);
        free(g->texts);
        free(g->sources);
        input_free(g->input);
        free(g->text);
        free(g);
        return NULL;
}

static int refuse_growth(char why[static FEEDING_WHY_MAX], const char *format, ...) _printf_(2, 3);
static int refuse_growth(char why[static FEEDING_WHY_MAX], const char *format, ...) {
        va_list ap;

        va_start(ap, format);
        vsnprintf(why, FEEDING_WHY_MAX, format, ap);
        va_end(ap);
        return -EPERM;
}

/* ---- whether it may ---- */

/* Trainers that run have been told the formats of their data, and read all of it in one way. */
static bool same_format(const struct input_source *a, const struct input_source *b) {
        return a->format == b->format && a->record_size == b->record_size && a->multiline == b->multiline &&
               a->message_type == b->message_type;
}

static int refuse_format(const struct input *all, size_t n_before, char why[static FEEDING_WHY_MAX]) {
        for (size_t i = n_before; i < all->n_sources; i++)
                if (!same_format(all->sources, all->sources + i))
                        return refuse_growth(
                                why,
                                "source %s has another format than %s, the first of the job (%s, and not "
                                "%s, or other sizes of records): trainers that run have been told that "
                                "one. Submit another job for it",
                                all->sources[i].name, all->sources[0].name,
                                record_format_to_string(all->sources[0].format),
                                record_format_to_string(all->sources[i].format));
        return 0;
}

/* Whoever reads has to hear of it still. */
static int refuse_readers(const struct job *j, char why[static FEEDING_WHY_MAX]) {
        const struct executor *e;
        bool told = false, any = false;

        JOB_FOREACH (j, e) {
                if (!e->feed.open)
                        continue;
                told |= e->feed.last;
                any |= !e->feed.last;
                if (e->feed.sources == 0)
                        return refuse_growth(
                                why,
                                "%s/%u was started by a Primus that cannot tell it of more sources; "
                                "'primusctl restart %u %s/%u' starts it anew",
                                executor_role(e)->name, e->index, j->number, executor_role(e)->name,
                                e->index);
        }
        return told && !any ? refuse_growth(why, "its trainers have been told that their data is at its end")
                            : 0;
}

static int make_texts(struct feeding_growth *g, const struct job_spec *after,
                      char why[static FEEDING_WHY_MAX]) {
        size_t n = g->input->n_sources - g->n_before;

        g->texts = calloc(n, sizeof(*g->texts));
        if (!g->texts)
                return -ENOMEM;
        TRY(spec_source_jsons(after, g->n_before, n, g->texts));
        for (size_t i = 0; i < n; i++)
                if (strlen(g->texts[i]) > INPUT_SOURCE_BYTES_MAX)
                        return refuse_growth(
                                why, "source %s: its description has %zu bytes, at most %u can be added",
                                g->input->sources[g->n_before + i].name, strlen(g->texts[i]),
                                INPUT_SOURCE_BYTES_MAX);
        return 0;
}

int feeding_may_grow(struct job *j, const struct job_spec *after, struct feeding_growth **ret,
                     char why[static FEEDING_WHY_MAX]) {
        _cleanup_(feeding_growth_free_p) struct feeding_growth *g = NULL;
        _cleanup_free_ char *error = NULL;
        int r;

        if (!j->data)
                return refuse_growth(why,
                                     "its ranks list their data and read it in lockstep, each on its own");
        if (feeding_is_gone(j) || j->data->finished)
                return refuse_growth(why, "its data is all through");
        r = refuse_readers(j, why);
        if (r < 0)
                return r;
        g = calloc(1, sizeof(*g));
        if (!g)
                return -ENOMEM;
        g->n_before = j->data->input->n_sources;
        r = spec_input_json(after, &g->text);
        r = r < 0 ? r : input_read(g->text, strlen(g->text), &g->input, &error);
        if (r < 0)
                return error ? refuse_growth(why, "%s", error) : r;
        g->sources = calloc(g->input->n_sources, sizeof(*g->sources));
        if (!g->sources)
                return -ENOMEM;
        TRY(refuse_format(g->input, g->n_before, why));
        TRY(make_texts(g, after, why));
        r = data_append_room(j->data->data, g->input->n_sources - g->n_before);
        if (r == -EBUSY)
                return refuse_growth(
                        why, "it was steered too often, or is being read from the database: try again in "
                             "a moment");
        if (r < 0)
                return r;
        *ret = TAKE_PTR(g);
        return 0;
}

/* ---- feeders ---- */

static int tell_source(struct executor *e, uint32_t source, const char *text) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *message = NULL;

        TRY(feeding_message(e, "FeedSource", &message));
        TRY(feed_source_append(message, &(struct feed_source_order){ source, text }));
        return sd_bus_send(NULL, message, NULL);
}

/* All in one go, from the first on that lacks one: a configuration is read for it. */
static int need_texts(struct job *j, size_t first) {
        struct job_data *d = j->data;
        size_t n = d->input->n_sources - first;
        _cleanup_free_ char **texts = NULL;

        for (; n > 0 && d->sources[first].text; first++)
                n--;
        if (n == 0)
                return 0;
        texts = calloc(n, sizeof(*texts));
        if (!texts)
                return -ENOMEM;
        TRY(spec_source_jsons(j->spec, first, n, texts));
        for (size_t i = 0; i < n; i++) {
                free(d->sources[first + i].text);
                d->sources[first + i].text = texts[i];
        }
        return 0;
}

bool feeding_tell_sources(struct executor *e) {
        struct job_data *d = e->job->data;
        int r;

        if (e->feed.sources == 0 || e->feed.sources >= d->input->n_sources)
                return true;
        r = need_texts(e->job, e->feed.sources);
        while (r >= 0 && e->feed.sources < d->input->n_sources) {
                r = tell_source(e, (uint32_t)e->feed.sources, d->sources[e->feed.sources].text);
                e->feed.sources += r >= 0;
        }
        if (r < 0)
                log_full(LOG_DEBUG, r, &(struct log_fields){ .job = e->job->number },
                         "A feeder was not told of a source, and gets no tasks until it is");
        return r >= 0;
}

/* ---- the growth ---- */

void feeding_grow(struct manager *m, struct job *j, struct feeding_growth *g) {
        struct job_data *d = j->data;
        struct input *old = d->input;
        struct executor *e;

        memcpy(g->sources, d->sources, g->n_before * sizeof(*d->sources));
        free(d->sources);
        d->sources = TAKE_PTR(g->sources);
        free(d->input_text);
        d->input_text = TAKE_PTR(g->text);
        d->input = g->input;
        for (size_t i = g->n_before; i < d->input->n_sources; i++) {
                d->sources[i].text = TAKE_PTR(g->texts[i - g->n_before]);
                data_append(d->data, d->input->sources[i].weight);
        }
        JOB_FOREACH (j, e)
                if (e->feed.open)
                        (void)feeding_tell_sources(e);
        feeding_start(m, j);
        feeding_changed(m, j);
        g->input = old; /* freed with it, as are the texts' places */
        (void)feeding_growth_free(g);
}
