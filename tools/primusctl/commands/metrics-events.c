/* SPDX-License-Identifier: Apache-2.0 */
/* An event file is a TFRecord file whose records are messages of protobuf's,
 * tensorflow/core/util/event.proto: Event { double wall_time = 1; int64 step = 2; string file_version = 3;
 * Summary summary = 5; }, Summary { repeated Value value = 1; }, Value { string tag = 1; float simple_value =
 * 2; }. By hand: four fields are not worth a compiler of protobuf's in the build. */
#include "tools/primusctl/commands/metrics-events.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/packed.h"
#include "lib/json/get.h"
#include "lib/record/formats.h"
#include "lib/wire/metrics.h"
#include "tools/primusctl/commands/get-place.h"

#define EVENT_MAX (64u + METRIC_NAME_MAX)

enum {
        WIRE_VARINT = 0,
        WIRE_64 = 1,
        WIRE_BYTES = 2,
        WIRE_32 = 5,
};

static uint8_t *put_tag(uint8_t *to, unsigned field, unsigned type) {
        return packed_put_varint(to, field << 3 | type);
}

static uint8_t *put_bytes(uint8_t *to, unsigned field, const void *bytes, size_t size) {
        to = packed_put_varint(put_tag(to, field, WIRE_BYTES), size);
        return mempcpy(to, bytes, size);
}

static int put_record(struct place *p, const uint8_t *event, size_t size) {
        uint8_t record[sizeof(uint64_t) + 2 * sizeof(uint32_t) + EVENT_MAX],
                *to = packed_put_u64(record, size);

        to = packed_put_u32(to, tfrecord_checksum(record, sizeof(uint64_t)));
        to = mempcpy(to, event, size);
        to = packed_put_u32(to, tfrecord_checksum(event, size));
        return place_data(p, record, (size_t)(to - record));
}

/* Ahead of all: which version of the format it is. */
static int put_version(struct place *p, uint64_t usec) {
        static const char version[] = "brain.Event:2";
        uint8_t event[EVENT_MAX], *to = packed_put_double(put_tag(event, 1, WIRE_64), (double)usec / 1e6);

        to = put_bytes(to, 3, version, strlen(version));
        return put_record(p, event, (size_t)(to - event));
}

static int put_value(struct place *p, const char *name, uint64_t step, uint64_t usec, double value) {
        uint8_t inner[EVENT_MAX], summary[EVENT_MAX], event[EVENT_MAX], *to;
        float simple = (float)value;
        uint32_t bits;
        size_t size;

        memcpy(&bits, &simple, sizeof(bits));
        to = put_bytes(inner, 1, name, strlen(name));
        to = packed_put_u32(put_tag(to, 2, WIRE_32), bits);
        to = put_bytes(summary, 1, inner, (size_t)(to - inner));
        size = (size_t)(to - summary);
        to = packed_put_double(put_tag(event, 1, WIRE_64), (double)usec / 1e6);
        to = packed_put_varint(put_tag(to, 2, WIRE_VARINT), step);
        to = put_bytes(to, 5, summary, size);
        return put_record(p, event, (size_t)(to - event));
}

static uint64_t number_at(const json_t *s, const char *key, size_t i) {
        return (uint64_t)json_integer_value(json_array_get(json_object_get(s, key), i));
}

/* A value that is no number is none in TensorBoard either. */
static int put_series(struct place *p, const json_t *s) {
        size_t n = json_array_size(json_object_get(s, "step"));
        int r = 0;

        for (size_t i = 0; i < n && r >= 0; i++) {
                const json_t *v = json_array_get(json_object_get(s, "last"), i);

                r = put_value(p, json_get_text(s, "name"), number_at(s, "step", i), number_at(s, "at", i),
                              json_is_number(v) ? json_number_value(v) : (double)NAN);
        }
        return r;
}

/* Processes in their order, so that all series of one stand together. */
static int by_process(const void *a, const void *b) {
        const json_t *x = *(json_t *const *)a, *y = *(json_t *const *)b;
        static const char *const keys[] = { "index", "local" };
        int r;

        if (json_get_number(x, "job") != json_get_number(y, "job"))
                return json_get_number(x, "job") < json_get_number(y, "job") ? -1 : 1;
        r = strcmp(json_get_text(x, "role"), json_get_text(y, "role"));
        for (size_t i = 0; i < ELEMENTSOF(keys) && r == 0; i++)
                if (json_get_number(x, keys[i]) != json_get_number(y, keys[i]))
                        r = json_get_number(x, keys[i]) < json_get_number(y, keys[i]) ? -1 : 1;
        return r;
}

/* So many of the list from s on are of one process; into its file. */
static int write_process(struct place *p, json_t **s, size_t n) {
        uint64_t first = number_at(s[0], "at", 0);
        char path[160], local[16] = "";
        int r;

        if (json_get_number(s[0], "local") > 0)
                snprintf(local, sizeof(local), ".%" PRIu64, json_get_number(s[0], "local"));
        for (size_t i = 1; i < n; i++)
                first = MIN(first, number_at(s[i], "at", 0));
        snprintf(path, sizeof(path), "%" PRIu64 "/%s-%" PRIu64 "%s/events.out.tfevents.%" PRIu64 ".primus",
                 json_get_number(s[0], "job"), json_get_text(s[0], "role"), json_get_number(s[0], "index"),
                 local, first / 1000000);
        r = place_begin(p, path);
        r = r < 0 ? r : put_version(p, first);
        for (size_t i = 0; i < n && r >= 0; i++)
                r = put_series(p, s[i]);
        r = r < 0 ? r : place_finish(p, 0644, 0);
        if (r < 0)
                place_abandon(p);
        return r;
}

int metrics_write_events(const struct cli *c, const char *directory, const json_t *all, size_t *ret_files) {
        struct place p = PLACE_EMPTY;
        size_t n = json_array_size(all), files = 0, many;
        _cleanup_free_ json_t **sorted = calloc(n + 1, sizeof(json_t *));
        int r = sorted ? place_open(&p, directory) : -ENOMEM;

        p.force = true;
        for (size_t i = 0; i < n && r >= 0; i++)
                sorted[i] = json_array_get(all, i);
        if (n > 0 && r >= 0)
                qsort(sorted, n, sizeof(*sorted), by_process);
        for (size_t i = 0; i < n && r >= 0; i += many, files++) {
                for (many = 1; i + many < n && by_process(sorted + i, sorted + i + many) == 0; many++)
                        ;
                r = write_process(&p, sorted + i, many);
        }
        place_done(&p);
        if (r < 0)
                return cli_fail(c, "cannot write %s: %s", directory, strerror(-r));
        *ret_files = files;
        return CLI_OK;
}
