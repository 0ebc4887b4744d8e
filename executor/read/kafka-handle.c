/* SPDX-License-Identifier: Apache-2.0 */
/* Connections to brokers, what is asked of them, and commits. Invariant: offsets are committed only by
 * kafka_handle_commit(), which sends what kafka_commit() was given. */
#include "executor/read/kafka-handle.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/parse.h"
#include "lib/base/utf8.h"

#define COMMIT_EVERY USEC_PER_SEC
#define NOTHING UINT64_MAX

static struct kafka_handle *handles;
static pthread_mutex_t handles_lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- connections ---- */

static int fail_with(const struct input_source *s, int r, const char *what, const char *why,
                     char error[static READ_ERROR_MAX]) {
        snprintf(error, READ_ERROR_MAX, "topic %.200s: %s%s%.200s", s->topic, what, *why ? ": " : "", why);
        return r;
}

static void on_log(const rd_kafka_t *rk, int level, const char *facility, const char *text) {
        struct kafka_handle *h = NULL;
        const struct kafka_api *api;
        char error[READ_ERROR_MAX];

        if (level > 4 || !rk || kafka_api_load(&api, error) < 0)
                return;
        h = api->opaque(rk);
        if (!h)
                return;
        (void)pthread_mutex_lock(&h->lock);
        utf8_clean(text, strlen(text), h->trouble, sizeof(h->trouble));
        (void)pthread_mutex_unlock(&h->lock);
}

void kafka_handle_trouble(struct kafka_handle *h, char *buf, size_t size) {
        (void)pthread_mutex_lock(&h->lock);
        snprintf(buf, size, "%s", h->trouble);
        (void)pthread_mutex_unlock(&h->lock);
}

/* "NAME=VALUE" lines of the source, with ours before (defaults) and behind (what must be). */
static int set_all(struct kafka_handle *h, rd_kafka_conf_t *conf, const char *const *lines,
                   char error[static READ_ERROR_MAX]) {
        for (; *lines; lines++) {
                const char *equals = strchr(*lines, '=');
                _cleanup_free_ char *name = equals ? strndup(*lines, (size_t)(equals - *lines)) : NULL;
                char why[200] = "";

                if (!name)
                        return fail_with(h->source, -EINVAL, "a setting without a value", "", error);
                if (h->api->conf_set(conf, name, equals + 1, why, sizeof(why)) != RD_KAFKA_CONF_OK)
                        return fail_with(h->source, -EINVAL, "config", why, error);
        }
        return 0;
}

static int make_conf(struct kafka_handle *h, rd_kafka_conf_t **ret, char error[static READ_ERROR_MAX]) {
        static const char *const defaults[] = { "client.id=primus",
                                                "auto.offset.reset=error",
                                                "queued.min.messages=20000",
                                                "queued.max.messages.kbytes=16384",
                                                "allow.auto.create.topics=false",
                                                NULL };
        static const char *const fixed[] = { "enable.auto.commit=false", "enable.auto.offset.store=false",
                                             "enable.partition.eof=true", NULL };
        rd_kafka_conf_t *conf = h->api->conf_new();
        const char *group[] = { NULL, NULL };
        _cleanup_free_ char *line = NULL;
        int r;

        if (!conf)
                return -ENOMEM;
        r = set_all(h, conf, defaults, error);
        if (r >= 0)
                r = set_all(h, conf, (const char *const *)h->source->config, error);
        if (r >= 0)
                r = set_all(h, conf, fixed, error);
        if (r >= 0 && h->source->group) {
                if (asprintf(&line, "group.id=%s", h->source->group) < 0) {
                        line = NULL;
                        r = -ENOMEM;
                } else {
                        group[0] = line;
                        r = set_all(h, conf, group, error);
                }
        }
        if (r < 0) {
                h->api->conf_destroy(conf);
                return r;
        }
        h->api->conf_set_opaque(conf, h);
        h->api->conf_set_log_cb(conf, on_log);
        *ret = conf;
        return 0;
}

static struct kafka_handle *handle_free(struct kafka_handle *h) {
        if (!h)
                return NULL;
        while (h->partitions) {
                struct kafka_partition *p = h->partitions;

                h->partitions = p->following;
                kafka_partition_stop(h, p);
                free(p);
        }
        if (h->commits)
                h->api->queue_destroy(h->commits);
        if (h->rkt)
                h->api->topic_destroy(h->rkt);
        if (h->rk)
                h->api->destroy_flags(h->rk, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
        (void)pthread_mutex_destroy(&h->lock);
        free(h->topic);
        free(h);
        return NULL;
}

static int handle_new(const struct input_source *s, struct kafka_handle **ret,
                      char error[static READ_ERROR_MAX]) {
        struct kafka_handle *h = calloc(1, sizeof(*h));
        rd_kafka_conf_t *conf;
        char why[200] = "";
        int r;

        if (!h)
                return fail_with(s, -ENOMEM, "no memory", "", error);
        (void)pthread_mutex_init(&h->lock, NULL);
        h->source = s;
        h->topic = strdup(s->topic);
        r = h->topic ? kafka_api_load(&h->api, error) : fail_with(s, -ENOMEM, "no memory", "", error);
        if (r >= 0)
                r = make_conf(h, &conf, error);
        if (r < 0) {
                handle_free(h);
                return r;
        }
        h->rk = h->api->new (RD_KAFKA_CONSUMER, conf, why, sizeof(why));
        if (!h->rk) {
                h->api->conf_destroy(conf);
                handle_free(h);
                return fail_with(s, -EINVAL, "librdkafka cannot start", why, error);
        }
        h->rkt = h->api->topic_new(h->rk, s->topic, NULL);
        h->commits = h->api->queue_new(h->rk);
        if (!h->rkt || !h->commits) {
                handle_free(h);
                return fail_with(s, -EINVAL, "librdkafka does not take its name", "", error);
        }
        *ret = h;
        return 0;
}

static struct kafka_handle *find_handle(const struct input_source *s) {
        struct kafka_handle *h = handles;

        while (h && (h->source != s || strcmp(h->topic, s->topic) != 0))
                h = h->following;
        return h;
}

int kafka_handle_get(const struct input_source *s, struct kafka_handle **ret,
                     char error[static READ_ERROR_MAX]) {
        struct kafka_handle *h;
        int r = 0;

        (void)pthread_mutex_lock(&handles_lock);
        h = find_handle(s);
        if (!h) {
                r = handle_new(s, &h, error);
                if (r >= 0) {
                        h->following = handles;
                        handles = h;
                }
        }
        (void)pthread_mutex_unlock(&handles_lock);
        if (r >= 0)
                *ret = h;
        return r;
}

struct kafka_partition *kafka_handle_partition(struct kafka_handle *h, int32_t number) {
        struct kafka_partition *p;

        (void)pthread_mutex_lock(&h->lock);
        for (p = h->partitions; p && p->number != number;)
                p = p->following;
        if (!p) {
                p = calloc(1, sizeof(*p));
                if (p) {
                        p->number = number;
                        p->pending = NOTHING;
                        p->following = h->partitions;
                        h->partitions = p;
                }
        }
        (void)pthread_mutex_unlock(&h->lock);
        return p;
}

void kafka_partition_stop(struct kafka_handle *h, struct kafka_partition *p) {
        while (p->held_at < p->held_n)
                h->api->message_destroy(p->held[p->held_at++]);
        p->held_at = p->held_n = 0;
        if (p->started)
                (void)h->api->consume_stop(h->rkt, p->number);
        p->started = p->at_end = false;
}

/* ---- questions ---- */

int kafka_path_partition(const char *path, int32_t *ret) {
        const char *slash = strrchr(path, '/');
        uint32_t number;

        if (!slash || slash == path || parse_u32(slash + 1, 0, INT32_MAX, &number) < 0)
                return -EINVAL;
        *ret = (int32_t)number;
        return 0;
}

/* Why a question was not answered; what librdkafka complained of says more than "timed out". */
static int fail_ask(struct kafka_handle *h, rd_kafka_resp_err_t e, const char *what,
                    char error[static READ_ERROR_MAX]) {
        char trouble[256] = "";
        bool silent = e == RD_KAFKA_RESP_ERR__TRANSPORT || e == RD_KAFKA_RESP_ERR__TIMED_OUT ||
                      e == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN || e == RD_KAFKA_RESP_ERR__WAIT_COORD;

        if (silent)
                kafka_handle_trouble(h, trouble, sizeof(trouble));
        return fail_with(h->source, silent ? -ETIMEDOUT : -EIO, what, *trouble ? trouble : h->api->err2str(e),
                         error);
}

int kafka_partitions(const struct input_source *s, int32_t *ret, char error[static READ_ERROR_MAX]) {
        const struct rd_kafka_metadata *m = NULL;
        struct kafka_handle *h;
        rd_kafka_resp_err_t e;
        int r = kafka_handle_get(s, &h, error);

        if (r < 0)
                return r;
        e = h->api->metadata(h->rk, 0, h->rkt, &m, KAFKA_SILENCE_MS);
        if (e == RD_KAFKA_RESP_ERR_NO_ERROR && m->topic_cnt == 1)
                e = m->topics[0].err;
        if (e != RD_KAFKA_RESP_ERR_NO_ERROR)
                r = fail_ask(h, e, "cannot be looked up", error);
        else if (m->topic_cnt != 1 || m->topics[0].partition_cnt <= 0)
                r = fail_with(s, -ENOENT, "the brokers do not have it", "", error);
        else
                *ret = m->topics[0].partition_cnt;
        if (m)
                h->api->metadata_destroy(m);
        return r;
}

static const char *setting(const struct input_source *s, const char *name) {
        size_t n = strlen(name);

        for (char **line = s->config; *line; line++)
                if (strncmp(*line, name, n) == 0 && (*line)[n] == '=')
                        return *line + n + 1;
        return "";
}

static int ends(struct kafka_handle *h, int32_t partition, int64_t *ret_low, int64_t *ret_high,
                char error[static READ_ERROR_MAX]) {
        rd_kafka_resp_err_t e = h->api->query_watermark_offsets(h->rk, h->topic, partition, ret_low, ret_high,
                                                                KAFKA_SILENCE_MS);

        return e == RD_KAFKA_RESP_ERR_NO_ERROR ? 0 : fail_ask(h, e, "its offsets cannot be looked up", error);
}

/* By a function that fills in one partition's offset. Negative: there is none. */
static int look_up(struct kafka_handle *h, int32_t partition,
                   rd_kafka_resp_err_t (*ask)(rd_kafka_t *, rd_kafka_topic_partition_list_t *, int),
                   int64_t value, int64_t *ret, char error[static READ_ERROR_MAX]) {
        rd_kafka_topic_partition_list_t *list = h->api->topic_partition_list_new(1);
        rd_kafka_topic_partition_t *p;
        rd_kafka_resp_err_t e;

        if (!list)
                return fail_with(h->source, -ENOMEM, "no memory", "", error);
        p = h->api->topic_partition_list_add(list, h->topic, partition);
        p->offset = value;
        e = ask(h->rk, list, KAFKA_SILENCE_MS);
        if (e == RD_KAFKA_RESP_ERR_NO_ERROR)
                e = list->elems[0].err;
        *ret = list->elems[0].offset;
        h->api->topic_partition_list_destroy(list);
        return e == RD_KAFKA_RESP_ERR_NO_ERROR ? 0 : fail_ask(h, e, "its offsets cannot be looked up", error);
}

/* The group has committed nothing: auto.offset.reset of the source, and Kafka's default. */
static int without_commit(struct kafka_handle *h, int32_t partition, int64_t low, int64_t high, int64_t *ret,
                          char error[static READ_ERROR_MAX]) {
        const char *reset = setting(h->source, "auto.offset.reset");

        if (strcmp(reset, "earliest") == 0 || strcmp(reset, "smallest") == 0 ||
            strcmp(reset, "beginning") == 0)
                *ret = low;
        else if (strcmp(reset, "none") == 0 || strcmp(reset, "error") == 0) {
                char what[96];

                snprintf(what, sizeof(what), "the group has committed no offset of partition %d", partition);
                return fail_with(h->source, -ENOENT, what, "", error);
        } else
                *ret = high;
        return 0;
}

int kafka_first(const struct input_source *s, int32_t partition, bool earliest, uint64_t *ret,
                char error[static READ_ERROR_MAX]) {
        int64_t low = 0, high = 0, offset = -1;
        struct kafka_handle *h;
        int r = kafka_handle_get(s, &h, error);

        if (r >= 0)
                r = ends(h, partition, &low, &high, error);
        if (r < 0)
                return r;
        switch (earliest ? KAFKA_EARLIEST : s->start) {
        case KAFKA_EARLIEST:
                offset = low;
                break;
        case KAFKA_TIMESTAMP:
                r = look_up(h, partition, h->api->offsets_for_times, s->start_timestamp, &offset, error);
                break;
        case KAFKA_GROUP_OFFSETS:
                if (s->group)
                        r = look_up(h, partition, h->api->committed, 0, &offset, error);
                if (r >= 0 && offset < 0)
                        r = without_commit(h, partition, low, high, &offset, error);
                break;
        default:
                break;
        }
        if (r < 0)
                return r;
        *ret = (uint64_t)(offset >= 0 ? offset : high);
        return 0;
}

/* ---- commits ---- */

/* Under the lock. What came of earlier ones; a commit that failed is made good by the next one. */
static void drain_events(struct kafka_handle *h, int timeout_ms) {
        rd_kafka_event_t *e;

        while (h->under_way > 0 && (e = h->api->queue_poll(h->commits, timeout_ms))) {
                h->api->event_destroy(e);
                h->under_way--;
        }
}

static void commit_locked(struct kafka_handle *h, bool all) {
        rd_kafka_topic_partition_list_t *list = NULL;
        uint64_t now = now_boot();

        drain_events(h, 0);
        for (struct kafka_partition *p = h->partitions; p; p = p->following) {
                if (p->pending == NOTHING ||
                    (!all && p->committed_usec > 0 && now < p->committed_usec + COMMIT_EVERY))
                        continue;
                if (!list)
                        list = h->api->topic_partition_list_new(8);
                if (!list)
                        return;
                h->api->topic_partition_list_add(list, h->topic, p->number)->offset = (int64_t)p->pending;
                p->pending = NOTHING;
                p->committed_usec = now;
        }
        if (!list)
                return;
        if (h->api->commit_queue(h->rk, list, h->commits, NULL, NULL) == RD_KAFKA_RESP_ERR_NO_ERROR)
                h->under_way++;
        h->api->topic_partition_list_destroy(list);
}

void kafka_handle_commit(struct kafka_handle *h, bool all) {
        (void)pthread_mutex_lock(&h->lock);
        commit_locked(h, all);
        (void)pthread_mutex_unlock(&h->lock);
}

int kafka_commit(const struct input_source *s, const char *path, uint64_t position, bool now) {
        struct kafka_partition *p;
        struct kafka_handle *h;
        int32_t number;

        if (!s->group)
                return 0;
        if (kafka_path_partition(path, &number) < 0 || position > INT64_MAX)
                return -EINVAL;
        (void)pthread_mutex_lock(&handles_lock);
        h = find_handle(s);
        (void)pthread_mutex_unlock(&handles_lock);
        if (!h)
                return 0;
        p = kafka_handle_partition(h, number);
        if (!p)
                return -ENOMEM;
        (void)pthread_mutex_lock(&h->lock);
        p->pending = position;
        if (now)
                p->committed_usec = 0;
        commit_locked(h, false);
        (void)pthread_mutex_unlock(&h->lock);
        return 0;
}

void kafka_done(uint64_t timeout_usec) {
        uint64_t deadline = now_boot() + timeout_usec;

        (void)pthread_mutex_lock(&handles_lock);
        for (struct kafka_handle *h = handles; h; h = h->following)
                kafka_handle_commit(h, true);
        while (handles) {
                struct kafka_handle *h = handles;

                (void)pthread_mutex_lock(&h->lock);
                while (h->under_way > 0 && now_boot() < deadline)
                        drain_events(h, 50);
                (void)pthread_mutex_unlock(&h->lock);
                handles = h->following;
                handle_free(h);
        }
        (void)pthread_mutex_unlock(&handles_lock);
}
