/* SPDX-License-Identifier: Apache-2.0 */
#include "agentd/device/gpu-xid.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/cleanup.h"

static void test_buckets(void **state) {
        static const struct {
                uint32_t xid;
                enum xid_action action;
                enum gpu_severity severity;
        } table[] = {
                { 13, XID_RESTART_APP, GPU_NOTE },  { 31, XID_RESTART_APP, GPU_NOTE },
                { 45, XID_IGNORE, GPU_FINE },       { 48, XID_RESET_GPU, GPU_DRAIN },
                { 63, XID_IGNORE, GPU_FINE },       { 64, XID_RESET_GPU, GPU_DRAIN },
                { 74, XID_CHECK_NVLINK, GPU_WARN }, { 79, XID_RESTART_HOST, GPU_DRAIN },
                { 94, XID_RESTART_APP, GPU_NOTE },  { 95, XID_RESET_GPU, GPU_DRAIN },
                { 119, XID_RESET_GPU, GPU_DRAIN },  { 54, XID_CHECK_MECHANICALS, GPU_DRAIN },
                { 3, XID_UNKNOWN, GPU_WARN },       { 99999, XID_UNKNOWN, GPU_WARN },
        };

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                const struct xid *x = xid_find(table[i].xid);
                assert_int_equal(x->action, table[i].action);
                assert_int_equal(xid_severity(x), table[i].severity);
                assert_true(x->text && *x->text && *xid_advice(x));
        }
}

static void test_lines(void **state) {
        static const struct {
                const char *line, *pci; /* NULL: no Xid */
                uint32_t xid, pid;
        } table[] = {
                { "NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, name=python3, GPU has fallen off the bus.",
                  "0000:3b:00.0", 79, 1234 },
                { "NVRM: Xid (PCI:0000:C6:00): 31, pid='<unknown>', name=<unknown>, Ch 00000018",
                  "0000:c6:00.0", 31, 0 },
                { "[  12.5] NVRM: Xid (PCI:0000:0a:00): 63, Row Remapper", "0000:0a:00.0", 63, 0 },
                { "NVRM: Xid (PCI:0000:3b:00): x", NULL, 0, 0 },
                { "NVRM: Xid (PCI:0000:3b:00", NULL, 0, 0 },
                { "NVRM: Xid (PCI:zz): 79", NULL, 0, 0 },
                { "NVRM: GPU at PCI:0000:3b:00: GPU-…", NULL, 0, 0 },
                { "", NULL, 0, 0 },
        };

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                struct xid_line x;
                assert_int_equal(xid_parse_line(table[i].line, &x), table[i].pci != NULL);
                if (!table[i].pci)
                        continue;
                assert_string_equal(x.pci, table[i].pci);
                assert_int_equal(x.xid, table[i].xid);
                assert_int_equal(x.pid, table[i].pid);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_buckets), cmocka_unit_test(test_lines) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
