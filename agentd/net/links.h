/* SPDX-License-Identifier: Apache-2.0 */
/* The host's network interfaces: state, speed, counters and addresses, by rtnetlink and ethtool's generic
 * netlink. Changes come as events of the loop; nothing is polled but counters, by links_look(). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "lib/base/addr.h"
#include "lib/base/cleanup.h"

#define LINK_NAME_MAX 16u
#define LINKS_MAX 64u /* that are watched; containers' ends of a host are not */
#define LINK_ADDRESSES_MAX 8u

struct link_address {
        struct addr address;
        uint8_t bits; /* of its network */
};

struct link_facts {
        int index;
        char name[LINK_NAME_MAX];
        char kind[LINK_NAME_MAX]; /* "bond", "vlan", "veth" ...; "": a device */
        bool device;              /* a device, or something that stands on one: bond, vlan, bridge */
        bool up, carrier;         /* as an administrator wants it; as the cable has it */
        int master;               /* index of the bond or bridge that it is a part of; 0: of none */
        uint64_t mbps, mbps_max;  /* 0: not known */
        uint64_t rx_bytes, tx_bytes, rx_packets, tx_packets, rx_errors, tx_errors;
        uint32_t carrier_downs, carrier_ups; /* since it is there */
        struct link_address addresses[LINK_ADDRESSES_MAX];
        size_t n_addresses; /* that others can reach: not of this link or host alone */
};

struct links;

struct links_ops {
        /* Its state, speed or addresses have changed, or it is new (before NULL) or gone (now NULL). */
        void (*changed)(const struct link_facts *before, const struct link_facts *now, void *userdata);
};

/* Watches every interface that is a device or stands on one, those that have an address that others can reach
 * and are not of the host's own making (bridges without a device, tunnels, dummies), and those that match one
 * of patterns (fnmatch, separated by spaces; may be NULL). event NULL: for one look. < 0: this host has no
 * rtnetlink for us. */
int links_new(sd_event *event, const char *patterns, const struct links_ops *ops, void *userdata,
              struct links **ret);
void links_free(struct links *l);
DEFINE_CLEANUP(struct links *, links_free)

/* Counters and speeds anew. */
int links_look(struct links *l);
/* In the order in which the kernel has them. */
const struct link_facts *links_list(const struct links *l, size_t *ret_n);
/* The interface that has the address, or NULL. */
const struct link_facts *links_with(const struct links *l, const struct addr *a);

/* ---- pure */

/* Whether a name is one of patterns, as above. */
bool links_match(const char *patterns, const char *name);

/* What is remembered of an interface to judge it by. Zero: it was just seen. */
struct link_memory {
        bool was_up;
        uint64_t best_mbps;
        uint64_t window_boot; /* when the numbers below were taken */
        uint64_t packets, errors;
        uint64_t flaps_boot;
        uint32_t downs;
        unsigned bad_windows; /* one after the other in which packets were damaged */
        bool flaps;
        char damage[96];
};

enum link_grade {
        LINK_GOOD,
        LINK_SLOW,    /* than it can be */
        LINK_OFF,     /* somebody switched it off */
        LINK_DAMAGED, /* packets arrive damaged */
        LINK_FLAPS,   /* comes and goes */
        LINK_SLOWER,  /* than it was */
        LINK_DOWN,    /* no carrier */
        _LINK_GRADE_MAX,
};

/* How it is, and how fast: LINK_GOOD, LINK_SLOW or LINK_SLOWER; with a line for people where that is not
 * good. gone: it is not there any more. */
enum link_grade link_judge(struct link_memory *m, const struct link_facts *f, bool gone, uint64_t now_boot,
                           char *text, size_t size);
enum link_grade link_judge_speed(struct link_memory *m, const struct link_facts *f, char *text, size_t size);
/* "25 Gbit/s". Returns buf. */
char *format_mbps(uint64_t mbps, char *buf, size_t size);
