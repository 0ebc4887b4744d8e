/* SPDX-License-Identifier: Apache-2.0 */
/* Which fields of a state are stored, and under which number. A number stays with its meaning for good: what
 * is no longer wanted leaves a gap. */
#include "masterd/store/table.h"

#define JOB(t, number, member) CODEC_FIELD(t, number, job_state_record, member)

const struct codec_field job_state_codec[] = {
        JOB(U8, 1, verdict),
        JOB(BOOL, 2, saving),
        JOB(BOOL, 3, requeueing),
        JOB(U32, 4, order_step),
        JOB(U64, 5, attempt_real),
        JOB(U32, 6, requeues),
        JOB(U32, 7, asked),
        JOB(U64, 8, slot_real),
        JOB(U64, 9, waits_real),
        JOB(U64, 10, not_before_real),
        JOB(U64, 11, leave_real),
        JOB(U32, 12, leave_for),
        JOB(U8, 13, leave_why),
        JOB(U64, 14, after_met),
        JOB(U32, 15, array_since),
        JOB(BOOL, 16, had_env),
        JOB(BOOL, 17, had_secrets),
        JOB(U64, 18, limits_real),
        JOB(U64, 19, epoch),
        JOB(U64, 20, membership),
        JOB(U64, 21, rolling_real),
        JOB(U32, 22, rolling_batch),
        JOB(U32, 23, rolling_index),
        JOB(TEXT, 24, rolling_role),
        JOB(U64, 25, held_real),
        JOB(U64, 26, froze_real),
        JOB(U32, 27, held_by),
        JOB(U8, 28, held_mode),
        JOB(U64, 29, kill_grace), /* usec + 1 */
        JOB(U64, 30, placeable_real),
        JOB(U8, 31, kill_status),
        JOB(U32, 32, parent),
        JOB(BOOL, 33, with_parent),
        {},
};

static const struct codec_field failure_codec[] = {
        CODEC_FIELD(U64, 1, failure_record, real),
        CODEC_FIELD(U32, 2, failure_record, n),
        {},
};

static const struct codec_field history_codec[] = {
        CODEC_ARRAY(1, history_record, failures, n_failures, failure_codec),
        CODEC_FIELD(U32, 2, history_record, consecutive),
        {},
};

const struct codec_field scope_state_codec[] = {
        CODEC_FIELD(U32, 1, scope_state_record, restarts),
        CODEC_FIELD(U64, 2, scope_state_record, real),
        CODEC_FIELD(U64, 3, scope_state_record, due_real),
        CODEC_FIELD(U64, 4, scope_state_record, regroup_real),
        CODEC_STRUCT(5, scope_state_record, history, history_codec),
        CODEC_STRUCT(6, scope_state_record, budget, history_codec),
        {},
};

static const struct codec_field strike_codec[] = {
        CODEC_FIELD(U64, 1, strike_record, real),   CODEC_FIELD(U32, 2, strike_record, job),
        CODEC_FIELD(U32, 3, strike_record, user),   CODEC_FIELD(U8, 4, strike_record, kind),
        CODEC_FIELD(BOOL, 5, strike_record, alone), {},
};

static const struct codec_field shun_codec[] = {
        CODEC_FIELD(U32, 1, shun_record, user),
        CODEC_FIELD(U32, 2, shun_record, times),
        CODEC_FIELD(U64, 3, shun_record, until_real),
        {},
};

const struct codec_field blame_state_codec[] = {
        CODEC_FIELD(U32, 1, blame_state_record, state),
        CODEC_FIELD(U32, 2, blame_state_record, times),
        CODEC_FIELD(U64, 3, blame_state_record, since_real),
        CODEC_FIELD(U64, 4, blame_state_record, until_real),
        CODEC_ARRAY(5, blame_state_record, strikes, n_strikes, strike_codec),
        CODEC_ARRAY(6, blame_state_record, shuns, n_shuns, shun_codec),
        {},
};
