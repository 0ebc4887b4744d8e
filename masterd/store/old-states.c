/* SPDX-License-Identifier: Apache-2.0 */
/* Invariant: the structs here are what released versions wrote, and never change. A column that ends early is
 * of a version that had less: what is behind its end is zero. */
#include "masterd/store/old-states.h"

#include <assert.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "masterd/store/table.h"

#define OLD_FAILURES 12u
#define OLD_STRIKES 32u
#define OLD_SHUNS 16u

struct old_job {
        uint8_t version; /* 1 ends before requeues */
        uint8_t verdict, saving, requeueing;
        uint32_t order_step;
        uint64_t attempt_real;
        uint32_t requeues, asked;
        uint64_t slot_real, waits_real, not_before_real, leave_real;
        uint32_t leave_for;
        uint8_t leave_why, reserved[3];
        uint64_t after_met;
        uint32_t array_since;
        uint8_t had_env, had_secrets, reserved2[2];
        uint64_t limits_real, epoch, membership, rolling_real;
        uint32_t rolling_batch, rolling_index;
        char rolling_role[36];
        uint8_t reserved3[4];
        uint64_t held_real, froze_real;
        uint32_t held_by;
        uint8_t held_mode, reserved4[3];
};
static_assert(offsetof(struct old_job, requeues) == 16 && offsetof(struct old_job, leave_for) == 56 &&
                      offsetof(struct old_job, limits_real) == 80 &&
                      offsetof(struct old_job, held_real) == 160 && sizeof(struct old_job) == 184,
              "as it was");

struct old_history {
        uint64_t failures[OLD_FAILURES];
        uint32_t n_at[OLD_FAILURES];
        uint32_t n_failures, consecutive;
};
struct old_scope {
        uint32_t version, restarts; /* version 1; one that ends before regroup_real is older */
        uint64_t real, due_real;
        struct old_history history, budget;
        uint64_t regroup_real;
};
static_assert(sizeof(struct old_history) == 152 && sizeof(struct old_scope) == 336, "as it was");

struct old_blame {
        uint32_t version, reserved; /* 1 ends before shuns */
        uint32_t state, times;
        uint64_t since, until;
        uint32_t n_strikes, n_shuns;
        struct {
                uint64_t when;
                uint32_t job, user;
                uint8_t kind, alone, reserved[6];
        } strikes[OLD_STRIKES];
        struct {
                uint32_t user, times;
                uint64_t until;
        } shuns[OLD_SHUNS];
};
static_assert(offsetof(struct old_blame, strikes) == 40 && offsetof(struct old_blame, shuns) == 808 &&
                      sizeof(struct old_blame) == 1064,
              "as it was");

static_assert(OLD_FAILURES <= STORE_FAILURES_MAX && OLD_STRIKES <= STORE_STRIKES_MAX &&
                      OLD_SHUNS <= STORE_SHUNS_MAX,
              "all of it has room");

/* What is there of the struct. */
static void take_value(sqlite3_value *value, void *to, size_t size) {
        const void *data = sqlite3_value_blob(value);
        size_t n = (size_t)sqlite3_value_bytes(value);

        memset(to, 0, size);
        if (data)
                memcpy(to, data, MIN(n, size));
}

static void give_state(sqlite3_context *c, const struct codec_field *fields, const void *state) {
        uint8_t buf[CODEC_SIZE_MAX];
        ssize_t n = codec_write(fields, state, buf, sizeof(buf));

        if (n < 0)
                sqlite3_result_error_toobig(c);
        else
                sqlite3_result_blob(c, buf, (int)n, SQLITE_TRANSIENT);
}

static void job_state_of_5(sqlite3_context *c, int n, sqlite3_value **values) {
        struct job_state_record s;
        struct old_job o;

        take_value(values[0], &o, sizeof(o));
        s = (struct job_state_record){
                .verdict = o.verdict,
                .saving = o.saving != 0,
                .requeueing = o.requeueing != 0,
                .order_step = o.order_step,
                .attempt_real = o.attempt_real,
                .requeues = o.requeues,
                .asked = o.asked,
                .slot_real = o.version >= 2 ? o.slot_real : (uint64_t)sqlite3_value_int64(values[1]),
                .waits_real = o.waits_real,
                .not_before_real = o.not_before_real,
                .leave_real = o.leave_real,
                .leave_for = o.leave_for,
                .leave_why = o.leave_why,
                .after_met = o.after_met,
                .array_since = o.array_since,
                .had_env = o.had_env != 0,
                .had_secrets = o.had_secrets != 0,
                .limits_real = o.limits_real,
                .epoch = o.epoch,
                .membership = o.membership,
                .rolling_real = o.rolling_real,
                .rolling_batch = o.rolling_batch,
                .rolling_index = o.rolling_index,
                .held_real = o.held_real,
                .froze_real = o.froze_real,
                .held_by = o.held_by,
                .held_mode = o.held_mode,
        };
        memcpy(s.rolling_role, o.rolling_role, sizeof(s.rolling_role) - 1);
        give_state(c, job_state_codec, &s);
}

static struct history_record history_of(const struct old_history *o) {
        struct history_record h = { .n_failures = MIN(o->n_failures, OLD_FAILURES),
                                    .consecutive = o->consecutive };

        for (uint32_t i = 0; i < h.n_failures; i++)
                h.failures[i] = (struct failure_record){ o->failures[i], o->n_at[i] };
        return h;
}

static void scope_state_of_5(sqlite3_context *c, int n, sqlite3_value **values) {
        struct scope_state_record s;
        struct old_scope o;

        take_value(values[0], &o, sizeof(o));
        if (o.version != 1) {
                sqlite3_result_error(c, "a scope's state is of no known version", -1);
                return;
        }
        s = (struct scope_state_record){ .restarts = o.restarts,
                                         .real = o.real,
                                         .due_real = o.due_real,
                                         .regroup_real = o.regroup_real,
                                         .history = history_of(&o.history),
                                         .budget = history_of(&o.budget) };
        give_state(c, scope_state_codec, &s);
}

static void blame_state_of_5(sqlite3_context *c, int n, sqlite3_value **values) {
        struct blame_state_record s;
        struct old_blame o;

        take_value(values[0], &o, sizeof(o));
        if (o.version < 1 || o.version > 2 || o.n_strikes > OLD_STRIKES || o.n_shuns > OLD_SHUNS) {
                sqlite3_result_error(c, "what a host is blamed for is of no known version", -1);
                return;
        }
        s = (struct blame_state_record){ .state = o.state,
                                         .times = o.times,
                                         .since_real = o.since,
                                         .until_real = o.until,
                                         .n_strikes = o.n_strikes,
                                         .n_shuns = o.n_shuns };
        for (uint32_t i = 0; i < s.n_strikes; i++)
                s.strikes[i] = (struct strike_record){ .real = o.strikes[i].when,
                                                       .job = o.strikes[i].job,
                                                       .user = o.strikes[i].user,
                                                       .kind = o.strikes[i].kind,
                                                       .alone = o.strikes[i].alone != 0 };
        for (uint32_t i = 0; i < s.n_shuns; i++)
                s.shuns[i] = (struct shun_record){ o.shuns[i].user, o.shuns[i].times, o.shuns[i].until };
        give_state(c, blame_state_codec, &s);
}

int old_states_register(sqlite3 *db) {
        static const struct {
                const char *name;
                int n;
                void (*function)(sqlite3_context *c, int n, sqlite3_value **values);
        } functions[] = {
                { "job_state_of_5", 2, job_state_of_5 },
                { "scope_state_of_5", 1, scope_state_of_5 },
                { "blame_state_of_5", 1, blame_state_of_5 },
        };
        int r = SQLITE_OK;

        for (size_t i = 0; r == SQLITE_OK && i < ELEMENTSOF(functions); i++)
                r = sqlite3_create_function_v2(db, functions[i].name, functions[i].n,
                                               SQLITE_UTF8 | SQLITE_DETERMINISTIC, NULL,
                                               functions[i].function, NULL, NULL, NULL);
        return r;
}
