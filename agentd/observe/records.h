/* SPDX-License-Identifier: Apache-2.0 */
/* What a process of the starter's writes while it looks (lib/observe/stream.h), as it comes. */
#pragma once

#include <systemd/sd-event.h>

#include "lib/base/cleanup.h"
#include "lib/observe/stream.h"

/* Of one look; more is the end of it. */
#define RECORDS_BYTES_MAX (4u << 20)

struct records;
/* item: one more; NULL: there are no more, and r says why: 0: that was all; -EPIPE: it ended early; -EBADMSG:
 * it wrote what nobody understands; others. Then it is not called again; records_free() may be called in it.
 */
typedef void (*records_handler)(int r, const struct stream_item *item, void *userdata);

/* fd: not blocking, and taken in any case. */
int records_new(sd_event *event, int fd, records_handler handler, void *userdata, struct records **ret);
void records_free(struct records *r);
DEFINE_CLEANUP(struct records *, records_free)
