/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Assignments through masterd and a TLS link; the store in a folder below directory. Prints its lines. */
void bench_link(const char *directory);
/* The same exchange of messages by sd-bus alone, window of them under way: tasks by a second of the granting
 * side's processor time. */
double bench_raw(unsigned window);
