/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of the link with any values in them, for every reader of lib/wire: refused, or read; what was read
 * can be said, and is understood again. The first byte chooses the reader. How to run it: README.md. */
#include "lib/base/cleanup.h"
#include "lib/base/strv.h"
#include "lib/wire/capture.h"
#include "lib/wire/condition.h"
#include "lib/wire/find.h"
#include "lib/wire/messages.h"
#include "lib/wire/telemetry.h"
#include "lib/wire/trace.h"
#include "tests/fuzz/message.h"

/* A reader that gives out something that is not to be freed. */
#define PLAIN(name, type)                                                                                    \
        static int name##_again(sd_bus_message *m, sd_bus_message *again) {                                  \
                struct type x;                                                                               \
                int r = name##_read(m, &x);                                                                  \
                                                                                                             \
                if (r == 1)                                                                                  \
                        MUST(name##_append(again, &x) >= 0);                                                 \
                return r;                                                                                    \
        }
/* And one that is. */
#define OWNED(name, type)                                                                                    \
        static int name##_again(sd_bus_message *m, sd_bus_message *again) {                                  \
                struct type x;                                                                               \
                int r = name##_read(m, &x);                                                                  \
                                                                                                             \
                if (r == 1) {                                                                                \
                        MUST(name##_append(again, &x) >= 0);                                                 \
                        name##_done(&x);                                                                     \
                }                                                                                            \
                return r;                                                                                    \
        }
PLAIN(executor_id, executor_id)
OWNED(welcome, welcome)
OWNED(inventory, inventory)
PLAIN(unit_report, unit_report)
OWNED(exit_report, exit_report)
PLAIN(feed_report, feed_report)
PLAIN(scan_batch, scan_batch)
PLAIN(grant_batch, grant_batch)
PLAIN(feed_order, feed_order)
OWNED(rendezvous_order, rendezvous_order)
PLAIN(unit_limits, unit_limits)
OWNED(capture, capture)
OWNED(find_question, find_question)
PLAIN(telemetry_sample, telemetry_sample)
OWNED(start_extra, start_extra)
OWNED(start_order, start_order)

/* A kind that is not known is read and cannot be said. */
static int condition_again(sd_bus_message *m, sd_bus_message *again) {
        struct host_condition c;
        int r = host_condition_read(m, &c);

        if (r == 1 && c.kind == _CONDITION_KIND_INVALID)
                return 0;
        if (r == 1)
                MUST(host_condition_append(again, &c) >= 0);
        return r;
}

static int trace_again(sd_bus_message *m, sd_bus_message *again) {
        int r = trace_answer_pass(m, again);

        return r == 1 ? 1 : r;
}

static int refusal_again(sd_bus_message *m, sd_bus_message *again) {
        struct link_refusal x;
        int r = link_refusal_read(m, &x);

        if (r == 1)
                MUST(sd_bus_message_append_basic(again, 's', "") >= 0 &&
                     link_append_id128(again, x.cluster) >= 0 &&
                     sd_bus_message_append_basic(again, 't', &x.term) >= 0);
        return r;
}

/* As masterd reads a registration's dictionary. */
static int read_inventory_entry(sd_bus_message *m, const char *key, void *userdata) {
        int r = inventory_read_extra(m, key, userdata);

        return r != 0 ? r : sd_bus_message_skip(m, "v");
}

static int inventory_extra_again(sd_bus_message *m, sd_bus_message *again) {
        struct inventory v = {};
        int r;

        v.gpus = calloc(3, sizeof(*v.gpus));
        MUST(v.gpus);
        v.n_gpus = 3;
        for (size_t i = 0; i < v.n_gpus; i++) {
                v.gpus[i].uuid = strdup("GPU");
                v.gpus[i].model = strdup("");
                v.gpus[i].nodes = strdup("");
                MUST(v.gpus[i].uuid && v.gpus[i].model && v.gpus[i].nodes);
        }
        r = link_read_entries(m, read_inventory_entry, &v);
        if (r == 1)
                MUST(sd_bus_message_open_container(again, 'a', "{sv}") >= 0 &&
                     inventory_append_extra(again, &v) >= 0 && sd_bus_message_close_container(again) >= 0);
        inventory_done(&v);
        return r;
}

/* An array of them, as in a registration: it ends, with 0 or an error. */
static int units_again(sd_bus_message *m, sd_bus_message *again) {
        struct unit_report u;
        int r = sd_bus_message_enter_container(m, 'a', LINK_UNIT_SIGNATURE);

        if (r <= 0)
                return -EBADMSG;
        MUST(sd_bus_message_open_container(again, 'a', LINK_UNIT_SIGNATURE) >= 0);
        while ((r = unit_report_read(m, &u)) > 0)
                MUST(unit_report_append(again, &u) >= 0);
        if (r < 0)
                return r;
        MUST(sd_bus_message_exit_container(m) >= 0 && sd_bus_message_close_container(again) >= 0);
        return 1;
}

static int exits_again(sd_bus_message *m, sd_bus_message *again) {
        struct exit_report e;
        int r = sd_bus_message_enter_container(m, 'a', LINK_EXIT_SIGNATURE);

        if (r <= 0)
                return -EBADMSG;
        MUST(sd_bus_message_open_container(again, 'a', LINK_EXIT_SIGNATURE) >= 0);
        while ((r = exit_report_read(m, &e)) > 0) {
                MUST(exit_report_append(again, &e) >= 0);
                exit_report_done(&e);
        }
        if (r < 0)
                return r;
        MUST(sd_bus_message_exit_container(m) >= 0 && sd_bus_message_close_container(again) >= 0);
        return 1;
}

static const struct message_target targets[] = {
        { LINK_ID_SIGNATURE, executor_id_again },
        { LINK_WELCOME_SIGNATURE, welcome_again },
        { LINK_INVENTORY_SIGNATURE, inventory_again },
        { LINK_UNIT_SIGNATURE, unit_report_again },
        { LINK_EXIT_SIGNATURE, exit_report_again },
        { "ayu(tttt)a{sv}", feed_report_again },
        { "aybsa{sv}", scan_batch_again },
        { "ayba{sv}", grant_batch_again },
        { "utta{sv}", feed_order_again },
        { "tuaaya{sv}", rendezvous_order_again },
        { "bttta{sv}", unit_limits_again },
        { "a"
          "(uusssss)"
          "a{sv}",
          capture_again },
        { "asa{sv}", find_question_again },
        { TELEMETRY_SAMPLE_SIGNATURE, telemetry_sample_again },
        { "a{sv}", start_extra_again },
        { LINK_ORDER_SIGNATURE, start_order_again },
        { CONDITION_SIGNATURE, condition_again },
        { TRACE_ANSWER_SIGNATURE, trace_again },
        { "sayt", refusal_again },
        { "a{sv}", inventory_extra_again },
        { "a" LINK_UNIT_SIGNATURE, units_again },
        { "a" LINK_EXIT_SIGNATURE, exits_again },
};

static const char *const keys[] = { "ready",        "readyPort",  "readyFile",    "epoch",     "rendezvous",
                                    "readyTimeout", "watchdog",   "cpus",         "gpus",      "rdma",
                                    "stackSignal",  "memoryHigh", "lockedMemory", "jobCpu",    "jobTasks",
                                    "jobShm",       "cpuWeight",  "jobWeight",    "openFiles", "numa",
                                    "io",           "sync",       "waitingFor",   "passed",    "total",
                                    "python",       "note",       "missed",       "labels",    "gpuNuma",
                                    "gpuMig",       "gpuParents", "gpuLinks",     "shm",       "networks",
                                    "conditions",   "tasksMax",   "delegate",     NULL };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        fuzz_message_targets(targets, ELEMENTSOF(targets), keys, data, size);
        return 0;
}
