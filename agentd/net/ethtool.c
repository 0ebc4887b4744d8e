/* SPDX-License-Identifier: Apache-2.0 */
/* Speeds of interfaces. Invariant: a number that the kernel does not know is 0, whatever it says instead. */
#include "agentd/net/ethtool.h"

#include <errno.h>
#include <linux/ethtool_netlink.h>
#include <netlink/genl/ctrl.h>
#include <netlink/genl/genl.h>
#include <netlink/netlink.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/base/file.h"

#define MODE_WORDS 8u

struct ethtool {
        struct nl_sock *netlink; /* NULL: the kernel has no such family */
        int family;
};

struct answer {
        uint64_t mbps, max;
};

/* Runs of link modes of one speed; the kernel's numbers, which do not change. */
static const struct {
        uint8_t first, last;
        uint32_t mbps;
} modes[] = {
        { 0, 1, 10 },       { 2, 3, 100 },      { 4, 5, 1000 },     { 12, 12, 10000 },  { 15, 15, 2500 },
        { 17, 17, 1000 },   { 18, 20, 10000 },  { 21, 22, 20000 },  { 23, 26, 40000 },  { 27, 30, 56000 },
        { 31, 33, 25000 },  { 34, 35, 50000 },  { 36, 39, 100000 }, { 40, 40, 50000 },  { 41, 41, 1000 },
        { 42, 46, 10000 },  { 47, 47, 2500 },   { 48, 48, 5000 },   { 52, 56, 50000 },  { 57, 61, 100000 },
        { 62, 66, 200000 }, { 67, 67, 100 },    { 68, 68, 1000 },   { 69, 73, 400000 }, { 75, 79, 100000 },
        { 80, 84, 200000 }, { 85, 89, 400000 }, { 90, 91, 100 },    { 92, 92, 10 },     { 93, 98, 800000 },
};

uint64_t ethtool_fastest(const uint32_t *words, unsigned n) {
        uint64_t best = 0;

        for (size_t i = 0; i < ELEMENTSOF(modes); i++)
                for (unsigned bit = modes[i].first; bit <= modes[i].last; bit++)
                        if (bit / 32 < n && words[bit / 32] & 1u << bit % 32)
                                best = MAX(best, (uint64_t)modes[i].mbps);
        return best;
}

static void read_modes(struct nlattr *ours, struct answer *a) {
        struct nlattr *set[ETHTOOL_A_BITSET_MAX + 1];
        uint32_t words[MODE_WORDS] = {};
        const struct nlattr *mask;

        if (nla_parse_nested(set, ETHTOOL_A_BITSET_MAX, ours, NULL) < 0 ||
            !(mask = set[ETHTOOL_A_BITSET_MASK]))
                return;
        memcpy(words, nla_data(mask), MIN(sizeof(words), (size_t)nla_len(mask)));
        a->max = ethtool_fastest(words, MODE_WORDS);
}

static int on_valid(struct nl_msg *m, void *userdata) {
        struct nlattr *attributes[ETHTOOL_A_LINKMODES_MAX + 1];
        struct answer *a = userdata;

        if (genlmsg_parse(nlmsg_hdr(m), 0, attributes, ETHTOOL_A_LINKMODES_MAX, NULL) < 0)
                return NL_SKIP;
        /* 2^32 - 1: not known. */
        if (attributes[ETHTOOL_A_LINKMODES_SPEED] &&
            nla_get_u32(attributes[ETHTOOL_A_LINKMODES_SPEED]) <= INT32_MAX)
                a->mbps = nla_get_u32(attributes[ETHTOOL_A_LINKMODES_SPEED]);
        if (attributes[ETHTOOL_A_LINKMODES_OURS])
                read_modes(attributes[ETHTOOL_A_LINKMODES_OURS], a);
        return NL_OK;
}

static int ask_kernel(struct ethtool *e, int index, struct answer *a) {
        struct nl_msg *m = nlmsg_alloc();
        struct nlattr *head;
        int r = -ENOMEM;

        if (m &&
            genlmsg_put(m, NL_AUTO_PORT, NL_AUTO_SEQ, e->family, 0, NLM_F_REQUEST, ETHTOOL_MSG_LINKMODES_GET,
                        ETHTOOL_GENL_VERSION) &&
            (head = nla_nest_start(m, ETHTOOL_A_LINKMODES_HEADER)) &&
            nla_put_u32(m, ETHTOOL_A_HEADER_DEV_INDEX, (uint32_t)index) >= 0 &&
            nla_put_u32(m, ETHTOOL_A_HEADER_FLAGS, ETHTOOL_FLAG_COMPACT_BITSETS) >= 0) {
                nla_nest_end(m, head);
                (void)nl_socket_modify_cb(e->netlink, NL_CB_VALID, NL_CB_CUSTOM, on_valid, a);
                r = nl_send_auto(e->netlink, m);
                if (r >= 0)
                        r = nl_recvmsgs_default(
                                e->netlink); /* the answer is there when the question is sent */
        }
        nlmsg_free(m);
        return r < 0 ? -EIO : 0;
}

static void ask_sysfs(const char *name, struct answer *a) {
        _cleanup_free_ char *text = NULL;
        char path[64];
        long speed;

        snprintf(path, sizeof(path), "/sys/class/net/%s/speed", name);
        if (read_file(path, 32, &text, NULL) < 0)
                return;
        speed = strtol(text, NULL, 10);
        if (speed > 0)
                a->mbps = (uint64_t)speed;
}

void ethtool_speed(struct ethtool *e, int index, const char *name, uint64_t *ret_mbps, uint64_t *ret_max) {
        struct answer a = {};

        if (!e->netlink || ask_kernel(e, index, &a) < 0 || a.mbps == 0)
                ask_sysfs(name, &a);
        *ret_mbps = a.mbps;
        *ret_max = a.max;
}

int ethtool_new(struct ethtool **ret) {
        _cleanup_(ethtool_free_p) struct ethtool *e = calloc(1, sizeof(*e));

        if (!e || !(e->netlink = nl_socket_alloc()))
                return -ENOMEM;
        nl_socket_disable_auto_ack(e->netlink);
        nl_socket_disable_seq_check(e->netlink);
        e->family = genl_connect(e->netlink) < 0 ? -1 : genl_ctrl_resolve(e->netlink, ETHTOOL_GENL_NAME);
        if (e->family < 0) {
                nl_socket_free(e->netlink);
                e->netlink = NULL;
        }
        *ret = TAKE_PTR(e);
        return 0;
}

void ethtool_free(struct ethtool *e) {
        if (!e)
                return;
        nl_socket_free(e->netlink);
        free(e);
}
