/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the reader share: files of random records in every format, and reading a task whole while
 * the rules of chunks are checked. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "executor/read/reader.h"
#include "lib/record/record.h"

struct bytes {
        uint8_t *data;
        size_t size, allocated;
};
void bytes_add(struct bytes *b, const void *data, size_t size);
void bytes_done(struct bytes *b);

/* A file as a task's source, and what a reader of it is to be asked. */
struct kit {
        char path[64];
        struct input input;
        struct input_source source;
        struct task_grant task;
        atomic_bool cancel;
        bool framed;
};
void kit_begin(struct kit *k, enum record_format format);
/* Writes the file anew and takes it as scanned. */
void kit_write(struct kit *k, const void *data, size_t size);
void kit_scan(struct kit *k);
void kit_end(struct kit *k);

/* A record that was delivered. */
struct got {
        uint64_t position;
        size_t at, size; /* in delivery.bytes */
};
struct delivery {
        struct bytes bytes; /* all that was delivered, but for the header */
        struct bytes header;
        uint64_t end, records; /* counted in chunks */
        int r;                 /* of the last call */
        char error[READ_ERROR_MAX];
        uint64_t *positions; /* chunk by chunk: position, skip of the next one to be asked for */
        uint64_t *skips;
        size_t *sizes; /* bytes delivered by then */
        size_t n_chunks, chunks_allocated;
};
/* Reads the task of k with a buffer of that size. */
void kit_read(struct kit *k, size_t buffer, struct delivery *ret);
void delivery_done(struct delivery *d);

/* Random records: file is a whole file of them, lengths (n of them) how long each is in it. */
void make_file(enum record_format format, unsigned seed, size_t n, size_t longest, struct bytes *ret_file,
               size_t **ret_lengths);
void add_tfrecord(struct bytes *b, const void *data, size_t size);
void add_tar_member(struct bytes *b, const char *name, const void *data, size_t size);
void add_tar_end(struct bytes *b);
