/* SPDX-License-Identifier: Apache-2.0 */
/* What a pattern names on a file system: first a list of directories, each with the globs that its names have
 * to match; then one directory after the other is read, sorted and handed out. Invariant: the directories are
 * sorted as their paths with a slash behind, and no directory is read twice. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "executor/scan/scan-parts.h"

#define DIRECTORIES_MAX 1000000u
#define NAMES_MAX (256u << 20) /* bytes of one directory's names */

/* One directory that is to be read; of several with the same path, each says what it wants. */
struct unit {
        char *directory;
        char *name; /* NULL: every name */
        bool glob;  /* name is a glob, not a name */
};
struct units {
        struct unit *list;
        size_t n, allocated;
};

void units_done(struct units *u);
/* The first n bytes of directory. Too many fail the scan. */
int units_add(struct scan *s, struct units *u, const char *directory, size_t n, const char *name, bool glob);
void units_sort(struct units *u);
/* Whether one of them, n of one directory, wants the name. */
bool units_want(const struct unit *units, size_t n, const char *name);

/* Calls list for each directory behind the path after (NULL: for all), with its units; of after's own
 * directory, name is what it has to begin behind. */
typedef int (*unit_lister)(void *userdata, const struct unit *units, size_t n, const char *name);
int units_each(struct scan *s, const struct units *u, const char *after, unit_lister list, void *userdata);

/* Allocated; NULL: out of memory. */
char *path_in(const char *directory, const char *name);
bool has_glob(const char *s);

/* Looks whether what a word without a glob names is there, or what matches one with: 1, 0, or negative. */
typedef int (*word_finder)(void *userdata, const char *word);
/* Of *.{txt,csv} one of the two will do; of {us,eu} both have to be there. 1; 0: *ret_missing (allocated) is
 * not. */
int units_of_words(char *const *words, size_t n, const struct units *u, word_finder find, void *userdata,
                   char **ret_missing);
