/* SPDX-License-Identifier: Apache-2.0 */
/* agentd/net/links.c: judging on figures, and the interfaces of a network namespace of its own where one can
 * be had. */
#include "agentd/net/links.h"

#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/clock.h"

#define SEC USEC_PER_SEC

static void test_down(void **state) {
        struct link_facts f = { .name = "eth1", .up = true };
        struct link_memory m = {};
        char text[128];

        assert_int_equal(link_judge(&m, &f, false, SEC, text, sizeof(text)),
                         LINK_GOOD); /* never had a cable */
        f.carrier = true;
        assert_int_equal(link_judge(&m, &f, false, 2 * SEC, text, sizeof(text)), LINK_GOOD);
        f.carrier = false;
        assert_int_equal(link_judge(&m, &f, false, 3 * SEC, text, sizeof(text)), LINK_DOWN);
        f.up = false;
        assert_int_equal(link_judge(&m, &f, false, 4 * SEC, text, sizeof(text)), LINK_OFF);
        assert_non_null(strstr(text, "ip link set eth1 up"));
        assert_int_equal(link_judge(&m, &f, true, 5 * SEC, text, sizeof(text)), LINK_DOWN);
        /* It had one before we looked. */
        m = (struct link_memory){};
        f = (struct link_facts){ .name = "eth1", .up = true, .carrier_ups = 1, .carrier_downs = 1 };
        assert_int_equal(link_judge(&m, &f, false, SEC, text, sizeof(text)), LINK_DOWN);
}

static void test_flaps(void **state) {
        struct link_facts f = { .name = "eth1", .up = true, .carrier = true, .carrier_downs = 7 };
        struct link_memory m = {};
        char text[128];

        assert_int_equal(link_judge(&m, &f, false, SEC, text, sizeof(text)), LINK_GOOD);
        f.carrier_downs = 9;
        assert_int_equal(link_judge(&m, &f, false, 100 * SEC, text, sizeof(text)), LINK_GOOD);
        f.carrier_downs = 10;
        assert_int_equal(link_judge(&m, &f, false, 200 * SEC, text, sizeof(text)), LINK_FLAPS);
        /* A quiet window makes it good. */
        assert_int_equal(link_judge(&m, &f, false, 700 * SEC, text, sizeof(text)), LINK_FLAPS);
        assert_int_equal(link_judge(&m, &f, false, 1400 * SEC, text, sizeof(text)), LINK_GOOD);
}

static void test_damage(void **state) {
        struct link_facts f = {
                .name = "eth1", .up = true, .carrier = true, .rx_packets = 1000, .rx_errors = 500
        };
        struct link_memory m = {};
        char text[128];

        assert_int_equal(link_judge(&m, &f, false, SEC, text, sizeof(text)), LINK_GOOD); /* of long ago */
        f.rx_packets += 100000;
        f.rx_errors += 50;
        assert_int_equal(link_judge(&m, &f, false, 62 * SEC, text, sizeof(text)), LINK_GOOD);
        f.rx_packets += 100000;
        f.rx_errors += 5000;
        assert_int_equal(link_judge(&m, &f, false, 123 * SEC, text, sizeof(text)), LINK_DAMAGED);
        assert_string_equal(text, "5000 of 105000 packets damaged within 61 s");
        f.rx_packets += 100000;
        assert_int_equal(link_judge(&m, &f, false, 184 * SEC, text, sizeof(text)), LINK_GOOD);
}

static void test_speed(void **state) {
        struct link_facts f = {
                .name = "eth1", .up = true, .carrier = true, .mbps = 25000, .mbps_max = 25000
        };
        struct link_memory m = {};
        char text[128];

        assert_int_equal(link_judge_speed(&m, &f, text, sizeof(text)), LINK_GOOD);
        f.mbps = 1000;
        assert_int_equal(link_judge_speed(&m, &f, text, sizeof(text)), LINK_SLOWER);
        assert_string_equal(text, "1 Gbit/s, and was 25 Gbit/s");
        m = (struct link_memory){};
        assert_int_equal(link_judge_speed(&m, &f, text, sizeof(text)), LINK_SLOW);
        f.mbps = 0; /* not known */
        assert_int_equal(link_judge_speed(&m, &f, text, sizeof(text)), LINK_GOOD);
        assert_string_equal(format_mbps(2500, text, sizeof(text)), "2.5 Gbit/s");
        assert_string_equal(format_mbps(100, text, sizeof(text)), "100 Mbit/s");
}

struct seen {
        unsigned news, gone, changed;
        bool down;
};

static void on_changed(const struct link_facts *before, const struct link_facts *now, void *userdata) {
        struct seen *s = userdata;

        s->news += !before;
        s->gone += !now;
        s->changed += before && now;
        s->down = now && !now->carrier;
}

static void settle(sd_event *event) {
        for (unsigned i = 0; i < 20; i++)
                (void)sd_event_run(event, 10 * USEC_PER_MSEC);
}

static void test_events(void **state) {
        static const struct links_ops ops = { .changed = on_changed };
        _cleanup_(links_free_p) struct links *l = NULL;
        const struct link_facts *list;
        sd_event *event = NULL;
        struct seen seen = {};
        struct addr a;
        size_t n;

        if (geteuid() != 0 || unshare(CLONE_NEWNET) < 0 ||
            system("ip link add t0 type veth peer name t1 2>/dev/null && ip link set t0 up && ip link set t1 "
                   "up && "
                   "ip addr add 192.0.2.1/24 dev t0 && ip link add d0 type bridge && ip link set d0 up && ip "
                   "addr add 192.0.2.9/32 dev d0") != 0)
                skip();
        assert_int_equal(sd_event_new(&event), 0);
        assert_int_equal(links_new(event, NULL, &ops, &seen, &l), 0);
        list = links_list(l, &n);
        assert_int_equal(n, 1); /* the end with an address; not the bridge */
        assert_string_equal(list[0].name, "t0");
        assert_string_equal(list[0].kind, "veth");
        assert_true(list[0].carrier);
        assert_int_equal(list[0].n_addresses, 1);
        assert_int_equal(list[0].addresses[0].bits, 24);
        assert_int_equal(addr_parse("192.0.2.1", 0, &a), 0);
        assert_non_null(links_with(l, &a));
        assert_int_equal(seen.news, 1);
        assert_int_equal(system("ip link set t1 down"), 0);
        settle(event);
        assert_true(seen.down);
        assert_int_equal(system("ip link set t1 up"), 0);
        settle(event);
        assert_false(seen.down);
        assert_int_equal(system("ip addr add 192.0.2.2/24 dev t1"), 0);
        settle(event);
        (void)links_list(l, &n);
        assert_int_equal(n, 2);
        assert_int_equal(links_look(l), 0);
        assert_int_equal(system("ip link del t0"), 0);
        settle(event);
        assert_int_equal(seen.gone, 2);
        links_free(TAKE_PTR(l));
        sd_event_unref(event);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_down),  cmocka_unit_test(test_flaps),  cmocka_unit_test(test_damage),
                cmocka_unit_test(test_speed), cmocka_unit_test(test_events),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
