/* SPDX-License-Identifier: Apache-2.0 */
/* Progress that the next job goes on from. Invariant: the savepoint and the end of its job are one
 * transaction, so the next job never reads again what this one has acknowledged. */
#include "masterd/life/kept-progress.h"

#include <errno.h>
#include <gnutls/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "lib/base/format.h"
#include "lib/base/log.h"
#include "masterd/core/manager.h"
#include "masterd/core/record.h"
#include "masterd/job/job.h"
#include "masterd/life/life-parts.h"
#include "masterd/life/savepoints.h"

#define DIGEST_SHOWN 16u /* bytes of it in a name: two of one user never meet */

struct kept_progress {
        char name[SAVEPOINT_NAME_MAX + 1]; /* of the savepoint */
        uint32_t job;
        UT_hash_handle hh;
};

static int name_of(uint32_t owner, const char *staging_dir, char ret[static SAVEPOINT_NAME_MAX + 1]) {
        uint8_t digest[32];
        int n = snprintf(ret, SAVEPOINT_NAME_MAX + 1, SAVEPOINT_KEPT_PREFIX "%u-", owner);

        if (gnutls_hash_fast(GNUTLS_DIG_SHA256, staging_dir, strlen(staging_dir), digest) < 0)
                return -ENOMEM;
        (void)format_hex(digest, DIGEST_SHOWN, ret + n);
        return 0;
}

/* Whether such a job has progress of its own, which masterd would know of (job.data). */
static bool keeps(const struct job_spec *spec) {
        return spec->staging_dir && spec_n_sources(spec) > 0 && spec->lockstep == LOCKSTEP_OFF &&
               !spec->array.array;
}

bool kept_progress_find(const struct manager *m, uint32_t owner, const struct job_spec *spec,
                        char ret[static SAVEPOINT_NAME_MAX + 1]) {
        const struct savepoint *s;

        if (!keeps(spec) || name_of(owner, spec->staging_dir, ret) < 0)
                return false;
        s = savepoint_get(m, ret);
        return s && s->owner == owner;
}

static struct kept_progress *keeper_of(const struct manager *m, const char *name) {
        struct kept_progress *k;

        HASH_FIND_STR(m->life->kept, name, k);
        return k;
}

uint32_t kept_progress_keeper(const struct manager *m, const char *name) {
        const struct kept_progress *k = keeper_of(m, name);

        return k ? k->job : 0;
}

/* Whether somebody else is at the savepoint: it is replaced when the job ends, and must not be read then. */
static int refuse_taken(const struct manager *m, const struct job *j, const char *name, const char *from,
                        char text[static KEPT_PROGRESS_TEXT_MAX]) {
        const struct savepoint *s = savepoint_get(m, name);
        const struct kept_progress *other = keeper_of(m, name);

        if (other) {
                snprintf(text, KEPT_PROGRESS_TEXT_MAX,
                         "Job %u keeps its progress under the same "
                         "inputManager.workPreserve.hdfsConfig.stagingDir and has not ended; wait for it "
                         "(primusctl wait %u), or kill it",
                         other->job, other->job);
                return -EBUSY;
        }
        if (s && s->readers > (from && strcmp(from, name) == 0)) {
                snprintf(text, KEPT_PROGRESS_TEXT_MAX,
                         "A job is being made of savepoint %s; try again in a moment", name);
                return -EBUSY;
        }
        return s ? 0 : savepoints_admit(m, j->owner, text, KEPT_PROGRESS_TEXT_MAX);
}

static int hold_name(struct manager *m, struct job *j, const char *name) {
        struct kept_progress *k = calloc(1, sizeof(*k));

        if (!k)
                return -ENOMEM;
        snprintf(k->name, sizeof(k->name), "%s", name);
        k->job = j->number;
        j->kept = k;
        HASH_ADD_STR(m->life->kept, name, k);
        return 0;
}

/* 1: it may have the name; 0: it names none. */
static int may_have_name(struct manager *m, const struct job *j, const char *from,
                         char name[static SAVEPOINT_NAME_MAX + 1], char text[static KEPT_PROGRESS_TEXT_MAX]) {
        int r;

        if (!keeps(j->spec) || !j->data)
                return 0;
        snprintf(text, KEPT_PROGRESS_TEXT_MAX, "The master is out of memory");
        if (name_of(j->owner, j->spec->staging_dir, name) < 0)
                return -ENOMEM;
        r = refuse_taken(m, j, name, from, text);
        return r < 0 ? r : 1;
}

int kept_progress_admit(struct manager *m, const struct job *j, const char *from,
                        char text[static KEPT_PROGRESS_TEXT_MAX]) {
        char name[SAVEPOINT_NAME_MAX + 1];

        return MIN(may_have_name(m, j, from, name, text), 0);
}

int kept_progress_take(struct manager *m, struct job *j, const char *from,
                       char text[static KEPT_PROGRESS_TEXT_MAX]) {
        char name[SAVEPOINT_NAME_MAX + 1];
        int r = may_have_name(m, j, from, name, text);

        return r > 0 ? hold_name(m, j, name) : r;
}

int kept_progress_load(struct manager *m) {
        char name[SAVEPOINT_NAME_MAX + 1];
        struct job *j, *next;

        HASH_ITER (hh, m->jobs.by_number, j, next)
                if (keeps(j->spec) && j->data &&
                    (name_of(j->owner, j->spec->staging_dir, name) < 0 || hold_name(m, j, name) < 0))
                        return -ENOMEM;
        return 0;
}

static void let_name_go(struct manager *m, struct kept_progress *k) {
        HASH_DEL(m->life->kept, k);
        free(k);
}

/* It is on disk, where whoever goes on from it reads it. */
static void run_kept(struct manager *m, void *data) {
        char *name = data;
        struct kept_progress *k = keeper_of(m, name);

        savepoint_kept(m, name);
        if (k)
                let_name_go(m, k);
        free(name);
}

static void say_not_kept(struct manager *m, struct job *j, int error) {
        record_event(m, j, "progress-not-kept", NULL,
                     "the next job with this stagingDir reads again what this one has read: %s",
                     error == -E2BIG   ? "the savepoint would be larger than 32 MiB"
                     : error == -EBUSY ? "the savepoint is in use"
                                       : strerror(-error));
        (void)log_full(LOG_WARNING, error, &(struct log_fields){ .job = j->number },
                       "The progress of job %u is not kept", j->number);
}

void kept_progress_attempt_over(struct manager *m, struct job *j) {
        char *name;
        int r;

        if (!j->kept || !job_state_ended(j->state))
                return;
        name = strdup(j->kept->name);
        r = name ? savepoint_keep(m, j, name) : -ENOMEM;
        if (r < 0) {
                say_not_kept(m, j, r);
                free(name);
                kept_progress_drop(j);
                return;
        }
        record_event(m, j, "progress-kept", NULL,
                     "the next job with this stagingDir goes on from savepoint %s", name);
        j->kept = NULL; /* the table has it until then */
        (void)manager_effect(m, run_kept, name);
}

void kept_progress_drop(struct job *j) {
        if (j->kept)
                let_name_go(j->manager, j->kept);
        j->kept = NULL;
}

void kept_progress_free(struct manager *m) {
        struct kept_progress *k, *next;

        HASH_ITER (hh, m->life->kept, k, next)
                let_name_go(m, k);
}
