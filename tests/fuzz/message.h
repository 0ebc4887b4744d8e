/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of any contents, for what reads them: the values come from the input, along a signature. They
 * never go over a socket, so it is fast; what libsystemd itself does with bytes from outside is not tried. */
#pragma once

#include <systemd/sd-bus.h>

#include "tests/fuzz/fuzz.h"

/* Reads one sealed message: appends to again what it has read, in the same form, and returns 1; or what the
 * reader returned when that is not 1. */
typedef int (*message_reader)(sd_bus_message *m, sd_bus_message *again);

struct message_target {
        const char *signature; /* of a whole message */
        message_reader read;
};

/* An empty call, at a bus that nobody is at the other end of. */
sd_bus_message *fuzz_message_new(void);

/* Appends values of these types. keys: names that keys of dictionaries have, one in two of them; NULL-ended.
 */
void fuzz_message_append(sd_bus_message *m, const char *signature, struct fuzz_input *in,
                         const char *const *keys);
/* The same; words: what one in two of the other texts and arrays of bytes is, NULL-ended. Descriptors ("h")
 * are of /dev/null, a file without a name, or a pipe. */
void fuzz_message_append_words(sd_bus_message *m, const char *signature, struct fuzz_input *in,
                               const char *const *keys, const char *const *words);

/* The input's first byte chooses a target, the second whether its message has its signature or that of
 * another. What is read from it can be written, and is read from that again. */
void fuzz_message_targets(const struct message_target *targets, size_t n, const char *const *keys,
                          const uint8_t *data, size_t size);
