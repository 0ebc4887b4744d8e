/* SPDX-License-Identifier: Apache-2.0 */
/* Logs, joined to the link. Invariant: every ReadLog is in the list of readers until it is answered or its
 * connection is gone. */
#include "agentd/relay/logs.h"

#include <string.h>
#include <utlist.h>

#include "agentd/log/read.h"
#include "agentd/log/sent.h"
#include "agentd/log/tail.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/try.h"
#include "lib/base/unitname.h"
#include "lib/wire/skip.h"

#define TAIL_STATE "/run/primus/agent/tail"

struct reader {
        struct logs *logs;
        sd_bus_message *call;
        uint64_t ticket;
        struct reader *next, *prev;
};

struct logs {
        struct units *units;
        struct link *link;
        struct log_reader *pages;
        struct tail *tail;
        struct reader *readers;
        struct sent sent;
        bool waiting; /* tails were not taken */
};

/* ---- the tail ---- */

static int send_tail(void *userdata, const struct tail_chunk *c) {
        struct logs *l = userdata;
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;

        TRY(link_message(l->link, true, "Tail", &m));
        TRY(executor_id_append(m, &c->id));
        TRY(sd_bus_message_append(m, "t", c->offset));
        TRY(sd_bus_message_append_array(m, 'y', c->data, c->size));
        TRY(sd_bus_message_append(m, "a{sv}", 0));
        return link_send(l->link, m);
}

static int on_tail(void *userdata, const struct tail_chunk *chunks, size_t n) {
        struct logs *l = userdata;

        if (!link_bulk_bus(l->link) || link_is_congested(l->link, true)) {
                l->waiting = true;
                return -EAGAIN;
        }
        for (size_t i = 0; i < n; i++) {
                if (send_tail(l, &chunks[i]) < 0) {
                        l->waiting = true; /* the same ones again: masterd knows them by their offset */
                        return -EAGAIN;
                }
                (void)sent_add(&l->sent, &chunks[i], now_boot());
        }
        return 0;
}

void logs_bulk_up(struct logs *l) {
        sent_each(&l->sent, now_boot(), send_tail, l);
        logs_resume(l);
}

void logs_resume(struct logs *l) {
        sent_trim(&l->sent, now_boot());
        if (!l->waiting || !link_bulk_bus(l->link) || link_is_congested(l->link, true))
                return;
        l->waiting = false;
        tail_resume(l->tail);
}

void logs_starting(struct logs *l, const struct executor_id *id) {
        int r = tail_add(l->tail, id);

        if (r < 0)
                log_warning_errno(r, "The output of an executor will not be kept by masterd");
}

void logs_ended(struct logs *l, const struct executor_id *id) {
        char unit[UNIT_NAME_MAX];

        (void)tail_ended(l->tail, id);
        log_reader_ended(l->pages, executor_unit_name(id->job, id->role, id->index, id->attempt, unit));
}

static int add_unit(const char *unit, const struct unit_facts *facts, void *userdata) {
        logs_starting(userdata, &facts->id);
        return 0;
}

int logs_start(struct logs *l) {
        int r = units_visit(l->units, add_unit, l);

        if (r >= 0)
                r = tail_start(l->tail);
        return r < 0 ? log_error_errno(r, "Cannot follow the journal") : 0;
}

/* ---- pages ---- */

static void reader_free(struct reader *d) {
        DL_DELETE(d->logs->readers, d);
        sd_bus_message_unref(d->call);
        free(d);
}

static void on_page(void *userdata, const struct log_page *page) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        struct reader *d = userdata;
        int r;

        if (page->error < 0)
                r = sd_bus_reply_method_errorf(
                        d->call, page->error == -EINVAL ? SD_BUS_ERROR_INVALID_ARGS : SD_BUS_ERROR_FAILED,
                        "cannot read the journal: %s", strerror(-page->error));
        else if ((r = sd_bus_message_new_method_return(d->call, &reply)) >= 0 &&
                 (r = sd_bus_message_append_array(reply, 'y', page->data, page->size)) >= 0 &&
                 (r = sd_bus_message_append_array(reply, 'y', page->cursor, strlen(page->cursor))) >= 0 &&
                 (r = sd_bus_message_append(reply, "ba{sv}", (int)page->end, 0)) >= 0)
                r = sd_bus_send(NULL, reply, NULL);
        if (r < 0)
                log_full(LOG_DEBUG, r, NULL, "Cannot answer a reader of logs");
        reader_free(d);
}

static int read_option(sd_bus_message *call, const char *key, void *userdata) {
        const char **identifier = userdata;

        return strcmp(key, "identifier") == 0 ? sd_bus_message_read(call, "v", "s", identifier)
                                              : message_skip(call, "v");
}

int logs_read(struct logs *l, sd_bus_message *call) {
        char unit[UNIT_NAME_MAX];
        struct log_request q = { .unit = unit };
        struct unit_facts facts;
        struct executor_id id;
        struct reader *d;
        int r = executor_id_read(call, &id);

        if (r <= 0 || sd_bus_message_read_array(call, 'y', &q.cursor, &q.cursor_size) <= 0 ||
            sd_bus_message_read(call, "ut", &q.max, &q.wait_usec) <= 0 ||
            link_read_entries(call, read_option, &q.identifier) <= 0)
                return -EBADMSG;
        executor_unit_name(id.job, id.role, id.index, id.attempt, unit);
        if (units_find(l->units, unit, &facts) >= 0 && executor_id_equal(&facts.id, &id))
                q.invocation = facts.invocation;
        else
                q.ended = now_boot();
        d = calloc(1, sizeof(*d));
        if (!d)
                return -ENOMEM;
        *d = (struct reader){ .logs = l, .call = sd_bus_message_ref(call) };
        DL_APPEND(l->readers, d);
        r = log_read(l->pages, &q, on_page, d, &d->ticket);
        if (r < 0)
                reader_free(d);
        return r;
}

void logs_bulk_down(struct logs *l) {
        struct reader *d, *next;

        DL_FOREACH_SAFE (l->readers, d, next) {
                log_read_cancel(l->pages, d->ticket);
                reader_free(d);
        }
}

/* ---- the rest ---- */

void logs_set_link(struct logs *l, struct link *link) {
        l->link = link;
}

int logs_new(sd_event *event, struct units *units, struct logs **ret) {
        static const struct log_reader_options reader_options = { 0 };
        static const struct tail_options tail_options = { .state = TAIL_STATE };
        _cleanup_(logs_free_p) struct logs *l = calloc(1, sizeof(*l));
        int r;

        if (!l)
                return -ENOMEM;
        l->units = units;
        if ((r = log_reader_new(event, &reader_options, &l->pages)) < 0 ||
            (r = tail_new(event, &tail_options, on_tail, l, &l->tail)) < 0)
                return log_error_errno(r, "Cannot make the journal's readers");
        *ret = TAKE_PTR(l);
        return 0;
}

void logs_free(struct logs *l) {
        struct reader *d, *next;

        if (!l)
                return;
        log_reader_free(l->pages);
        tail_free(l->tail);
        sent_done(&l->sent);
        DL_FOREACH_SAFE (l->readers, d, next)
                reader_free(d);
        free(l);
}
