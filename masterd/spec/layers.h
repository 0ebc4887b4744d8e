/* SPDX-License-Identifier: Apache-2.0 */
/* What a site says of all jobs, or of those of some pools: defaults, which stand under what a job's own file
 * says, and forced values, which no job may have otherwise. Pure: texts in, texts out; who may write the
 * files and where they lie is masterd/conf/job-defaults.h's. primus-masterd.conf(5) has the form. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "lib/base/cleanup.h"
#include "masterd/spec/spec.h"

#define LAYERS_MAX 64u
#define LAYER_TEXT_MAX ((size_t)64 << 10)
#define LAYER_NAME_MAX 255u

/* The files, in the order in which they were added: of two defaults for one key the later file's holds. */
struct layers;

/* NULL: out of memory. */
struct layers *layers_new(void);
struct layers *layers_free(struct layers *l);
DEFINE_CLEANUP(struct layers *, layers_free)

/* Takes a file's text. Everything in it is held against the schema as if a job said so. -EBADMSG, and
 * *ret_error (allocated) is "NAME:LINE:COLUMN: …" or "NAME: KEY: …"; -E2BIG: too many files; -ENOMEM. */
int layers_add(struct layers *l, const char *name, const char *text, size_t size, char **ret_error);

size_t layers_n(const struct layers *l); /* l may be NULL, here and below: there are none */
const char *layers_name(const struct layers *l, size_t i);
const char *layers_text(const struct layers *l, size_t i); /* as it was added, compact */
/* The pools that it is for, n of them; 0: all. */
size_t layers_pools(const struct layers *l, size_t i, const char *const **ret);

/* root: a job's configuration in its long form (short_form()). Adds what holds for its pool (pool NULL: what
 * root says, or "default") and what root does not say itself. origins: NULL, or an object that gets for each
 * place where something was added ("role[0].env.X") the name of its file. 0 or -ENOMEM. */
int layers_apply(const struct layers *l, const char *pool, json_t *root, json_t *origins);

/* Whether all that is forced for the pool of the spec is so. 0: it is; -EBADMSG with *ret_error (allocated):
 * "role[0].memoryMb: 10-site.json forces 1024 …"; -ENOMEM. */
int layers_check(const struct layers *l, const struct job_spec *s, char **ret_error);

/* Where each value of the spec, which spec_parse_layered() made of text, comes from: called for each in the
 * order of the effective configuration; from is NULL of what the text says, "" of a preset, else the file's
 * name. value is JSON. A negative result of told ends it. text as of spec_parse().
 * -ENOMEM. */
int layers_origins(const struct layers *l, const char *pool, const char *text, size_t size,
                   const struct job_spec *s,
                   int (*told)(const char *path, const char *value, const char *from, void *userdata),
                   void *userdata);
