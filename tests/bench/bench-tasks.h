/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Assignments through masterd and a TLS link; the store in a folder below directory. Prints its lines. */
void bench_link(const char *directory);
