/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a space. Invariant: what is read is complete and within its bounds, so drawing checks nothing. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/heap.h"
#include "lib/base/try.h"
#include "masterd/search/space-parts.h"

#define WHOLE_MAX (INT64_C(1) << 53) /* what every reader of JSON has exactly */

static const char *const types[_PARAMETER_TYPE_MAX] = {
        [PARAMETER_CONST] = "const",
        [PARAMETER_INT] = "int",
        [PARAMETER_DOUBLE] = "double",
        [PARAMETER_LOG] = "log",
        [PARAMETER_CATEGORICAL] = "categorical",
};

struct reader {
        struct space *space;
        char *why;
        bool grid;
};

__attribute__((format(printf, 3, 4))) static int refuse(struct reader *r, const char *name,
                                                        const char *format, ...) {
        va_list ap;
        int n = snprintf(r->why, SPACE_WHY_MAX, "%.*s: ", (int)SPACE_NAME_MAX, name);

        va_start(ap, format);
        (void)vsnprintf(r->why + n, SPACE_WHY_MAX - (size_t)n, format, ap);
        va_end(ap);
        return -EINVAL;
}

static bool good_name(const char *s) {
        size_t n = strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-");

        return n > 0 && n <= 64 && !s[n] && *s != '-' && (*s < '0' || *s > '9');
}

#define NAME_RULE                                                                                            \
        "must be 1 to 64 letters, digits, _ or -, and begin with a letter or _ (a dot joins the names of objects in each other)"

/* Keys of a type beside "type", "count" and "when". */
static const char *const keys[_PARAMETER_TYPE_MAX][5] = {
        [PARAMETER_CONST] = { "val" },
        [PARAMETER_INT] = { "minval", "maxval", "step" },
        [PARAMETER_DOUBLE] = { "minval", "maxval", "step" },
        [PARAMETER_LOG] = { "minval", "maxval", "base" },
        [PARAMETER_CATEGORICAL] = { "vals" },
};

static int check_keys(struct reader *r, const struct parameter *p, json_t *j) {
        const char *key;
        json_t *value;

        json_object_foreach (j, key, value) {
                bool known = strcmp(key, "type") == 0 || strcmp(key, "when") == 0 ||
                             (strcmp(key, "count") == 0 && p->type != PARAMETER_CONST &&
                              p->type != PARAMETER_CATEGORICAL);

                for (size_t i = 0; !known && keys[p->type][i]; i++)
                        known = strcmp(key, keys[p->type][i]) == 0;
                if (!known)
                        return refuse(r, p->name, "'%.64s' is no key of a parameter of type %s", key,
                                      types[p->type]);
        }
        return 0;
}

static int read_number(struct reader *r, const struct parameter *p, json_t *j, const char *key, double *ret) {
        json_t *v = json_object_get(j, key);

        if (!v)
                return refuse(r, p->name, "%s is missing", key);
        if (!json_is_number(v) || !isfinite(json_number_value(v)))
                return refuse(r, p->name, "%s must be a number", key);
        *ret = json_number_value(v);
        return 0;
}

static int read_whole(struct reader *r, const struct parameter *p, json_t *j, const char *key, int64_t *ret) {
        double d = 0;

        TRY(read_number(r, p, j, key, &d));
        if (fabs(d) > (double)WHOLE_MAX || d != floor(d))
                return refuse(r, p->name, "%s must be a whole number of at most 2^53", key);
        *ret = (int64_t)d;
        return 0;
}

static int read_count(struct reader *r, struct parameter *p, json_t *j) {
        json_t *v = json_object_get(j, "count");

        if (!v)
                return 0;
        if (!json_is_integer(v) || json_integer_value(v) < 1 || json_integer_value(v) > SPACE_POINTS_MAX)
                return refuse(r, p->name, "count must be a whole number from 1 to %u", SPACE_POINTS_MAX);
        p->count = (uint64_t)json_integer_value(v);
        return 0;
}

/* How many points a grid has of it, where "count" does not say so. */
static int count_steps(struct reader *r, struct parameter *p) {
        double n;

        if (p->count > 0 && p->step > 0)
                return refuse(r, p->name, "count and step both say how many points it has; give one of them");
        if (p->count > 0) {
                if (p->type == PARAMETER_INT)
                        p->count = MIN(p->count, (uint64_t)(p->last - p->first) + 1);
                return 0;
        }
        if (p->step > 0) {
                n = p->type == PARAMETER_INT ? floor((double)(p->last - p->first) / p->step)
                                             : floor((p->high - p->low) / p->step * (1 + 1e-12));
                if (n >= SPACE_POINTS_MAX && r->grid)
                        return refuse(r, p->name, "has more than %u points; make step larger",
                                      SPACE_POINTS_MAX);
                p->count = (uint64_t)MIN(n, (double)WHOLE_MAX) + 1;
                return 0;
        }
        return r->grid ? refuse(r, p->name, "a grid needs \"count\" or \"step\" here: how many points") : 0;
}

static int read_range(struct reader *r, struct parameter *p, json_t *j) {
        int64_t step = 0;

        TRY(read_count(r, p, j));
        if (p->type == PARAMETER_INT) {
                TRY(read_whole(r, p, j, "minval", &p->first));
                TRY(read_whole(r, p, j, "maxval", &p->last));
                if (p->first > p->last)
                        return refuse(r, p->name, "minval must not be above maxval");
                if (json_object_get(j, "step")) {
                        TRY(read_whole(r, p, j, "step", &step));
                        if (step < 1)
                                return refuse(r, p->name, "step must be above 0");
                        p->step = (double)step;
                }
                return count_steps(r, p);
        }
        TRY(read_number(r, p, j, "minval", &p->low));
        TRY(read_number(r, p, j, "maxval", &p->high));
        if (p->low >= p->high || !isfinite(p->high - p->low))
                return refuse(r, p->name, "minval must be below maxval");
        if (json_object_get(j, "step")) {
                TRY(read_number(r, p, j, "step", &p->step));
                if (p->step <= 0 || p->step > p->high - p->low)
                        return refuse(r, p->name, "step must be above 0, and not above maxval - minval");
        }
        if (p->type == PARAMETER_LOG) {
                p->base = 10;
                if (json_object_get(j, "base"))
                        TRY(read_number(r, p, j, "base", &p->base));
                if (p->base <= 0 || p->base == 1)
                        return refuse(r, p->name, "base must be above 0, and not 1");
                if (!isfinite(pow(p->base, p->low)) || !isfinite(pow(p->base, p->high)))
                        return refuse(r, p->name,
                                      "minval and maxval are exponents of base %g: that is no number",
                                      p->base);
        }
        return count_steps(r, p);
}

static int read_values(struct reader *r, struct parameter *p, json_t *j) {
        json_t *vals = json_object_get(j, p->type == PARAMETER_CONST ? "val" : "vals");

        if (!vals)
                return refuse(r, p->name, "%s is missing", p->type == PARAMETER_CONST ? "val" : "vals");
        if (p->type == PARAMETER_CATEGORICAL &&
            (json_array_size(vals) == 0 || json_array_size(vals) > SPACE_VALUES_MAX))
                return refuse(r, p->name, "vals must be an array of 1 to %u values", SPACE_VALUES_MAX);
        p->values = json_incref(vals);
        p->count = p->type == PARAMETER_CONST ? 1 : json_array_size(vals);
        return 0;
}

static int add_parameter(struct reader *r, const char *name, struct parameter **ret) {
        struct space *s = r->space;

        if (s->n == SPACE_NAMES_MAX)
                return refuse(r, name, "there are more than %u parameters", SPACE_NAMES_MAX);
        s->parameters[s->n] = (struct parameter){ .name = strdup(name) };
        if (!s->parameters[s->n].name)
                return -ENOMEM;
        *ret = s->parameters + s->n++;
        return 0;
}

static int read_parameter(struct reader *r, const char *name, json_t *j) {
        const char *type = json_string_value(json_object_get(j, "type"));
        struct parameter *p = NULL;

        TRY(add_parameter(r, name, &p));
        if (!json_is_object(j)) {
                p->values = json_incref(j);
                p->count = 1;
                return 0;
        }
        while (type && p->type < _PARAMETER_TYPE_MAX && strcmp(type, types[p->type]) != 0)
                p->type++;
        if (!type || p->type == _PARAMETER_TYPE_MAX) {
                p->type = PARAMETER_CONST;
                return refuse(r, name, "type must be const, int, double, log or categorical");
        }
        p->when = json_object_get(j, "when");
        TRY(check_keys(r, p, j));
        return p->type == PARAMETER_CONST || p->type == PARAMETER_CATEGORICAL ? read_values(r, p, j)
                                                                              : read_range(r, p, j);
}

static int read_object(struct reader *r, const char *prefix, json_t *j, unsigned depth) {
        const char *key;
        json_t *value;

        if (json_object_size(j) == 0)
                return refuse(r, prefix, "is an empty object");
        json_object_foreach (j, key, value) {
                char name[SPACE_NAME_MAX + 1];

                if (!good_name(key))
                        return refuse(r, key, "a name " NAME_RULE);
                if (snprintf(name, sizeof(name), "%s%s%s", prefix, *prefix ? "." : "", key) >=
                    (int)sizeof(name))
                        return refuse(r, key, "is longer than %u bytes with the names around it",
                                      SPACE_NAME_MAX);
                if (!json_is_object(value) || json_object_get(value, "type"))
                        TRY(read_parameter(r, name, value));
                else if (depth == SPACE_DEPTH_MAX)
                        return refuse(r, name, "objects are nested deeper than %u", SPACE_DEPTH_MAX);
                else
                        TRY(read_object(r, name, value, depth + 1));
        }
        return 0;
}

static int by_name(const void *a, const void *b) {
        return strcmp(((const struct parameter *)a)->name, ((const struct parameter *)b)->name);
}

static struct parameter *find_parameter(struct space *s, const char *name) {
        struct parameter key = { .name = (char *)(uintptr_t)name };

        return bsearch(&key, s->parameters, s->n, sizeof(*s->parameters), by_name);
}

#define CONDITIONS_MAX 8u        /* of one parameter, and in a row */
#define CONDITION_VALUES_MAX 64u /* of one of them */

static bool is_scalar(const json_t *j) {
        return !json_is_object(j) && !json_is_array(j);
}

static int read_condition(struct reader *r, struct parameter *p, const char *name, json_t *value) {
        struct space *s = r->space;
        struct parameter *on = find_parameter(s, name);
        json_t *values, *one;
        size_t i;

        if (!on)
                return refuse(r, p->name, "when: there is no parameter '%.64s'", name);
        if (on->type != PARAMETER_CATEGORICAL && on->type != PARAMETER_CONST && on->type != PARAMETER_INT)
                return refuse(r, p->name, "when: '%.64s' must be categorical, int or const", name);
        values = json_is_array(value) ? json_incref(value) : json_pack("[O]", value);
        if (!values)
                return -ENOMEM;
        p->conditions[p->n_conditions++] = (struct condition){ (uint32_t)(on - s->parameters), values };
        if (json_array_size(values) == 0 || json_array_size(values) > CONDITION_VALUES_MAX)
                return refuse(r, p->name, "when: '%.64s' needs 1 to %u values", name, CONDITION_VALUES_MAX);
        json_array_foreach (values, i, one)
                if (!is_scalar(one))
                        return refuse(
                                r, p->name,
                                "when: a value of '%.64s' must be a text, a number, true, false or null",
                                name);
        return 0;
}

static int read_conditions(struct reader *r, struct parameter *p) {
        const char *name;
        json_t *value;

        if (!p->when)
                return 0;
        if (json_object_size(p->when) == 0 || json_object_size(p->when) > CONDITIONS_MAX)
                return refuse(r, p->name, "when must be an object of 1 to %u names with values",
                              CONDITIONS_MAX);
        p->conditions = calloc(CONDITIONS_MAX, sizeof(*p->conditions));
        if (!p->conditions)
                return -ENOMEM;
        json_object_foreach (p->when, name, value)
                TRY(read_condition(r, p, name, value));
        return 0;
}

/* Who depends on whom, and how deep that goes; no circle. Each parameter is looked at once. */
static int find_depth(struct reader *r, struct parameter *p, unsigned *ret) {
        unsigned depth = 0;

        if (p->depth == DEPTH_ASKED)
                return refuse(r, p->name, "when: it depends on itself");
        if (p->depth == 0) {
                p->depth = DEPTH_ASKED;
                for (size_t i = 0; i < p->n_conditions; i++) {
                        unsigned below = 0;

                        TRY(find_depth(r, r->space->parameters + p->conditions[i].on, &below));
                        depth = MAX(depth, below);
                }
                if (depth == CONDITIONS_MAX)
                        return refuse(r, p->name,
                                      "when: more than %u parameters in a row depend on each other",
                                      CONDITIONS_MAX);
                p->depth = depth + 1;
        }
        *ret = p->depth;
        return 0;
}

/* ---- the grid ---- */

/* A parameter that is not there at this point of the product is at its first digit, or the point is one that
 * stands there already. */
static int is_point(struct space *s, uint64_t point, bool *ret) {
        json_t *values[SPACE_NAMES_MAX] = { NULL }, *left[SPACE_NAMES_MAX];
        uint32_t digits[SPACE_NAMES_MAX];
        int r = 0;

        *ret = true;
        for (size_t i = s->n; i-- > 0; point /= s->parameters[i].count) {
                digits[i] = (uint32_t)(point % s->parameters[i].count);
                left[i] = values[i] = space_grid_value(s->parameters + i, digits[i]);
                if (!values[i])
                        r = -ENOMEM;
        }
        if (r >= 0)
                space_leave_out(s, left);
        for (size_t i = 0; i < s->n; i++) {
                *ret &= left[i] || digits[i] == 0;
                json_decref(values[i]);
        }
        return r;
}

/* So that nobody waits: each is a comparison, or a value that is made, and that is 0.2 s. */
#define POINTS_WORK_MAX 2000000u

static int find_points(struct reader *r) {
        struct space *s = r->space;
        uint64_t product = 1, work = 0;

        for (size_t i = 0; i < s->n; i++) {
                product *= s->parameters[i].count;
                if (product > SPACE_POINTS_MAX)
                        return refuse(r, s->parameters[i].name,
                                      "with this one the grid has more than %u points", SPACE_POINTS_MAX);
        }
        for (size_t i = 0; i < s->n; i++)
                for (size_t k = 0; k < s->parameters[i].n_conditions; k++)
                        work += json_array_size(s->parameters[i].conditions[k].values);
        s->n_points = (uint32_t)product;
        if (work == 0)
                return 0; /* all of them */
        if (product * (work + s->n) > POINTS_WORK_MAX)
                return refuse(r, "when",
                              "a grid of %" PRIu64
                              " points, with these conditions, is too large; draw at random",
                              product);
        s->n_points = 0;
        s->points = calloc(product, sizeof(*s->points));
        if (!s->points)
                return -ENOMEM;
        for (uint64_t i = 0; i < product; i++) {
                bool point;

                TRY(is_point(s, i, &point));
                if (point)
                        s->points[s->n_points++] = i;
        }
        return 0;
}

/* ---- how large ---- */

/* Bytes of memory of a value with all that is in it, about. */
static size_t json_bytes(const json_t *j) {
        size_t sum = heap_of(sizeof(json_t) + 2 * sizeof(void *)), i;
        json_t *value;
        const char *key;

        if (json_is_string(j))
                sum += heap_of(json_string_length(j) + 1);
        json_array_foreach (j, i, value)
                sum += sizeof(void *) + json_bytes(value);
        json_object_foreach ((json_t *)(uintptr_t)j, key, value)
                sum += heap_of(8 * sizeof(void *) + strlen(key)) + json_bytes(value);
        return sum;
}

static size_t text_size(const json_t *j) {
        _cleanup_free_ char *text = json_dumps(j, JSON_COMPACT | JSON_ENCODE_ANY);

        return text ? strlen(text) : SIZE_MAX / 4;
}

#define NUMBER_MAX 32u /* bytes of one as JSON */

static void weigh_space(struct space *s) {
        s->bytes = heap_of(sizeof(*s)) + heap_of(s->n * sizeof(*s->parameters)) +
                   (s->points ? heap_of(s->n_points * sizeof(*s->points)) : 0);
        for (size_t i = 0; i < s->n; i++) {
                const struct parameter *p = s->parameters + i;
                size_t largest = NUMBER_MAX, k;
                json_t *value;

                if (p->type == PARAMETER_CONST)
                        largest = text_size(p->values);
                if (p->type == PARAMETER_CATEGORICAL)
                        json_array_foreach (p->values, k, value)
                                largest = MAX(largest, text_size(value));
                s->given_max += strlen(p->name) + 8 + largest;
                s->bytes += heap_of(strlen(p->name) + 1) + json_bytes(p->values);
                for (k = 0; k < p->n_conditions; k++)
                        s->bytes += heap_of(sizeof(*p->conditions)) + json_bytes(p->conditions[k].values);
        }
}

size_t space_bytes(const struct space *s) {
        return s->bytes;
}

size_t space_given_max(const struct space *s) {
        return s->given_max;
}

int space_read(json_t *j, bool grid, struct space **ret, char why[static SPACE_WHY_MAX]) {
        _cleanup_(space_free_p) struct space *s = calloc(1, sizeof(*s));
        struct reader r = { .space = s, .why = why, .grid = grid };
        unsigned depth;

        *why = 0;
        if (!s)
                return -ENOMEM;
        s->parameters = calloc(SPACE_NAMES_MAX, sizeof(*s->parameters));
        if (!s->parameters)
                return -ENOMEM;
        if (json_object_size(j) == 0) {
                snprintf(why, SPACE_WHY_MAX, "must be an object with at least one parameter");
                return -EINVAL;
        }
        TRY(read_object(&r, "", j, 1));
        qsort(s->parameters, s->n, sizeof(*s->parameters), by_name);
        for (size_t i = 0; i < s->n; i++)
                TRY(read_conditions(&r, s->parameters + i));
        for (size_t i = 0; i < s->n; i++)
                TRY(find_depth(&r, s->parameters + i, &depth));
        if (grid)
                TRY(find_points(&r));
        s->parameters = reallocarray(s->parameters, s->n, sizeof(*s->parameters)) ?: s->parameters;
        weigh_space(s);
        *ret = TAKE_PTR(s);
        return 0;
}

int space_of_list(json_t *points, struct space **ret) {
        struct space *s = calloc(1, sizeof(*s));
        json_t *point;
        size_t i;

        if (!s)
                return -ENOMEM;
        s->list = json_incref(points);
        s->n_points = (uint32_t)json_array_size(points);
        s->bytes = heap_of(sizeof(*s)) + json_bytes(points);
        json_array_foreach (points, i, point)
                s->given_max = MAX(s->given_max, text_size(point));
        *ret = s;
        return 0;
}

struct space *space_free(struct space *s) {
        if (!s)
                return NULL;
        for (size_t i = 0; i < s->n; i++) {
                struct parameter *p = s->parameters + i;

                for (size_t k = 0; k < p->n_conditions; k++)
                        json_decref(p->conditions[k].values);
                free(p->conditions);
                free(p->name);
                json_decref(p->values);
        }
        free(s->parameters);
        free(s->points);
        json_decref(s->list);
        free(s);
        return NULL;
}

/* ---- a list ---- */

static int check_names(json_t *j, unsigned depth, char why[static SPACE_WHY_MAX]) {
        const char *key;
        json_t *value;

        json_object_foreach (j, key, value) {
                if (!good_name(key)) {
                        snprintf(why, SPACE_WHY_MAX, "'%.64s': a name " NAME_RULE, key);
                        return -EINVAL;
                }
                if (json_is_object(value) && depth == SPACE_DEPTH_MAX) {
                        snprintf(why, SPACE_WHY_MAX, "'%.64s': objects are nested deeper than %u", key,
                                 SPACE_DEPTH_MAX);
                        return -EINVAL;
                }
                if (json_is_object(value))
                        TRY(check_names(value, depth + 1, why));
        }
        return 0;
}

int space_check_given(json_t *j, char why[static SPACE_WHY_MAX]) {
        *why = 0;
        if (!json_is_object(j) || json_object_size(j) == 0) {
                snprintf(why, SPACE_WHY_MAX, "must be an object with at least one parameter");
                return -EINVAL;
        }
        return check_names(j, 1, why);
}
