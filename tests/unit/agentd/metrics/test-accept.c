/* SPDX-License-Identifier: Apache-2.0 */
#include "agentd/metrics/accept.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void test_headers(void **state) {
        static const struct {
                const char *header;
                bool openmetrics;
        } cases[] = {
                { NULL, false },
                { "", false },
                { "*/*", false },
                { "text/html", false },
                { "application/openmetrics-text", true },
                { "application/openmetrics-text;version=1.0.0", true },
                { "application/openmetrics-text; version=\"1.0.0\"", true },
                { "application/openmetrics-text; version=0.0.1", false },
                { "application/openmetrics-text;version=1.0.0;q=0", false },
                { "Application/OpenMetrics-Text ; Version=1.0.0 ; q=0.9 , text/plain;q=0.5", true },
                { "application/openmetrics-text;q=0.4,text/plain;version=0.0.4;q=0.5", false },
                { "application/openmetrics-text;q=0.5,text/plain;q=0.5", true },
                /* Prometheus 2.42 and 2.50 */
                { "application/openmetrics-text;version=1.0.0,application/"
                  "openmetrics-text;version=0.0.1;q=0.75,"
                  "text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
                  true },
                { "application/"
                  "vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.6,"
                  "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.2,*/*;q=0.1",
                  true },
                { ",,;;,;q=,application/openmetrics-text;q=x", true },
                { "application/openmetrics-text;q", true },
                { ";", false },
        };

        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
                assert_int_equal(accept_openmetrics(cases[i].header), cases[i].openmetrics);
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_headers) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
