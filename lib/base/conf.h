/* SPDX-License-Identifier: Apache-2.0 */
/* Configuration files of the daemons: an ini file plus drop-ins (NAME.d/<name>.conf, in /usr/lib, /run and
 * /etc, by file name, a later one of the same name masking an earlier), read through a table of keys. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Parses one value into target. Returns 0, or a negative errno with *ret_why (static text) saying what was
 * expected. */
typedef int (*conf_parser)(const char *value, void *target, const char **ret_why);

struct conf_key {
        const char *section;
        const char *name;
        conf_parser parse;
        size_t offset; /* of the target in the struct that conf_load() is given */
        /* A bad value stops the daemon instead of leaving the default, with which it would be less safe than
         * what was meant: who may do what, how much, how long, and who may look. */
        bool security;
        const char *initial; /* the default as it is written in a file, to be shown */
};

/* The usual targets. Strings are strdup()ed over the old value, which is freed. */
int conf_parse_string(const char *value, void *target, const char **ret_why);   /* char * */
int conf_parse_bool(const char *value, void *target, const char **ret_why);     /* bool */
int conf_parse_duration(const char *value, void *target, const char **ret_why); /* uint64_t, usec */
int conf_parse_size(const char *value, void *target, const char **ret_why);     /* uint64_t, bytes */
int conf_parse_u32(const char *value, void *target, const char **ret_why);      /* uint32_t */
int conf_parse_port(const char *value, void *target, const char **ret_why);     /* uint16_t, 1..65535 */
/* For parsers of lists: at most max words, all of them valid, as a list of strings (strv.h) in place of that
 * in target, a char **. -EINVAL, -ENOMEM. */
int conf_parse_words(const char *value, size_t max, bool (*valid)(const char *word), char ***target);

/* Sections of which there may be many, "[Pool gpu]": keys of section "Pool" then have their offsets in what
 * find() returns for "gpu". NULL: the section is ignored, *ret_why (static text) says why. */
struct conf_group {
        const char *section;
        void *(*find)(void *target, const char *name, const char **ret_why);
};

/* Whether a section may be called so: 1 to 40 letters, digits, '.', '_' and '-'. */
#define SECTION_NAME_MAX 40u
bool conf_name_valid(const char *s);

/* Where a setting that holds was read. */
struct conf_origin {
        char *section, *name, *value, *path;
        unsigned line;
};

/* What a reading found. Start with {}. */
struct conf_report {
        unsigned warnings, errors;   /* lines, files and directories; errors: the daemon does not start */
        struct conf_origin *origins; /* in the order of reading: of two for one key the later one holds */
        size_t n;
};
void conf_report_done(struct conf_report *report);

/* Reads PRIMUS_SYSCONFDIR/NAME and its drop-ins into target by the table (ended by a NULL name). A missing
 * file is no error. Unknown keys and bad values are logged as warnings with file and line and leave the
 * default. Logged as errors, for which the call returns -EINVAL once everything is read: a bad value of a
 * security key, a line that most likely was to be one, and a file or directory that cannot be read or that
 * others may write. root, for tests, is put before every path. */
int conf_load(const char *root, const char *name, const struct conf_key *keys, void *target);
/* The same with groups of sections (ended by a NULL section), and a report, or NULL; what is in it stays, so
 * that two readings can be added. */
int conf_load_groups(const char *root, const char *name, const struct conf_key *keys,
                     const struct conf_group *groups, void *target, struct conf_report *report);

/* One setting of these files, whatever else is in them and is wrong with them: that is for the daemon to say.
 * Allocated; NULL: it is not set, or there is no memory. */
char *conf_lookup(const char *name, const char *section, const char *key);

/* Writes all settings in the form of a configuration file: those that were set with the place above each, the
 * others as comments with their defaults. Of groups, those sections that were read. */
void conf_show(FILE *f, const struct conf_key *keys, const struct conf_group *groups,
               const struct conf_report *report);
