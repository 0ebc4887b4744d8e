/* SPDX-License-Identifier: Apache-2.0 */
/* Whole-file input and output with bounds. 0 or negative errno. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Reads a file of at most max bytes into *ret (NUL behind the last byte, not counted in *ret_size); caller
 * frees. -EFBIG when it is larger. ret_size may be NULL. */
int read_file(const char *path, size_t max, char **ret, size_t *ret_size);

/* The same of the file that is at path below root, which is "" for the host's own. */
int read_file_below(const char *root, const char *path, size_t max, char **ret);

/* The same relative to a directory (dir_fd may be AT_FDCWD). */
int read_file_at(int dir_fd, const char *path, size_t max, char **ret, size_t *ret_size);

/* The same from an open descriptor that blocks, to its end. */
int read_fd(int fd, size_t max, char **ret, size_t *ret_size);

/* Makes it lasting that path, or its name, has come, changed or gone: fsync()s the directory it is in. */
int sync_directory_of(const char *path);

/* Writes path.XXXXXX, sets the mode, fsyncs when durable, and renames it over path. */
int write_file_atomic(const char *path, const void *data, size_t size, mode_t mode, bool durable);

/* Writes everything, waiting where the descriptor is non-blocking. */
int write_all(int fd, const void *data, size_t size);

/* Makes path and its missing parents with mode. -ENOTDIR where something else has the name; -ENOENT for "".
 */
int make_directories(const char *path, mode_t mode);

/* Removes a directory tree; never follows links and never leaves the file system, also while somebody changes
 * the tree at the same time (so root may remove what a user owns). -ENOENT counts as success. */
int remove_tree(const char *path);
