/* SPDX-License-Identifier: Apache-2.0 */
/* Who did what, for the journal: one line for one event, with the fields that docs/operations.md describes.
 * What others have written is made harmless here: whatever is passed in, a line stays a line and its fields
 * are bounded. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "lib/base/cleanup.h"

#define AUDIT_TEXT_MAX 512u /* of one field, with the NUL */

/* Fields that are NULL, "" or 0 (AUDIT_NO_UID) are left out. Names of fields: PRIMUS_AUDIT_ and the member's,
 * but for job, node and role, which are called as in other lines. */
struct audit_line {
        const char *what;   /* "call", "join", "session", "suppressed" */
        const char *method; /* "Job.Kill"; of others than calls what they are about */
        const char *object; /* "/org/primus/Master1/job/7" */
        const char *arguments;
        uint32_t uid;
        uint32_t pid;
        const char *unit;       /* that the caller is in */
        const char *from;       /* the host whose agent has handed the call on */
        const char *permission; /* "owner", "root", "polkit:yes" */
        const char *action;     /* polkit's */
        const char *result;     /* "ok", or an error's name */
        const char *address;    /* of the other side of a connection */
        const char *token;      /* its id, which opens nothing */
        uint64_t suppressed;    /* so many had no line */
        uint64_t at_real;       /* when it was asked for: CLOCK_REALTIME usec */
        uint32_t job;
        const char *node;
        const char *role;
        uint32_t index;   /* with a role */
        uint32_t for_uid; /* whose rights it has */
};
#define AUDIT_NO_UID UINT32_MAX
/* What a line begins with: 0 would be root. */
#define AUDIT_LINE_EMPTY                                                                                     \
        { .uid = AUDIT_NO_UID, .for_uid = AUDIT_NO_UID }

/* Writes the line, whatever the level of logging. */
void audit_write(const struct audit_line *line);

/* s as printable ASCII: anything else, and a backslash, becomes \xNN; too long a text ends in "...". Returns
 * buf. */
char *audit_clean(const char *s, char *buf, size_t size);
