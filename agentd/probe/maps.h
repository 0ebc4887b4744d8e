/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's maps by descriptors that the starter has handed over. None of these calls needs a capability;
 * a kernel before 5.19 that is told so (kernel.unprivileged_bpf_disabled) refuses them all the same, with
 * -EPERM. Inside the room. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* 0 or negative errno. */
int map_lookup(int fd, const void *key, void *value);
int map_update(int fd, const void *key, const void *value, uint64_t flags); /* flags: BPF_ANY, BPF_NOEXIST */
int map_delete(int fd, const void *key);
/* key NULL: the first. -ENOENT: there are no more. */
int map_next(int fd, const void *key, void *next);
/* A pass of the program behind the link, to its end. */
int iterator_run(int link);

/* A ring buffer's reading end. */
struct events;
/* fd is r's then, also where it fails. */
int events_new(int fd, size_t size, struct events **ret);
void events_free(struct events *r);
int events_fd(const struct events *r); /* readable when something waits; r's */
typedef void (*events_handler)(const void *data, size_t size, void *userdata);
/* Calls f for what waits. How many. */
int events_read(struct events *r, events_handler f, void *userdata);
