/* SPDX-License-Identifier: Apache-2.0 */
/* Where artifacts go on this machine: below one directory, never through a link, never over what is there
 * unless that was asked for. Paths come from a host that is believed nothing. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct place {
        int top;    /* the directory */
        bool force; /* replace what is there and differs */
        int parent; /* of the file that is being written; -EBADF: none is */
        int file;
        char name[256], temporary[64];
        uint64_t written;
        uint32_t sum;
        bool hole; /* it ends in one */
};
#define PLACE_EMPTY                                                                                          \
        (struct place) {                                                                                     \
                .top = -EBADF, .parent = -EBADF, .file = -EBADF                                              \
        }

/* Makes and opens the directory, and those above it. Negative errno. */
int place_open(struct place *p, const char *directory);
void place_done(struct place *p);

enum place_state {
        PLACE_MISSING,
        PLACE_EQUAL,   /* same size and time */
        PLACE_DIFFERS, /* something else has that name */
};
/* What is there for a file of that size and time; negative errno, -ELOOP: a link is in the way. */
int place_look(struct place *p, const char *path, uint64_t size, uint64_t mtime_nsec);

/* The directory is there afterwards, with those above it. */
int place_directory(struct place *p, const char *path);
/* -EEXIST: something else has that name. */
int place_link(struct place *p, const char *path, const char *target);

/* A file is written beside its name and gets that when it is complete. */
int place_begin(struct place *p, const char *path);
int place_data(struct place *p, const void *data, size_t size);
int place_finish(struct place *p, uint32_t mode, uint64_t mtime_nsec);
/* What there is of a file goes. */
void place_abandon(struct place *p);
