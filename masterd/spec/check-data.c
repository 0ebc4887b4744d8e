/* SPDX-License-Identifier: Apache-2.0 */
/* Rules between the keys of data: what of sources, formats, order, delivery and acknowledgement goes
 * together. Invariant: a combination that cannot work is refused here, not found out by an executor. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/format.h"
#include "masterd/spec/check.h"
#include "masterd/spec/valid.h"

static struct place place_below(struct place p, const char *key) {
        place_push(&p, key, 0);
        return p;
}

static struct place place_in_input(size_t i, const char *key) {
        struct place p = place_below(place_below(place_of("inputManager"), "fileConfig"), "inputs");

        place_push(&p, NULL, i);
        place_push(&p, "spec", 0);
        return place_below(p, key);
}

static struct place place_in_topic(size_t i, const char *key) {
        struct place p = place_below(place_below(place_of("inputManager"), "kafkaConfig"), "topics");

        place_push(&p, NULL, i);
        return place_below(p, key);
}

#define IN_INPUT(key) place_below(place_of("input"), (key))

/* ---- defaults that depend on other keys ---- */

/* Google Cloud Storage speaks S3's protocol at an address of its own (docs: "XML API", "Interoperability"),
 * and signs for one region. */
static int complete_gs(struct input_spec *in) {
        if (!in->path_pattern || strncmp(in->path_pattern, "gs://", strlen("gs://")) != 0)
                return 0;
        memcpy(in->path_pattern, "s3", 2);
        if (!in->s3_endpoint)
                in->s3_endpoint = strdup("https://storage.googleapis.com");
        if (!in->s3_region)
                in->s3_region = strdup("auto");
        return in->s3_endpoint && in->s3_region ? 0 : -ENOMEM;
}

/* As the user would write it; what may hold anything is in single quotes. */
static int append_quoted(FILE *f, const char *text) {
        fputs(" '", f);
        for (; *text; text++)
                if (*text == '\'')
                        fputs("'\\''", f);
                else
                        fputc(*text, f);
        return fputs("'", f);
}

/* A reader of the user's is a command that runs it. What it does not go with stays, for check_kind(). */
static int complete_reader(struct input_spec *in) {
        char *command = NULL;
        size_t size;
        FILE *f;

        if (!in->reader || in->command || in->format == FORMAT_TAR)
                return 0;
        f = open_memstream(&command, &size);
        if (!f)
                return -ENOMEM;
        fprintf(f, "exec python3 -m primus.reader --format %s %s", record_format_names[in->format],
                in->reader);
        for (char **p = in->reader_params; p && *p; p++)
                append_quoted(f, *p);
        if (fclose(f) != 0) {
                free(command);
                return -ENOMEM;
        }
        in->command = command;
        free(TAKE_PTR(in->reader));
        return 0;
}

int complete_data(struct job_spec *s) {
        if (s->input_ack == _ACK_MODE_MAX)
                s->input_ack = s->input_mode == DELIVERY_STDIN ? ACK_LAG : ACK_RELEASE;
        for (size_t i = 0; i < s->n_inputs; i++) {
                struct input_spec *in = &s->inputs[i];
                if (in->split == UINT64_MAX)
                        in->split = s->split;
                if (complete_gs(in) < 0 || complete_reader(in) < 0)
                        return -ENOMEM;
                if (!in->name && asprintf(&in->name, "%zu", i) < 0) {
                        in->name = NULL;
                        return -ENOMEM;
                }
        }
        return 0;
}

/* ---- one source ---- */

static bool has_dates(const struct input_spec *in) {
        bool markers = false;

        for (size_t i = 0; i < in->n_success_markers; i++)
                markers |= valid_has_date(in->success_markers[i]);
        return markers || (in->path_pattern && valid_has_date(in->path_pattern)) ||
               valid_has_date(in->name_pattern);
}

static int check_range(struct reader *r, const struct input_spec *in, size_t i) {
        struct place range = place_in_input(i, "timeRange");

        if (!in->from.given)
                return has_dates(in)
                               ? report_at(r, place_in_input(i, "pathPattern"),
                                           "the patterns have {{...}} to fill in: timeRange must say from "
                                           "when to when")
                               : 0;
        if (!has_dates(in))
                return report_at(
                        r, range,
                        "pathPattern and namePattern have no {{YYYY}}, {{MM}}, {{DD}} or {{HH}} that "
                        "it could fill in");
        if (in->from.now)
                return report_at(r, place_below(range, "from"),
                                 "must be a day or an hour: only to may be now");
        if (!in->to.now && time_point_compare(&in->from.at, &in->to.at) > 0)
                return report_at(r, range, "ends before it begins");
        return 0;
}

/* What an input names is there to be used. */
static int check_kind(struct reader *r, const struct input_spec *in, size_t i) {
        if (in->reader)
                return report_at(r, place_in_input(i, "customizedInput"),
                                 in->command ? "stands beside commandInput: give one of them"
                                             : "does not make tar files: its records are lines, or those of "
                                               "tfrecordInput, rawInput or fixedInput");
        if (in->command && strlen(in->command) > SPEC_STRING_MAX)
                return report_at(r, place_in_input(i, "customizedInput"),
                                 "its parameters are longer than %u bytes together", SPEC_STRING_MAX);
        if (!in->path_pattern && !in->command)
                return report_at(r, place_in_input(i, "pathPattern"),
                                 "missing: say where the data is, or give commandInput");
        if (!in->path_pattern && in->n_success_markers > 0)
                return report_at(r, place_in_input(i, "successMarkerPatterns"),
                                 "a command without pathPattern has no files to wait for; remove it");
        if (in->command && in->path_pattern && input_source_kind(in->path_pattern, NULL) != SOURCE_FILES)
                return report_at(r, place_in_input(i, "pathPattern"),
                                 "is no path: a command is run for files that its host sees; without "
                                 "pathPattern it is run once, and may fetch what it wants");
        if (input_source_kind(in->path_pattern, in->command) != SOURCE_S3 &&
            (in->s3_endpoint || in->s3_region))
                return report_at(r, place_in_input(i, "s3"),
                                 "is for a pathPattern that begins with s3:// or gs://");
        if (input_source_kind(in->path_pattern, in->command) != SOURCE_HDFS &&
            (in->hdfs_endpoint || in->hdfs_user))
                return report_at(r, place_in_input(i, "hdfs"),
                                 "is for a pathPattern that begins with hdfs://");
        if (!in->hdfs_endpoint && in->path_pattern &&
            strncmp(in->path_pattern, "hdfs:///", strlen("hdfs:///")) == 0)
                return report_at(r, place_in_input(i, "pathPattern"),
                                 "names no namenode: write hdfs://NAMENODE/PATH, or say hdfs.endpoint");
        return 0;
}

static int check_size(struct reader *r, const struct job_spec *s, const struct input_spec *in, size_t i) {
        uint64_t size = in->format == FORMAT_RAW     ? in->block_size
                        : in->format == FORMAT_FIXED ? in->record_size
                                                     : 0;
        char most[FORMAT_SIZE_MAX];

        if (size <= s->max_record)
                return 0;
        return report_at(r, place_in_input(i, in->format == FORMAT_RAW ? "rawInput" : "fixedInput"),
                         "a record is longer than input.maxRecord, which is %s",
                         format_size(s->max_record, most, sizeof(most)));
}

/* Descriptor mode hands out ranges of files as they lie on disk. */
static int check_descriptor(struct reader *r, const struct input_spec *in, size_t i) {
        enum source_kind kind = input_source_kind(in->path_pattern, in->command);

        if (kind == SOURCE_COMMAND)
                return report_at(r, place_in_input(i, "commandInput"),
                                 "has no file to hand out: use \"mode\": \"ring\" or \"stdin\"");
        if (kind != SOURCE_FILES)
                return report_at(r, place_in_input(i, "pathPattern"),
                                 "is no local file to hand out: use \"mode\": \"ring\" or \"stdin\"");
        if (in->compression == COMPRESSION_GZIP || in->compression == COMPRESSION_ZSTD)
                return report_at(
                        r, place_in_input(i, "compression"),
                        "compressed files cannot be handed out as they are: use \"mode\": \"ring\" or "
                        "\"stdin\"");
        return 0;
}

static int check_input(struct reader *r, const struct job_spec *s, size_t i) {
        const struct input_spec *in = &s->inputs[i];
        size_t errors = r->diagnostics->n_errors;
        int q = check_kind(r, in, i);

        if (q < 0 || r->diagnostics->n_errors > errors)
                return q;
        q = check_range(r, in, i);
        if (q >= 0)
                q = check_size(r, s, in, i);
        if (q >= 0 && s->input_mode == DELIVERY_DESCRIPTOR)
                q = check_descriptor(r, in, i);
        return q;
}

/* ---- Kafka ---- */

#define JAVA "has no effect: it is the Java client's; remove it"
#define COMMITS "has no effect: offsets are committed when records are acknowledged (input.ack); remove it"

/* Properties that librdkafka would not know, or that would contradict how offsets are kept. */
static const struct property {
        const char *name, *why;
} dropped[] = {
        { "key.deserializer", JAVA },
        { "value.deserializer", JAVA },
        { "key.serializer", JAVA },
        { "value.serializer", JAVA },
        { "interceptor.classes", JAVA },
        { "metric.reporters", JAVA },
        { "max.poll.records", JAVA },
        { "default.api.timeout.ms", JAVA },
        { "exclude.internal.topics", JAVA },
        { "partition.assignment.strategy", "has no effect: partitions are tasks of the job; remove it" },
        { "enable.auto.commit", COMMITS },
        { "auto.commit.interval.ms", COMMITS },
        { "enable.auto.offset.store", COMMITS },
        { "group.id", "has no effect: consumerGroup names the group; remove it" },
};

/* The value of "NAME=VALUE" when it is of that name. */
static const char *value_of(const char *property, const char *name) {
        size_t n = strlen(name);

        return strncmp(property, name, n) == 0 && property[n] == '=' ? property + n + 1 : NULL;
}

static int drop_properties(struct reader *r, struct topic_spec *t, size_t i) {
        size_t kept = 0;
        int q = 0;

        for (size_t j = 0; j < t->n_config; j++) {
                const struct property *found = NULL;
                for (size_t k = 0; k < ELEMENTSOF(dropped) && !found; k++)
                        if (value_of(t->config[j], dropped[k].name))
                                found = &dropped[k];
                if (!found) {
                        t->config[kept++] = t->config[j];
                        continue;
                }
                free(t->config[j]);
                struct place p = place_below(place_in_topic(i, "config"), found->name);
                p.at_key = true;
                if (q >= 0)
                        q = reader_report(r, DIAGNOSTIC_WARNING, &p, "%s", found->why);
        }
        t->n_config = kept;
        t->config[kept] = NULL;
        return q;
}

static int check_topic(struct reader *r, struct job_spec *s, size_t i) {
        static const char servers_key[] = "bootstrap.servers";
        struct topic_spec *t = &s->topics[i];
        struct place config = place_in_topic(i, "config");
        const char *servers = NULL;
        int q = drop_properties(r, t, i);

        for (size_t j = 0; j < t->n_config && !servers; j++)
                servers = value_of(t->config[j], servers_key);
        if (q < 0)
                return q;
        if (!servers || !*servers)
                return report_at(r, config,
                                 "bootstrap.servers is missing: the brokers' addresses, HOST:PORT");
        if (strchr(servers, '<')) {
                struct place p = place_below(config, servers_key);
                q = reader_report(r, DIAGNOSTIC_WARNING, &p,
                                  "is a placeholder: write the brokers' addresses (HOST:PORT), or the topic "
                                  "cannot be read");
        }
        if (q >= 0 && t->start == KAFKA_TIMESTAMP && t->start_timestamp == 0)
                q = report_at(r, place_in_topic(i, "startUpTimestamp"),
                              "missing: the time in milliseconds from which TIMESTAMP reads");
        return q;
}

/* ---- the whole ---- */

/* Things that need to know where all data ends. */
static int check_endless(struct reader *r, const struct job_spec *s) {
        struct place endless =
                s->n_topics > 0 ? place_below(place_of("inputManager"), "kafkaConfig") : (struct place){};
        const char *why = s->n_topics > 0 ? "Kafka" : "\"to\": \"now\"";

        for (size_t i = 0; i < s->n_inputs && endless.n == 0; i++)
                if (s->inputs[i].to.now)
                        endless = place_below(place_in_input(i, "timeRange"), "to");
        if (endless.n == 0)
                return 0;
        if (s->input_order == ORDER_SHUFFLE)
                return report_at(
                        r, endless,
                        "%s has no end, which a shuffle needs: use \"order\": \"listed\", or give an end",
                        why);
        if (s->epochs > 1)
                return report_at(r, endless,
                                 "%s has no end, so there is no second epoch: remove input.epochs", why);
        if (s->n_topics == 0)
                return 0;
        if (s->window > 1)
                return report_at(
                        r, IN_INPUT("window"),
                        "messages of a partition come in their order: remove it, or read the topics in "
                        "another job");
        if (s->sample_ppm < 1000000)
                return report_at(
                        r, endless,
                        "does not go with sampleRate, which would leave out whole partitions: read the "
                        "topics in another job");
        if (s->input_mode == DELIVERY_DESCRIPTOR)
                return report_at(r, endless, "has no files to hand out: use \"mode\": \"ring\" or \"stdin\"");
        return 0;
}

static int check_weights(struct reader *r, const struct job_spec *s) {
        size_t weighted = 0, without = SIZE_MAX;
        struct spec_source source;

        for (size_t i = 0; i < spec_n_sources(s); i++) {
                spec_source(s, i, &source);
                weighted += source.weight > 0;
                if (source.weight == 0)
                        without = i;
        }
        if (weighted == 0 || without == SIZE_MAX)
                return 0;
        spec_source(s, without, &source);
        return report_at(r,
                         without < s->n_inputs ? place_in_input(without, "weight")
                                               : place_in_topic(without - s->n_inputs, "weight"),
                         "missing: other sources have one, so %s needs one too", source.name);
}

static int check_ack(struct reader *r, const struct job_spec *s) {
        const char *ack = ack_mode_to_string(s->input_ack), *mode = input_delivery_to_string(s->input_mode);

        if (s->input_mode == DELIVERY_STDIN && s->input_ack == ACK_RELEASE)
                return report_at(
                        r, IN_INPUT("ack"),
                        "%s does not go with \"mode\": \"%s\": a pipe does not tell records apart; use "
                        "\"lag\", \"exit\", \"read\", \"explicit\" or \"checkpoint\"",
                        ack, mode);
        if (s->input_mode == DELIVERY_STDIN && s->input_ack == ACK_CHECKPOINT && s->n_topics > 0)
                return report_at(
                        r, IN_INPUT("ack"),
                        "%s does not go with \"mode\": \"%s\" and kafkaConfig: where a message begins "
                        "cannot be told from the lines of a pipe; use \"mode\": \"ring\"",
                        ack, mode);
        if (s->input_mode != DELIVERY_STDIN && (s->input_ack == ACK_LAG || s->input_ack == ACK_READ))
                return report_at(r, IN_INPUT("ack"),
                                 "%s is about a pipe and does not go with \"mode\": \"%s\"; use \"release\", "
                                 "\"exit\", \"explicit\" or \"checkpoint\"",
                                 ack, mode);
        return 0;
}

static int check_delivery(struct reader *r, const struct job_spec *s) {
        char most[FORMAT_SIZE_MAX];
        int q = check_ack(r, s);

        if (q < 0)
                return q;
        if (s->input_mode == DELIVERY_DESCRIPTOR && s->window > 1)
                return report_at(
                        r, IN_INPUT("window"),
                        "ranges of files are handed out as they are: use \"mode\": \"ring\" or \"stdin\"");
        if ((s->slots & (s->slots - 1)) != 0)
                return report_at(r, IN_INPUT("slots"), "must be a power of two, not %" PRIu32, s->slots);
        if (s->slot_size % SPEC_SLOT_MIN != 0)
                return report_at(r, IN_INPUT("slotSize"), "must be a multiple of %s, not %" PRIu64,
                                 format_size(SPEC_SLOT_MIN, most, sizeof(most)), s->slot_size);
        if (s->slots * s->slot_size > SPEC_RING_MAX)
                return report_at(r, IN_INPUT("slots"), "slots of slotSize have more than %s together",
                                 format_size(SPEC_RING_MAX, most, sizeof(most)));
        return 0;
}

/* ---- lockstep ---- */

/* Ranks find each sample by its place, so only files that lie open, and formats that are told apart. */
static int check_lockstep_input(struct reader *r, const struct input_spec *in, size_t i) {
        enum source_kind kind = input_source_kind(in->path_pattern, in->command);

        if (kind == SOURCE_COMMAND)
                return report_at(
                        r, place_in_input(i, "commandInput"),
                        "has no samples that ranks in lockstep could find again: write them to files first");
        if (kind != SOURCE_FILES)
                return report_at(r, place_in_input(i, "pathPattern"),
                                 "ranks in lockstep read files that all hosts have: copy the data to a "
                                 "shared directory");
        if (in->compression == COMPRESSION_GZIP || in->compression == COMPRESSION_ZSTD)
                return report_at(r, place_in_input(i, "compression"),
                                 "the place of a sample in a compressed file is not known: unpack it for "
                                 "input.lockstep");
        if (in->format != FORMAT_TEXT && in->format != FORMAT_FIXED && in->format != FORMAT_TAR)
                return report_at(r,
                                 place_in_input(i, in->format == FORMAT_RAW   ? "rawInput"
                                                   : in->format == FORMAT_CSV ? "csvInput"
                                                                              : "tfrecordInput"),
                                 "input.lockstep knows textInput, fixedInput and tarInput");
        if (in->from.given || in->n_success_markers > 0)
                return report_at(
                        r, place_in_input(i, in->from.given ? "timeRange" : "successMarkerPatterns"),
                        "input.lockstep waits for nothing: name files that are there when the job starts");
        if (in->rewind_skip > 0)
                return report_at(r, place_in_input(i, "rewindSkipNum"),
                                 "is about tasks, and input.lockstep has none: remove it");
        return 0;
}

static int check_lockstep(struct reader *r, const struct job_spec *s) {
        const struct {
                bool set;
                const char *key, *why;
        } wrong[] = {
                { s->input_mode != DELIVERY_STDIN, "mode",
                  "ranks in lockstep read the files themselves: remove it" },
                { s->input_ack != ACK_LAG, "ack",
                  "what counts in lockstep is the trainer's checkpoint (state_dict()): remove it" },
                { s->window > 1, "window",
                  "\"order\": \"shuffle\" with lockstep mixes all files: remove it" },
                { s->epochs > 1, "epochs",
                  "in lockstep an epoch is an iteration of the trainer's: count them there" },
        };

        if (s->n_topics > 0)
                return report_at(r, place_below(place_of("inputManager"), "kafkaConfig"),
                                 "has no end and no number of samples, which input.lockstep needs");
        for (size_t i = 0; i < ELEMENTSOF(wrong); i++)
                if (wrong[i].set)
                        return report_at(r, IN_INPUT(wrong[i].key), "%s", wrong[i].why);
        if (s->sample_ppm < 1000000 || (s->task_success_milli > 0 && s->task_success_milli < 100000))
                return report_at(r, place_below(place_of("inputManager"), "fileConfig"),
                                 "sampleRate and stopPolicy are about tasks, and input.lockstep has none: "
                                 "remove them");
        for (size_t i = 0; i < s->n_inputs; i++) {
                const struct input_spec *in = &s->inputs[i];
                int q = check_lockstep_input(r, in, i);

                if (q < 0)
                        return q;
                if (in->format != s->inputs[0].format || in->record_size != s->inputs[0].record_size)
                        return report_at(
                                r, place_in_input(i, "pathPattern"),
                                "with input.lockstep all inputs have the same format as the first one");
                if (in->weight > 0)
                        return report_at(
                                r, place_in_input(i, "weight"),
                                "does not go with input.lockstep, which reads every sample once an epoch");
        }
        return 0;
}

static int check_readers(struct reader *r, const struct job_spec *s) {
        for (size_t i = 0; i < s->n_roles; i++)
                if (s->roles[i].input_policy == INPUT_STREAMING)
                        return 0;
        return report_at(r, place_of("inputManager"),
                         "no role reads the data: give one of them \"inputPolicy\": \"STREAMING\"");
}

static int check_totals(struct reader *r, const struct job_spec *s) {
        _cleanup_free_ char *json = NULL;
        int q;

        if (spec_n_sources(s) > SPEC_INPUTS_MAX)
                return report_at(r, place_of("inputManager"), "%zu sources of data; at most %u are accepted",
                                 spec_n_sources(s), SPEC_INPUTS_MAX);
        q = spec_input_json(s, &json);
        if (q < 0)
                return q;
        if (strlen(json) > SPEC_INPUT_BYTES_MAX)
                return report_at(r, place_of("inputManager"),
                                 "has %zu bytes with its defaults; at most %u are accepted", strlen(json),
                                 SPEC_INPUT_BYTES_MAX);
        return 0;
}

/* One job at a time has the progress that is kept. */
static int check_kept(struct reader *r) {
        struct place p = place_below(place_of("inputManager"), "workPreserve");

        return report_at(r, place_below(place_below(p, "hdfsConfig"), "stagingDir"),
                         "does not go with array, whose elements would all keep their progress there: "
                         "remove one of them");
}

int check_data(struct reader *r, struct job_spec *s) {
        size_t errors = r->diagnostics->n_errors;
        int q = 0;

        if (spec_n_sources(s) == 0)
                return 0;
        for (size_t i = 0; q >= 0 && i < s->n_inputs; i++)
                q = check_input(r, s, i);
        for (size_t i = 0; q >= 0 && i < s->n_topics; i++)
                q = check_topic(r, s, i);
        if (q < 0 || r->diagnostics->n_errors > errors)
                return q; /* the rules between sources take each of them to be good */
        q = s->staging_dir && s->array.array ? check_kept(r) : check_delivery(r, s);
        if (q >= 0)
                q = check_endless(r, s);
        if (q >= 0)
                q = check_weights(r, s);
        if (q >= 0 && s->lockstep != LOCKSTEP_OFF)
                q = check_lockstep(r, s);
        if (q >= 0)
                q = check_readers(r, s);
        if (q >= 0 && r->diagnostics->n_errors == errors)
                q = check_totals(r, s);
        return q;
}
