/* SPDX-License-Identifier: Apache-2.0 */
/* Where Python programs are, of what faulthandler wrote of them (docs.python.org, faulthandler.register()),
 * and which program of a gang is elsewhere than the others. Pure. The text is the job's: nothing in it is
 * believed, and what goes on is short and printable. */
#pragma once

#include <stddef.h>

#define FRAME_MAX 96u

/* The innermost frame of the main thread, "save_checkpoint (bug.py:7)"; false where there is none. Signals to
 * a process are taken by its main thread, so that is the one called current. */
_Bool frame_innermost(const char *text, char ret[static FRAME_MAX]);

/* The one of n that is elsewhere than all the others, which are in one place, or -1. NULL: not known; with
 * those nobody stands out. *ret_usual: one of the others. */
int frames_odd_one(const char *const *frames, size_t n, size_t *ret_usual);

/* "3 in all_reduce (nets.py:12), 1 in save (bug.py:7)", the most frequent first; of more than four places,
 * the rest are counted as "elsewhere". "" where nothing is known. Returns buf. */
const char *frames_text(const char *const *frames, size_t n, char *buf, size_t size);
