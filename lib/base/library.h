/* SPDX-License-Identifier: Apache-2.0 */
/* Libraries that a host may lack, loaded when they are needed first. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/cleanup.h"

#define LIBRARY_ERROR_MAX 512u

/* A function of the library, and the offset of the pointer to it in the caller's struct. */
struct library_symbol {
        const char *name;
        size_t offset;
        bool optional; /* without it the pointer is NULL, and the library is good nevertheless */
};

struct library {
        const char *sonames[3]; /* the first that is there is taken; NULL behind the last */
        const char *purpose;    /* "libcurl (7.85 or newer), which reads http and s3" */
        const char *remedy;     /* "install libcurl4" */
        const struct library_symbol *symbols;
        size_t n_symbols;
};

/* Loads it and fills in the functions of api. -ENOENT: the host lacks it; -ENOSYS: it lacks a function. error
 * is one sentence then, without a full stop: what is missing, what to do, and why in brackets. *ret_handle is
 * for library_unload(); who never unloads it passes NULL. */
int library_load(const struct library *l, void *api, void **ret_handle, char error[static LIBRARY_ERROR_MAX]);
/* The functions are gone after that. NULL: nothing. */
void library_unload(void *handle);
DEFINE_CLEANUP(void *, library_unload)
