/* SPDX-License-Identifier: Apache-2.0 */
/* primusctl doctor: is this host fit for jobs, and what would make it so. */
#include "tools/primusctl/doctor/doctor.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "tools/primusctl/cli/commands.h"
#include "tools/primusctl/cli/text.h"

struct doctor_options {
        const char *root;
};

static const char *const grades[_FINDING_MAX] = {
        [FINDING_OK] = "ok",
        [FINDING_UNKNOWN] = "unknown",
        [FINDING_WARN] = "warn",
        [FINDING_FAIL] = "fail",
};

void findings_add(struct findings *f, enum finding_grade grade, const char *check, const char *help,
                  const char *format, ...) {
        struct finding *x;
        va_list ap;

        if (f->n == f->allocated) {
                size_t n = f->n + f->n / 2 + 32;
                struct finding *bigger = reallocarray(f->list, n, sizeof(*bigger));
                if (!bigger)
                        return;
                f->list = bigger;
                f->allocated = n;
        }
        x = f->list + f->n++;
        *x = (struct finding){ .grade = grade, .check = check };
        va_start(ap, format);
        vsnprintf(x->text, sizeof(x->text), format, ap);
        va_end(ap);
        if (help)
                snprintf(x->help, sizeof(x->help), "%s", help);
}

void findings_done(struct findings *f) {
        free(f->list);
        *f = (struct findings){};
}

static int print_json(const struct cli *c, const struct findings *f) {
        json_t *list = json_array();

        for (size_t i = 0; i < f->n; i++)
                (void)json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s}", "check", f->list[i].check,
                                                            "result", grades[f->list[i].grade], "text",
                                                            f->list[i].text, "help", f->list[i].help));
        return cli_print_json(c, list);
}

/* Control characters, of a file or a name, stay away from the terminal. */
static void print_clean(const char *s) {
        for (; *s; s++)
                putchar((unsigned char)*s < ' ' || *s == 0x7f ? '?' : *s);
}

static void print_text(const struct cli *c, const struct findings *f,
                       const unsigned counts[static _FINDING_MAX]) {
        static const enum color colors[_FINDING_MAX] = {
                [FINDING_OK] = COLOR_GREEN,
                [FINDING_UNKNOWN] = COLOR_DIM,
                [FINDING_WARN] = COLOR_YELLOW,
                [FINDING_FAIL] = COLOR_RED,
        };

        for (size_t i = 0; i < f->n; i++) {
                const struct finding *x = f->list + i;
                printf("%s%-7s%s %-12s ", c->color ? color_sequence(colors[x->grade]) : "", grades[x->grade],
                       c->color ? COLOR_RESET : "", x->check);
                print_clean(x->text);
                if (*x->help && x->grade != FINDING_OK) {
                        printf("\n                       -> ");
                        print_clean(x->help);
                }
                putchar('\n');
        }
        if (counts[FINDING_FAIL] > 0)
                printf("\n%u to be done before jobs run well here, %u to look at\n", counts[FINDING_FAIL],
                       counts[FINDING_WARN]);
        else if (counts[FINDING_WARN] > 0)
                printf("\nFit for jobs; %u to look at\n", counts[FINDING_WARN]);
        else
                printf("\nFit for jobs\n");
}

/* There, by ssh: what is asked is that host's own. */
static int run_there(const struct cli *c, const char *host) {
        if (*host == '-')
                return cli_usage(c, "doctor: not a host: %s", host);
        (void)fflush(stdout);
        execlp("ssh", "ssh", "-xT", "--", host, "primusctl", "doctor",
               c->json    ? "--json"
               : c->color ? "--color=always"
                          : "--color=never",
               (char *)NULL);
        return cli_fail(c, "cannot run ssh: %s", strerror(errno));
}

static int doctor_run(struct cli *c, void *options, char **args, size_t n) {
        const struct doctor_options *o = options;
        _cleanup_(findings_done) struct findings f = {};
        unsigned counts[_FINDING_MAX] = {};
        int r;

        if (n > 0 && o->root)
                return cli_usage(c, "--root is for files here");
        if (n > 0 || c->host)
                return run_there(c, n > 0 ? args[0] : c->host);
        doctor_setup(&f, o->root ? o->root : "");
        doctor_host(&f, o->root ? o->root : "");
        doctor_certificate(&f, o->root ? o->root : "", now_real());
        if (!o->root) {
                doctor_live(&f);
                doctor_master(&f);
        }
        if (!f.list)
                return cli_oom(c);
        for (size_t i = 0; i < f.n; i++)
                counts[f.list[i].grade]++;
        if (!c->json)
                print_text(c, &f, counts);
        else if ((r = print_json(c, &f)))
                return r;
        return counts[FINDING_FAIL] > 0 ? CLI_FAILED : CLI_OK;
}

static const struct cli_option doctor_options[] = {
        { "root", 0, "DIR", option_string, offsetof(struct doctor_options, root),
          "look at the files of a host below DIR, and at nothing that runs" },
        { 0 },
};

const struct command doctor_command = {
        .name = "doctor",
        .arguments = "[HOST] [OPTIONS]",
        .help = "Check a host: what is missing for jobs, and how to get it",
        .details =
                "This host, or HOST by ssh. Nothing is changed, and root is not needed; what only root may "
                "see\nis said to be unknown. "
                "Exit status 1: something is to be done before jobs run well here.",
        .options = doctor_options,
        .options_size = sizeof(struct doctor_options),
        .max = 1,
        .run = doctor_run,
};
