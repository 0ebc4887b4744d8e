/* SPDX-License-Identifier: Apache-2.0 */
/* A JSON document into a struct, along the tables of schema.h. */
#pragma once

#include <jansson.h>

#include "masterd/spec/diagnostics.h"
#include "masterd/spec/locate.h"
#include "masterd/spec/schema.h"

/* Where the reader is, and where each entry of the diagnostics it made belongs. */
struct reader {
        struct diagnostics *diagnostics;
        const struct schema
                *root; /* in which the right place of a misplaced key is looked for; may be NULL */
        struct place here;
        struct place places[DIAGNOSTICS_MAX];
        bool placed[DIAGNOSTICS_MAX];
        bool flat;  /* the job's one role was written without "role": see short_form() */
        bool quiet; /* below something that has been warned about as a whole */
};

/* Reads object, which is the root, into the preset struct. 0 whether or not there were errors (see
 * diagnostics), -ENOMEM. */
int read_message(struct reader *r, const struct schema *s, json_t *object, void *message);

/* Adds an entry for the place. 0 or -ENOMEM. */
int reader_report(struct reader *r, enum diagnostic_severity severity, const struct place *place,
                  const char *format, ...) _printf_(4, 5);

/* The same for an error where the reader is. */
#define report_error(r, ...) reader_report(r, DIAGNOSTIC_ERROR, &(r)->here, __VA_ARGS__)

/* Fills in lines and columns of all entries that read_message() and reader_report() made. clean is the text
 * that was parsed, text what the user wrote (of the same size). */
void reader_locate(struct reader *r, const char *clean, const char *text, size_t size);
