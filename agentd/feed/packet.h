/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the bodies of packets from executors: bounded, into the structs of lib/wire/messages.h whose arrays
 * point into the packet and are not looked into. A packet outside the bounds is -EBADMSG. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "lib/wire/feed.h"
#include "lib/wire/messages.h"

#define PACKET_ERROR_MAX 1024u /* bytes of an error text that are kept */

int packet_read_progress(const uint8_t *body, size_t size, struct feed_report *ret);
int packet_read_entries(const uint8_t *body, size_t size, struct scan_batch *ret);

/* *ret_text is allocated. */
int packet_read_bye(const uint8_t *body, size_t size, struct feed_bye *ret, char **ret_text);
