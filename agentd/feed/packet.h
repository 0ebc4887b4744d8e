/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the bodies of packets from executors: bounded, validated, into the structs of lib/wire/messages.h
 * whose strings point into storage of the caller. A packet outside the bounds is -EBADMSG. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "lib/wire/feed.h"
#include "lib/wire/messages.h"

#define PACKET_ERROR_MAX 1024u /* bytes of an error text that are kept */
#define PACKET_PATH_MAX 4095u

/* ret has LINK_TASKS_MAX places; the texts in it are allocated and freed by packet_release_progress(). */
int packet_read_progress(const uint8_t *body, size_t size, struct task_progress *ret, size_t *ret_n,
                         uint32_t *ret_credits);
void packet_release_progress(struct task_progress *p, size_t n);

/* ret has LINK_SCAN_MAX places; release as above. */
int packet_read_entries(const uint8_t *body, size_t size, struct scan_entry *ret, size_t *ret_n);
void packet_release_entries(struct scan_entry *e, size_t n);

/* *ret_text is allocated. */
int packet_read_bye(const uint8_t *body, size_t size, struct feed_bye *ret, char **ret_text);

/* Writes as many grants as fit behind a header into buf (FEED_PACKET_MAX bytes). Returns how many, at least
 * 1, with *ret_size, or -EINVAL for a path that is empty or too long. */
int packet_write_grants(const struct task_grant *g, size_t n, uint8_t *buf, size_t *ret_size);
