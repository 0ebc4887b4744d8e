/* SPDX-License-Identifier: Apache-2.0 */
/* Looking for expressions in logs. The journal is read in one thread and the lines are matched in another,
 * since both may take their time; and of the users whose executors end at once each has his turn. Invariant:
 * a question is in the list until it is answered. */
#include "agentd/relay/finds.h"

#include <string.h>
#include <utlist.h>

#include "agentd/log/find.h"
#include "agentd/log/read.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/turns.h"
#include "lib/base/unitname.h"
#include "lib/base/worker.h"

#define FINDS_MAX 1024u /* that wait; an answer is a question's only purpose */
/* At once, and of one user: each may hold a page of 256 KiB. */
#define FINDS_PLACES 4u
#define FINDS_SHARE 3u
#define JOURNAL_USEC_MAX (10 * USEC_PER_SEC) /* a journald that is behind is waited for so long */

static const char short_of_memory[] = "this host's agent is short of memory";

struct finding {
        struct finds *finds;
        sd_bus_message *call;
        char unit[UNIT_NAME_MAX];
        sd_id128_t invocation;
        struct find_question question;
        char *data; /* lines */
        size_t size;
        struct found_line *found;
        int result; /* of find_lines() */
        struct turn turn;
        struct turns_user *place;
        struct finding *next, *prev;
};

struct finds {
        struct log_reader *pages;
        struct worker *worker;
        struct turns turns;
        struct finding *list;
        unsigned n;
        bool ends; /* no further one is begun */
};

static void finding_free(struct finding *g) {
        DL_DELETE(g->finds->list, g);
        g->finds->n--;
        sd_bus_message_unref(g->call);
        find_question_done(&g->question);
        free(g->data);
        free(g->found);
        free(g);
}

/* It is answered, and another one may go: begin_findings() is the caller's. */
static void finding_over(struct finding *g) {
        turns_give_back(&g->finds->turns, TAKE_PTR(g->place));
        finding_free(g);
}

static void refuse_finding(struct finding *g, const char *text) {
        (void)sd_bus_reply_method_errorf(g->call, SD_BUS_ERROR_FAILED, "%s", text);
        finding_over(g);
}

static void run_match(void *data) {
        struct finding *g = data;

        g->result = find_lines(g->data, g->size, g->question.patterns, g->question.n, g->found);
}

static void answer_finding(struct finding *g) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        int r;

        if (g->result == 0)
                log_notice("%s: its last lines were matched for 0.2 s, and the rest was left out", g->unit);
        if ((r = sd_bus_message_new_method_return(g->call, &reply)) >= 0 &&
            (r = found_lines_append(reply, g->found, g->question.n)) >= 0)
                r = sd_bus_send(NULL, reply, NULL);
        if (r < 0) /* the link is gone: the end is told again, and asked about again */
                log_full(LOG_DEBUG, r, NULL, "Cannot answer what was found in a log");
        finding_over(g);
}

static struct finding *of_turn(struct turn *turn) {
        return (struct finding *)((char *)turn - offsetof(struct finding, turn));
}

static void on_page(void *userdata, const struct log_page *page);

static void begin_findings(struct finds *f) {
        struct turn *turn;

        while (!f->ends && (turn = turns_next(&f->turns))) {
                struct finding *g = of_turn(turn);
                struct log_request q = { .unit = g->unit,
                                         .invocation = g->invocation,
                                         .last = true,
                                         .max = LINK_CHUNK_MAX,
                                         .wait_usec = JOURNAL_USEC_MAX,
                                         .ended = now_boot() };
                g->place = turn->user;
                if (log_read(f->pages, &q, on_page, g, NULL) < 0)
                        refuse_finding(g, short_of_memory);
        }
}

static void on_matched(void *data) {
        struct finding *g = data;
        struct finds *f = g->finds;

        if (g->result < 0)
                refuse_finding(g, g->result == -ENOMEM ? short_of_memory
                                                       : "an expression is none to this host's agent");
        else
                answer_finding(g);
        begin_findings(f);
}

static int match_page(struct finding *g, const struct log_page *page) {
        g->data = malloc(page->size + 1);
        g->found = calloc(g->question.n + 1, sizeof(*g->found));
        if (!g->data || !g->found)
                return -ENOMEM;
        memcpy(g->data, page->size ? page->data : "", page->size);
        g->size = page->size;
        return worker_submit(g->finds->worker, run_match, on_matched, g);
}

static void on_page(void *userdata, const struct log_page *page) {
        struct finding *g = userdata;
        struct finds *f = g->finds;

        if (page->error < 0)
                refuse_finding(g, "the journal cannot be read");
        else if (match_page(g, page) < 0)
                refuse_finding(g, short_of_memory);
        begin_findings(f);
}

int finds_order(struct finds *f, const struct executor_id *id, sd_bus_message *call) {
        struct finding *g;
        const void *invocation;
        uint32_t uid;
        size_t size;
        int r;

        if (f->n >= FINDS_MAX)
                return sd_bus_reply_method_errorf(call, LINK_ERROR_BUSY, "too many questions about logs");
        g = calloc(1, sizeof(*g));
        if (!g)
                return -ENOMEM;
        g->finds = f;
        DL_APPEND(f->list, g);
        f->n++;
        executor_unit_name(id->job, id->role, id->index, id->attempt, g->unit);
        if ((r = sd_bus_message_read_array(call, 'y', &invocation, &size)) > 0 &&
            size == sizeof(g->invocation) && (r = sd_bus_message_read(call, "u", &uid)) > 0) {
                memcpy(&g->invocation, invocation, size);
                r = find_question_read(call, &g->question);
        } else
                r = -EBADMSG;
        if (r > 0)
                r = turns_wait(&f->turns, uid, &g->turn);
        if (r < 0) {
                finding_free(g);
                return r;
        }
        g->call = sd_bus_message_ref(call);
        begin_findings(f);
        return 1;
}

int finds_new(sd_event *event, struct finds **ret) {
        static const struct log_reader_options options = { 0 };
        _cleanup_(finds_free_p) struct finds *f = calloc(1, sizeof(*f));
        int r;

        if (!f)
                return -ENOMEM;
        f->turns.places = FINDS_PLACES;
        f->turns.share = FINDS_SHARE;
        if ((r = log_reader_new(event, &options, &f->pages)) < 0 || (r = worker_new(event, &f->worker)) < 0)
                return log_error_errno(r, "Cannot make what looks for lines in the journal");
        *ret = TAKE_PTR(f);
        return 0;
}

void finds_free(struct finds *f) {
        struct finding *g, *next;

        if (!f)
                return;
        f->ends = true;
        log_reader_free(f->pages);
        worker_free(f->worker);
        while (turns_drop(&f->turns))
                ;
        DL_FOREACH_SAFE (f->list, g, next) {
                if (g->place)
                        turns_give_back(&f->turns, g->place);
                finding_free(g);
        }
        free(f);
}
