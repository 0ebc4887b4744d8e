/* SPDX-License-Identifier: Apache-2.0 */
/* Another configuration from an effective one and some changes. Pure. What comes out has passed the same
 * rules as a configuration that is submitted. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "masterd/spec/spec.h"

#define SPEC_EDITS_MAX 64u
#define SPEC_EDIT_TEXT_MAX 512u

enum edit_kind {
        EDIT_SET,         /* path = value */
        EDIT_SCALE,       /* role path has value executors; minNum follows where it was the same as num */
        EDIT_ADD_ROLE,    /* value: JSON of one role */
        EDIT_REMOVE_ROLE, /* path: its name */
        EDIT_ADD_SOURCE,  /* value: JSON of one source of its data, an entry of inputs or topics */
};

/* path: keys with dots between them, "priority", "env.LR"; of a role behind its name, "worker.vcores" or
 * "role.worker.vcores". value: as it would stand in the configuration (numbers, truth values and texts also
 * without quotes; objects and arrays as JSON); "null": as if the key were not given. */
struct spec_edit {
        enum edit_kind kind;
        const char *path, *value;
};

/* When a change is felt. */
struct edit_effects {
        bool next;   /* some of it only by attempts that begin from now on */
        bool limits; /* what units of a role may use */
        bool stays;  /* none of its keys has another value */
};

/* -EINVAL: ret_error says what is wrong with it (one line); -ENOMEM. *ret_text is the new effective
 * configuration, *ret_what tells people what has changed: "worker.num: 2 -> 4, priority: 0 -> 5". Both are
 * allocated. */
int spec_edit(const struct job_spec *before, const struct spec_edit *edits, size_t n, struct job_spec **ret,
              char **ret_text, char **ret_what, struct edit_effects *ret_effects,
              char ret_error[static SPEC_EDIT_TEXT_MAX]);

/* The same for a job that is to be another one: any key may have another value. */
int spec_edit_anew(const struct job_spec *before, const struct spec_edit *edits, size_t n, char **ret_text,
                   char ret_error[static SPEC_EDIT_TEXT_MAX]);
