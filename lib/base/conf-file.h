/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the text of configuration files: which files are taken at all, and what their lines are.
 *
 * Not by inih, which is a library for it: as Debian builds it, it cuts lines at 200 bytes, and a list of
 * users or of labels is longer. */
#pragma once

#include <stddef.h>

#define CONF_FILE_MAX ((size_t)1 << 20) /* bytes of one file */
#define CONF_LINE_MAX ((size_t)64 << 10)

/* Reads a configuration file into *ret, ended by a NUL (caller frees). It has to be a regular file (or
 * /dev/null, which is empty) of at most CONF_FILE_MAX bytes that nobody writes but root and who runs this.
 * -ENOENT; any other negative errno with *ret_why (static text), which says what is wrong with it. */
int conf_file_read(const char *path, char **ret, size_t *ret_size, const char **ret_why);

/* Whether others than root and who runs this may put files into a directory: 0, or a negative errno and why.
 */
int conf_directory_check(int fd, const char **ret_why);

/* What a line is; for all but these the line is a blank one or a comment. */
enum conf_line_kind {
        CONF_LINE_SECTION, /* section */
        CONF_LINE_VALUE,   /* section, name, value */
        CONF_LINE_BAD,     /* name: its first word or ""; value: what is wrong with it (static text) */
};

struct conf_line {
        enum conf_line_kind kind;
        unsigned number;
        const char *section, *name, *value;
};

/* Takes text (of size bytes, which are changed) apart: the form of systemd.syntax(7), with comments by '#'
 * and ';' at the begin of a line and '\' at the end of one that goes on in the next. Calls on_line() for all
 * but blank lines and comments; what it returns other than 0 ends the reading and is returned. */
int conf_text_parse(char *text, size_t size, int (*on_line)(void *userdata, const struct conf_line *line),
                    void *userdata);
