/* SPDX-License-Identifier: Apache-2.0 */
#include "agentd/metrics/exposition.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static struct telemetry_sample sample_of(uint32_t job, const char *role, uint32_t index) {
        struct telemetry_sample s = { .id = { .job = job, .index = index, .attempt = 2 } };

        strcpy(s.id.role, role);
        telemetry_clear(s.values);
        return s;
}

static char *page_of(bool openmetrics) {
        struct telemetry_sample a = sample_of(4, "w", 0), b = sample_of(4, "w", 1);
        const struct exposition_role roles[] = {
                { &a, "primus-4-w-0.2.service", "running", 99, UINT64_C(1500000000250000) },
                { &b, "primus-4-w-1.2.service", NULL, 0, 0 },
        };
        _cleanup_(exposition_free_p) struct exposition *x = NULL;
        char labels[METRIC_LABELS_MAX];
        char *text;
        size_t size;

        a.values[TELEMETRY_CPU_USEC] = 1500000;
        b.values[TELEMETRY_CPU_USEC] = 0;
        a.values[TELEMETRY_PRESSURE_MEMORY_USEC] = 1;
        a.values[TELEMETRY_PRESSURE_MEMORY_FULL_USEC] = 2000000;
        a.values[TELEMETRY_MEMORY_BYTES] = UINT64_MAX - 1;
        b.values[TELEMETRY_GPU_UTILIZATION] = 905;
        assert_int_equal(exposition_new(&x), 0);
        exposition_begin(x, openmetrics);
        exposition_roles(x, "n\"1", roles, 2);
        exposition_add(x, METRIC_NODE_CONNECTED, EXPOSITION_LABELS(labels, "node", "a\\b\nc"), "", 1,
                       SCALE_ONE);
        exposition_add(x, METRIC_SCRAPE_DURATION, "", "", 120, SCALE_NANO);
        exposition_add(x, METRIC_AGENT_MEMORY, "", "", TELEMETRY_UNKNOWN, SCALE_ONE);
        assert_int_equal(exposition_end(x, &text, &size), 0);
        text = realloc(text, size + 1);
        assert_non_null(text);
        text[size] = 0;
        return text;
}

static void test_openmetrics(void **state) {
        _cleanup_free_ char *text = page_of(true);

        assert_string_equal(
                text,
                "# TYPE primus_role info\n"
                "# HELP primus_role The attempt of the executor that is on this host.\n"
                "primus_role_info{job=\"4\",role=\"w\",index=\"0\",attempt=\"2\",unit=\"primus-4-w-0.2."
                "service\","
                "cgroup_id=\"99\",node=\"n\\\"1\"} 1\n"
                "primus_role_info{job=\"4\",role=\"w\",index=\"1\",attempt=\"2\",unit=\"primus-4-w-1.2."
                "service\","
                "cgroup_id=\"\",node=\"n\\\"1\"} 1\n"
                "# TYPE primus_role_state gauge\n"
                "# HELP primus_role_state 1 for the state that the executor is in.\n"
                "primus_role_state{job=\"4\",role=\"w\",index=\"0\",state=\"running\"} 1\n"
                "# TYPE primus_role_start_time_seconds gauge\n"
                "# UNIT primus_role_start_time_seconds seconds\n"
                "# HELP primus_role_start_time_seconds When the attempt was started, since 1970.\n"
                "primus_role_start_time_seconds{job=\"4\",role=\"w\",index=\"0\"} 1500000000.25\n"
                "# TYPE primus_role_cpu_seconds counter\n"
                "# UNIT primus_role_cpu_seconds seconds\n"
                "# HELP primus_role_cpu_seconds CPU time used.\n"
                "primus_role_cpu_seconds_total{job=\"4\",role=\"w\",index=\"0\"} 1.5\n"
                "primus_role_cpu_seconds_total{job=\"4\",role=\"w\",index=\"1\"} 0\n"
                "# TYPE primus_role_pressure_stall_seconds counter\n"
                "# UNIT primus_role_pressure_stall_seconds seconds\n"
                "# HELP primus_role_pressure_stall_seconds Time in which some or all of its threads stood "
                "still for "
                "lack of a resource.\n"
                "primus_role_pressure_stall_seconds_total{job=\"4\",role=\"w\",index=\"0\",resource="
                "\"memory\","
                "kind=\"some\"} 0.000001\n"
                "primus_role_pressure_stall_seconds_total{job=\"4\",role=\"w\",index=\"0\",resource="
                "\"memory\","
                "kind=\"full\"} 2\n"
                "# TYPE primus_role_memory_current_bytes gauge\n"
                "# UNIT primus_role_memory_current_bytes bytes\n"
                "# HELP primus_role_memory_current_bytes Memory in use.\n"
                "primus_role_memory_current_bytes{job=\"4\",role=\"w\",index=\"0\"} 18446744073709551614\n"
                "# TYPE primus_role_gpu_utilization_ratio gauge\n"
                "# UNIT primus_role_gpu_utilization_ratio ratio\n"
                "# HELP primus_role_gpu_utilization_ratio Utilisation of its GPUs, mean.\n"
                "primus_role_gpu_utilization_ratio{job=\"4\",role=\"w\",index=\"1\"} 0.905\n"
                "# TYPE primus_node_connected gauge\n"
                "# HELP primus_node_connected 1 while the agent is registered with masterd.\n"
                "primus_node_connected{node=\"a\\\\b\\nc\"} 1\n"
                "# TYPE primus_scrape_duration_seconds gauge\n"
                "# UNIT primus_scrape_duration_seconds seconds\n"
                "# HELP primus_scrape_duration_seconds Time that it took to write this page.\n"
                "primus_scrape_duration_seconds 0.00000012\n"
                "# EOF\n");
}

/* The older format: names of families as those of samples, no units, no end. */
static void test_text(void **state) {
        _cleanup_free_ char *text = page_of(false);

        assert_non_null(strstr(text, "# TYPE primus_role_info gauge\n# HELP primus_role_info The "));
        assert_non_null(strstr(text, "# TYPE primus_role_cpu_seconds_total counter\n"
                                     "# HELP primus_role_cpu_seconds_total CPU time used.\n"
                                     "primus_role_cpu_seconds_total{"));
        assert_null(strstr(text, "# UNIT"));
        assert_null(strstr(text, "# EOF"));
}

static void test_labels(void **state) {
        char buf[METRIC_LABELS_MAX], longest[METRIC_LABELS_MAX + 10];
        static const struct {
                const char *value, *written;
        } cases[] = {
                { "", "" },
                { "NVIDIA H200", "NVIDIA H200" },
                { "\"\\\n", "\\\"\\\\\\n" },
                { "a\tb\x7f", "a?b?" },
                { "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80" },
                { "\xff\xc3", "??" },
                { "\xe2\x82", "??" },
                { "\xc0\xaf", "??" },           /* overlong */
                { "\xed\xa0\x80", "???" },      /* a surrogate */
                { "\xf4\x90\x80\x80", "????" }, /* beyond the last */
                { "\x80", "?" },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                char expected[64];
                snprintf(expected, sizeof(expected), "x=\"%s\"", cases[i].written);
                assert_string_equal(EXPOSITION_LABELS(buf, "x", cases[i].value), expected);
        }
        assert_string_equal(EXPOSITION_LABELS(buf, "a", "1", "b", "2"), "a=\"1\",b=\"2\"");
        memset(longest, 'x', sizeof(longest));
        longest[sizeof(longest) - 1] = 0;
        assert_string_equal(EXPOSITION_LABELS(buf, "a", "1", "b", longest, "c", "3"), "a=\"1\"");
        /* Every length around the bound: what fits is whole. */
        for (size_t n = METRIC_LABELS_MAX - 20; n < METRIC_LABELS_MAX; n++) {
                size_t used;
                longest[n] = 0;
                used = strlen(EXPOSITION_LABELS(buf, "a", "1", "b", longest));
                assert_true(used == strlen("a=\"1\"") || used == strlen("a=\"1\",b=\"\"") + n);
                assert_true(used < METRIC_LABELS_MAX);
                longest[n] = 'x';
        }
}

/* Families of the table stand together, each once. */
static void test_order(void **state) {
        struct telemetry_sample s[3] = { sample_of(1, "a", 0), sample_of(1, "a", 1), sample_of(1, "b", 0) };
        struct exposition_role roles[3] = { { &s[0], "u0", "running", 1, 1 },
                                            { &s[1], "u1", "running", 2, 1 },
                                            { &s[2], "u2", "running", 3, 1 } };
        _cleanup_(exposition_free_p) struct exposition *x = NULL;
        _cleanup_free_ char *text = NULL;
        size_t size, samples = 0;

        for (size_t i = 0; i < 3; i++)
                for (size_t f = 0; f < _TELEMETRY_MAX; f++)
                        s[i].values[f] = f;
        assert_int_equal(exposition_new(&x), 0);
        exposition_begin(x, true);
        exposition_roles(x, "n", roles, 3);
        assert_int_equal(exposition_end(x, &text, &size), 0);
        for (size_t f = 0; f < _METRIC_FAMILY_MAX; f++) {
                char heading[128];
                const char *first, *line;
                size_t n = (size_t)snprintf(heading, sizeof(heading), "# TYPE %s ", metric_family_name(f));

                first = memmem(text, size, heading, n);
                if (first) {
                        line = first + n;
                        assert_null(memmem(line, size - (size_t)(line - text), heading, n));
                }
        }
        for (size_t i = 0; i < size; i++)
                samples += text[i] == '}';
        /* every field is shown, and info, state and start */
        assert_int_equal(samples, 3 * (_TELEMETRY_MAX + 3));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_openmetrics),
                cmocka_unit_test(test_text),
                cmocka_unit_test(test_labels),
                cmocka_unit_test(test_order),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
