/* SPDX-License-Identifier: Apache-2.0 */
/* Groups of events. Invariant: every event is in exactly one line, and lines are in the order of their first
 * events. */
#include "tools/primusctl/view/story.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/format.h"
#include "lib/json/get.h"

#define TOGETHER_USEC (5 * USEC_PER_SEC) /* further apart they are told apart */
#define PARTS_MAX 8u
#define NODES_MAX 3u

/* The name of a host behind the first " on ". */
struct split {
        size_t begin, end; /* of it; equal: there is none */
};

struct group {
        const struct story_event *first;
        struct split split;
        uint64_t until;
        uint32_t *indices;
        size_t n;
        const char *nodes[NODES_MAX]; /* texts that begin with them */
        size_t node_sizes[NODES_MAX];
        size_t n_nodes; /* distinct ones as far as they are kept, then all others that were seen */
};

struct story_event *story_events(const json_t *rows, size_t first) {
        size_t n = json_array_size(rows);
        struct story_event *events = calloc(n + 1, sizeof(*events));

        for (size_t i = first; events && i < n; i++) {
                const json_t *row = json_array_get(rows, i);

                events[i - first] = (struct story_event){
                        .sequence = json_get_number(row, "sequence"),
                        .time = json_get_number(row, "time"),
                        .kind = json_get_text(row, "kind"),
                        .role = json_get_text(row, "role"),
                        .text = json_get_text(row, "text"),
                        .index = (uint32_t)json_get_number(row, "index"),
                };
        }
        return events;
}

void story_lines_free(struct story_line *l, size_t n) {
        for (size_t i = 0; l && i < n; i++) {
                free(l[i].kind);
                free(l[i].who);
                free(l[i].text);
        }
        free(l);
}

static struct split split_text(const char *text) {
        static const char name[] = "abcdefghijklmnopqrstuvwxyz0123456789.-";
        const char *on = strstr(text, " on ");
        struct split s = {};

        if (on) {
                s.begin = (size_t)(on - text) + 4;
                s.end = s.begin + strspn(text + s.begin, name);
        }
        return s;
}

/* But for the host. */
static bool alike(const struct group *g, const struct story_event *e, struct split s) {
        const struct story_event *f = g->first;

        return strcmp(f->kind, e->kind) == 0 && strcmp(f->role, e->role) == 0 && g->split.begin == s.begin &&
               strncmp(f->text, e->text, s.begin) == 0 &&
               strcmp(f->text + g->split.end, e->text + s.end) == 0 && e->time <= g->until + TOGETHER_USEC;
}

static int join(struct group *g, const struct story_event *e, struct split s) {
        bool known = s.begin == s.end;

        if ((g->n & (g->n - 1)) == 0) { /* a power of two: it is full */
                size_t n = g->n ? g->n * 2 : 1;
                uint32_t *bigger = reallocarray(g->indices, n, sizeof(*bigger));
                if (!bigger)
                        return -ENOMEM;
                g->indices = bigger;
        }
        g->indices[g->n++] = e->index;
        g->until = MAX(g->until, e->time);
        for (size_t i = 0; !known && i < MIN(g->n_nodes, (size_t)NODES_MAX); i++)
                known = g->node_sizes[i] == s.end - s.begin &&
                        strncmp(g->nodes[i], e->text + s.begin, s.end - s.begin) == 0;
        if (!known) {
                if (g->n_nodes < NODES_MAX) {
                        g->nodes[g->n_nodes] = e->text + s.begin;
                        g->node_sizes[g->n_nodes] = s.end - s.begin;
                }
                g->n_nodes++;
        }
        return 0;
}

static int compare(const void *x, const void *y) {
        uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;

        return (a > b) - (a < b);
}

char *story_indices(uint32_t *indices, size_t n) {
        char *text = NULL;
        size_t size, parts = 0;
        FILE *f = open_memstream(&text, &size);

        if (!f)
                return NULL;
        qsort(indices, n, sizeof(*indices), compare);
        for (size_t i = 0, k; i < n; i = k) {
                if (parts++ == PARTS_MAX) {
                        fputs(",...", f);
                        break;
                }
                for (k = i + 1; k < n && indices[k] - indices[k - 1] <= 1; k++)
                        ;
                fprintf(f, indices[k - 1] > indices[i] ? "%s%u-%u" : "%s%u", i > 0 ? "," : "", indices[i],
                        indices[k - 1]);
        }
        if (fclose(f) != 0) {
                free(text);
                return NULL;
        }
        return text;
}

static char *group_text(const struct group *g) {
        const char *text = g->first->text;
        size_t kept = MIN(g->n_nodes, (size_t)NODES_MAX), size;
        char *line = NULL;
        FILE *f;

        if (g->n_nodes <= 1)
                return strdup(text);
        f = open_memstream(&line, &size);
        if (!f)
                return NULL;
        fprintf(f, "%.*s", (int)g->split.begin, text);
        for (size_t i = 0; i < kept; i++)
                fprintf(f, "%s%.*s", i > 0 ? ", " : "", (int)g->node_sizes[i], g->nodes[i]);
        fprintf(f, "%s%s", g->n_nodes > kept ? " and others" : "", text + g->split.end);
        if (fclose(f) != 0) {
                free(line);
                return NULL;
        }
        return line;
}

static int write_line(struct group *g, struct story_line *l) {
        _cleanup_free_ char *indices = *g->first->role ? story_indices(g->indices, g->n) : NULL;

        *l = (struct story_line){ .time = g->first->time,
                                  .until = g->until,
                                  .n = g->n,
                                  .kind = strdup(g->first->kind),
                                  .text = group_text(g) };
        if (!*g->first->role)
                l->who = strdup("");
        else if (indices && asprintf(&l->who, "%s/%s", g->first->role, indices) < 0)
                l->who = NULL;
        return l->kind && l->text && l->who ? 0 : -ENOMEM;
}

int story_tell(const struct story_event *events, size_t n, struct story_line **ret, size_t *ret_n) {
        struct group *groups = calloc(n + 1, sizeof(*groups));
        struct story_line *lines = calloc(n + 1, sizeof(*lines));
        size_t n_groups = 0, open = 0; /* groups from open on may grow */
        int r = groups && lines ? 0 : -ENOMEM;

        for (size_t i = 0; r >= 0 && i < n; i++) {
                const struct story_event *e = events + i;
                struct split s = split_text(e->text);
                size_t k = open;
                while (k < n_groups && (!*e->role || !alike(groups + k, e, s)))
                        k++;
                if (k == n_groups) {
                        groups[n_groups++] = (struct group){ .first = e, .split = s, .until = e->time };
                        if (!*e->role)
                                open = n_groups;
                        else if (n_groups - open > 16)
                                open++;
                }
                r = join(groups + k, e, s);
        }
        for (size_t i = 0; r >= 0 && i < n_groups; i++)
                r = write_line(groups + i, lines + i);
        for (size_t i = 0; groups && i < n_groups; i++)
                free(groups[i].indices);
        free(groups);
        if (r < 0) {
                story_lines_free(lines, lines ? n_groups : 0);
                return r;
        }
        *ret = lines;
        *ret_n = n_groups;
        return 0;
}

char *story_after(uint64_t begin, uint64_t time, char *buf, size_t size) {
        char text[FORMAT_DURATION_MAX];
        uint64_t after = usec_sub(time, begin);

        if (after < 10 * USEC_PER_SEC)
                snprintf(buf, size, "+%.1fs", (double)after / USEC_PER_SEC);
        else
                snprintf(buf, size, "+%s",
                         format_duration(after / USEC_PER_SEC * USEC_PER_SEC, text, sizeof(text)));
        return buf;
}
