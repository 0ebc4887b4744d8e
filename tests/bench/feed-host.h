/* SPDX-License-Identifier: Apache-2.0 */
/* A host without a cluster: agentd's feed server, and a manager of a few lines that grants files to the real
 * primus-executor --feed, which starts the trainer. Errors end the program with a line on standard error. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define FEED_HOST_FILES_MAX 1024u

struct feed_host;

/* Works in a directory of its own below parent. */
struct feed_host *feed_host_new(const char *parent);
/* Takes the directory away too. */
void feed_host_free(struct feed_host *h);
const char *feed_host_directory(const struct feed_host *h);
/* What is granted: these files (the strings stay the caller's), in tasks of at most task_size bytes. */
void feed_host_files(struct feed_host *h, char *const paths[], size_t n, uint64_t task_size);
/* The job's input: mode, a format's key and the keys in it ("rawInput", "\"blockSize\":1048576"), and more
 * keys of "input" (NULL: $BENCH_INPUT). */
void feed_host_input(struct feed_host *h, const char *mode, const char *format, const char *spec,
                     const char *more);
/* Runs a trainer ($BENCH_EXECUTOR starts it) to its end: its status. pipe_size: of mode stdin. */
int feed_host_run(struct feed_host *h, char *const trainer[], uint32_t pipe_size);
