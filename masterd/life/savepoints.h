/* SPDX-License-Identifier: Apache-2.0 */
/* Savepoints: where the data of a job stood, kept until somebody deletes it. In memory is what a list shows;
 * manifest, configuration and files are in the store. From a savepoint to a job: masterd/admit/restore.h. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <uthash.h>

#include "masterd/life/savepoint-text.h"
#include "masterd/store/store.h"

struct manager;
struct job;
struct making;

#define SAVEPOINTS_PER_USER_MAX 1000u
#define SAVEPOINTS_MAX 10000u
#define SAVEPOINT_TEXT_MAX 512u

struct savepoint {
        char *name;
        uint32_t owner; /* uid: the owner of the job */
        uint32_t job;
        char *job_name;
        uint64_t key; /* of its files in the store */
        uint64_t created_real;
        uint64_t done, acked, records; /* tasks, bytes, records */
        uint64_t partial, failed;      /* tasks begun; set aside */
        char bundle[65];
        bool complete;         /* on disk; until then its name is taken, and that is all */
        uint32_t readers;      /* jobs that are being made of it */
        struct making *making; /* until it is complete */
        UT_hash_handle hh;
};

/* Reads what the store has. Before the loop runs. */
int savepoints_load(struct manager *m);
/* When no job is left. */
void savepoints_free(struct manager *m);

/* error 0: it is on disk, text is its name. Negative: text is a sentence that says why not. */
typedef void (*savepoint_done_t)(void *userdata, int error, const char *text);

/* Writes down where the job's data stands, once every feeder has told its latest acknowledgements, or 5 s are
 * over. name: "" = NUMBER-COUNT. kill: the data is held back first, what had been delivered may be
 * acknowledged as long as that goes on (within the 5 s), and the job is stopped in the same transaction, so
 * nothing is granted behind the savepoint. uid: who asks. 0: done is called later, once; or, with a sentence
 * in text: -EINVAL bad name, -EEXIST it is taken, -ENODATA the job has no data, -ESRCH the job is over,
 * -EBUSY the store is behind, -EDQUOT too many, -ENOMEM. */
int savepoint_create(struct manager *m, struct job *j, const char *name, bool kill, uint32_t uid,
                     savepoint_done_t done, void *userdata, char text[static SAVEPOINT_TEXT_MAX]);

/* Whether the user may have one more: 0; or, with a sentence in text, -EDQUOT. */
int savepoints_admit(const struct manager *m, uint32_t owner, char *text, size_t size);
/* Writes down, in the open batch, where the data of a job that has ended stood (its data is in memory still),
 * under this name; what was there before is replaced. It is complete with savepoint_kept(), which is called
 * when that is on disk. -EBUSY: another user's has the name, or it is being read; -E2BIG, -ENOMEM: as it was
 * before. */
int savepoint_keep(struct manager *m, struct job *j, const char *name);
void savepoint_kept(struct manager *m, const char *name);

/* A complete one, or NULL. Whether the caller may see it is the caller's question (owner). */
struct savepoint *savepoint_get(const struct manager *m, const char *name);
/* Newest first: savepoint_next(m, NULL) is the newest; NULL: no more. Complete ones only. */
struct savepoint *savepoint_next(struct manager *m, const struct savepoint *after);
/* When the latest one of the job was made; 0: there is none. */
uint64_t savepoints_latest(struct manager *m, const struct job *j);
/* Manifest and configuration; callback and errors as store_query_savepoint(). */
int savepoint_read(struct manager *m, const struct savepoint *s, store_savepoints_t callback, void *userdata);
/* Recorded; gone when the batch is on disk. -EBUSY: a job is being made of it. */
int savepoint_delete(struct manager *m, struct savepoint *s);
/* Whether one of that user needs these files of a job. */
bool savepoints_need(const struct manager *m, uint32_t owner, const char *bundle);
