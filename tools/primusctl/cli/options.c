/* SPDX-License-Identifier: Apache-2.0 */
/* Parses a command line by tables. Invariant: an option nobody listed is refused by name, with the nearest
 * known one. */
#include "tools/primusctl/cli/options.h"

#include <string.h>

#include "lib/base/names.h"
#include "lib/base/parse.h"

const struct cli_option global_options[] = {
        { "host", 'H', "HOST", option_string, offsetof(struct global_options, host),
          "speak to the master on HOST over ssh" },
        { "json", 0, NULL, NULL, offsetof(struct global_options, json), "print JSON; on standard error too" },
        { "color", 0, "WHEN", option_string, offsetof(struct global_options, color),
          "auto, always or never" },
        { "help", 'h', NULL, NULL, offsetof(struct global_options, help), "show this" },
        { "version", 0, NULL, NULL, offsetof(struct global_options, version), "show the version" },
        { 0 },
};

int option_string(const char *value, void *target, const char **ret_why) {
        *(const char **)target = value;
        return 0;
}

int option_count(const char *value, void *target, const char **ret_why) {
        if (parse_u32(value, 1, UINT32_MAX, target) < 0) {
                *ret_why = "a whole number, at least 1";
                return -EINVAL;
        }
        return 0;
}

int option_number(const char *value, void *target, const char **ret_why) {
        if (parse_u32(value, 0, UINT32_MAX, target) < 0) {
                *ret_why = "a whole number";
                return -EINVAL;
        }
        return 0;
}

int option_size(const char *value, void *target, const char **ret_why) {
        if (parse_size(value, target) < 0) {
                *ret_why = "a size such as 512M or 4G";
                return -EINVAL;
        }
        return 0;
}

int option_duration(const char *value, void *target, const char **ret_why) {
        if (parse_duration(value, target) < 0) {
                *ret_why = "a time such as 90s, 2h or 01:30:00";
                return -EINVAL;
        }
        return 0;
}

int option_append(const char *value, void *target, const char **ret_why) {
        struct option_list *list = target;
        const char **bigger = realloc(list->items, (list->n + 1) * sizeof(*bigger));

        if (!bigger) {
                *ret_why = "less (out of memory)";
                return -ENOMEM;
        }
        list->items = bigger;
        list->items[list->n++] = value;
        return 0;
}

struct found {
        const struct cli_option *option;
        char *target;
};

static bool find(const struct cli_option *table, void *target, const char *name, size_t n, char letter,
                 struct found *ret) {
        for (const struct cli_option *o = table; o && o->name; o++)
                if (name ? strncmp(o->name, name, n) == 0 && !o->name[n] : letter && o->letter == letter) {
                        *ret = (struct found){ o, (char *)target + o->offset };
                        return true;
                }
        return false;
}

static int apply(const struct cli *c, const struct found *f, const char *value) {
        const char *why = NULL;

        if (!f->option->parse) {
                *(bool *)f->target = true;
                return 0;
        }
        if (f->option->parse(value, f->target, &why) < 0)
                return cli_usage(c, "--%s: expected %s, not '%s'", f->option->name, why, value);
        return 0;
}

static int unknown(const struct cli *c, const char *arg, const struct cli_option *local) {
        const char *nearest = NULL;
        size_t best = 3;
        const char *known = local ? option_known_as(local, arg) : NULL;

        if (known)
                return cli_usage(c, "there is no option %.*s; did you mean --%s?", (int)strcspn(arg, "="),
                                 arg, known);
        for (int pass = 0; pass < 2; pass++)
                for (const struct cli_option *o = pass ? global_options : local;
                     o && o->name && arg[1] == '-'; o++)
                        if (edit_distance(arg + 2, o->name) < best) {
                                best = edit_distance(arg + 2, o->name);
                                nearest = o->name;
                        }
        if (strncmp(arg, "--", 2) == 0 && nearest)
                return cli_usage(c, "there is no option %s; did you mean --%s?", arg, nearest);
        return cli_usage(c, "there is no option %s", arg);
}

/* What is wrong with another option is said as JSON, too, wherever --json stands. */
static bool wants_json(int argc, char **argv, bool stops) {
        for (int i = 0; i < argc && strcmp(argv[i], "--") != 0 && !(stops && argv[i][0] != '-'); i++)
                if (strcmp(argv[i], "--json") == 0)
                        return true;
        return false;
}

int options_parse(const struct cli *c, int argc, char **argv, bool stops, const struct cli_option *local,
                  void *local_target, struct global_options *global, char **args, size_t *ret_n) {
        size_t n = 0;
        int i, r;

        if (wants_json(argc, argv, stops))
                cli_errors_as_json();
        for (i = 0; i < argc; i++) {
                char *arg = argv[i];
                struct found f;

                if (arg[0] != '-' || !arg[1]) {
                        if (stops)
                                break;
                        args[n++] = arg;
                        continue;
                }
                if (strcmp(arg, "--") == 0) {
                        i++;
                        break;
                }
                if (arg[1] == '-') {
                        size_t length = strcspn(arg + 2, "=");
                        const char *value = arg[2 + length] ? arg + 3 + length : NULL;

                        if (!find(local, local_target, arg + 2, length, 0, &f) &&
                            !find(global_options, global, arg + 2, length, 0, &f))
                                return unknown(c, arg, local);
                        if (!f.option->parse && value)
                                return cli_usage(c, "--%s takes no value", f.option->name);
                        if (f.option->parse && !value) {
                                if (++i >= argc)
                                        return cli_usage(c, "--%s wants a value: %s", f.option->name,
                                                         f.option->value);
                                value = argv[i];
                        }
                        r = apply(c, &f, value);
                        if (r)
                                return r;
                        continue;
                }
                for (char *p = arg + 1; *p; p++) {
                        const char *value = NULL;

                        if (!find(local, local_target, NULL, 0, *p, &f) &&
                            !find(global_options, global, NULL, 0, *p, &f))
                                return unknown(c, (const char[]){ '-', *p, 0 }, local);
                        if (f.option->parse) {
                                value = p[1] ? p + 1 : ++i < argc ? argv[i] : NULL;
                                if (!value)
                                        return cli_usage(c, "-%c wants a value: %s", *p, f.option->value);
                        }
                        r = apply(c, &f, value);
                        if (r)
                                return r;
                        if (value)
                                break;
                }
        }
        for (; i < argc; i++)
                args[n++] = argv[i];
        args[n] = NULL;
        *ret_n = n;
        return 0;
}

void options_help(const struct cli_option *options) {
        for (const struct cli_option *o = options; o && o->name; o++) {
                char left[64];
                int n;

                n = snprintf(left, sizeof(left), "%c%c%s --%s%s%s", o->letter ? '-' : ' ',
                             o->letter ? o->letter : ' ', o->letter ? "," : " ", o->name, o->value ? "=" : "",
                             o->value ? o->value : "");
                if (n > 26)
                        printf("  %s\n  %-26s %s\n", left, "", o->help);
                else
                        printf("  %-26s %s\n", left, o->help);
        }
}

void options_described(const struct cli_option *options) {
        for (const struct cli_option *o = options; o && o->name; o++)
                printf("--%s%s\t%s\n", o->name, o->value ? "=" : "", o->help);
}

void options_words(const struct cli_option *options) {
        for (const struct cli_option *o = options; o && o->name; o++) {
                printf("--%s%s\n", o->name, o->value ? "=" : "");
                if (o->letter)
                        printf("-%c\n", o->letter);
        }
}

/* "list, gc and pin" */
static void name_verbs(FILE *f, const struct cli_verb *verbs, size_t n) {
        for (size_t i = 0; i < n; i++)
                fprintf(f, "%s%s", i == 0 ? "" : i + 1 < n ? ", " : " and ", verbs[i].verb);
}

int cli_verb_find(const struct cli *c, const char *command, const struct cli_verb *verbs, size_t n_verbs,
                  char **args, size_t n, const struct cli_verb **ret) {
        _cleanup_free_ char *names = NULL;
        size_t size;
        FILE *f;

        for (size_t i = 0; i < n_verbs; i++)
                if (strcmp(verbs[i].verb, args[0]) == 0) {
                        *ret = verbs + i;
                        return n - 1 >= verbs[i].min && n - 1 <= verbs[i].max
                                       ? 0
                                       : cli_usage(c, "usage: primusctl %s %s %s", command, verbs[i].verb,
                                                   verbs[i].arguments);
                }
        f = open_memstream(&names, &size);
        if (f) {
                name_verbs(f, verbs, n_verbs);
                fclose(f);
        }
        return cli_usage(c, "there is no '%s %s'; there are %s", command, args[0], names ?: "others");
}
