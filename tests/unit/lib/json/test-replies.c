/* SPDX-License-Identifier: Apache-2.0 */
/* docs/json.md against the tables: each shape has a chapter, and each member that is printed a row in it, in
 * that order, which begins with its name and its type.
 *
 * usage: test-replies JSON.MD          compares
 *        test-replies                  prints what the rows begin with */
#include "lib/json/replies.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/file.h"

/* In the order of the page. */
static const struct json_shape *const shapes[] = {
        &json_job,    &json_status,    &json_job_row,   &json_event,    &json_why,           &json_trial,
        &json_task,   &json_waiting,   &json_pool,      &json_node_row, &json_node,          &json_node_event,
        &json_token,  &json_savepoint, &json_trial_row, &json_metric,   &json_metric_series, &json_checkpoint,
        &json_model,  &json_provider,  &json_instance,  &json_act,      &json_usage,         &json_capture,
        &json_thread, &json_cluster,
};

static const char *page;

/* The rows of all, a chapter after the other. */
struct rows {
        FILE *f;
        const struct json_shape *told[64]; /* parts that several have are told once */
        size_t n_told;
};

static const char *basic_word(char type) {
        return type == 'v'          ? "value"
               : type == 'b'        ? "boolean"
               : type == 'd'        ? "number"
               : strchr("so", type) ? "string"
                                    : "integer";
}

static void put_type(FILE *f, const struct json_member *p) {
        const char *t = p->type;

        if (p->parts)
                fprintf(f, "%s%s", t[0] == 'a' && t[1] != '{' ? "list of " : "", p->parts->name);
        else if (strcmp(t, "ay") == 0)
                fputs("string", f);
        else if (t[0] == 'a' && t[1] == '{')
                fprintf(f, "object of %ss", basic_word(t[3]));
        else if (t[0] == 'a')
                fprintf(f, "list of %ss", basic_word(t[1]));
        else
                fputs(basic_word(t[0]), f);
        switch (p->absent) {
        case JSON_OR_NULL:
        case JSON_ZERO_NULL:
        case JSON_MOST_NULL:
                fputs(" or null", f);
                break;
        case JSON_OR_NONE:
        case JSON_ZERO_NONE:
        case JSON_MOST_NONE:
                fputs(", or none", f);
                break;
        default:
                break;
        }
}

static bool told(struct rows *r, const struct json_shape *s) {
        for (size_t i = 0; i < r->n_told; i++)
                if (r->told[i] == s)
                        return true;
        r->told[r->n_told++] = s;
        return false;
}

static void put_shape(struct rows *r, const struct json_shape *s, const struct json_shape *before) {
        if (told(r, s))
                return;
        if (!before || strcmp(before->name, s->name) != 0)
                fprintf(r->f, "## %s\n", s->name);
        for (size_t i = 0; i < s->n; i++)
                if (!s->members[i].hidden) {
                        fprintf(r->f, "| `%s` | ", s->members[i].name);
                        put_type(r->f, s->members + i);
                        fputs(" |\n", r->f);
                }
}

static void put_parts(struct rows *r, const struct json_shape *s) {
        for (size_t i = 0; i < s->n; i++)
                if (s->members[i].parts) {
                        put_shape(r, s->members[i].parts, NULL);
                        put_parts(r, s->members[i].parts);
                }
}

static void put_rows(FILE *f) {
        struct rows r = { .f = f };

        for (size_t i = 0; i < ELEMENTSOF(shapes); i++) {
                put_shape(&r, shapes[i], i > 0 ? shapes[i - 1] : NULL);
                /* The parts follow when the next is another chapter. */
                if (i + 1 < ELEMENTSOF(shapes) && strcmp(shapes[i]->name, shapes[i + 1]->name) == 0)
                        continue;
                put_parts(&r, shapes[i]);
        }
}

/* Chapters that have rows, and the first two columns of these. */
static void put_page(FILE *f, char *text) {
        const char *chapter = NULL;
        bool begun = false; /* what stands before the first chapter is a list of them */

        for (char *line; (line = strsep(&text, "\n"));) {
                char *end;

                if (strncmp(line, "## ", 3) == 0)
                        begun = (chapter = line);
                if (!begun || strncmp(line, "| `", 3) != 0 || !(end = strchr(line + 3, '|')) ||
                    !(end = strchr(end + 1, '|')))
                        continue;
                if (chapter)
                        fprintf(f, "%s\n", chapter);
                chapter = NULL;
                fprintf(f, "%.*s\n", (int)(end + 1 - line), line);
        }
}

static void page_says_what_the_tables_say(void **state) {
        _cleanup_free_ char *text = NULL, *said = NULL, *expected = NULL;
        size_t n, n_said, n_expected;
        FILE *f;

        assert_true(read_file(page, 1 << 20, &text, &n) >= 0);
        f = open_memstream(&said, &n_said);
        put_page(f, text);
        fclose(f);
        f = open_memstream(&expected, &n_expected);
        put_rows(f);
        fclose(f);
        assert_string_equal(said, expected);
}

/* A table that is too long, or has a place twice, would be found by whoever uses it first. */
static void tables_are_sound(void **state) {
        struct rows r = { .f = fopen("/dev/null", "w") };

        for (size_t i = 0; i < ELEMENTSOF(shapes); i++) {
                put_shape(&r, shapes[i], NULL);
                put_parts(&r, shapes[i]);
        }
        fclose(r.f);
        for (size_t i = 0; i < r.n_told; i++) {
                const struct json_shape *s = r.told[i];

                assert_true(s->n <= JSON_MEMBERS_MAX);
                for (size_t k = 0; k < s->n; k++)
                        for (size_t l = 0; l < k; l++) {
                                assert_string_not_equal(s->members[k].name, s->members[l].name);
                                assert_true(s->members[k].at == 0 || s->members[k].at != s->members[l].at);
                        }
        }
}

int main(int argc, char **argv) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(page_says_what_the_tables_say),
                cmocka_unit_test(tables_are_sound),
        };

        if (argc < 2) {
                put_rows(stdout);
                return 0;
        }
        page = argv[1];
        return cmocka_run_group_tests(tests, NULL, NULL);
}
