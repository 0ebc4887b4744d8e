/* SPDX-License-Identifier: Apache-2.0 */
/* The live block. Invariant: no line is wider than the terminal, or moving up by the count of lines would
 * miss. */
#include "tools/primusctl/view/live.h"

#include <inttypes.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/format.h"
#include "lib/base/utf8.h"
#include "tools/primusctl/cli/text.h"

#define ROLES_SHOWN 8u

static uint64_t units(const struct data_status *d) {
        return d->bytes > 0 ? d->acked : d->done;
}

void live_sample(struct live *l, const struct data_status *d, uint64_t now_usec) {
        uint64_t now_units = units(d), dt = usec_sub(now_usec, l->last_usec);
        double rate;

        if (!d->present)
                return;
        if (l->last_usec == 0) {
                l->last_usec = now_usec;
                l->last_units = now_units;
                return;
        }
        if (dt < 200 * USEC_PER_MSEC)
                return;
        rate = now_units > l->last_units ? (double)(now_units - l->last_units) * 1e6 / (double)dt : 0;
        l->rate = l->rate <= 0 ? rate : 0.7 * l->rate + 0.3 * rate;
        l->last_usec = now_usec;
        l->last_units = now_units;
}

char *live_data_text(const struct live *l, const struct data_status *d, char *buf, size_t size) {
        char bar[32], a[FORMAT_SIZE_MAX], b[FORMAT_SIZE_MAX], rate[64] = "", eta[FORMAT_DURATION_MAX],
                                                              left[64] = "", bad[48] = "", bytes[64] = "";
        uint64_t total = d->bytes > 0 ? d->bytes : d->tasks, now_units = units(d);
        bool finished = d->scanned && d->tasks > 0 && d->done + d->failed >= d->tasks;

        if (d->bytes == 0 && d->records > 0)
                snprintf(bytes, sizeof(bytes), "  %" PRIu64 " records", d->records);
        else if (d->bytes > 0)
                snprintf(bytes, sizeof(bytes), "  %s of %s%s", format_size(now_units, a, sizeof(a)),
                         format_size(d->bytes, b, sizeof(b)), d->scanned ? "" : "+");
        if (l->rate > 0 && !finished) {
                if (d->bytes > 0)
                        snprintf(rate, sizeof(rate), "  %s/s", format_size((uint64_t)l->rate, a, sizeof(a)));
                else
                        snprintf(rate, sizeof(rate), "  %.1f tasks/s", l->rate);
                if (d->scanned && total > now_units)
                        snprintf(left, sizeof(left), "  ETA %s",
                                 format_duration((uint64_t)((double)(total - now_units) / l->rate) *
                                                         USEC_PER_SEC,
                                                 eta, sizeof(eta)));
        }
        if (d->failed > 0)
                snprintf(bad, sizeof(bad), ", %" PRIu64 " failed", d->failed);
        snprintf(buf, size, "data %s %" PRIu64 "/%" PRIu64 "%s tasks%s%s%s%s",
                 text_bar(finished ? 1 : now_units, finished ? 1 : total, 26, bar, sizeof(bar)), d->done,
                 d->tasks, d->scanned ? "" : "+", bad, bytes, rate, left);
        return buf;
}

char *live_waiting_text(const struct data_status *d, char *buf, size_t size) {
        const struct source_status *first = NULL;
        char more[32] = "";
        size_t n = 0;

        for (size_t i = 0; i < d->n_sources; i++)
                if (d->sources[i].waiting_for && *d->sources[i].waiting_for && n++ == 0)
                        first = &d->sources[i];
        if (n > 1)
                snprintf(more, sizeof(more), " and %zu more", n - 1);
        buf[0] = 0;
        if (first)
                snprintf(buf, size, "waiting for %.*s (%.*s)%s", utf8_fit(first->waiting_for, 120),
                         first->waiting_for, utf8_fit(first->name ? first->name : "", 40),
                         first->name ? first->name : "", more);
        text_clean(buf);
        return buf;
}

static void put_line(struct live *l, const char *line, unsigned columns) {
        _cleanup_free_ char *fitted = text_fit(line, columns);

        fprintf(l->out, "%s\033[K\n", fitted ? fitted : "");
        l->lines++;
}

void live_wipe(struct live *l) {
        if (l->lines == 0)
                return;
        fprintf(l->out, "\033[%uA\r\033[J", l->lines);
        fflush(l->out);
        l->lines = 0;
}

static void role_line(const struct role_status *r, char *buf, size_t size) {
        const struct {
                const char *word;
                uint32_t n;
        } counts[] = {
                { "running", r->running }, { "pending", r->pending }, { "succeeded", r->succeeded },
                { "failed", r->failed },   { "killed", r->killed },   { "lost", r->lost },
        };
        char clean[40];
        size_t used;

        snprintf(clean, sizeof(clean), "%s", r->name);
        text_clean(clean);
        used = (size_t)snprintf(buf, size, "  %-12s", clean);
        for (size_t i = 0; i < ELEMENTSOF(counts); i++)
                if (counts[i].n > 0 && used < size)
                        used += (size_t)snprintf(buf + used, size - used, " %" PRIu32 " %s", counts[i].n,
                                                 counts[i].word);
}

void live_draw(struct live *l, const struct job_properties *p, const struct job_status *s,
               const struct executor *executors, size_t n, uint64_t real, uint64_t boot) {
        unsigned columns = text_columns(fileno(l->out));
        char line[512], since[FORMAT_DURATION_MAX], name[80], reason[160] = "";
        uint64_t from = p->started ? p->started : p->submitted;
        size_t running = 0;

        if (l->lines > 0 && usec_sub(boot, l->drawn_usec) < 50 * USEC_PER_MSEC)
                return;
        l->drawn_usec = boot;
        for (size_t i = 0; i < n; i++)
                running += strcmp(executors[i].state, "RUNNING") == 0;
        snprintf(name, sizeof(name), "%s", p->name ? p->name : "");
        text_clean(name);
        if (s->reason && *s->reason) {
                snprintf(reason, sizeof(reason), "  %s", s->reason);
                text_clean(reason);
        }
        if (l->lines > 0)
                fprintf(l->out, "\033[%uA\r", l->lines);
        l->lines = 0;
        snprintf(line, sizeof(line), "Job %" PRIu32 " (%s)  %s%s%s  %s  %zu of %zu executors running%s",
                 p->number, name, l->color ? color_sequence(color_of_state(p->state)) : "", p->state,
                 l->color ? COLOR_RESET : "",
                 from ? format_duration(usec_sub(real, from) / USEC_PER_SEC * USEC_PER_SEC, since,
                                        sizeof(since))
                      : "",
                 running, n, reason);
        put_line(l, line, columns);
        for (size_t i = 0; i < s->n_roles && i < ROLES_SHOWN; i++) {
                role_line(&s->roles[i], line, sizeof(line));
                put_line(l, line, columns);
        }
        if (s->n_roles > ROLES_SHOWN) {
                snprintf(line, sizeof(line), "  and %zu more roles", s->n_roles - ROLES_SHOWN);
                put_line(l, line, columns);
        }
        if (s->data.present) {
                char text[256];
                snprintf(line, sizeof(line), "  %s", live_data_text(l, &s->data, text, sizeof(text)));
                put_line(l, line, columns);
                snprintf(line, sizeof(line), "  %s", live_waiting_text(&s->data, text, sizeof(text)));
                if (*text)
                        put_line(l, line, columns);
        }
        fputs("\033[J", l->out);
        fflush(l->out);
}
