/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of the data path: packed arrays (lib/wire/tasks.h) with what goes beside them. The arrays are
 * bounded here and believed nowhere: who acts on them takes them apart. */
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/try.h"
#include "lib/wire/messages-parts.h"
#include "lib/wire/skip.h"

/* A key of the trailing dictionary that somebody knows, and what to do with its value. */
struct extra {
        const char *key, *type;
        union {
                uint64_t *number;
                char *line; /* LINK_TEXT_MAX + 1 bytes */
        };
        bool *seen; /* or NULL */
};

static int read_value(sd_bus_message *m, const struct extra *e) {
        int r = sd_bus_message_enter_container(m, 'v', e->type);

        if (r > 0)
                r = *e->type == 't' ? sd_bus_message_read_basic(m, 't', e->number)
                                    : link_read_text_into(m, e->line, LINK_TEXT_MAX + 1);
        if (r > 0)
                r = sd_bus_message_exit_container(m);
        if (r < 0)
                return r;
        if (e->seen)
                *e->seen = true;
        return 1;
}

struct extras {
        const struct extra *known;
        size_t n;
};

static int read_entry(sd_bus_message *m, const char *key, void *userdata) {
        const struct extras *x = userdata;

        for (size_t i = 0; i < x->n; i++)
                if (strcmp(x->known[i].key, key) == 0)
                        return read_value(m, &x->known[i]);
        return message_skip(m, "v");
}

/* The dictionary, which ends the message. Keys that nobody knows are passed over. */
static int read_extra(sd_bus_message *m, const struct extra *known, size_t n) {
        int r = link_read_entries(m, read_entry, &(struct extras){ known, n });

        if (r < 0)
                return r;
        r = sd_bus_message_at_end(m, true);
        return r > 0 ? 1 : link_bad(r);
}

static int read_array(sd_bus_message *m, const uint8_t **ret, size_t *ret_size) {
        const void *p;
        int r = link_read_bytes(m, TASKS_WIRE_MAX, &p, ret_size);

        if (r > 0)
                *ret = p;
        return r;
}

int grant_batch_append(sd_bus_message *m, const struct grant_batch *b) {
        if (b->size > TASKS_WIRE_MAX)
                return -E2BIG;
        TRY(sd_bus_message_append_array(m, 'y', b->grants, b->size));
        TRY(sd_bus_message_append(m, "b", (int)b->last));
        return link_append_extra_empty(m);
}

int grant_batch_read(sd_bus_message *m, struct grant_batch *ret) {
        struct grant_batch b = {};
        int r;

        if ((r = read_array(m, &b.grants, &b.size)) <= 0 || (r = link_read_bool(m, &b.last)) <= 0 ||
            (r = link_skip_extra(m)) <= 0)
                return link_bad(r);
        *ret = b;
        return 1;
}

int feed_order_append(sd_bus_message *m, const struct feed_order *o) {
        if ((unsigned)o->op >= _FEED_CONTROL_MAX)
                return -EINVAL;
        TRY(sd_bus_message_append(m, "utt", (uint32_t)o->op, o->task, o->value));
        return link_append_extra_empty(m);
}

int feed_order_read(sd_bus_message *m, struct feed_order *ret) {
        struct feed_order o = {};
        uint32_t op;
        int r;

        if ((r = sd_bus_message_read(m, "utt", &op, &o.task, &o.value)) <= 0 || (r = link_skip_extra(m)) <= 0)
                return link_bad(r);
        if (op >= _FEED_CONTROL_MAX)
                return -EBADMSG;
        o.op = (enum feed_control)op;
        *ret = o;
        return 1;
}

int feed_report_append(sd_bus_message *m, const struct feed_report *f) {
        const struct feed_counters *c = &f->counters;

        if (f->size > TASKS_WIRE_MAX)
                return -E2BIG;
        TRY(sd_bus_message_append_array(m, 'y', f->progress, f->size));
        TRY(sd_bus_message_append(m, "u(tttt)", f->credits, c->consumer_wait_usec, c->producer_wait_usec,
                                  c->bytes, c->records));
        TRY(sd_bus_message_open_container(m, 'a', "{sv}"));
        if (f->has_sync)
                TRY(sd_bus_message_append(m, "{sv}", "sync", "t", f->sync));
        if (f->has_hungry)
                TRY(sd_bus_message_append(m, "{sv}{sv}", "hungry", "t", f->hungry, "unserved", "t",
                                          f->unserved));
        return sd_bus_message_close_container(m);
}

int feed_report_read(sd_bus_message *m, struct feed_report *ret) {
        struct feed_report f = {};
        struct feed_counters *c = &f.counters;
        const struct extra known[] = { { "sync", "t", .number = &f.sync, .seen = &f.has_sync },
                                       { "hungry", "t", .number = &f.hungry, .seen = &f.has_hungry },
                                       { "unserved", "t", .number = &f.unserved } };
        int r;

        if ((r = read_array(m, &f.progress, &f.size)) <= 0 ||
            (r = sd_bus_message_read(m, "u(tttt)", &f.credits, &c->consumer_wait_usec, &c->producer_wait_usec,
                                     &c->bytes, &c->records)) <= 0 ||
            (r = read_extra(m, known, ELEMENTSOF(known))) <= 0)
                return link_bad(r);
        f.hungry = MIN(f.hungry, (uint64_t)LINK_CREDITS_MAX);
        f.unserved = f.has_hungry ? MIN(f.unserved, f.hungry) : 0;
        *ret = f;
        return 1;
}

int feed_opened_append(sd_bus_message *m, const struct feed_opened *f) {
        TRY(sd_bus_message_append_basic(m, 'u', &f->credits));
        TRY(sd_bus_message_open_container(m, 'a', "{sv}"));
        if (f->sources > 0)
                TRY(sd_bus_message_append(m, "{sv}", "sources", "t", f->sources));
        return sd_bus_message_close_container(m);
}

int feed_opened_read(sd_bus_message *m, struct feed_opened *ret) {
        struct feed_opened f = {};
        const struct extra known[] = { { "sources", "t", .number = &f.sources } };
        int r;

        if ((r = sd_bus_message_read_basic(m, 'u', &f.credits)) <= 0 ||
            (r = read_extra(m, known, ELEMENTSOF(known))) <= 0)
                return link_bad(r);
        *ret = f;
        return 1;
}

int feed_source_append(sd_bus_message *m, const struct feed_source_order *o) {
        if (strlen(o->text) > INPUT_SOURCE_BYTES_MAX)
                return -E2BIG;
        TRY(sd_bus_message_append(m, "us", o->source, o->text));
        return link_append_extra_empty(m);
}

int feed_source_read(sd_bus_message *m, struct feed_source_order *ret) {
        struct feed_source_order o;
        int r;

        if ((r = sd_bus_message_read(m, "us", &o.source, &o.text)) <= 0 || (r = link_skip_extra(m)) <= 0)
                return link_bad(r);
        if (strlen(o.text) > INPUT_SOURCE_BYTES_MAX)
                return -EBADMSG;
        *ret = o;
        return 1;
}

int scan_batch_append(sd_bus_message *m, const struct scan_batch *b) {
        int r;

        if (b->size > TASKS_WIRE_MAX)
                return -E2BIG;
        TRY(sd_bus_message_append_array(m, 'y', b->entries, b->size));
        TRY(sd_bus_message_append(m, "b", (int)b->last));
        TRY(link_append_text(m, b->error, LINK_TEXT_MAX));
        TRY(sd_bus_message_open_container(m, 'a', "{sv}"));
        if (b->waiting_for[0] &&
            ((r = sd_bus_message_open_container(m, 'e', "sv")) < 0 ||
             (r = sd_bus_message_append_basic(m, 's', "waitingFor")) < 0 ||
             (r = sd_bus_message_open_container(m, 'v', "s")) < 0 ||
             (r = link_append_text(m, b->waiting_for, LINK_TEXT_MAX)) < 0 ||
             (r = sd_bus_message_close_container(m)) < 0 || (r = sd_bus_message_close_container(m)) < 0))
                return r;
        if (b->passed > 0 && (r = sd_bus_message_append(m, "{sv}", "passed", "t", b->passed)) < 0)
                return r;
        return sd_bus_message_close_container(m);
}

int scan_batch_read(sd_bus_message *m, struct scan_batch *ret) {
        struct scan_batch b = {};
        const struct extra known[] = { { "waitingFor", "s", .line = b.waiting_for },
                                       { "passed", "t", .number = &b.passed } };
        int r;

        if ((r = read_array(m, &b.entries, &b.size)) <= 0 || (r = link_read_bool(m, &b.last)) <= 0 ||
            (r = link_read_text_into(m, b.error, sizeof(b.error))) <= 0 ||
            (r = read_extra(m, known, ELEMENTSOF(known))) <= 0)
                return link_bad(r);
        *ret = b;
        return 1;
}

int trial_report_append(sd_bus_message *m, const struct trial_report *t) {
        TRY(executor_id_append(m, &t->id));
        TRY(sd_bus_message_append(m, "tdb", t->step, t->metric, (int)t->invalid));
        return link_append_extra_empty(m);
}

int trial_report_read(sd_bus_message *m, struct trial_report *ret) {
        struct trial_report t = {};
        int r;

        if ((r = executor_id_read(m, &t.id)) <= 0 ||
            (r = sd_bus_message_read(m, "td", &t.step, &t.metric)) <= 0 ||
            (r = link_read_bool(m, &t.invalid)) <= 0 || (r = link_skip_extra(m)) <= 0)
                return link_bad(r);
        *ret = t;
        return 1;
}

int search_question_append(sd_bus_message *m, const struct search_question *q) {
        TRY(executor_id_append(m, &q->id));
        TRY(sd_bus_message_append(m, "s", q->text));
        return link_append_extra_empty(m);
}

int search_question_read(sd_bus_message *m, struct search_question *ret) {
        struct search_question q = {};
        int r;

        if ((r = executor_id_read(m, &q.id)) <= 0 || (r = sd_bus_message_read(m, "s", &q.text)) <= 0)
                return link_bad(r);
        if (strlen(q.text) > LINK_QUESTION_MAX)
                return link_bad(0);
        if ((r = link_skip_extra(m)) <= 0)
                return link_bad(r);
        *ret = q;
        return 1;
}
