/* SPDX-License-Identifier: Apache-2.0 */
/* The manifest of a savepoint: the records of a job's data as JSON that a person can read. Reading one goes
 * the way of a restart, with every value checked for what it is before, and for what it adds up to there. */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "lib/base/cleanup.h"
#include "lib/base/format.h"
#include "lib/base/packed.h"
#include "masterd/data/internal.h"

#define MANIFEST_VERSION 1

DEFINE_CLEANUP(json_t *, json_decref)

static const char *const orders[_ORDER_MAX] = { [ORDER_LISTED] = "listed", [ORDER_SHUFFLE] = "shuffle" };

/* ---- writing ---- */

/* Numbers that JSON's readers would round, or take for negative, are strings. */
static json_t *number_text(uint64_t value) {
        char text[24];

        if (value < UINT64_C(1) << 53)
                return json_integer((json_int_t)value);
        snprintf(text, sizeof(text), "%" PRIu64, value);
        return json_string(text);
}

static json_t *hex_text(const uint8_t *bytes, size_t size) {
        _cleanup_free_ char *text = malloc(2 * size + 1);

        if (!text)
                return NULL;
        return json_stringn(format_hex(bytes, size, text), 2 * size);
}

static json_t *digest(uint64_t value) {
        char text[17];

        snprintf(text, sizeof(text), "%016" PRIx64, value);
        return json_string(text);
}

/* Of a block that begins where nobody had steered, and within which nobody has. */
static bool is_plain(const struct block *b) {
        return b->state_size == b->place_size && !(packed_u32(b->state + 4) & ORDER_PLACE_STEERED);
}

static const char *const count_names[STATE_COUNTS] = { "splitOff", "done",    "skipped",
                                                       "acked",    "records", "learnt" };

static json_t *source_json(const struct data *d, uint32_t i) {
        const struct listed_source *s = d->listing.sources + i;
        json_t *o = json_pack("{s:o, s:o, s:o, s:b, s:o, s:o}", "files", number_text(s->n_files), "tasks",
                              number_text(s->n_tasks), "digest", digest(s->digest), "listed", (int)s->scanned,
                              "weight", number_text(d->weights ? d->weights[i] : 0), "made",
                              number_text(d->order.at.sources[i].made));

        for (size_t k = 0; o && k < STATE_COUNTS; k++)
                if (json_object_set_new(o, count_names[k], number_text(*counts_field(d->counts + i, k))) <
                    0) {
                        json_decref(o);
                        return NULL;
                }
        return o;
}

static json_t *block_json(const struct data *d, const struct block *b) {
        _cleanup_(json_decref_p) json_t *made = json_array();

        if (!is_plain(b))
                return json_pack("{s:o, s:o, s:o}", "block", number_text(b->index), "steered",
                                 hex_text(b->state, b->state_size), "over",
                                 hex_text(b->gone, sizeof(b->gone)));
        for (size_t i = 0; i < packed_u32(b->state + 4); i++)
                if (json_array_append_new(made, number_text(packed_u64(b->state + 8 + 8 * i))) < 0)
                        return NULL;
        return json_pack("{s:o, s:o, s:O, s:o}", "block", number_text(b->index), "epoch",
                         number_text(packed_u32(b->state)), "made", made, "over",
                         hex_text(b->gone, sizeof(b->gone)));
}

static json_t *task_json(const struct task *t) {
        bool split_off = t->id & TASK_SPLIT_OFF;
        json_t *o = json_pack("{s:o, s:o, s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:o}",
                              split_off ? "splitOff" : "task", number_text(t->id & ~TASK_SPLIT_OFF), "source",
                              number_text(t->source), "epoch", number_text(t->epoch), "file",
                              number_text(t->file), "state", t->place == TASK_GAVE_UP ? "FAILED" : "PENDING",
                              "start", number_text(t->start), "acked", number_text(t->acked), "skip",
                              number_text(t->skip), "records", number_text(t->records), "failures",
                              number_text(t->failures));

        if (o && t->end != TASK_TO_END && json_object_set_new(o, "end", number_text(t->end)) < 0)
                goto fail;
        if (o && t->error) {
                /* What a trainer's library said need not be text. */
                json_t *error = json_string(t->error);
                if (error && json_object_set_new(o, "error", error) < 0)
                        goto fail;
        }
        return o;
fail:
        json_decref(o);
        return NULL;
}

static int append_item(json_t *array, json_t *item) {
        return item && json_array_append_new(array, item) >= 0 ? 0 : -ENOMEM;
}

/* Those with rows of their own, in the order of their ids. */
static int save_tasks(const struct data *d, json_t *tasks) {
        int r = 0;

        for (const struct task *t = data_next_task(d, 0); r >= 0 && t; t = data_next_task(d, t->id))
                if (!work_of(t)->block)
                        r = append_item(tasks, task_json(t));
        return r;
}

int data_save(const struct data *d, char **ret_json) {
        _cleanup_(json_decref_p) json_t *sources = json_array(), *blocks = json_array(),
                                        *tasks = json_array(), *all = NULL;
        const struct block *b;
        char *text;
        int r = 0;

        if (d->restoring)
                return -EBUSY;
        for (uint32_t i = 0; r >= 0 && i < d->config.n_sources; i++)
                r = append_item(sources, source_json(d, i));
        DL_FOREACH (d->blocks, b)
                if (r >= 0 && b->n_gone < BLOCK_TASKS)
                        r = append_item(blocks, block_json(d, b));
        if (r >= 0)
                r = save_tasks(d, tasks);
        if (r < 0)
                return r;
        all = json_pack("{s:i, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:O, s:O, s:O}", "version",
                        MANIFEST_VERSION, "order", orders[d->config.order], "seed",
                        number_text(d->config.seed), "epochs", number_text(d->config.epochs), "samplePpm",
                        number_text(d->config.sample_ppm), "epoch", number_text(d->order.at.epoch), "made",
                        number_text(d->n_planned), "splitOff", number_text(d->n_split_off), "sources",
                        sources, "blocks", blocks, "tasks", tasks);
        if (all && d->order.at.steered) {
                _cleanup_free_ uint8_t *place = malloc(order_place_size(&d->order));
                if (!place)
                        return -ENOMEM;
                order_place_write(&d->order, place);
                if (json_object_set_new(all, "steered", hex_text(place, order_place_size(&d->order))) < 0)
                        return -ENOMEM;
        }
        text = all ? json_dumps(all, JSON_COMPACT) : NULL;
        if (!text)
                return -ENOMEM;
        *ret_json = text;
        return 0;
}

/* ---- reading ---- */

struct reading {
        struct data *d;
        char *error; /* the first one */
        int result;
};

static _printf_(2, 3) bool bad(struct reading *r, const char *format, ...) {
        va_list list;

        if (r->result < 0)
                return false;
        r->result = -EBADMSG;
        va_start(list, format);
        if (vasprintf(&r->error, format, list) < 0) {
                r->error = NULL;
                r->result = -ENOMEM;
        }
        va_end(list);
        return false;
}

static bool reading_failed(struct reading *r, int error, const char *what, size_t i) {
        if (error == -ENOMEM && r->result >= 0) {
                r->result = -ENOMEM;
                return false;
        }
        return bad(r, "%s %zu of the savepoint's manifest does not fit the rest%s", what, i,
                   error == -EEXIST ? ": it is there twice" : "");
}

/* A number as number_text() wrote it, at most max. */
static bool get(struct reading *r, const json_t *o, const char *key, uint64_t max, uint64_t *ret) {
        const json_t *v = json_object_get(o, key);
        unsigned long long value;
        char *end;

        if (json_is_integer(v) && json_integer_value(v) >= 0)
                value = (unsigned long long)json_integer_value(v);
        else if (json_is_string(v) && json_string_value(v)[0] >= '1' && json_string_value(v)[0] <= '9') {
                errno = 0;
                value = strtoull(json_string_value(v), &end, 10);
                if (errno != 0 || *end || json_string_length(v) != strlen(json_string_value(v)))
                        return bad(r, "the savepoint's manifest has no number at \"%s\"", key);
        } else
                return bad(r, "the savepoint's manifest has no number at \"%s\"", key);
        if (value > max)
                return bad(r, "the savepoint's manifest has %llu at \"%s\", which is more than there can be",
                           value, key);
        *ret = value;
        return true;
}

static const json_t *get_array(struct reading *r, const json_t *o, const char *key) {
        const json_t *a = json_object_get(o, key);

        if (!json_is_array(a))
                bad(r, "the savepoint's manifest has no list at \"%s\"", key);
        return json_is_array(a) ? a : NULL;
}

static bool get_hex(const json_t *v, uint8_t *to, size_t size) {
        const char *text = json_string_value(v);

        if (!text || json_string_length(v) != 2 * size)
                return false;
        for (size_t i = 0; i < 2 * size; i++) {
                const char *digits = "0123456789abcdef", *digit = strchr(digits, text[i]);
                if (!text[i] || !digit)
                        return false;
                to[i / 2] = (uint8_t)(to[i / 2] << 4 | (digit - digits));
        }
        return true;
}

/* What has to be as in the job, because the order follows from it. */
static bool same(struct reading *r, const json_t *o, const char *key, const char *name, uint64_t ours) {
        uint64_t theirs;

        if (!get(r, o, key, UINT64_MAX, &theirs))
                return false;
        return theirs == ours ||
               bad(r, "the savepoint was taken with %s %" PRIu64 ", and this job has %" PRIu64, name, theirs,
                   ours);
}

static bool load_config(struct reading *r, const json_t *o) {
        const struct data_config *c = &r->d->config;
        const char *order = json_string_value(json_object_get(o, "order"));
        uint64_t version;

        if (!get(r, o, "version", UINT64_MAX, &version))
                return false;
        if (version != MANIFEST_VERSION)
                return bad(r, "the savepoint's manifest is of version %" PRIu64 ", and this program knows %d",
                           version, MANIFEST_VERSION);
        if (!order || strcmp(order, orders[c->order]) != 0)
                return bad(r, "the savepoint was taken with another input.order than this job's, %s",
                           orders[c->order]);
        return same(r, o, "seed", "input.seed", c->seed) && same(r, o, "epochs", "input.epochs", c->epochs) &&
               same(r, o, "samplePpm", "a sampleRate, in millionths, of", c->sample_ppm);
}

static bool load_source(struct reading *r, const json_t *o, uint32_t i, uint8_t *made, uint8_t *counts) {
        const struct listed_source *s = r->d->listing.sources + i;
        const json_t *text = json_object_get(o, "digest");
        uint8_t bytes[8] = {};
        uint64_t files, tasks, value, theirs = 0;

        if (!json_is_object(o))
                return bad(r, "source %u of the savepoint's manifest is none", i);
        if (!same(r, o, "weight", "a source of weight", r->d->weights ? r->d->weights[i] : 0) ||
            !get(r, o, "files", UINT64_MAX, &files) || !get(r, o, "tasks", UINT64_MAX, &tasks))
                return false;
        if (!get_hex(text, bytes, sizeof(bytes)))
                return bad(r, "source %u of the savepoint's manifest has no digest", i);
        for (size_t k = 0; k < sizeof(bytes); k++)
                theirs = theirs << 8 | bytes[k];
        if (files != s->n_files || tasks != s->n_tasks || theirs != s->digest)
                return bad(r,
                           "source %u of the savepoint is another listing: %" PRIu64 " files in %" PRIu64
                           " tasks, and here %" PRIu64 " in %" PRIu64,
                           i, files, tasks, s->n_files, s->n_tasks);
        if (!get(r, o, "made", s->n_tasks, &value))
                return false;
        packed_put_u64(made, value);
        for (size_t k = 0; k < STATE_COUNTS; k++, counts += 8) {
                if (!get(r, o, count_names[k], UINT64_MAX, &value))
                        return false;
                packed_put_u64(counts, value);
        }
        return true;
}

static bool load_state(struct reading *r, const json_t *o, uint8_t *state) {
        struct data *d = r->d;
        const json_t *sources = get_array(r, o, "sources");
        const json_t *steered = json_object_get(o, "steered");
        uint8_t *place = state + STATE_HEAD, *counts;
        size_t size = steered ? order_place_max(d->config.n_sources) : order_place_size(&d->order);
        _cleanup_free_ uint8_t *made = calloc(d->config.n_sources, 8);
        uint64_t planned, split_off, epoch;
        size_t n = d->config.n_sources;
        int e;

        if (!sources)
                return false;
        if (!made) {
                r->result = -ENOMEM;
                return false;
        }
        counts = place + size;
        if (json_array_size(sources) != n)
                return bad(r, "the savepoint is of %zu sources, and this job has %zu",
                           json_array_size(sources), n);
        if (!get(r, o, "made", TASK_SPLIT_OFF - 1, &planned) ||
            !get(r, o, "splitOff", TASK_SPLIT_OFF - 1, &split_off) ||
            !get(r, o, "epoch", d->config.epochs - 1, &epoch))
                return false;
        packed_put_u64(state, STATE_VERSION | (uint64_t)n << 32);
        packed_put_u64(state + 8, planned);
        packed_put_u64(state + 16, split_off);
        packed_put_u64(place, epoch | (uint64_t)n << 32);
        for (uint32_t i = 0; i < n; i++)
                if (!load_source(r, json_array_get(sources, i), i, made + 8 * i,
                                 counts + i * STATE_COUNTS * 8))
                        return false;
        if (!steered)
                memcpy(place + 8, made, 8 * n);
        else if (!get_hex(steered, place, size))
                return reading_failed(r, -EUCLEAN, "the state,", 0);
        e = data_restore_state(d, state, STATE_HEAD + size + n * STATE_COUNTS * 8);
        return e >= 0 || reading_failed(r, e, "the state,", 0);
}

/* The state of a block that was steered, as hexadecimal digits of its bytes. */
static bool load_steered(struct reading *r, const json_t *v, uint64_t index, size_t i,
                         const uint8_t over[static BLOCK_TASKS / 8]) {
        size_t size = json_string_length(v) / 2;
        _cleanup_free_ uint8_t *state = malloc(size + 1);
        int e = -EUCLEAN;

        if (!state) {
                r->result = -ENOMEM;
                return false;
        }
        if (get_hex(v, state, size))
                e = data_restore_block(r->d, index, state, size, over, BLOCK_TASKS / 8);
        return e >= 0 || reading_failed(r, e, "block", i);
}

static bool load_block(struct reading *r, const json_t *o, size_t i, uint8_t *place) {
        struct data *d = r->d;
        const json_t *steered = json_object_get(o, "steered");
        const json_t *made = steered ? NULL : get_array(r, o, "made");
        uint8_t over[BLOCK_TASKS / 8] = {};
        uint64_t index, epoch, value;
        int e;

        if (steered)
                return get(r, o, "block", TASK_SPLIT_OFF, &index) &&
                       (get_hex(json_object_get(o, "over"), over, sizeof(over)) ||
                        reading_failed(r, -EUCLEAN, "block", i)) &&
                       load_steered(r, steered, index, i, over);
        if (!made || !get(r, o, "block", TASK_SPLIT_OFF, &index) || !get(r, o, "epoch", UINT32_MAX, &epoch))
                return false;
        if (json_array_size(made) > d->config.n_sources ||
            !get_hex(json_object_get(o, "over"), over, sizeof(over)))
                return reading_failed(r, -EUCLEAN, "block", i);
        packed_put_u64(place, epoch | (uint64_t)json_array_size(made) << 32);
        for (size_t k = 0; k < json_array_size(made); k++) {
                const json_t *v = json_array_get(made, k);
                if (!json_is_integer(v) || json_integer_value(v) < 0)
                        return reading_failed(r, -EUCLEAN, "block", i);
                value = (uint64_t)json_integer_value(v);
                packed_put_u64(place + 8 + 8 * k, value);
        }
        e = data_restore_block(d, index, place, 8 + 8 * json_array_size(made), over, sizeof(over));
        return e >= 0 || reading_failed(r, e, "block", i);
}

static bool load_task(struct reading *r, const json_t *o, size_t i) {
        bool split_off = json_object_get(o, "splitOff");
        const char *state = json_string_value(json_object_get(o, "state"));
        struct task t = { .end = TASK_TO_END,
                          .error = (char *)json_string_value(json_object_get(o, "error")) };
        uint64_t source, epoch, failures;
        int e;

        if (!get(r, o, split_off ? "splitOff" : "task", TASK_SPLIT_OFF - 1, &t.id) ||
            !get(r, o, "source", UINT32_MAX, &source) || !get(r, o, "epoch", UINT32_MAX, &epoch) ||
            !get(r, o, "file", UINT64_MAX, &t.file) || !get(r, o, "start", UINT64_MAX, &t.start) ||
            !get(r, o, "acked", UINT64_MAX, &t.acked) || !get(r, o, "skip", UINT64_MAX, &t.skip) ||
            !get(r, o, "records", UINT64_MAX, &t.records) || !get(r, o, "failures", UINT32_MAX, &failures) ||
            (json_object_get(o, "end") && !get(r, o, "end", UINT64_MAX, &t.end)))
                return false;
        if (!state || (strcmp(state, "PENDING") != 0 && strcmp(state, "FAILED") != 0))
                return reading_failed(r, -EUCLEAN, "task", i);
        t.id |= split_off ? TASK_SPLIT_OFF : 0;
        t.source = (uint32_t)source;
        t.epoch = (uint32_t)epoch;
        t.records_before = t.records; /* nobody holds it */
        t.failures = (uint32_t)failures;
        t.place = strcmp(state, "FAILED") == 0 ? TASK_GAVE_UP : TASK_PENDING;
        e = data_restore_task(r->d, &t);
        return e >= 0 || reading_failed(r, e, "task", i);
}

static bool load_all(struct reading *r, const json_t *o) {
        struct data *d = r->d;
        _cleanup_free_ uint8_t *state = calloc(1, records_state_max(d->config.n_sources));
        const json_t *blocks, *tasks, *item;
        size_t i;
        int e;

        if (!state) {
                r->result = -ENOMEM;
                return false;
        }
        if (!load_config(r, o) || !load_state(r, o, state) || !(blocks = get_array(r, o, "blocks")) ||
            !(tasks = get_array(r, o, "tasks")))
                return false;
        json_array_foreach (blocks, i, item)
                if (!load_block(r, item, i, state))
                        return false;
        json_array_foreach (tasks, i, item)
                if (!load_task(r, item, i))
                        return false;
        e = restore_check(d);
        if (e == -ENOMEM)
                r->result = e;
        return e >= 0 || bad(r, "the savepoint's manifest does not add up: it has been changed, or damaged");
}

int data_load(struct data *d, const char *json, size_t size, char **ret_error) {
        struct reading r = { .d = d };
        json_error_t where;
        _cleanup_(json_decref_p) json_t *o = json_loadb(json, size, JSON_REJECT_DUPLICATES, &where);
        struct block *b;

        d->loaded = true;
        if (!o)
                bad(&r, "the savepoint's manifest is no JSON: line %d, column %d", where.line, where.column);
        else if (!json_is_object(o))
                bad(&r, "the savepoint's manifest is no JSON object");
        else if (d->has_state || d->n_planned > 0)
                bad(&r, "a savepoint is for a job that has not begun");
        else if (load_all(&r, o)) {
                DL_FOREACH (d->blocks, b) {
                        b->on_disk = false;
                        b->dirty = true;
                }
                d->checked = d->state_dirty = true;
                return 0;
        }
        *ret_error = r.error;
        return r.result;
}
