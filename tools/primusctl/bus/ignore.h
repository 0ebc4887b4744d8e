/* SPDX-License-Identifier: Apache-2.0 */
/* What is left out when a folder is sent: .gitignore as gitignore(5) has it, and .primusignore, which is
 * written alike and wins over it. Never sent: .git and __pycache__. No bus in here. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define IGNORE_FILE_MAX (1u << 20)
#define IGNORE_RULES_MAX 20000u

enum ignore_why {
        IGNORE_NOT,   /* it goes along */
        IGNORE_RULE,  /* a line of a file leaves it out */
        IGNORE_ALWAYS /* .git, __pycache__ */
};

struct ignore;

/* Of a walk that begins in root (absolute, without links). Takes the .gitignore of the folders above it, up
 * to the one with .git, and the .primusignore of those above it from top on (absolute, or NULL: none). 0, or
 * negative errno with *ret_path (allocated): the file that cannot be read; -E2BIG: it has too much in it. */
int ignore_new(const char *root, const char *top, struct ignore **ret, char **ret_path);
void ignore_free(struct ignore *i);

/* The walk enters a folder (absolute path), and leaves the one that it entered last. Errors as above. */
int ignore_enter(struct ignore *i, const char *directory, char **ret_path);
void ignore_leave(struct ignore *i);

/* Something in a folder that has been entered; the folders above it have been asked about before. */
enum ignore_why ignore_match(const struct ignore *i, const char *path, bool directory);

/* Does name match a pattern without slashes: *, ?, [a-z], [!a], [[:alpha:]], backslash? */
bool ignore_glob(const char *pattern, size_t n, const char *name, size_t length);
