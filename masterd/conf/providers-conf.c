/* SPDX-License-Identifier: Apache-2.0 */
/* Invariant: a provider with a mistake in what bounds it (Max=, MaxCostPerHour=, Pools=), or without a shape,
 * is none. */
#include "masterd/conf/providers-conf.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/labels.h"
#include "lib/base/log.h"
#include "lib/base/parse.h"
#include "lib/base/strv.h"

#define DIRECTORY PRIMUS_SYSCONFDIR "/providers"
#define MILLION UINT64_C(1000000)
#define COST_MAX UINT64_C(1000000000) /* whole units */

bool provider_name_valid(const char *s) {
        size_t n = strlen(s);

        return n > 0 && n <= PROVIDER_NAME_MAX && *s != '-' &&
               strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == n;
}

int provider_parse_cost(const char *value, void *target, const char **ret_why) {
        uint64_t whole, part = 0, *cost = target;
        const char *dot = strchr(value, '.');
        char text[24];
        size_t digits = dot ? strlen(dot + 1) : 0;

        *ret_why = "expected a number such as 0.35, with at most six digits behind the point";
        if ((size_t)snprintf(text, sizeof(text), "%.*s", dot ? (int)(dot - value) : (int)strlen(value),
                             value) >= sizeof(text) ||
            parse_u64(text, 0, COST_MAX, &whole) < 0 || (dot && (digits == 0 || digits > 6)))
                return -EINVAL;
        if (dot && parse_u64(dot + 1, 0, MILLION, &part) < 0)
                return -EINVAL;
        for (; dot && digits < 6; digits++)
                part *= 10;
        *cost = whole * MILLION + part;
        return 0;
}

static bool is_label(const char *word) {
        return label_check(word, NULL) >= 0;
}

static int parse_labels(const char *value, void *target, const char **ret_why) {
        *ret_why = "expected labels such as: zone=a spot";
        return conf_parse_words(value, SCHED_LABELS_MAX - 1, is_label, target);
}

static int parse_cpus(const char *value, void *target, const char **ret_why) {
        *ret_why = "expected a number of CPUs from 1";
        return parse_u32(value, 1, SCHED_CPU_MAX / 1000, target);
}

static int parse_gpus(const char *value, void *target, const char **ret_why) {
        *ret_why = "expected a number of GPUs up to 64";
        return parse_u32(value, 0, SCHED_GPUS_MAX, target);
}

static int parse_max(const char *value, void *target, const char **ret_why) {
        *ret_why = "expected a number of hosts up to 10000";
        return parse_u32(value, 0, PROVISION_INSTANCES_MAX, target);
}

#define PROVIDER(member) offsetof(struct provider_conf, member)
#define SHAPE(member) offsetof(struct provider_shape_conf, member)

static const struct conf_key keys[] = {
        { "Provider", "Min", parse_max, PROVIDER(policy.min), true, "0" },
        { "Provider", "Max", parse_max, PROVIDER(policy.max), true, "5" },
        { "Provider", "Spare", parse_max, PROVIDER(policy.spare), true, "0" },
        { "Provider", "StartingMax", parse_max, PROVIDER(policy.starting_max), false, "0" },
        { "Provider", "UpPerMinute", conf_parse_u32, PROVIDER(policy.per_minute), false, "0" },
        { "Provider", "MaxCostPerHour", provider_parse_cost, PROVIDER(policy.cost_max), true, "0" },
        { "Provider", "IdleSec", conf_parse_duration, PROVIDER(policy.idle_usec), false, "20min" },
        { "Provider", "MinLifeSec", conf_parse_duration, PROVIDER(policy.min_life_usec), false, "0" },
        { "Provider", "StartSec", conf_parse_duration, PROVIDER(policy.start_usec), false, "20min" },
        { "Provider", "LostSec", conf_parse_duration, PROVIDER(policy.lost_usec), false, "10min" },
        { "Provider", "VerbSec", conf_parse_duration, PROVIDER(verb_usec), false, "5min" },
        { "Provider", "Pools", conf_parse_string, PROVIDER(pools), true, "" },
        { "Provider", "Master", conf_parse_string, PROVIDER(master), false, "" },
        { "Provider", "PowerOff", conf_parse_bool, PROVIDER(power_off), false, "no" },
        { "Shape", "Cpus", parse_cpus, SHAPE(cpus), false, "" },
        { "Shape", "Memory", conf_parse_size, SHAPE(memory), false, "" },
        { "Shape", "Shm", conf_parse_size, SHAPE(shm), false, "" },
        { "Shape", "Gpus", parse_gpus, SHAPE(gpus), false, "0" },
        { "Shape", "GpuModel", conf_parse_string, SHAPE(gpu_model), false, "" },
        { "Shape", "GpuMemory", conf_parse_size, SHAPE(gpu_memory), false, "" },
        { "Shape", "Labels", parse_labels, SHAPE(labels), false, "" },
        { "Shape", "Max", parse_max, SHAPE(limits.max), true, "" },
        { "Shape", "CostPerHour", provider_parse_cost, SHAPE(limits.cost), true, "0" },
        {},
};

static void *find_shape(void *target, const char *name, const char **ret_why) {
        struct provider_conf *c = target;
        struct provider_shape_conf *s;

        for (size_t i = 0; i < c->n_shapes; i++)
                if (strcmp(c->shapes[i]->name, name) == 0)
                        return c->shapes[i];
        *ret_why = "there are 16 shapes already";
        if (c->n_shapes == PROVISION_SHAPES_MAX)
                return NULL;
        s = calloc(1, sizeof(*s));
        *ret_why = "out of memory";
        if (!s)
                return NULL;
        *s = (struct provider_shape_conf){ .limits.max = PROVISION_INSTANCES_MAX };
        snprintf(s->name, sizeof(s->name), "%s", name);
        c->shapes[c->n_shapes++] = s;
        return s;
}

static const struct conf_group groups[] = { { "Shape", find_shape }, {} };

void provider_conf_free(struct provider_conf *c) {
        if (!c)
                return;
        for (size_t i = 0; i < c->n_shapes; i++) {
                free(c->shapes[i]->gpu_model);
                strings_free(c->shapes[i]->labels);
                free(c->shapes[i]);
        }
        free(c->pools);
        free(c->master);
        free(c);
}

void provider_confs_done(struct provider_confs *c) {
        while (c->n > 0)
                provider_conf_free(c->items[--c->n]);
}

bool provider_conf_serves(const struct provider_conf *c, const char *pool) {
        size_t n = strlen(pool);

        if (!c->pools || !*c->pools)
                return true;
        for (const char *p = c->pools; *p;) {
                size_t word = strcspn(p, " \t,");
                if (word == n && strncmp(p, pool, n) == 0)
                        return true;
                p += word;
                p += strspn(p, " \t,");
        }
        return false;
}

/* A shape that does not say what its hosts have; NULL: there is none. */
static const struct provider_shape_conf *vague_shape(const struct provider_conf *c) {
        for (size_t i = 0; i < c->n_shapes; i++)
                if (c->shapes[i]->cpus == 0 || c->shapes[i]->memory == 0 ||
                    c->shapes[i]->memory > SCHED_MEMORY_MAX)
                        return c->shapes[i];
        return NULL;
}

/* What does not fit together, into buf; NULL: it all does. */
static const char *unsound(const struct provider_conf *c, char *buf, size_t size) {
        const struct provider_shape_conf *vague = vague_shape(c);
        const struct provision_conf *p = &c->policy;

        if (c->n_shapes == 0)
                return "it has no [Shape NAME]: nothing can be made";
        if (p->start_usec < USEC_PER_SEC || c->verb_usec < USEC_PER_SEC)
                return "StartSec= and VerbSec= are at least a second";
        if (c->master && (strpbrk(c->master, " \t\n") || strlen(c->master) > 260))
                return "Master= is HOST or HOST:PORT";
        if (vague)
                snprintf(buf, size, "[Shape %s] has to say Cpus= and Memory=", vague->name);
        else if (p->min > p->max || p->spare > p->max)
                snprintf(buf, size, "Min= and Spare= are at most Max= (%u)", p->max);
        else
                return NULL;
        return buf;
}

static int read_one(const char *root, const char *name, struct provider_conf **ret,
                    struct conf_report *report) {
        struct provider_conf *c = calloc(1, sizeof(*c));
        char path[sizeof("providers/") + PROVIDER_NAME_MAX + sizeof("/provider.conf")], text[128];
        const char *why;
        int r;

        if (!c)
                return -ENOMEM;
        snprintf(c->name, sizeof(c->name), "%.*s", (int)PROVIDER_NAME_MAX, name);
        c->verb_usec = 300 * USEC_PER_SEC;
        provision_conf_defaults(&c->policy);
        snprintf(path, sizeof(path), "providers/%s/provider.conf", c->name);
        r = conf_load_groups(root, path, keys, groups, c, report);
        why = r < 0 ? NULL : unsound(c, text, sizeof(text));
        if (why) {
                log_error("%s/%s/provider.conf: %s; the provider is left out", DIRECTORY, name, why);
                r = -EINVAL;
        } else if (r == -EINVAL)
                log_error("The provider %s is left out, for what is said above", name);
        if (r < 0) {
                provider_conf_free(c);
                return r;
        }
        c->policy.n_shapes = (uint32_t)c->n_shapes;
        for (size_t i = 0; i < c->n_shapes; i++)
                c->policy.shapes[i] = c->shapes[i]->limits;
        *ret = c;
        return 0;
}

static int by_name(const void *a, const void *b) {
        const struct provider_conf *const *x = a, *const *y = b;

        return strcmp((*x)->name, (*y)->name);
}

int provider_confs_read(const char *root, struct provider_confs *ret, struct conf_report *report) {
        _cleanup_closedir_ DIR *directory = NULL;
        _cleanup_free_ char *path = NULL;
        struct dirent *d;

        *ret = (struct provider_confs){};
        if (asprintf(&path, "%s%s", root ?: "", DIRECTORY) < 0) {
                path = NULL;
                return -ENOMEM;
        }
        directory = opendir(path);
        while (directory && (d = readdir(directory))) {
                int r;
                if (d->d_name[0] == '.' || strchr(d->d_name, '~'))
                        continue;
                if (!provider_name_valid(d->d_name)) {
                        log_warning("%s/%s is no provider: names are of a-z, 0-9 and -, at most %u", path,
                                    d->d_name, PROVIDER_NAME_MAX);
                        continue;
                }
                if (ret->n == PROVIDERS_MAX) {
                        log_error("There are more than %u providers; %s is left out", PROVIDERS_MAX,
                                  d->d_name);
                        continue;
                }
                r = read_one(root, d->d_name, ret->items + ret->n, report);
                if (r == -ENOMEM) {
                        provider_confs_done(ret);
                        return r;
                }
                if (r < 0 && report)
                        report->warnings++;
                ret->n += r >= 0;
        }
        if (ret->n > 0)
                qsort(ret->items, ret->n, sizeof(*ret->items), by_name);
        return 0;
}
