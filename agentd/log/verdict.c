/* SPDX-License-Identifier: Apache-2.0 */
/* systemd's messages about a unit, from the latest one back. Invariant: nobody but PID 1 is believed;
 * journald knows whose a message is from the socket. */
#include "agentd/log/verdict.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <systemd/sd-messages.h>

#include "agentd/log/journal.h"
#include "lib/base/cleanup.h"
#include "lib/base/parse.h"
#include "lib/base/unitname.h"

#define ENTRIES_MAX 256u /* systemd says some ten things of a unit that starts and ends */
#define FIELD_MAX 64u

static void journal_close_p(sd_journal **j) {
        sd_journal_close(*j);
}

/* False: it has none, or it is too long to be one of these. */
static bool field(sd_journal *j, const char *name, char buf[static FIELD_MAX]) {
        const size_t prefix = strlen(name) + 1;
        const void *data;
        size_t size;

        if (sd_journal_get_data(j, name, &data, &size) < 0 || size < prefix || size - prefix >= FIELD_MAX)
                return false;
        memcpy(buf, (const char *)data + prefix, size - prefix);
        buf[size - prefix] = 0;
        return true;
}

static int add_match(sd_journal *j, const char *name, const char *value) {
        char match[UNIT_NAME_MAX + 32];

        snprintf(match, sizeof(match), "%s=%s", name, value);
        return sd_journal_add_match(j, match, 0);
}

static int open_for(const char *directory, const char *unit, sd_journal **ret) {
        _cleanup_(journal_close_p) sd_journal *j = NULL;
        int r = journal_open(directory, &j);

        if (r < 0 || (r = add_match(j, "_PID", "1")) < 0 || (r = add_match(j, "UNIT", unit)) < 0)
                return r;
        if ((r = sd_journal_seek_tail(j)) < 0)
                return r;
        *ret = TAKE_PTR(j);
        return 0;
}

/* Those that were there last stand. */
static void take_entry(sd_journal *j, struct journal_verdict *v) {
        char id[FIELD_MAX], text[FIELD_MAX], status[FIELD_MAX];
        sd_id128_t message;
        uint32_t n;

        if (!field(j, "MESSAGE_ID", id) || sd_id128_from_string(id, &message) < 0)
                return;
        if (sd_id128_equal(message, SD_MESSAGE_UNIT_FAILURE_RESULT)) {
                if (!*v->result && field(j, "UNIT_RESULT", text) && strlen(text) < sizeof(v->result)) {
                        strcpy(v->result, text);
                        (void)sd_journal_get_realtime_usec(j, &v->ended_real);
                }
        } else if (sd_id128_equal(message, SD_MESSAGE_UNIT_SUCCESS)) {
                if (!*v->result) {
                        strcpy(v->result, "success");
                        (void)sd_journal_get_realtime_usec(j, &v->ended_real);
                }
        } else if (sd_id128_equal(message, SD_MESSAGE_UNIT_PROCESS_EXIT)) {
                /* Of other processes as well: of primus-exit itself, say. */
                if (!*v->code && field(j, "COMMAND", text) && strcmp(text, "ExecStart") == 0 &&
                    field(j, "EXIT_CODE", text) && strlen(text) < sizeof(v->code) &&
                    field(j, "EXIT_STATUS", status) && parse_u32(status, 0, 255, &n) >= 0) {
                        strcpy(v->code, text);
                        v->status = (int32_t)n;
                }
        } else if (sd_id128_equal(message, SD_MESSAGE_UNIT_STOPPING))
                v->stopped = true;
}

int journal_verdict(const char *directory, const char *unit, uint64_t since_real,
                    struct journal_verdict *ret) {
        _cleanup_(journal_close_p) sd_journal *j = NULL;
        struct journal_verdict v = {};
        int r = open_for(directory, unit, &j);

        for (unsigned i = 0; r >= 0 && i < ENTRIES_MAX && (r = sd_journal_previous(j)) > 0; i++) {
                uint64_t real;

                if ((r = sd_journal_get_realtime_usec(j, &real)) < 0 || real < since_real)
                        break;
                take_entry(j, &v);
        }
        if (r < 0)
                return r;
        if (!*v.result)
                return 0;
        /* Of a good end systemd says no more than that. */
        if (!*v.code && strcmp(v.result, "success") == 0)
                strcpy(v.code, "exited");
        *ret = v;
        return 1;
}
