/* SPDX-License-Identifier: Apache-2.0 */
/* What a search says must go together. Invariant: of a spec that passed, masterd/job/trials.c reads space,
 * points and rungs without an error. */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/try.h"
#include "masterd/search/filled.h"
#include "masterd/search/space.h"
#include "masterd/spec/check.h"

static void json_unref_p(json_t **v) {
        json_decref(*v);
}

static struct place in_search(const char *key) {
        struct place p = place_of("search");

        place_push(&p, key, 0);
        return p;
}

/* Which keys a method needs, and which mean nothing to it. */
enum part {
        PART_SPACE = 1,
        PART_POINTS = 2,
        PART_TRIALS = 4,
        PART_TIME = 8,
        PART_METRIC = 16,
        PART_RUNGS = 32,
};
static const struct {
        unsigned needs, may;
} parts[_SEARCH_METHOD_MAX] = {
        [SEARCH_RANDOM] = { PART_SPACE | PART_TRIALS, PART_METRIC },
        [SEARCH_GRID] = { PART_SPACE, PART_METRIC | PART_TRIALS },
        [SEARCH_LIST] = { PART_POINTS, PART_METRIC | PART_TRIALS },
        [SEARCH_EXTERNAL] = { PART_TRIALS | PART_METRIC, PART_SPACE },
        [SEARCH_ASHA] = { PART_SPACE | PART_TRIALS | PART_TIME | PART_METRIC, 0 },
        [SEARCH_ADAPTIVE] = { PART_SPACE | PART_TRIALS | PART_TIME | PART_METRIC, PART_RUNGS },
        [SEARCH_HYPERBAND] = { PART_SPACE | PART_TRIALS | PART_TIME | PART_METRIC, 0 },
};

static int check_parts(struct reader *r, const struct search_spec *s) {
        const struct {
                enum part part;
                const char *key, *what;
                bool given;
        } all[] = {
                { PART_SPACE, "space", "what the parameters can be", s->space },
                { PART_POINTS, "points", "an array with the parameters of each trial", s->points },
                { PART_TRIALS, "maxTrials", "how many trials there are to be", s->max_trials > 0 },
                { PART_TIME, "maxTime", "how many units the best are to train", s->max_time > 0 },
                { PART_METRIC, "metric", "by what trials are compared", s->metric },
                { PART_RUNGS, "rungs", "how many rungs each bracket has", s->rungs },
        };
        int q = 0;

        for (size_t i = 0; i < ELEMENTSOF(all) && q >= 0; i++) {
                bool needed = parts[s->method].needs & all[i].part;

                if (needed && !all[i].given)
                        q = report_at(r, in_search(all[i].key), "missing: %s", all[i].what);
                else if (all[i].given && !needed && !(parts[s->method].may & all[i].part))
                        q = report_at(r, in_search(all[i].key), "means nothing to this method; remove it");
        }
        return q;
}

static int check_variant(struct reader *r, const struct search_spec *s) {
        if (s->variant != SEARCH_VARIANT_PROMOTE)
                return 0;
        if (!search_has_rungs((enum search_method)s->method))
                return report_at(r, in_search("variant"), "means nothing to this method; remove it");
        if (s->searcher)
                return report_at(r, in_search("variant"),
                                 "a " SPEC_SEARCHER " does not know of parked trials; remove one of the two");
        if (s->max_trials > SEARCH_PROMOTE_MAX)
                return report_at(r, in_search("maxTrials"),
                                 "at most %u where trials are parked, since each stays until the end; with "
                                 "\"variant\": \"stop\" there may be more",
                                 SEARCH_PROMOTE_MAX);
        return 0;
}

static int read_rungs(struct reader *r, const struct search_spec *s) {
        _cleanup_(json_unref_p) json_t *j = json_loads(s->rungs, 0, NULL);
        json_t *n;
        size_t i;

        if (json_array_size(j) == 0 || json_array_size(j) > SEARCH_BRACKETS_MAX)
                return report_at(r, in_search("rungs"), "must be an array of 1 to %u numbers",
                                 SEARCH_BRACKETS_MAX);
        json_array_foreach (j, i, n)
                if (!json_is_integer(n) || json_integer_value(n) < 1 ||
                    json_integer_value(n) > s->max_rungs ||
                    (i > 0 && json_integer_value(n) >= json_integer_value(json_array_get(j, i - 1))))
                        return report_at(r, in_search("rungs"),
                                         "must be falling numbers of 1 to maxRungs (%" PRIu32 ")",
                                         s->max_rungs);
        return 0;
}

/* How many points there are, which is how many trials. */
static int count_points(struct reader *r, struct search_spec *s, const char *key, uint32_t n) {
        if (s->max_trials > 0 && s->max_trials != n)
                return report_at(r, in_search("maxTrials"),
                                 "%s has %" PRIu32 " points: that many trials there are; remove it", key, n);
        s->max_trials = n;
        return 0;
}

/* What a trial's parameters are called where arguments have them in. space: NULL: only the searcher knows. */
static int check_arguments(struct reader *r, const struct job_spec *job, const struct space *space) {
        char name[SPACE_NAME_MAX + 1];

        for (size_t i = 0; i < job->n_roles; i++) {
                const struct role_spec *role = job->roles + i;
                const char *at = role->command;

                if (job->search.searcher && strcmp(role->name, SPEC_SEARCHER) == 0)
                        continue;
                if (at && filled_next(&at, name))
                        return report_at(
                                r, place_in_role(i, "command"),
                                "a shell would take the value of {hp.%s} for a part of the program; say argv, or "
                                "read $PRIMUS_TRIAL_PARAMS",
                                name);
                for (size_t k = 0; !role->command && k < role->n_argv; k++)
                        for (at = role->argv[k]; filled_next(&at, name);) {
                                if (k == 0)
                                        return report_at(r, place_in_role(i, "argv"),
                                                         "{hp.%s}: which program it is cannot be a parameter",
                                                         name);
                                if (space && !space_has(space, name))
                                        return report_at(r, place_in_role(i, "argv"),
                                                         "{hp.%s}: the search has no parameter of that name",
                                                         name);
                        }
        }
        return 0;
}

static int read_space(struct reader *r, struct job_spec *job) {
        struct search_spec *s = &job->search;
        _cleanup_(json_unref_p) json_t *j = json_loads(s->space, 0, NULL);
        _cleanup_(space_free_p) struct space *space = NULL;
        char why[SPACE_WHY_MAX];
        int q = space_read(j, s->method == SEARCH_GRID, &space, why);

        if (q == -EINVAL)
                return report_at(r, in_search("space"), "%s", why);
        if (q < 0)
                return q;
        if (space_given_max(space) > SPACE_GIVEN_MAX)
                return report_at(r, in_search("space"),
                                 "a trial would be given up to %zu bytes; at most %u are accepted",
                                 space_given_max(space), SPACE_GIVEN_MAX);
        q = check_arguments(r, job, space);
        return q < 0 || s->method != SEARCH_GRID ? q : count_points(r, s, "space", space_n_points(space));
}

static int read_points(struct reader *r, struct job_spec *job) {
        struct search_spec *s = &job->search;
        _cleanup_(json_unref_p) json_t *j = json_loads(s->points, 0, NULL);
        _cleanup_(space_free_p) struct space *space = NULL;
        char why[SPACE_WHY_MAX];
        json_t *point;
        size_t i;

        if (json_array_size(j) == 0 || json_array_size(j) > SPACE_POINTS_MAX)
                return report_at(r, in_search("points"), "must be an array of 1 to %u objects",
                                 SPACE_POINTS_MAX);
        json_array_foreach (j, i, point) {
                _cleanup_free_ char *text = NULL;
                struct place p = in_search("points");

                place_push(&p, NULL, i);
                if (space_check_given(point, why) < 0)
                        return report_at(r, p, "%s", why);
                text = json_dumps(point, JSON_COMPACT);
                if (!text)
                        return -ENOMEM;
                if (strlen(text) > SPACE_GIVEN_MAX)
                        return report_at(r, p, "has %zu bytes; at most %u are accepted", strlen(text),
                                         SPACE_GIVEN_MAX);
        }
        TRY(space_of_list(j, &space));
        TRY(check_arguments(r, job, space));
        return count_points(r, s, "points", (uint32_t)json_array_size(j));
}

int search_spec_settings(const struct search_spec *spec, struct search_settings *ret) {
        _cleanup_(json_unref_p) json_t *rungs = NULL;
        json_t *n;
        size_t i;

        *ret = (struct search_settings){
                .method = (enum search_method)spec->method,
                .mode = (enum search_mode)spec->mode,
                .variant = (enum search_variant)spec->variant,
                .larger = !spec->smaller,
                .searcher = spec->searcher,
                .max_trials = spec->max_trials,
                .max_concurrent = spec->max_concurrent,
                .divisor = spec->divisor,
                .max_rungs = spec->max_rungs,
                .max_time = spec->max_time,
        };
        if (!spec->rungs)
                return 0;
        rungs = json_loads(spec->rungs, 0, NULL);
        if (!rungs)
                return -ENOMEM;
        json_array_foreach (rungs, i, n)
                if (i < SEARCH_BRACKETS_MAX)
                        ret->rungs[ret->n_rungs++] = (uint32_t)json_integer_value(n);
        return 0;
}

static int check_searcher(struct reader *r, const struct job_spec *job) {
        const char *method = search_method_to_string((enum search_method)job->search.method);
        size_t i = 0;

        while (i < job->n_roles && strcmp(job->roles[i].name, SPEC_SEARCHER) != 0)
                i++;
        if (i == job->n_roles)
                return job->search.method == SEARCH_EXTERNAL
                               ? report_at(r, place_of("role"),
                                           "method \"external\" needs a role " SPEC_SEARCHER
                                           ", which says what the trials are given")
                               : 0;
        if (job->search.method < SEARCH_EXTERNAL)
                return report_at(r, place_in_role(i, "roleName"),
                                 "a search by \"%s\" has no " SPEC_SEARCHER
                                 "; say method \"external\", or call the role otherwise",
                                 method);
        if (job->roles[i].num != 1)
                return report_at(r, place_in_role(i, "num"), "a search has one " SPEC_SEARCHER);
        if (job->search.space && strlen(job->search.space) > SPEC_SEARCHER_SPACE_MAX)
                return report_at(r, in_search("space"),
                                 "has %zu bytes; a " SPEC_SEARCHER " is told at most %u",
                                 strlen(job->search.space), SPEC_SEARCHER_SPACE_MAX);
        if (job->n_roles == 1)
                return report_at(r, place_of("role"),
                                 "the trials have no role: there is the " SPEC_SEARCHER " alone");
        return 1;
}

int check_search(struct reader *r, struct job_spec *job) {
        struct search_spec *s = &job->search;
        size_t errors = r->diagnostics->n_errors;
        int q;

        s->searcher = false;
        if (!search_spec_given(s))
                return 0;
        if (job->array.array)
                return report_at(r, place_of("array"),
                                 "a search is an array of its own; remove one of the two");
        if (spec_n_sources(job) > 0 && job->staging_dir)
                return report_at(
                        r, place_of("search"),
                        "its trials would share the progress of inputManager's stagingDir; remove that");
        q = check_searcher(r, job);
        s->searcher = q > 0;
        q = q < 0 ? q : check_parts(r, s);
        q = q < 0 ? q : check_variant(r, s);
        if (q >= 0 && s->rungs)
                q = read_rungs(r, s);
        if (q < 0 || r->diagnostics->n_errors > errors)
                return q;
        if (s->points)
                return read_points(r, job);
        return s->space ? read_space(r, job) : check_arguments(r, job, NULL);
}
