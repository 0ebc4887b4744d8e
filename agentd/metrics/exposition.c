/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics as text. Invariant: samples of a family stand together behind its one heading, and numbers are
 * written exactly, without floating point. */
#include "agentd/metrics/exposition.h"

#include <inttypes.h>
#include <string.h>

#include "lib/base/utf8.h"

/* What a page begins with; it grows by halves. */
#define FIRST_SIZE (32u << 10)

enum type {
        INFO,
        GAUGE,
        COUNTER,
};

static const struct {
        const char *name, *unit, *help;
        enum type type;
} families[_METRIC_FAMILY_MAX] = {
#define X(family, text, kind, unit_text, help_text) [METRIC_##family] = { text, unit_text, help_text, kind },
        METRIC_FAMILIES(X)
#undef X
};

struct exposition {
        char *text;
        size_t used, size;
        bool openmetrics;
        int error;
        enum metric_family family; /* whose heading was written last */
};

const char *metric_family_name(enum metric_family f) {
        return f < _METRIC_FAMILY_MAX ? families[f].name : NULL;
}

/* ---- text ---- */

static char *room(struct exposition *x, size_t n) {
        if (x->error < 0)
                return NULL;
        if (x->size - x->used < n) {
                size_t size = MAX(x->used + n, MAX(x->size + x->size / 2, (size_t)FIRST_SIZE));
                char *text = realloc(x->text, size);

                if (!text) {
                        x->error = -ENOMEM;
                        return NULL;
                }
                x->text = text;
                x->size = size;
        }
        return x->text + x->used;
}

static void put_bytes(struct exposition *x, const char *s, size_t n) {
        char *to = room(x, n);

        if (to) {
                memcpy(to, s, n);
                x->used += n;
        }
}

static void put_text(struct exposition *x, const char *s) {
        put_bytes(x, s, strlen(s));
}

/* Without trailing zeros behind the point. */
static void put_number(struct exposition *x, uint64_t value, enum metric_scale scale) {
        char text[32], *end = text + sizeof(text), *s = end;
        unsigned digits = 0;
        bool fraction = false;

        for (; digits < (unsigned)scale; digits++, value /= 10) {
                fraction = fraction || value % 10 > 0;
                if (fraction)
                        *--s = (char)('0' + value % 10);
        }
        if (fraction)
                *--s = '.';
        do {
                *--s = (char)('0' + value % 10);
                value /= 10;
        } while (value > 0);
        put_bytes(x, s, (size_t)(end - s));
}

/* Bytes written, not more than size; SIZE_MAX: it does not fit. */
static size_t escape(char *to, size_t size, const char *value) {
        const unsigned char *end = (const unsigned char *)value + strlen(value);
        size_t used = 0, n;

        for (const unsigned char *s = (const unsigned char *)value; *s; s += n) {
                char piece[4];
                size_t m;

                n = utf8_sequence(s, (size_t)(end - s));
                if (*s == '\\' || *s == '"' || *s == '\n') {
                        piece[0] = '\\';
                        piece[1] = (char)(*s == '\n' ? 'n' : *s);
                        m = 2;
                } else if (n == 0 || *s < ' ' || *s == 0x7f) {
                        piece[0] = '?';
                        m = n = 1;
                } else {
                        memcpy(piece, s, n);
                        m = n;
                }
                if (size - used < m)
                        return SIZE_MAX;
                memcpy(to + used, piece, m);
                used += m;
        }
        return used;
}

char *exposition_labels(char buf[static METRIC_LABELS_MAX], const char *const *pairs, size_t n) {
        size_t used = 0;

        for (size_t i = 0; i < n; i++) {
                const char *name = pairs[2 * i], *value = pairs[2 * i + 1];
                size_t at = used, left, written;
                int head = snprintf(buf + at, METRIC_LABELS_MAX - at, "%s%s=\"", used > 0 ? "," : "", name);

                if (head < 0 || (size_t)head + 2 >= METRIC_LABELS_MAX - at)
                        break;
                at += (size_t)head;
                left = METRIC_LABELS_MAX - at - 2; /* the quote and the end */
                written = escape(buf + at, left, value);
                if (written == SIZE_MAX)
                        break;
                at += written;
                buf[at++] = '"';
                used = at;
        }
        buf[used] = 0;
        return buf;
}

/* ---- families and samples ---- */

static void put_heading(struct exposition *x, enum metric_family f) {
        static const char *const types[] = { [INFO] = "info", [GAUGE] = "gauge", [COUNTER] = "counter" };
        const char *suffix = x->openmetrics                ? ""
                             : families[f].type == COUNTER ? "_total"
                             : families[f].type == INFO    ? "_info"
                                                           : "";
        const struct {
                const char *word, *text;
        } lines[] = {
                { "# TYPE ",
                  !x->openmetrics && families[f].type == INFO ? "gauge" : types[families[f].type] },
                { "# UNIT ", x->openmetrics ? families[f].unit : "" },
                { "# HELP ", families[f].help },
        };

        for (size_t i = 0; i < ELEMENTSOF(lines); i++) {
                if (!*lines[i].text)
                        continue;
                put_text(x, lines[i].word);
                put_text(x, families[f].name);
                put_text(x, suffix);
                put_bytes(x, " ", 1);
                put_text(x, lines[i].text);
                put_bytes(x, "\n", 1);
        }
}

void exposition_add(struct exposition *x, enum metric_family f, const char *labels, const char *more,
                    uint64_t value, enum metric_scale scale) {
        if (value == TELEMETRY_UNKNOWN)
                return;
        if (x->family != f) {
                put_heading(x, f);
                x->family = f;
        }
        put_text(x, families[f].name);
        if (families[f].type == COUNTER)
                put_bytes(x, "_total", 6);
        else if (families[f].type == INFO)
                put_bytes(x, "_info", 5);
        if (*labels || *more) {
                put_bytes(x, "{", 1);
                put_text(x, labels);
                if (*labels && *more)
                        put_bytes(x, ",", 1);
                put_text(x, more);
                put_bytes(x, "}", 1);
        }
        put_bytes(x, " ", 1);
        put_number(x, value, scale);
        put_bytes(x, "\n", 1);
}

/* ---- executors ---- */

/* What of a sample is written where: families in the order of the table. */
static const struct {
        enum metric_family family;
        enum telemetry_field field;
        enum metric_scale scale;
        const char *labels;
} role_series[] = {
        { METRIC_ROLE_CPU, TELEMETRY_CPU_USEC, SCALE_MICRO, "" },
        { METRIC_ROLE_CPU_LIMIT, TELEMETRY_CPU_LIMIT_USEC, SCALE_MICRO, "" },
        { METRIC_ROLE_CPU_THROTTLED, TELEMETRY_CPU_THROTTLED_USEC, SCALE_MICRO, "" },
        { METRIC_ROLE_RUNQUEUE_WAIT, TELEMETRY_RUNQUEUE_WAIT_USEC, SCALE_MICRO, "" },
        { METRIC_ROLE_PRESSURE_STALL, TELEMETRY_PRESSURE_CPU_USEC, SCALE_MICRO,
          "resource=\"cpu\",kind=\"some\"" },
        { METRIC_ROLE_PRESSURE_STALL, TELEMETRY_PRESSURE_MEMORY_USEC, SCALE_MICRO,
          "resource=\"memory\",kind=\"some\"" },
        { METRIC_ROLE_PRESSURE_STALL, TELEMETRY_PRESSURE_MEMORY_FULL_USEC, SCALE_MICRO,
          "resource=\"memory\",kind=\"full\"" },
        { METRIC_ROLE_PRESSURE_STALL, TELEMETRY_PRESSURE_IO_USEC, SCALE_MICRO,
          "resource=\"io\",kind=\"some\"" },
        { METRIC_ROLE_PRESSURE_STALL, TELEMETRY_PRESSURE_IO_FULL_USEC, SCALE_MICRO,
          "resource=\"io\",kind=\"full\"" },
        { METRIC_ROLE_MEMORY_CURRENT, TELEMETRY_MEMORY_BYTES, SCALE_ONE, "" },
        { METRIC_ROLE_MEMORY_PEAK, TELEMETRY_MEMORY_PEAK_BYTES, SCALE_ONE, "" },
        { METRIC_ROLE_MEMORY_ANON, TELEMETRY_MEMORY_ANON_BYTES, SCALE_ONE, "" },
        { METRIC_ROLE_MEMORY_SWAP, TELEMETRY_MEMORY_SWAP_BYTES, SCALE_ONE, "" },
        { METRIC_ROLE_MEMORY_LIMIT, TELEMETRY_MEMORY_LIMIT_BYTES, SCALE_ONE, "" },
        { METRIC_ROLE_MEMORY_EVENTS, TELEMETRY_MEMORY_HIGH_EVENTS, SCALE_ONE, "event=\"high\"" },
        { METRIC_ROLE_MEMORY_EVENTS, TELEMETRY_MEMORY_MAX_EVENTS, SCALE_ONE, "event=\"max\"" },
        { METRIC_ROLE_OOM_KILLS, TELEMETRY_OOM_KILLS, SCALE_ONE, "" },
        { METRIC_ROLE_IO, TELEMETRY_READ_BYTES, SCALE_ONE, "layer=\"syscall\",dir=\"read\"" },
        { METRIC_ROLE_IO, TELEMETRY_WRITE_BYTES, SCALE_ONE, "layer=\"syscall\",dir=\"write\"" },
        { METRIC_ROLE_IO, TELEMETRY_BLOCK_READ_BYTES, SCALE_ONE, "layer=\"block\",dir=\"read\"" },
        { METRIC_ROLE_IO, TELEMETRY_BLOCK_WRITE_BYTES, SCALE_ONE, "layer=\"block\",dir=\"write\"" },
        { METRIC_ROLE_NETWORK, TELEMETRY_NET_RX_BYTES, SCALE_ONE, "dir=\"receive\"" },
        { METRIC_ROLE_NETWORK, TELEMETRY_NET_TX_BYTES, SCALE_ONE, "dir=\"transmit\"" },
        { METRIC_ROLE_NETWORK_PACKETS, TELEMETRY_NET_RX_PACKETS, SCALE_ONE, "dir=\"receive\"" },
        { METRIC_ROLE_NETWORK_PACKETS, TELEMETRY_NET_TX_PACKETS, SCALE_ONE, "dir=\"transmit\"" },
        { METRIC_ROLE_NETWORK_UNREAD, TELEMETRY_NET_UNREAD_BYTES, SCALE_ONE, "" },
        { METRIC_ROLE_NETWORK_LOOKS, TELEMETRY_LOOKS, SCALE_ONE, "" },
        { METRIC_ROLE_NETWORK_LOOKS_UNREAD, TELEMETRY_LOOKS_UNREAD, SCALE_ONE, "" },
        { METRIC_ROLE_TCP_RETRANSMITS, TELEMETRY_TCP_RETRANSMITS, SCALE_ONE, "" },
        { METRIC_ROLE_TCP_RTT, TELEMETRY_TCP_RTT_USEC, SCALE_MICRO, "" },
        { METRIC_ROLE_TCP_CONNECTIONS, TELEMETRY_TCP_CONNECTIONS, SCALE_ONE, "" },
        { METRIC_ROLE_TASKS, TELEMETRY_TASKS, SCALE_ONE, "" },
        { METRIC_ROLE_RUNNING_TASKS, TELEMETRY_TASKS_RUNNING, SCALE_ONE, "" },
        { METRIC_ROLE_BLOCKED_TASKS, TELEMETRY_TASKS_BLOCKED, SCALE_ONE, "" },
        { METRIC_ROLE_STOPPED_TASKS, TELEMETRY_TASKS_STOPPED, SCALE_ONE, "" },
        { METRIC_ROLE_LAST_RUN_AGE, TELEMETRY_LAST_RUN_USEC, SCALE_MICRO, "" },
        { METRIC_ROLE_LAST_DATA_AGE, TELEMETRY_DATA_AGE_USEC, SCALE_MICRO, "" },
        { METRIC_ROLE_PROGRESS_STEP, TELEMETRY_PROGRESS_STEP, SCALE_ONE, "" },
        { METRIC_ROLE_PROGRESS_AGE, TELEMETRY_PROGRESS_AGE_USEC, SCALE_MICRO, "" },
        { METRIC_DATA_BYTES, TELEMETRY_DATA_BYTES, SCALE_ONE, "" },
        { METRIC_DATA_RECORDS, TELEMETRY_DATA_RECORDS, SCALE_ONE, "" },
        { METRIC_DATA_CONSUMER_WAIT, TELEMETRY_DATA_WAIT_USEC, SCALE_MICRO, "" },
        { METRIC_DATA_PRODUCER_WAIT, TELEMETRY_DATA_PRODUCER_USEC, SCALE_MICRO, "" },
        { METRIC_ROLE_GPUS, TELEMETRY_GPUS, SCALE_ONE, "" },
        { METRIC_ROLE_GPU_UTILIZATION, TELEMETRY_GPU_UTILIZATION, SCALE_MILLI, "" },
        { METRIC_ROLE_GPU_MEMORY, TELEMETRY_GPU_MEMORY_BYTES, SCALE_ONE, "" },
        { METRIC_ROLE_GPU_POWER, TELEMETRY_GPU_POWER_MILLIWATTS, SCALE_MILLI, "" },
        { METRIC_ROLE_GPU_BUSY, TELEMETRY_GPU_BUSY_USEC, SCALE_MICRO, "" },
};

/* The labels of each series are written once, for all families. role_name_valid() leaves nothing to escape.
 */
struct role_labels {
        char text[96];
};

static void put_role(struct exposition *x, const char *node, const struct exposition_role *r,
                     const char *labels) {
        char more[METRIC_LABELS_MAX], attempt[16], cgroup[24] = "";

        snprintf(attempt, sizeof(attempt), "%u", r->sample->id.attempt);
        if (r->cgroup_id > 0)
                snprintf(cgroup, sizeof(cgroup), "%" PRIu64, r->cgroup_id);
        exposition_add(x, METRIC_ROLE, labels,
                       EXPOSITION_LABELS(more, "attempt", attempt, "unit", r->unit, "cgroup_id", cgroup,
                                         "node", node),
                       1, SCALE_ONE);
}

void exposition_roles(struct exposition *x, const char *node, const struct exposition_role *roles, size_t n) {
        _cleanup_free_ struct role_labels *labels = calloc(n ?: 1, sizeof(*labels));
        char more[METRIC_LABELS_MAX];

        if (!labels) {
                x->error = -ENOMEM;
                return;
        }
        for (size_t i = 0; i < n; i++) {
                const struct executor_id *id = &roles[i].sample->id;
                snprintf(labels[i].text, sizeof(labels[i].text), "job=\"%u\",role=\"%s\",index=\"%u\"",
                         id->job, id->role, id->index);
        }
        for (size_t i = 0; i < n; i++)
                put_role(x, node, &roles[i], labels[i].text);
        for (size_t i = 0; i < n; i++)
                if (roles[i].state)
                        exposition_add(x, METRIC_ROLE_STATE, labels[i].text,
                                       EXPOSITION_LABELS(more, "state", roles[i].state), 1, SCALE_ONE);
        for (size_t i = 0; i < n; i++)
                if (roles[i].started_real > 0)
                        exposition_add(x, METRIC_ROLE_START_TIME, labels[i].text, "", roles[i].started_real,
                                       SCALE_MICRO);
        /* A family's series stand next to each other in the table; one executor's need not. */
        for (size_t s = 0; s < ELEMENTSOF(role_series); s++)
                for (size_t i = 0; i < n; i++)
                        exposition_add(x, role_series[s].family, labels[i].text, role_series[s].labels,
                                       roles[i].sample->values[role_series[s].field], role_series[s].scale);
}

/* ---- pages ---- */

void exposition_begin(struct exposition *x, bool openmetrics) {
        x->used = 0;
        x->error = 0;
        x->openmetrics = openmetrics;
        x->family = _METRIC_FAMILY_MAX;
}

int exposition_end(struct exposition *x, char **ret, size_t *ret_size) {
        if (x->openmetrics)
                put_text(x, "# EOF\n");
        (void)room(x, 1); /* so that there is a text */
        if (x->error < 0)
                return x->error;
        *ret_size = x->used;
        *ret = TAKE_PTR(x->text);
        x->size = x->used = 0;
        return 0;
}

int exposition_new(struct exposition **ret) {
        struct exposition *x = calloc(1, sizeof(*x));

        if (!x)
                return -ENOMEM;
        exposition_begin(x, false);
        *ret = x;
        return 0;
}

void exposition_free(struct exposition *x) {
        if (!x)
                return;
        free(x->text);
        free(x);
}
