/* SPDX-License-Identifier: Apache-2.0 */
/* Who asks masterd, a searcher foremost: a question at a time to primus-agentd on $PRIMUS_SOCKET
 * (lib/wire/feed.h), which passes it to masterd. Invariant: a question that has not been answered is asked
 * again on a new connection. */
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/try.h"
#include "lib/primus/agent.h"
#include "lib/primus/primus.h"
#include "lib/wire/feed.h"

struct primus_searcher {
        int fd; /* negative: there is no connection */
        uint64_t number;
        bool asked;     /* the question is under way on this connection */
        char *question; /* that waits for its answer, or NULL */
        int pause;      /* before the next try */
        char socket[108];
        char error[512];
        uint8_t body[FEED_PACKET_MAX + 1]; /* the answer, with a NUL behind it */
};

int primus_searcher_open(struct primus_searcher **ret) {
        return getenv("PRIMUS_SEARCHER") ? primus_questions_open(ret) : -ENOENT;
}

int primus_questions_open(struct primus_searcher **ret) {
        struct primus_searcher *s;
        char path[sizeof(s->socket)];

        if (agent_path(path) < 0)
                return -ENOENT;
        s = calloc(1, sizeof(*s));
        if (!s)
                return -ENOMEM;
        s->fd = -1;
        s->pause = AGENT_RETRY_FIRST_MSEC;
        strcpy(s->socket, path);
        *ret = s;
        return 0;
}

static void hang_up(struct primus_searcher *s) {
        if (s->fd >= 0)
                (void)close(s->fd);
        s->fd = -1;
        s->asked = false;
}

/* agentd is started anew, or its link is: it is dialled until it is there. */
static int dial_once(struct primus_searcher *s) {
        char why[AGENT_WHY_MAX];

        s->fd = agent_dial(s->socket, why);
        if (s->fd >= 0) {
                s->pause = AGENT_RETRY_FIRST_MSEC;
                return 0;
        }
        if (poll(NULL, 0, s->pause) < 0)
                return -EINTR;
        s->pause = MIN(2 * s->pause, AGENT_RETRY_MAX_MSEC);
        return 0;
}

static int say_question(struct primus_searcher *s) {
        size_t n = strlen(s->question);
        struct feed_ask ask = { .number = ++s->number, .text_size = (uint32_t)n };

        memcpy(s->body, &ask, sizeof(ask));
        memcpy(s->body + sizeof(ask), s->question, n);
        s->asked = true;
        return agent_say(s->fd, FEED_ASK, s->body, sizeof(ask) + n, 0);
}

/* 1: it is answered, *ret_text is how; 0: not yet. -EINTR; other negative: the connection is over. */
static int hear_answer(struct primus_searcher *s, struct feed_taken *ret, const char **ret_text) {
        struct pollfd p = { .fd = s->fd, .events = POLLIN };
        struct feed_header header;
        int r;

        if (poll(&p, 1, -1) < 0)
                return -errno;
        r = agent_hear(s->fd, 0, &header, s->body, sizeof(s->body) - 1);
        if (r <= 0)
                return r;
        if (header.type != FEED_TOLD || header.size < sizeof(*ret))
                return -EPROTO;
        memcpy(ret, s->body, sizeof(*ret));
        if (ret->text_size != header.size - sizeof(*ret))
                return -EPROTO;
        s->body[header.size] = 0;
        *ret_text = (const char *)s->body + sizeof(*ret);
        return ret->number == s->number;
}

/* As hear_answer(); where there is no connection, the question is put on a new one first. */
static int ask_once(struct primus_searcher *s, struct feed_taken *ret, const char **ret_text) {
        if (s->fd < 0)
                TRY(dial_once(s));
        if (s->fd < 0)
                return 0;
        if (!s->asked)
                TRY(say_question(s));
        return hear_answer(s, ret, ret_text);
}

int primus_searcher_ask(struct primus_searcher *s, const char *question, const char **ret_answer) {
        struct feed_taken taken = {};
        const char *text = "";
        int r = 0;

        if (!s->question || strcmp(s->question, question) != 0) {
                char *copy = strlen(question) <= FEED_ASK_MAX ? strdup(question) : NULL;

                if (!copy)
                        return strlen(question) <= FEED_ASK_MAX ? -ENOMEM : -E2BIG;
                free(s->question);
                s->question = copy;
                s->asked = false;
        }
        while (r != 1) {
                r = ask_once(s, &taken, &text);
                if (r == -EINTR)
                        return r;
                if (r < 0)
                        hang_up(s);
        }
        free(s->question);
        s->question = NULL;
        s->asked = false;
        if (taken.refused) {
                snprintf(s->error, sizeof(s->error), "%s", text);
                return -EREMOTEIO;
        }
        *ret_answer = text;
        return 0;
}

const char *primus_searcher_error(const struct primus_searcher *s) {
        return s->error;
}

void primus_searcher_close(struct primus_searcher *s) {
        if (!s)
                return;
        hang_up(s);
        free(s->question);
        free(s);
}
