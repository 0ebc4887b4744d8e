/* SPDX-License-Identifier: Apache-2.0 */
/* Invariant: nothing that an agent says reaches a person's terminal or the system bus as it came. */
#include "lib/wire/trace.h"

#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/try.h"
#include "lib/wire/messages-parts.h"
#include "lib/wire/skip.h"

#define HISTOGRAM "stttat"

/* 1, 0: there is no more. */
static int pass_histogram(sd_bus_message *from, sd_bus_message *to) {
        char name[TRACE_ANSWER_NAME_MAX + 1];
        uint64_t count, sum, bytes;
        const void *buckets;
        size_t size;
        int r = sd_bus_message_enter_container(from, 'r', HISTOGRAM);

        if (r <= 0)
                return r;
        if ((r = link_read_text_into(from, name, sizeof(name))) <= 0 ||
            (r = sd_bus_message_read(from, "ttt", &count, &sum, &bytes)) <= 0 ||
            (r = sd_bus_message_read_array(from, 't', &buckets, &size)) < 0 ||
            (r = sd_bus_message_exit_container(from)) < 0)
                return link_bad(r);
        if (size > TRACE_ANSWER_BUCKETS_MAX * sizeof(uint64_t))
                return -EBADMSG;
        TRY(sd_bus_message_open_container(to, 'r', HISTOGRAM));
        TRY(sd_bus_message_append(to, "sttt", name, count, sum, bytes));
        TRY(sd_bus_message_append_array(to, 't', buckets, size));
        TRY(sd_bus_message_close_container(to));
        return 1;
}

static int pass_histograms(sd_bus_message *from, sd_bus_message *to) {
        int r = sd_bus_message_enter_container(from, 'a', "(" HISTOGRAM ")");

        if (r <= 0)
                return link_bad(r);
        r = sd_bus_message_open_container(to, 'a', "(" HISTOGRAM ")");
        for (unsigned n = 0; r >= 0 && (r = pass_histogram(from, to)) > 0;)
                if (++n > TRACE_ANSWER_HISTOGRAMS_MAX)
                        return -EBADMSG;
        if (r < 0 || (r = sd_bus_message_exit_container(from)) < 0)
                return link_bad(r);
        return sd_bus_message_close_container(to);
}

static int read_missed(sd_bus_message *from, const char *key, void *userdata) {
        uint64_t *missed = userdata;

        return strcmp(key, "missed") == 0 ? sd_bus_message_read(from, "v", "t", missed)
                                          : message_skip(from, "v");
}

int trace_answer_pass(sd_bus_message *from, sd_bus_message *to) {
        uint64_t since, missed = 0;
        int r;

        if (!sd_bus_message_has_signature(from, TRACE_ANSWER_SIGNATURE))
                return -EBADMSG;
        if ((r = sd_bus_message_read_basic(from, 't', &since)) <= 0)
                return link_bad(r);
        TRY(sd_bus_message_append_basic(to, 't', &since));
        TRY(pass_histograms(from, to));
        TRY(link_read_entries(from, read_missed, &missed));
        TRY(sd_bus_message_append(to, "a{sv}", 1, "missed", "t", missed));
        return 1;
}
