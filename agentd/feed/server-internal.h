/* SPDX-License-Identifier: Apache-2.0 */
/* What server.c (connections and what they say) and server-send.c (what they are told) share. Not for others.
 */
#pragma once

#include <uthash.h>

#include "agentd/feed/pipes.h"
#include "agentd/feed/server.h"
#include "lib/base/burst.h"
#include "lib/base/unitname.h"
#include "lib/wire/feed.h"

enum peer_state {
        PEER_NEW,
        PEER_CHALLENGED,
        PEER_KNOWN,
        _PEER_STATE_MAX
};

struct queued {
        struct queued *next;
        size_t size;
        uint8_t bytes[];
};

struct unit;

struct peer {
        struct feed_server *server;
        struct peer *prev, *next;
        enum peer_state state;
        int fd;
        sd_event_source *io, *timeout;
        struct identity identity;
        struct feed_challenge challenge;
        struct unit *unit; /* once known */
        uint32_t pipe_size;
        struct queued *queue;
        uint64_t queued_bytes;
        uint8_t *held; /* body of ENTRIES that the manager could not take yet */
        size_t held_size;
        uint64_t number;    /* for results; counts up */
        uint32_t n_results; /* that it waits for */
        UT_hash_handle hh;
        struct burst metrics; /* packets of metrics within a second */
        bool final;           /* has begun to say its last word */
        bool busy;            /* one of its packets is being handled: it is freed afterwards */
        bool dead;
};

/* A unit with at least one connection. */
struct unit {
        char name[UNIT_NAME_MAX];
        struct feed_unit info;
        uint32_t n_peers;
        struct peer *feeder; /* the connection that grants go to: the latest that has opened */
        UT_hash_handle hh;
};

struct feed_server {
        sd_event *event;
        sd_event_source *listener;
        int fd;
        char *path;
        struct feed_limits limits;
        feed_identify identify;
        const struct feed_ops *ops;
        void *userdata;
        struct peer *peers;
        struct peer *by_number;
        uint64_t last_number;
        struct unit *units;
        uint32_t n_known, n_strangers;
        struct pipe_budget budget;
        char refusal[256];     /* the latest, for the version */
        uint64_t refused_said; /* when one was logged: anybody's processes can ask again and again */
        uint8_t packet[FEED_PACKET_MAX + 1];
};

/* Listens for what the peer can do now: speak, or take what is queued. */
int feed_watch(struct peer *p);
/* One packet at once, with two descriptors or none (NULL). */
int feed_transmit(struct peer *p, const void *packet, size_t size, const int fds[2]);
/* Sends a packet (header and body) or queues it. -ENOBUFS: too much is queued; others: the connection is
 * broken. */
int feed_send(struct peer *p, const void *packet, size_t size);
/* The same for a short body (NULL: none), cut at 512 bytes. */
int feed_send_simple(struct peer *p, uint32_t type, const void *body, size_t size);
/* Sends what is queued, as far as the peer takes it. */
int feed_flush(struct peer *p);
