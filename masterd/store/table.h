/* SPDX-License-Identifier: Apache-2.0 */
/* Between C records and SQL: every kind of record has a list of fields in the order of its statement's
 * parameters or columns, and literal statements. Nothing else in the store knows how a record is copied,
 * bound or read. */
#pragma once

#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>

#include "masterd/store/codec.h"
#include "masterd/store/store.h"

enum field_type {
        FIELD_END,
        FIELD_BOOL,
        FIELD_U8,
        FIELD_U32,
        FIELD_I32,
        FIELD_U64,
        FIELD_TEXT,  /* const char * */
        FIELD_BYTES, /* struct store_bytes */
        FIELD_FIXED, /* size bytes in the record itself */
        FIELD_PORTS, /* uint16_t[STORE_PORTS_MAX], and behind them a uint32_t of how many there are */
        FIELD_STATE, /* a struct within the record, by its codec */
};

struct field {
        enum field_type type;
        uint16_t offset, size;
        const struct codec_field *codec;
};

/* Bytes needed beside the record for what its fields point to. */
size_t fields_extra(const struct field *fields, const void *record);

/* Makes the pointers of a record that was copied flat point to copies in extra, which has fields_extra()
 * bytes. */
void fields_move(const struct field *fields, void *record, void *extra);

/* Binds the fields to ?1, ?2 ... of the statement, as many as it has. Returns SQLite's code. */
int fields_bind(const struct field *fields, const void *record, sqlite3_stmt *statement);

/* Fills the record from columns *column ... and moves *column behind them. Texts and bytes point into the
 * row. -EBADMSG: what is stored does not fit the record. */
int fields_read(const struct field *fields, void *record, sqlite3_stmt *statement, int *column);

/* What can be done in a batch. */
enum op_kind {
        OP_PUT_JOB,
        OP_PUT_JOB_BODY,
        OP_LAST_JOB,
        OP_PUT_EXECUTOR,
        OP_PUT_EVENT,
        OP_PUT_USAGE,
        OP_PUT_NODE,
        OP_PUT_NODE_EVENT,
        OP_PUT_HOLD,
        OP_PUT_LABEL,
        OP_PUT_WINDOW,
        OP_PUT_GPU_OFF,
        OP_PUT_STUCK,
        OP_PUT_AVOID,
        OP_PUT_VERDICT,
        OP_DELETE_VERDICT,
        OP_DELETE_HOLD,
        OP_DELETE_LABEL,
        OP_DELETE_WINDOW,
        OP_DELETE_GPU_OFF,
        OP_DELETE_STUCK,
        OP_PUT_TOKEN,
        OP_PUT_REVOKED,
        OP_PUT_SECRET,
        OP_PUT_DATA_FILE,
        OP_PUT_DATA_SOURCE,
        OP_PUT_DATA_BLOCK,
        OP_PUT_DATA_TASK,
        OP_PUT_DATA_STATE,
        OP_PUT_SAVEPOINT,
        OP_PUT_SCOPE,
        OP_PUT_BLAME,
        OP_PUT_SHARE,
        OP_PUT_SUBMIT_KEY,
        OP_PUT_SERIES,
        OP_PUT_METRIC,
        OP_PUT_TRIAL,
        OP_PUT_CHECKPOINT,
        OP_DELETE_CHECKPOINT,
        OP_PUT_MODEL,
        OP_PUT_PROVIDER,
        OP_PUT_INSTANCE,
        OP_DELETE_INSTANCE,
        OP_PUT_CHANGE,
        OP_PUT_CUT,
        OP_DELETE_DATA_BLOCK,
        OP_DELETE_DATA_TASK,
        OP_TRIM_DATA,
        OP_COPY_FILES,
        OP_DELETE_SAVEPOINT,
        OP_SET_META,
        OP_DELETE_JOB,
        OP_DELETE_SECRETS,
        OP_DELETE_NODE,
        OP_DELETE_TOKEN,
        OP_PRUNE,
        OP_FORGET_JOB,
        _OP_MAX,
};

#define OP_STATEMENTS_MAX 32

struct op_definition {
        size_t size; /* of the record */
        const struct field *fields;
        const char *sql[OP_STATEMENTS_MAX]; /* run in this order, each with the same parameters; NULL behind
                                               the last */
};

extern const struct op_definition op_definitions[_OP_MAX];

/* As the columns of the loads; body_fields are those of the struct behind job_record's body. */
extern const struct field job_fields[], kept_task_fields[], body_fields[], executor_fields[], event_fields[],
        element_fields[], usage_fields[], node_fields[], node_event_fields[], hold_fields[], label_fields[],
        window_fields[], gpu_off_fields[], stuck_fields[], avoid_fields[], verdict_fields[], token_fields[],
        revoked_fields[], secret_fields[], data_file_fields[], data_source_fields[], data_block_fields[],
        data_task_fields[], data_state_fields[], savepoint_fields[], scope_fields[], blame_fields[],
        share_fields[], submit_key_fields[], series_fields[], metric_fields[], trial_fields[],
        checkpoint_fields[], model_fields[], provider_fields[], instance_fields[], change_fields[],
        cut_fields[];

/* What columns of state hold (states.c). */
extern const struct codec_field job_state_codec[], scope_state_codec[], blame_state_codec[];

/* Records that exist inside the store alone. */
struct body_row {
        struct job_body_record body;
        uint32_t number;
};
struct meta_row {
        const char *key;
        struct store_bytes value;
};
/* Bytes of the database that are in use, in SQL. */
#define STORE_BYTES_USED                                                                                     \
        "((SELECT page_count FROM pragma_page_count) - (SELECT freelist_count FROM pragma_freelist_count))"  \
        " * (SELECT page_size FROM pragma_page_size)"

struct key_row {
        uint32_t job;
        const char *name;
        uint8_t id[8];
};
struct data_key_row {
        uint32_t job;
        uint64_t id; /* block or task */
};
struct copy_row {
        uint64_t from, to;
};
struct savepoint_key_row {
        uint64_t key;
        const char *name;
};
struct prune_row {
        uint64_t older_than_real;
        uint32_t keep_newest;
        uint64_t now_real;
        uint64_t keep_bytes;
};
