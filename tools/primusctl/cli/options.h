/* SPDX-License-Identifier: Apache-2.0 */
/* The command line as tables: every command lists its options, and parsing, --help and shell completion all
 * read the same table. Long options take "--name VALUE" and "--name=VALUE", short ones "-nVALUE", "-n VALUE"
 * and clusters of flags. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/primusctl/cli/cli.h"

/* The parser of one value: 0, or -EINVAL with *ret_why (static text: what was expected). */
typedef int (*option_parser)(const char *value, void *target, const char **ret_why);

struct option_list {
        const char **items; /* borrowed from argv */
        size_t n;
};

struct cli_option {
        const char *name;    /* without the dashes */
        char letter;         /* 0: none */
        const char *value;   /* what the help calls the value; NULL: a flag */
        option_parser parse; /* NULL for flags */
        size_t offset;       /* of the target in the command's option struct */
        const char *help;
};

/* The name of the table's option, or command, that is meant by a word of another scheduler; or NULL. */
const char *option_known_as(const struct cli_option *table, const char *arg);
const char *command_known_as(const char *name);

/* Parsers. */
int option_string(const char *value, void *target, const char **ret_why);   /* const char * */
int option_count(const char *value, void *target, const char **ret_why);    /* uint32_t, at least 1 */
int option_number(const char *value, void *target, const char **ret_why);   /* uint32_t, 0 too */
int option_size(const char *value, void *target, const char **ret_why);     /* uint64_t, bytes */
int option_duration(const char *value, void *target, const char **ret_why); /* uint64_t, usec */
int option_append(const char *value, void *target, const char **ret_why);   /* struct option_list */

struct command {
        const char *name;
        const char *arguments;            /* "[OPTIONS] FILE" */
        const char *help;                 /* one sentence */
        const char *details;              /* more for --help, or NULL */
        const struct cli_option *options; /* ended by a NULL name; may be NULL */
        size_t options_size;              /* of the struct that the offsets are of */
        size_t lists[4];                  /* offsets + 1 of its option_list members, to be freed; 0 ends */
        size_t min, max;                  /* positional arguments */
        bool stops;                       /* options end at the first positional argument */
        int (*run)(struct cli *c, void *options, char **args, size_t n);
};

/* What a command's first argument may be. */
struct cli_verb {
        const char *verb, *arguments; /* "list", "[JOB]" */
        size_t min, max;              /* of those */
        int (*run)(struct cli *c, const void *options, char **args, size_t n);
};

/* The one that args[0] names, with as many arguments behind it as it takes; else CLI_USAGE, having said what
 * there is. */
int cli_verb_find(const struct cli *c, const char *command, const struct cli_verb *verbs, size_t n_verbs,
                  char **args, size_t n, const struct cli_verb **ret);

/* Global options, also accepted behind the command. */
struct global_options {
        bool json, help, version;
        const char *host;
        const char *color;
};
extern const struct cli_option global_options[];

/* Parses argv[0..] by the two tables (local may be NULL). Arguments that are no options are moved into args
 * (room for argc pointers, NULL-ended). Returns 0 or CLI_USAGE, having said why. */
int options_parse(const struct cli *c, int argc, char **argv, bool stops, const struct cli_option *local,
                  void *local_target, struct global_options *global, char **args, size_t *ret_n);

/* Takes the global options over into c. */
int cli_apply_global(struct cli *c, const struct global_options *g);

/* "primusctl 0.1.0" */
int cli_version(const struct cli *c);

/* Prints the options of a table, one a line. */
void options_help(const struct cli_option *options);

/* Prints "--name" and "-x" one a line, for completion: "--name=" where a value follows. */
void options_words(const struct cli_option *options);
/* "--name=" or "--name", a tab, the help, a line each. */
void options_described(const struct cli_option *options);
