/* SPDX-License-Identifier: Apache-2.0 */
/* The host's conditions. Invariant: told is what masterd was told last (or will be at the next registration);
 * seen is what the sensors say; told is milder than seen at no time. */
#include "agentd/host/conditions.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/base/parse.h"
#include "lib/base/utf8.h"
#include "lib/unit/linkstate.h"

#define SETTLE_MAX (15 * 60 * USEC_PER_SEC)
#define FLAP_MEMORY (3600 * USEC_PER_SEC)       /* so long it is remembered that something was there */
#define TEXT_INTERVAL (60 * USEC_PER_SEC)       /* another text alone is told no more often */
#define TIMES_INTERVAL (10 * 60 * USEC_PER_SEC) /* and how often it came no more often than that */
#define CONFIRM_USEC (120 * USEC_PER_SEC) /* a state that was loaded is over when nobody says it again */
#define CONDITIONS_FILE "/run/primus/agent/conditions"

struct condition {
        struct host_condition told;
        enum condition_severity seen;
        char text[CONDITION_TEXT_MAX + 1]; /* of what is seen */
        uint64_t told_boot, better_since;  /* 0: it is not better */
        uint64_t settle_usec;
        uint64_t expires;   /* USEC_INFINITY: it is a state */
        uint64_t fine_boot; /* told FINE then; 0: it is not */
        bool happened;
        unsigned times, told_times; /* that it came, with less than FLAP_MEMORY in between */
};

struct conditions {
        uint64_t settle_usec;
        struct conditions_ops ops;
        void *userdata;
        struct condition list[CONDITIONS_MAX];
        size_t n;
        uint64_t due;
        bool full_said;
};

int conditions_new(uint64_t settle_usec, const struct conditions_ops *ops, void *userdata,
                   struct conditions **ret) {
        struct conditions *c = calloc(1, sizeof(*c));

        if (!c)
                return -ENOMEM;
        c->settle_usec = settle_usec;
        c->ops = *ops;
        c->userdata = userdata;
        c->due = USEC_INFINITY;
        *ret = c;
        return 0;
}

void conditions_free(struct conditions *c) {
        free(c);
}

static struct condition *find_condition(struct conditions *c, enum condition_kind kind, const char *subject) {
        for (size_t i = 0; i < c->n; i++)
                if (c->list[i].told.kind == kind && strcmp(c->list[i].told.subject, subject) == 0)
                        return c->list + i;
        return NULL;
}

/* A line that D-Bus and the file can carry. */
static void one_line(const char *s, char *buf, size_t size) {
        (void)utf8_clean(s, strlen(s), buf, size);
        for (char *p = buf; *p; p++)
                if ((unsigned char)*p < ' ' || *p == 0x7f)
                        *p = ' ';
        buf[utf8_fit(buf, size - 1)] = 0;
}

static void tell_condition(struct conditions *c, struct condition *x, uint64_t now) {
        x->told.severity = x->seen;
        x->told_boot = now;
        x->told_times = x->times;
        x->better_since = 0;
        if (x->seen == CONDITION_FINE) {
                x->fine_boot = now;
                x->told.text[0] = 0;
        } else if (x->times > 1)
                snprintf(x->told.text, sizeof(x->told.text), "%.*s (%u times by now)",
                         utf8_fit(x->text, CONDITION_TEXT_MAX - 40), x->text, x->times);
        else
                memcpy(x->told.text, x->text, sizeof(x->told.text));
        c->ops.tell(&x->told, c->userdata);
}

/* When something is due of it. */
static uint64_t due_of(const struct condition *x) {
        if (x->fine_boot > 0)
                return usec_add(x->fine_boot, FLAP_MEMORY);
        if (x->better_since > 0)
                return usec_add(x->better_since, x->settle_usec);
        return x->expires;
}

static void arm_timer(struct conditions *c, uint64_t when) {
        if (when >= c->due)
                return;
        c->due = when;
        if (c->ops.due)
                c->ops.due(when, c->userdata);
}

/* Room for another, at the cost of one that is over, or is milder. */
static struct condition *room(struct conditions *c, enum condition_severity severity) {
        struct condition *mildest = c->list;

        if (c->n < CONDITIONS_MAX)
                return c->list + c->n++;
        for (size_t i = 1; i < c->n; i++)
                if (c->list[i].told.severity < mildest->told.severity)
                        mildest = c->list + i;
        if (!c->full_said)
                log_warning("More than %u conditions of this host: the mildest are not told", CONDITIONS_MAX);
        c->full_said = true;
        if (mildest->told.severity >= severity)
                return NULL;
        if (mildest->told.severity > CONDITION_FINE) {
                mildest->seen = CONDITION_FINE;
                tell_condition(c, mildest, mildest->told_boot);
        }
        return mildest;
}

static struct condition *add_condition(struct conditions *c, enum condition_kind kind, const char *subject,
                                       enum condition_severity severity) {
        struct condition *x = room(c, severity);

        if (!x)
                return NULL;
        *x = (struct condition){ .told = { .kind = kind, .since_real = now_real() },
                                 .settle_usec = c->settle_usec,
                                 .times = 1,
                                 .expires = USEC_INFINITY };
        memcpy(x->told.subject, subject, CONDITION_SUBJECT_MAX + 1);
        return x;
}

/* Whether the same severity is worth another word. */
static bool is_news(const struct condition *x, const char *line, uint64_t now) {
        uint64_t age = usec_sub(now, x->told_boot);

        return (age >= TEXT_INTERVAL && strncmp(x->told.text, line, strlen(line)) != 0) ||
               (age >= TIMES_INTERVAL && x->times != x->told_times);
}

/* It was better, or over, and is back. */
static void came_back(struct condition *x) {
        x->times++;
        x->settle_usec = MIN(2 * x->settle_usec, MAX(SETTLE_MAX, x->settle_usec));
        if (x->fine_boot > 0)
                x->told.since_real = now_real();
        x->fine_boot = 0;
        x->better_since = 0;
}

static void set(struct conditions *c, uint64_t now, enum condition_kind kind, const char *subject,
                enum condition_severity severity, const char *text, uint64_t expires, bool happened) {
        char name[CONDITION_SUBJECT_MAX + 1], line[CONDITION_TEXT_MAX + 1];
        struct condition *x;

        one_line(subject, name, sizeof(name));
        one_line(text, line, sizeof(line));
        x = find_condition(c, kind, name);
        if (!x && severity == CONDITION_FINE)
                return;
        if (!x) {
                x = add_condition(c, kind, name, severity);
                if (!x)
                        return;
        } else if (severity > CONDITION_FINE &&
                   (x->fine_boot > 0 || (x->better_since > 0 && x->seen == CONDITION_FINE)))
                came_back(x);
        x->seen = severity;
        x->expires = expires;
        x->happened = happened;
        if (severity > CONDITION_FINE)
                memcpy(x->text, line, sizeof(line));
        if (severity > x->told.severity)
                tell_condition(c, x, now);
        else if (severity < x->told.severity)
                x->better_since = x->better_since ?: now;
        else {
                x->better_since = 0;
                if (severity > CONDITION_FINE && is_news(x, line, now))
                        tell_condition(c, x, now);
        }
        arm_timer(c, due_of(x));
}

void conditions_set_at(struct conditions *c, uint64_t now, enum condition_kind kind, const char *subject,
                       enum condition_severity severity, const char *text) {
        set(c, now, kind, subject, severity, text, USEC_INFINITY, false);
}

void conditions_happened_at(struct conditions *c, uint64_t now, enum condition_kind kind, const char *subject,
                            enum condition_severity severity, const char *text, uint64_t for_usec) {
        const struct condition *x = find_condition(c, kind, subject);

        /* What has happened does not become less bad by something milder of the same kind. */
        if (x && x->fine_boot == 0 && x->happened && x->seen > severity)
                return;
        set(c, now, kind, subject, severity, text, usec_add(now, for_usec), true);
}

uint64_t conditions_tick_at(struct conditions *c, uint64_t now) {
        for (size_t i = 0; i < c->n;) {
                struct condition *x = c->list + i;

                if (x->fine_boot == 0 && x->expires <= now) {
                        x->seen = CONDITION_FINE;
                        x->expires = USEC_INFINITY;
                        x->better_since = 0;
                        tell_condition(c, x, now);
                } else if (x->better_since > 0 && due_of(x) <= now)
                        tell_condition(c, x, now);
                if (x->fine_boot > 0 && due_of(x) <= now)
                        *x = c->list[--c->n];
                else
                        i++;
        }
        c->due = USEC_INFINITY;
        for (size_t i = 0; i < c->n; i++)
                c->due = MIN(c->due, due_of(c->list + i));
        return c->due;
}

int conditions_visit(const struct conditions *c, int (*f)(const struct host_condition *x, void *userdata),
                     void *userdata) {
        int r = 0;

        for (size_t i = 0; i < c->n && r >= 0; i++)
                if (c->list[i].told.severity > CONDITION_FINE)
                        r = f(&c->list[i].told, userdata);
        return r < 0 ? r : 0;
}

static int append_one(const struct host_condition *x, void *userdata) {
        return host_condition_append(userdata, x);
}

int conditions_append(const struct conditions *c, sd_bus_message *m) {
        int r = sd_bus_message_open_container(m, 'a', CONDITION_SIGNATURE);

        if (r >= 0)
                r = conditions_visit(c, append_one, m);
        return r < 0 ? r : sd_bus_message_close_container(m);
}

/* ---- over a restart ---- */

int conditions_save(const struct conditions *c, const char *root) {
        _cleanup_free_ char *path = NULL, *text = NULL;
        char boot[SD_ID128_STRING_MAX];
        size_t size = 0;
        sd_id128_t id;
        FILE *f;
        int r = boot_id_read(&id);

        if (r < 0)
                return r;
        if (asprintf(&path, "%s" CONDITIONS_FILE, root) < 0)
                return -ENOMEM;
        f = open_memstream(&text, &size);
        if (!f)
                return -ENOMEM;
        fprintf(f, "%s\n", sd_id128_to_string(id, boot));
        for (size_t i = 0; i < c->n; i++) {
                const struct condition *x = c->list + i;
                if (x->told.severity > CONDITION_FINE)
                        fprintf(f, "%s\t%s\t%s\t%" PRIu64 "\t%" PRIu64 "\t%s\n",
                                condition_kind_to_string(x->told.kind), x->told.subject,
                                condition_severity_to_string(x->told.severity), x->told.since_real,
                                x->happened ? x->expires : 0, x->text);
        }
        if (fclose(f) != 0)
                return -ENOMEM;
        return write_file_atomic(path, text, size, 0644, false);
}

static int load_line(struct conditions *c, uint64_t now, char *line) {
        enum condition_severity severity;
        char *save = line, *fields[5];
        enum condition_kind kind;
        uint64_t since, expires;
        struct condition *x;

        for (size_t i = 0; i < ELEMENTSOF(fields); i++)
                if (!(fields[i] = strsep(&save, "\t")))
                        return -EBADMSG;
        if (!save || (kind = condition_kind_from_string(fields[0])) < 0 || !*fields[1] ||
            strlen(fields[1]) > CONDITION_SUBJECT_MAX ||
            (severity = condition_severity_from_string(fields[2])) <= CONDITION_FINE ||
            parse_u64(fields[3], 0, UINT64_MAX, &since) < 0 ||
            parse_u64(fields[4], 0, UINT64_MAX, &expires) < 0)
                return -EBADMSG;
        set(c, now, kind, fields[1], severity, save, expires > 0 ? expires : usec_add(now, CONFIRM_USEC),
            expires > 0);
        x = find_condition(c, kind, fields[1]);
        if (x)
                x->told.since_real = since;
        return 0;
}

int conditions_load_at(struct conditions *c, uint64_t now, const char *root) {
        _cleanup_free_ char *text = NULL;
        char *save, *line;
        sd_id128_t boot, id;
        int r = read_file_below(root, CONDITIONS_FILE, 128 << 10, &text);

        if (r < 0)
                return r == -ENOENT ? 0 : r;
        r = boot_id_read(&boot);
        if (r < 0)
                return r;
        line = strtok_r(text, "\n", &save);
        if (!line || sd_id128_from_string(line, &id) < 0)
                return -EBADMSG;
        if (!sd_id128_equal(id, boot))
                return 0;
        while ((line = strtok_r(NULL, "\n", &save)))
                if (load_line(c, now, line) < 0)
                        return -EBADMSG;
        return 0;
}
