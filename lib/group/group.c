/* SPDX-License-Identifier: Apache-2.0 */
/* What ranks say to each other: each message is a length and [[CALL, NUMBER], VALUE], so that who calls
 * something else is found out. Invariant: all that is said goes through rank 0. */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/try.h"
#include "lib/group/meet.h"
#include "lib/group/place.h"
#include "lib/primus/environment.h"
#include "lib/primus/primus.h"
#include "lib/primus/text.h"

#define VALUE_MAX (16u << 20)
#define MEET_USEC (600 * USEC_PER_SEC)
#define SECRET_MAX ((64u << 10) + 1) /* one more than a secret of a job can have */

struct primus_group {
        uint32_t rank, size;
        int *peers;     /* in rank 0: by rank; elsewhere rank 0 alone */
        uint64_t calls; /* number of the latest */
        char **texts;   /* what the latest call has returned, by rank */
        uint8_t *secret;
        size_t secret_size;
        char *path, *host;
        uint16_t port;
        char error[MEET_WHY_MAX];
};

static _Thread_local char open_error[MEET_WHY_MAX];

_printf_(3, 4) static int group_fail(struct primus_group *g, int error, const char *format, ...) {
        va_list ap;

        errno = error; /* for %m */
        va_start(ap, format);
        (void)vsnprintf(g->error, sizeof(g->error), format, ap);
        va_end(ap);
        return -error;
}

const char *primus_group_error(const struct primus_group *g) {
        return g ? g->error : open_error;
}

uint32_t primus_group_rank(const struct primus_group *g) {
        return g->rank;
}

uint32_t primus_group_size(const struct primus_group *g) {
        return g->size;
}

/* ---- a message ---- */

static int send_all(int fd, const void *data, size_t size) {
        const uint8_t *from = data;

        while (size > 0) {
                ssize_t n = send(fd, from, size, MSG_NOSIGNAL);

                if (n < 0 && errno != EINTR)
                        return -errno;
                from += MAX(n, 0);
                size -= (size_t)MAX(n, 0);
        }
        return 0;
}

static int receive_all(int fd, void *data, size_t size) {
        uint8_t *to = data;

        while (size > 0) {
                ssize_t n = recv(fd, to, size, 0);

                if (n == 0)
                        return -ECONNRESET;
                if (n < 0 && errno != EINTR)
                        return -errno;
                to += MAX(n, 0);
                size -= (size_t)MAX(n, 0);
        }
        return 0;
}

static int rank_gone(struct primus_group *g, uint32_t rank) {
        return group_fail(g, ECONNRESET, "rank %" PRIu32 " has ended", rank);
}

static int say_to(struct primus_group *g, uint32_t rank, const char *call, const char *value) {
        _cleanup_free_ char *text = text_make("[[\"%s\", %" PRIu64 "], %s]", call, g->calls, value);
        size_t n = text ? strlen(text) : 0;
        uint32_t size = htole32((uint32_t)n);

        if (!text)
                return group_fail(g, ENOMEM, "no memory");
        if (n > VALUE_MAX)
                return group_fail(g, E2BIG, "%zu bytes are too many: a value may have %u", n, VALUE_MAX);
        if (send_all(g->peers[rank], &size, sizeof(size)) < 0 || send_all(g->peers[rank], text, n) < 0)
                return rank_gone(g, rank);
        return 0;
}

/* Whether it is the call that this rank is in, too. */
static int check_call(struct primus_group *g, uint32_t rank, const char *call, json_t *message,
                      json_t **ret_value) {
        const char *theirs;
        json_int_t number;

        if (!message || json_unpack(message, "[[s,I],o!]", &theirs, &number, ret_value) < 0)
                return group_fail(g, EPROTO, "rank %" PRIu32 " says what is no message", rank);
        if (strcmp(theirs, call) != 0 || (uint64_t)number != g->calls)
                return group_fail(g, EPROTO,
                                  "rank %" PRIu32
                                  " calls %.32s (its call %lld), and this one %s (its call %" PRIu64
                                  "): all ranks call the same",
                                  rank, theirs, (long long)number, call, g->calls);
        return 0;
}

/* *ret: the value's text, for free(). */
static int hear_from(struct primus_group *g, uint32_t rank, const char *call, char **ret) {
        _cleanup_free_ char *text = NULL;
        json_auto_t *message = NULL;
        json_t *value = NULL;
        uint32_t size;

        if (receive_all(g->peers[rank], &size, sizeof(size)) < 0)
                return rank_gone(g, rank);
        size = le32toh(size);
        if (size > VALUE_MAX)
                return group_fail(g, EPROTO, "rank %" PRIu32 " says more than it may", rank);
        text = malloc(size + 1);
        if (!text)
                return group_fail(g, ENOMEM, "no memory");
        if (receive_all(g->peers[rank], text, size) < 0)
                return rank_gone(g, rank);
        message = json_loadb(text, size, 0, NULL);
        TRY(check_call(g, rank, call, message, &value));
        *ret = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
        return *ret ? 0 : group_fail(g, ENOMEM, "no memory");
}

/* ---- calls ---- */

static void forget_texts(struct primus_group *g) {
        for (uint32_t rank = 0; rank < g->size; rank++) {
                free(g->texts[rank]);
                g->texts[rank] = NULL;
        }
}

/* A value as the others get it, for free(). */
static int normalize(struct primus_group *g, const char *value, char **ret) {
        json_error_t error;
        json_auto_t *parsed = json_loads(value ? value : "null", JSON_DECODE_ANY, &error);

        if (!parsed)
                return group_fail(g, EINVAL, "the value is no JSON: %s", error.text);
        *ret = json_dumps(parsed, JSON_COMPACT | JSON_ENCODE_ANY);
        return *ret ? 0 : group_fail(g, ENOMEM, "no memory");
}

/* What all say, in rank 0; elsewhere it is said. */
static int collect_values(struct primus_group *g, const char *call, const char *value) {
        _cleanup_free_ char *own = NULL;

        forget_texts(g);
        TRY(normalize(g, value, &own));
        g->calls++;
        if (g->rank > 0)
                return say_to(g, 0, call, own);
        g->texts[0] = TAKE_PTR(own);
        for (uint32_t rank = 1; rank < g->size; rank++)
                TRY(hear_from(g, rank, call, &g->texts[rank]));
        return 0;
}

/* What rank 0 has, in all. *ret is for free(). */
static int tell_value(struct primus_group *g, const char *call, const char *value, char **ret) {
        if (g->rank > 0)
                return hear_from(g, 0, call, ret);
        for (uint32_t rank = 1; rank < g->size; rank++)
                TRY(say_to(g, rank, call, value));
        *ret = strdup(value);
        return *ret ? 0 : group_fail(g, ENOMEM, "no memory");
}

int primus_group_barrier(struct primus_group *g) {
        _cleanup_free_ char *nothing = NULL;

        TRY(collect_values(g, "barrier", NULL));
        return tell_value(g, "barrier", "null", &nothing);
}

int primus_group_gather(struct primus_group *g, const char *value, const char *const **ret) {
        TRY(collect_values(g, "gather", value));
        *ret = g->rank == 0 ? (const char *const *)g->texts : NULL;
        return 0;
}

/* [VALUE, ...] of all; for free(). */
static char *join_texts(const struct primus_group *g) {
        size_t size = 3;
        char *list, *end;

        for (uint32_t rank = 0; rank < g->size; rank++)
                size += strlen(g->texts[rank]) + 1;
        list = end = malloc(size);
        if (!list)
                return NULL;
        *end++ = '[';
        for (uint32_t rank = 0; rank < g->size; rank++) {
                end = stpcpy(end, rank > 0 ? "," : "");
                end = stpcpy(end, g->texts[rank]);
        }
        strcpy(end, "]");
        return list;
}

static int split_texts(struct primus_group *g, const char *list) {
        json_auto_t *values = json_loads(list, 0, NULL);

        if (json_array_size(values) != g->size)
                return group_fail(g, EPROTO, "rank 0 has not the values of all");
        for (uint32_t rank = 0; rank < g->size; rank++) {
                g->texts[rank] = json_dumps(json_array_get(values, rank), JSON_COMPACT | JSON_ENCODE_ANY);
                if (!g->texts[rank])
                        return group_fail(g, ENOMEM, "no memory");
        }
        return 0;
}

int primus_group_allgather(struct primus_group *g, const char *value, const char *const **ret) {
        _cleanup_free_ char *list = NULL, *heard = NULL;

        TRY(collect_values(g, "allgather", value));
        if (g->rank == 0) {
                list = join_texts(g);
                if (!list)
                        return group_fail(g, ENOMEM, "no memory");
        }
        TRY(tell_value(g, "allgather", list, &heard));
        if (g->rank > 0)
                TRY(split_texts(g, heard));
        *ret = (const char *const *)g->texts;
        return 0;
}

int primus_group_broadcast(struct primus_group *g, const char *value, const char **ret) {
        _cleanup_free_ char *own = NULL;

        forget_texts(g);
        TRY(normalize(g, value, &own));
        g->calls++;
        TRY(tell_value(g, "broadcast", own, &g->texts[0]));
        *ret = g->texts[0];
        return 0;
}

/* ---- meeting ---- */

static int take_number(struct primus_group *g, const char *variable, uint32_t otherwise, uint32_t most,
                       uint32_t *ret) {
        if (environment_number(variable, otherwise, most, ret) < 0)
                return group_fail(g, EINVAL, "%s is '%.32s', and no number from 0 to %" PRIu32, variable,
                                  getenv(variable), most);
        return 0;
}

/* How many groups of that name this process has made before. */
static unsigned count_group(const char *name) {
        static struct made {
                struct made *next;
                unsigned n;
                char name[];
        } * all;
        static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
        unsigned before = 0;
        struct made *m;

        pthread_mutex_lock(&lock);
        for (m = all; m && strcmp(m->name, name) != 0; m = m->next)
                ;
        if (m)
                before = ++m->n;
        else if ((m = calloc(1, sizeof(*m) + strlen(name) + 1))) {
                strcpy(m->name, name);
                m->next = all;
                all = m;
        }
        pthread_mutex_unlock(&lock);
        return before;
}

static int read_secret(struct primus_group *g) {
        const char *directory = getenv("PRIMUS_SECRETS_DIR");
        _cleanup_free_ char *path = directory ? text_make("%s/group", directory) : NULL;
        _cleanup_close_ int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -EBADF;
        ssize_t n = 0;

        g->secret = malloc(SECRET_MAX);
        if (!g->secret || (directory && !path))
                return group_fail(g, ENOMEM, "no memory");
        if (fd >= 0)
                n = read(fd, g->secret, SECRET_MAX);
        if (n < (ssize_t)SECRET_MIN)
                return group_fail(
                        g, EINVAL,
                        "processes of several hosts need a secret of at least %u bytes that all have: primusctl submit --secret "
                        "group=FILE",
                        SECRET_MIN);
        if (n == (ssize_t)SECRET_MAX)
                return group_fail(g, E2BIG, "the secret group has %u bytes or more", SECRET_MAX);
        g->secret_size = (size_t)n;
        return 0;
}

static int take_first(struct primus_group *g, const struct primus_group_options *o) {
        const char *host = o->host ? o->host : getenv("MASTER_ADDR");
        uint32_t port = o->port;

        if (!port)
                TRY(take_number(g, "MASTER_PORT", 0, UINT16_MAX, &port));
        if (!host || !*host || !port)
                return group_fail(g, EINVAL, "where is rank 0? MASTER_ADDR and MASTER_PORT are not set");
        g->port = (uint16_t)port;
        g->host = strdup(host);
        return g->host ? read_secret(g) : group_fail(g, ENOMEM, "no memory");
}

static int take_options(struct primus_group *g, const struct primus_group_options *o) {
        const char *name = o->name ? o->name : "group";
        uint32_t local = o->local_world;
        int r;

        g->rank = o->rank;
        g->size = o->world;
        if (o->world == 0) {
                TRY(take_number(g, "RANK", 0, WORLD_MAX, &g->rank));
                TRY(take_number(g, "WORLD_SIZE", 1, WORLD_MAX, &g->size));
        }
        if (g->rank >= g->size || g->size > WORLD_MAX)
                return group_fail(g, EINVAL, "rank %" PRIu32 " of %" PRIu32, g->rank, g->size);
        if (!local)
                TRY(take_number(g, "LOCAL_WORLD_SIZE", g->size, WORLD_MAX, &local));
        if (g->size == 1)
                return 0;
        if (local != g->size)
                return take_first(g, o);
        r = place_local(name, count_group(name), &g->path);
        return r < 0 ? group_fail(g, -r, "there is no directory of this user's alone to meet in: %m") : 0;
}

static int meet_others(struct primus_group *g, uint64_t timeout_usec) {
        const struct meeting m = { .rank = g->rank,
                                   .size = g->size,
                                   .path = g->path,
                                   .host = g->host,
                                   .port = g->port,
                                   .secret = g->secret,
                                   .secret_size = g->secret_size,
                                   .until = usec_add(now_boot(), timeout_usec) };
        char why[MEET_WHY_MAX] = "";
        int r;

        g->texts = calloc(g->size, sizeof(*g->texts));
        g->peers = malloc(g->size * sizeof(*g->peers));
        if (!g->texts || !g->peers)
                return group_fail(g, ENOMEM, "no memory");
        for (uint32_t i = 0; i < g->size; i++)
                g->peers[i] = -EBADF;
        if (g->size == 1)
                return 0;
        r = meet_all(&m, g->peers, why);
        return r < 0 ? group_fail(g, -r, "%s", why) : primus_group_barrier(g);
}

static int open_group(struct primus_group *g, const struct primus_group_options *o) {
        if (o->size < sizeof(*o))
                return group_fail(g, EINVAL, "options of another version");
        TRY(take_options(g, o));
        return meet_others(g, o->timeout_usec ? o->timeout_usec : MEET_USEC);
}

int primus_group_open(const struct primus_group_options *options, struct primus_group **ret) {
        const struct primus_group_options none = { .size = sizeof(none) };
        struct primus_group *g = calloc(1, sizeof(*g));
        int r;

        if (!g)
                return -ENOMEM;
        r = open_group(g, options ? options : &none);
        if (r < 0) {
                memcpy(open_error, g->error, sizeof(open_error));
                primus_group_close(g);
                return r;
        }
        *ret = g;
        return 0;
}

void primus_group_close(struct primus_group *g) {
        if (!g)
                return;
        for (uint32_t i = 0; g->peers && i < g->size; i++)
                (void)close_fd(g->peers[i]);
        if (g->texts)
                forget_texts(g);
        if (g->secret)
                explicit_bzero(g->secret, SECRET_MAX);
        free(g->secret);
        free(g->peers);
        free(g->texts);
        free(g->path);
        free(g->host);
        free(g);
}
