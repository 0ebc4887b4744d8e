/* SPDX-License-Identifier: Apache-2.0 */
#include "masterd/node/condition.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "masterd/node/node.h"

static const enum condition_severity all[_CONDITION_KIND_MAX] = { CONDITION_DRAIN, CONDITION_DRAIN,
                                                                  CONDITION_DRAIN, CONDITION_DRAIN,
                                                                  CONDITION_DRAIN, CONDITION_DRAIN };
static struct node node;

static int teardown(void **state) {
        node_conditions_clear(&node);
        return node.conditions ? -1 : 0;
}

static enum condition_severity set(enum condition_kind kind, const char *subject,
                                   enum condition_severity severity, const char *text) {
        struct host_condition c = { .kind = kind, .severity = severity };
        enum condition_severity before;

        snprintf(c.subject, sizeof(c.subject), "%s", subject);
        snprintf(c.text, sizeof(c.text), "%s", text);
        assert_int_equal(node_condition_set(&node, &c, &before), 0);
        return before;
}

/* One of each kind and subject, the worst first, none that is fine. */
static void test_list(void **state) {
        assert_int_equal(set(CONDITION_DISK, "/var", CONDITION_NOTE, "80% full"), CONDITION_FINE);
        assert_int_equal(set(CONDITION_DISK, "/tmp", CONDITION_WARN, "95% full"), CONDITION_FINE);
        assert_int_equal(set(CONDITION_LINK, "eth1", CONDITION_WARN, "down"), CONDITION_FINE);
        assert_int_equal(set(CONDITION_DISK, "/var", CONDITION_DRAIN, "99% full"), CONDITION_NOTE);
        assert_string_equal(node.conditions->c.subject, "/var");
        assert_string_equal(node.conditions->next->c.subject, "eth1"); /* by kind */
        assert_string_equal(node.conditions->next->next->c.subject, "/tmp");
        assert_null(node.conditions->next->next->next);
        assert_string_equal(node_condition_find(&node, CONDITION_DISK, "/var")->c.text, "99% full");
        assert_null(node_condition_find(&node, CONDITION_LINK, "/var"));
        assert_int_equal(set(CONDITION_DISK, "/var", CONDITION_FINE, ""), CONDITION_DRAIN);
        assert_null(node_condition_find(&node, CONDITION_DISK, "/var"));
        assert_int_equal(set(CONDITION_DISK, "/var", CONDITION_FINE, ""),
                         CONDITION_FINE); /* it was not there */
}

/* What a person waved through stays so until it is worse. */
static void test_waved(void **state) {
        char text[256];

        (void)set(CONDITION_CLOCK, "clock", CONDITION_WARN, "3 s behind");
        node_condition_find(&node, CONDITION_CLOCK, "clock")->waved = true;
        (void)set(CONDITION_CLOCK, "clock", CONDITION_WARN, "4 s behind");
        assert_int_equal(node_conditions_text(&node, all, CONDITION_WARN, true, text, sizeof(text)), 0);
        assert_string_equal(text, "");
        assert_int_equal(node_conditions_text(&node, all, CONDITION_WARN, false, text, sizeof(text)), 1);
        assert_string_equal(text, "clock clock: 4 s behind");
        (void)set(CONDITION_CLOCK, "clock", CONDITION_DRAIN, "400 s behind");
        assert_false(node_condition_find(&node, CONDITION_CLOCK, "clock")->waved);
}

/* The site's limits decide what is worst. */
static void test_text(void **state) {
        enum condition_severity limits[_CONDITION_KIND_MAX];
        struct host_condition c = { .kind = CONDITION_DISK, .severity = CONDITION_DRAIN };
        char text[256];

        memcpy(limits, all, sizeof(limits));
        limits[CONDITION_DISK] = CONDITION_NOTE;
        assert_int_equal(node_condition_severity(&c, limits), CONDITION_NOTE);
        (void)set(CONDITION_DISK, "/var", CONDITION_DRAIN, "99% full");
        (void)set(CONDITION_GPU, "0", CONDITION_WARN, "row remapping pending");
        assert_int_equal(node_conditions_text(&node, all, CONDITION_NOTE, false, text, sizeof(text)), 2);
        assert_string_equal(text, "disk /var: 99% full (and 1 more)");
        assert_int_equal(node_conditions_text(&node, limits, CONDITION_NOTE, false, text, sizeof(text)), 2);
        assert_string_equal(text, "gpu 0: row remapping pending (and 1 more)");
        assert_int_equal(node_conditions_text(&node, limits, CONDITION_DRAIN, false, text, sizeof(text)), 0);
}

static void test_bounded(void **state) {
        struct host_condition c = { .kind = CONDITION_KERNEL, .severity = CONDITION_NOTE };
        enum condition_severity before;

        for (unsigned i = 0; i < CONDITIONS_MAX; i++) {
                snprintf(c.subject, sizeof(c.subject), "%u", i);
                assert_int_equal(node_condition_set(&node, &c, &before), 0);
        }
        strcpy(c.subject, "more");
        assert_int_equal(node_condition_set(&node, &c, &before), -E2BIG);
        strcpy(c.subject, "0"); /* one that is there can still become worse */
        c.severity = CONDITION_DRAIN;
        assert_int_equal(node_condition_set(&node, &c, &before), 0);
        assert_int_equal(before, CONDITION_NOTE);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_teardown(test_list, teardown),
                cmocka_unit_test_teardown(test_waved, teardown),
                cmocka_unit_test_teardown(test_text, teardown),
                cmocka_unit_test_teardown(test_bounded, teardown),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
