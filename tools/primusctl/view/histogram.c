/* SPDX-License-Identifier: Apache-2.0 */
/* Histograms of latency. */
#include "tools/primusctl/view/histogram.h"

#include <inttypes.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/format.h"
#include "tools/primusctl/cli/text.h"

/* Counts start anew where the trace had ended in between. */
static uint64_t growth(uint64_t before, uint64_t now) {
        return now >= before ? now - before : now;
}

void histogram_subtract(struct histogram *h, const struct histogram *before) {
        if (h->count < before->count)
                return;
        h->count = growth(before->count, h->count);
        h->sum_ns = growth(before->sum_ns, h->sum_ns);
        h->bytes = growth(before->bytes, h->bytes);
        for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++)
                h->buckets[i] = growth(before->buckets[i], h->buckets[i]);
}

void histogram_add(struct histogram *h, const struct histogram *more) {
        h->count += more->count;
        h->sum_ns += more->sum_ns;
        h->bytes += more->bytes;
        for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++)
                h->buckets[i] += more->buckets[i];
}

uint64_t histogram_quantile(const struct histogram *h, unsigned thousandths) {
        uint64_t sum = 0, wanted = 0;

        for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++)
                sum += h->buckets[i];
        if (sum == 0)
                return 0;
        wanted = sum / 1000 * thousandths + (sum % 1000 * thousandths + 999) / 1000;
        sum = 0;
        for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
                sum += h->buckets[i];
                if (sum > 0 && sum >= wanted)
                        return UINT64_C(1) << MIN(i + 1, (size_t)63);
        }
        return UINT64_C(1) << 63;
}

char *histogram_time(uint64_t ns, char *buf, size_t size) {
        static const char *const units[] = { "ns", "us", "ms", "s" };
        double value = (double)ns;
        size_t unit = 0;

        while (value >= 1000 && unit + 1 < ELEMENTSOF(units)) {
                value /= 1000;
                unit++;
        }
        snprintf(buf, size, "%.*f%s",
                 unit == 0 || value >= 100 ? 0
                 : value >= 10             ? 1
                                           : 2,
                 value, units[unit]);
        return buf;
}

static void print_numbers(FILE *out, const struct histogram *h, uint64_t usec) {
        char mean[32], half[32], most[32], rate[FORMAT_SIZE_MAX];
        double seconds = (double)MAX(usec, (uint64_t)1) / 1e6;

        histogram_time(h->sum_ns / h->count, mean, sizeof(mean));
        histogram_time(histogram_quantile(h, 500), half, sizeof(half));
        histogram_time(histogram_quantile(h, 990), most, sizeof(most));
        fprintf(out, "  %s: %" PRIu64 " (%.1f/s)", h->name, h->count, (double)h->count / seconds);
        if (h->bytes > 0)
                fprintf(out, ", %s/s",
                        format_size((uint64_t)((double)h->bytes / seconds), rate, sizeof(rate)));
        fprintf(out, ", mean %s, half below %s, 99%% below %s\n", mean, half, most);
}

void histogram_print(FILE *out, const struct histogram *h, uint64_t usec, unsigned width, bool color) {
        size_t first = 0, last = HISTOGRAM_BUCKETS - 1;
        uint64_t most = 0;

        if (h->count == 0) {
                fprintf(out, "  %s: none\n", h->name);
                return;
        }
        print_numbers(out, h, usec);
        while (first < last && h->buckets[first] == 0)
                first++;
        while (last > first && h->buckets[last] == 0)
                last--;
        for (size_t i = first; i <= last; i++)
                most = MAX(most, h->buckets[i]);
        for (size_t i = first; i <= last && most > 0; i++) {
                unsigned n = (unsigned)((double)h->buckets[i] * width / (double)most + 0.5);
                char from[32], to[32];

                histogram_time(UINT64_C(1) << i, from, sizeof(from));
                histogram_time(UINT64_C(1) << MIN(i + 1, (size_t)63), to, sizeof(to));
                fprintf(out, "  %7s - %-7s %10" PRIu64 " ", i == 0 ? "0ns" : from, to, h->buckets[i]);
                fputs(color ? color_sequence(COLOR_CYAN) : "", out);
                if (n == 0 && h->buckets[i] > 0)
                        fputc('.', out);
                for (unsigned k = 0; k < n; k++)
                        fputc('#', out);
                fputs(color ? COLOR_RESET "\n" : "\n", out);
        }
}
