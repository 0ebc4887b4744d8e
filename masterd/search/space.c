/* SPDX-License-Identifier: Apache-2.0 */
/* Drawing from a space. Every number is a hash of (seed, trial, name): a generator without a state, so a
 * trial is the same whoever makes it when. SHA-256 is GnuTLS's; that it is slower than a generator made for
 * that does not show: a microsecond for each parameter of a trial. */
#include "masterd/search/space.h"

#include <errno.h>
#include <gnutls/crypto.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "masterd/search/filled.h"
#include "masterd/search/space-parts.h"

#define TWO53 9007199254740992.0

static void put64(uint8_t *at, uint64_t x) {
        for (int i = 0; i < 8; i++)
                at[i] = (uint8_t)(x >> (8 * i));
}

/* 64 bits that depend on these three alone. */
static int draw_bits(uint64_t seed, uint32_t trial, const char *name, uint64_t *ret) {
        uint8_t text[16 + SPACE_NAME_MAX + 1], digest[32];
        size_t n = strnlen(name, SPACE_NAME_MAX);

        put64(text, seed);
        put64(text + 8, trial);
        memcpy(text + 16, name, n);
        if (gnutls_hash_fast(GNUTLS_DIG_SHA256, text, 16 + n, digest) < 0)
                return -ENOMEM;
        *ret = 0;
        for (int i = 8; i-- > 0;)
                *ret = *ret << 8 | digest[i];
        return 0;
}

/* Of n; the bias is below n / 2^64. */
static uint64_t bits_below(uint64_t bits, uint64_t n) {
        return (uint64_t)(((unsigned __int128)bits * n) >> 64);
}

static json_t *value_at(const struct parameter *p, double x) {
        return json_real(p->type == PARAMETER_LOG ? pow(p->base, x) : x);
}

static json_t *random_value(const struct parameter *p, uint64_t bits) {
        const double unit = (double)(bits >> 11) / TWO53;

        switch (p->type) {
        case PARAMETER_CONST:
                return json_incref(p->values);
        case PARAMETER_CATEGORICAL:
                return json_incref(json_array_get(p->values, bits_below(bits, p->count)));
        case PARAMETER_INT:
                if (p->step > 0)
                        return json_integer(p->first +
                                            (int64_t)bits_below(bits, p->count) * (int64_t)p->step);
                return json_integer(p->first + (int64_t)bits_below(bits, (uint64_t)(p->last - p->first) + 1));
        default:
                if (p->step > 0)
                        return value_at(p, p->low + (double)bits_below(bits, p->count) * p->step);
                return value_at(p, p->low + unit * (p->high - p->low));
        }
}

json_t *space_grid_value(const struct parameter *p, uint32_t digit) {
        const double share = p->count > 1 ? digit / (double)(p->count - 1) : 0.5;

        switch (p->type) {
        case PARAMETER_CONST:
                return json_incref(p->values);
        case PARAMETER_CATEGORICAL:
                return json_incref(json_array_get(p->values, digit));
        case PARAMETER_INT:
                if (p->step > 0)
                        return json_integer(p->first + (int64_t)digit * (int64_t)p->step);
                return json_integer(p->first + (int64_t)round(share * (double)(p->last - p->first)));
        default:
                return value_at(p,
                                p->step > 0 ? p->low + digit * p->step : p->low + share * (p->high - p->low));
        }
}

static bool holds_all(const struct parameter *p, json_t *const *values) {
        for (size_t i = 0; i < p->n_conditions; i++) {
                const struct condition *c = p->conditions + i;
                json_t *value;
                bool found = false;
                size_t k;

                json_array_foreach (c->values, k, value)
                        found |= values[c->on] && json_equal(value, values[c->on]);
                if (!found)
                        return false;
        }
        return true;
}

void space_leave_out(const struct space *s, json_t **values) {
        bool again = true;

        while (again) {
                again = false;
                for (size_t i = 0; i < s->n; i++)
                        if (values[i] && !holds_all(s->parameters + i, values)) {
                                values[i] = NULL;
                                again = true;
                        }
        }
}

/* Puts it where its name says. */
static int place_value(json_t *object, const char *name, json_t *value) {
        const char *dot;

        while ((dot = strchr(name, '.'))) {
                char part[SPACE_NAME_MAX + 1];
                json_t *inner;

                memcpy(part, name, (size_t)(dot - name));
                part[dot - name] = 0;
                inner = json_object_get(object, part);
                if (!inner) {
                        inner = json_object();
                        if (json_object_set_new(object, part, inner) < 0)
                                return -ENOMEM;
                }
                object = inner;
                name = dot + 1;
        }
        return json_object_set(object, name, value) < 0 ? -ENOMEM : 0;
}

/* Of all values, which it consumes; one that is NULL: there was no memory for it. */
static int assemble_values(const struct space *s, json_t **values, json_t **ret) {
        json_t *left[SPACE_NAMES_MAX], *object = json_object();
        int r = object ? 0 : -ENOMEM;

        for (size_t i = 0; i < s->n; i++)
                r = values[i] ? r : -ENOMEM;
        memcpy(left, values, s->n * sizeof(*values));
        space_leave_out(s, left);
        for (size_t i = 0; i < s->n; i++) {
                if (left[i] && r >= 0)
                        r = place_value(object, s->parameters[i].name, left[i]);
                json_decref(values[i]);
        }
        if (r < 0)
                json_decref(object);
        else
                *ret = object;
        return r;
}

static json_t *draw_value(const struct parameter *p, uint64_t seed, uint32_t trial) {
        uint64_t bits;

        return draw_bits(seed, trial, p->name, &bits) < 0 ? NULL : random_value(p, bits);
}

uint32_t space_n_points(const struct space *s) {
        return s->n_points;
}

int space_given(const struct space *s, uint64_t seed, uint32_t trial, json_t **ret) {
        json_t *values[SPACE_NAMES_MAX];
        uint64_t at;

        if (s->n_points > 0 && trial >= s->n_points)
                return -ENOENT;
        if (s->list) {
                *ret = json_incref(json_array_get(s->list, trial));
                return 0;
        }
        at = s->points ? s->points[trial] : trial;
        for (size_t i = s->n; i-- > 0;) {
                const struct parameter *p = s->parameters + i;

                values[i] = s->n_points > 0 ? space_grid_value(p, (uint32_t)(at % p->count))
                                            : draw_value(p, seed, trial);
                at /= s->n_points > 0 ? p->count : 1;
        }
        return assemble_values(s, values, ret);
}

bool space_has(const struct space *s, const char *name) {
        size_t n = strlen(name);
        json_t *point;
        size_t i;

        json_array_foreach (s->list, i, point)
                if (filled_value(point, name))
                        return true;
        for (i = 0; i < s->n; i++)
                if (strncmp(s->parameters[i].name, name, n) == 0 &&
                    (s->parameters[i].name[n] == 0 || s->parameters[i].name[n] == '.'))
                        return true;
        return false;
}

uint32_t space_trial_seed(uint64_t seed, uint32_t trial) {
        uint64_t bits = 0;

        (void)draw_bits(seed, trial, ".seed", &bits); /* no parameter is called so */
        return (uint32_t)(bits >> 33);
}
