/* SPDX-License-Identifier: Apache-2.0 */
/* masterd/node/network.c: where executors on several hosts meet. */
#include "masterd/node/network.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "masterd/node/node.h"

#define HOSTS 3

static struct node hosts[HOSTS];
static struct network_info networks[HOSTS][3];
static const struct node *list[HOSTS + 1];

static void set(struct network_info *w, const char *name, uint32_t mbps, const char *network, unsigned host) {
        char text[64];

        snprintf(text, sizeof(text), "%s.%u", network, host);
        *w = (struct network_info){ .bits = 24, .mbps = mbps };
        strcpy(w->name, name);
        assert_int_equal(addr_parse(text, 0, &w->address), 0);
}

/* Each with the usual network at 1 Gbit/s, a fast one at 100, and a bridge that is the same everywhere. */
static int make(void **state) {
        for (unsigned i = 0; i < HOSTS; i++) {
                hosts[i] = (struct node){ .inventory = { .networks = networks[i], .n_networks = 3 } };
                set(networks[i], "eth0", 1000, "192.0.2", 10 + i);
                set(networks[i] + 1, "eth1", 100000, "198.51.100", 10 + i);
                set(networks[i] + 2, "br0", 400000, "203.0.113", 1);
                hosts[i].address = networks[i][0].address;
                list[i] = hosts + i;
        }
        list[HOSTS] = NULL; /* an executor without a place */
        return 0;
}

static const char *chosen(size_t n) {
        static char text[ADDR_TEXT_MAX];
        struct addr_cidr network;

        if (!network_choose(list, n, &network))
                return "usual";
        return addr_format(network_address(hosts + 1, &network), text);
}

static void test_fastest_of_all(void **state) {
        assert_string_equal(chosen(HOSTS + 1), "198.51.100.11");
        assert_string_equal(chosen(2), "198.51.100.11");
        assert_string_equal(chosen(1), "usual"); /* on one host, nothing is to be gained */
}

static void test_not_all_are_in_it(void **state) {
        hosts[2].inventory.n_networks = 1;
        assert_string_equal(chosen(HOSTS), "usual");
        assert_string_equal(chosen(2), "198.51.100.11");
        /* It is where that host is, and elsewhere another network. */
        hosts[2].inventory.n_networks = 3;
        set(networks[2] + 1, "eth1", 100000, "198.51.101", 12);
        assert_string_equal(chosen(HOSTS), "usual");
}

static void test_nothing_known(void **state) {
        networks[1][0].mbps = 0; /* a virtual one: how much faster is the other? */
        assert_string_equal(chosen(HOSTS), "usual");
        networks[1][0].mbps = 80000; /* the slowest counts */
        networks[0][0].mbps = networks[2][0].mbps = 80000;
        assert_string_equal(chosen(HOSTS), "usual");
        hosts[1].inventory.n_networks = 0;
        assert_string_equal(chosen(HOSTS), "usual");
}

static void test_its_link_is_not_well(void **state) {
        struct host_condition c = { .kind = CONDITION_LINK, .subject = "eth1", .severity = CONDITION_DRAIN };
        enum condition_severity before;

        assert_int_equal(node_condition_set(hosts + 1, &c, &before), 0);
        assert_string_equal(chosen(HOSTS), "usual");
        c.severity = CONDITION_FINE;
        assert_int_equal(node_condition_set(hosts + 1, &c, &before), 0);
        assert_string_equal(chosen(HOSTS), "198.51.100.11");
}

static void test_conditions(void **state) {
        static const enum condition_severity limits[_CONDITION_KIND_MAX] = {
                [CONDITION_LINK] = CONDITION_WARN, [CONDITION_DISK] = CONDITION_DRAIN
        };
        struct host_condition c = {
                .kind = CONDITION_LINK, .subject = "eth1", .severity = CONDITION_DRAIN, .text = "no carrier"
        };
        enum condition_severity before;
        struct node_condition *x;
        char text[256];

        assert_int_equal(node_condition_set(hosts, &c, &before), 0);
        assert_int_equal(before, CONDITION_FINE);
        assert_int_equal(node_conditions_text(hosts, limits, CONDITION_DRAIN, true, text, sizeof(text)), 0);
        assert_int_equal(node_conditions_text(hosts, limits, CONDITION_WARN, true, text, sizeof(text)), 1);
        assert_string_equal(text, "link eth1: no carrier");
        c = (struct host_condition){
                .kind = CONDITION_DISK, .subject = "/", .severity = CONDITION_WARN, .text = "nearly full"
        };
        assert_int_equal(node_condition_set(hosts, &c, &before), 0);
        assert_int_equal(node_conditions_text(hosts, limits, CONDITION_WARN, true, text, sizeof(text)), 2);
        c.severity = CONDITION_DRAIN;
        assert_int_equal(node_condition_set(hosts, &c, &before), 0);
        assert_int_equal(before, CONDITION_WARN);
        assert_int_equal(node_conditions_text(hosts, limits, CONDITION_DRAIN, true, text, sizeof(text)), 1);
        /* Waved through: it does not hold any more, until it is milder and worse again. */
        x = node_condition_find(hosts, CONDITION_DISK, "/");
        x->waved = true;
        assert_int_equal(node_conditions_text(hosts, limits, CONDITION_DRAIN, true, text, sizeof(text)), 0);
        assert_int_equal(node_condition_set(hosts, &c, &before), 0);
        assert_int_equal(node_conditions_text(hosts, limits, CONDITION_DRAIN, true, text, sizeof(text)), 0);
        c.severity = CONDITION_NOTE;
        assert_int_equal(node_condition_set(hosts, &c, &before), 0);
        c.severity = CONDITION_DRAIN;
        assert_int_equal(node_condition_set(hosts, &c, &before), 0);
        assert_int_equal(node_conditions_text(hosts, limits, CONDITION_DRAIN, true, text, sizeof(text)), 1);
        for (unsigned i = 0; i < 2 * CONDITIONS_MAX; i++) {
                c.kind = CONDITION_KERNEL;
                snprintf(c.subject, sizeof(c.subject), "s%u", i);
                (void)node_condition_set(hosts, &c, &before);
        }
        assert_int_equal(node_condition_set(hosts, &c, &before), -E2BIG);
        node_conditions_clear(hosts);
        assert_null(hosts->conditions);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup(test_fastest_of_all, make),
                cmocka_unit_test_setup(test_not_all_are_in_it, make),
                cmocka_unit_test_setup(test_nothing_known, make),
                cmocka_unit_test_setup(test_its_link_is_not_well, make),
                cmocka_unit_test_setup(test_conditions, make),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
