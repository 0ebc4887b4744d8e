/* SPDX-License-Identifier: Apache-2.0 */
/* Stores outside masterd. Invariant: a restored store never says anything that one before it has said: its
 * terms and numbers are above those that may have been used since it was copied. */
#include "masterd/store/revive.h"

#include <endian.h>
#include <fcntl.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "masterd/store/migrate.h"
#include "masterd/store/sqlite.h"

#define APPLICATION_ID 0x5072696d /* "Prim", as in migrate.c */
#define JOBS_PER_MINUTE 100u      /* since the copy, where that is more than STORE_JOB_GAP */

int64_t store_version(void) {
        int64_t n = 0;

        while (store_steps[n])
                n++;
        return n;
}

static void db_close(sqlite3 *db) {
        (void)sqlite3_close(db);
}
DEFINE_CLEANUP(sqlite3 *, db_close)

static int open_locked(const char *path, sqlite3 **ret) {
        sqlite3 *db = NULL;
        int r = sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);

        if (r != SQLITE_OK)
                r = sqlite_error(db, r);
        else {
                (void)sqlite3_extended_result_codes(db, 1);
                r = sqlite_exec(
                        db,
                        "PRAGMA locking_mode = EXCLUSIVE; PRAGMA trusted_schema = OFF;"
                        "PRAGMA temp_store = MEMORY; PRAGMA secure_delete = ON; PRAGMA synchronous = FULL;"
                        "BEGIN EXCLUSIVE; COMMIT");
        }
        if (r < 0) {
                (void)sqlite3_close(db);
                return r;
        }
        *ret = db;
        return 0;
}

/* SQLite's locks and the master's. The lock is the descriptor's, not the process's, so that no other
 * descriptor of the same file takes it away when it is closed. */
int store_lock(const char *path, int *ret_fd) {
        struct flock l = { .l_type = F_WRLCK,
                           .l_whence = SEEK_SET,
                           .l_start = SQLITE_LOCK_START,
                           .l_len = SQLITE_LOCK_BYTES + 1 };
        int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600), r;

        if (fd < 0)
                return -errno;
        if (fcntl(fd, F_OFD_SETLK, &l) < 0) {
                r = errno == EAGAIN || errno == EACCES ? -EBUSY : -errno;
                (void)close(fd);
                return r;
        }
        *ret_fd = fd;
        return 0;
}

static int read_meta(sqlite3 *db, const char *key, void *to, size_t size) {
        sqlite3_stmt *statement = NULL;
        int r = sqlite3_prepare_v2(db, "SELECT value FROM meta WHERE key = ?1", -1, &statement, NULL);

        if (r == SQLITE_OK)
                r = sqlite3_bind_text(statement, 1, key, -1, SQLITE_STATIC);
        if (r == SQLITE_OK)
                r = sqlite3_step(statement);
        if (r == SQLITE_ROW) {
                r = (size_t)sqlite3_column_bytes(statement, 0) == size ? 0 : -EUCLEAN;
                if (r >= 0)
                        memcpy(to, sqlite3_column_blob(statement, 0), size);
        } else
                r = r == SQLITE_DONE ? -EMEDIUMTYPE : sqlite_error(db, r);
        sqlite3_finalize(statement);
        return r;
}

static int integrity(sqlite3 *db) {
        sqlite3_stmt *statement = NULL;
        int r = sqlite3_prepare_v2(db, "PRAGMA integrity_check(1)", -1, &statement, NULL);

        if (r == SQLITE_OK)
                r = sqlite3_step(statement);
        if (r == SQLITE_ROW) {
                const char *text = (const char *)sqlite3_column_text(statement, 0);
                r = text && strcmp(text, "ok") == 0 ? 0 : -EUCLEAN;
        } else
                r = sqlite_error(db, r);
        sqlite3_finalize(statement);
        return r;
}

/* A number of a shape that may be older than ours: what is not there is 0. */
static uint32_t count(sqlite3 *db, const char *sql) {
        int64_t n;

        return sqlite_integer(db, sql, &n) < 0 || n < 0 ? 0 : (uint32_t)MIN(n, (int64_t)UINT32_MAX);
}

int store_summarize(const char *path, struct store_summary *ret) {
        _cleanup_(db_close_p) sqlite3 *db = NULL;
        struct store_summary s = {};
        int64_t application;
        int r = open_locked(path, &db);

        if (r >= 0)
                r = integrity(db);
        if (r >= 0)
                r = sqlite_integer(db, "PRAGMA application_id", &application);
        if (r >= 0)
                r = sqlite_integer(db, "PRAGMA user_version", &s.version);
        if (r >= 0 && (application != APPLICATION_ID || s.version < 1))
                r = -EMEDIUMTYPE;
        if (r < 0)
                return r;
        if (s.version > store_version()) {
                *ret = s;
                return -EPROTONOSUPPORT;
        }
        if ((r = read_meta(db, "cluster", &s.cluster, sizeof(s.cluster))) < 0 ||
            (r = read_meta(db, "term", &s.term, sizeof(s.term))) < 0)
                return r;
        s.term = le64toh(s.term);
        s.last_job = count(db, "SELECT max(coalesce((SELECT value FROM counter WHERE name = 'last_job'), 0),"
                               " coalesce((SELECT max(number) FROM job), 0))");
        s.nodes = count(db, "SELECT count(*) FROM node");
        s.active_jobs = count(db, "SELECT count(*) FROM job WHERE ended = 0");
        s.active_with_files = count(db, "SELECT count(*) FROM job JOIN job_body USING(number)"
                                        " WHERE ended = 0 AND bundle != ''");
        *ret = s;
        return 0;
}

int store_copy_idle(const char *from_path, const char *path) {
        _cleanup_(db_close_p) sqlite3 *from = NULL, *to = NULL;
        sqlite3_backup *backup;
        int fd, r = open_locked(from_path, &from);

        if (r < 0)
                return r;
        fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0)
                return -errno;
        (void)close(fd);
        r = open_locked(path, &to);
        if (r < 0)
                return r;
        backup = sqlite3_backup_init(to, "main", from, "main");
        if (!backup)
                return sqlite_error(to, sqlite3_errcode(to));
        (void)sqlite3_backup_step(backup, -1);
        r = sqlite3_backup_finish(backup);
        return r != SQLITE_OK ? sqlite_error(to, r) : sqlite_exec(to, "PRAGMA journal_mode = DELETE");
}

static int set_term(sqlite3 *db, uint64_t term) {
        sqlite3_stmt *statement = NULL;
        int r = sqlite3_prepare_v2(db, "UPDATE meta SET value = ?1 WHERE key = 'term'", -1, &statement, NULL);

        if (r == SQLITE_OK)
                r = sqlite3_bind_blob(statement, 1, &(uint64_t){ htole64(term) }, sizeof(term),
                                      SQLITE_TRANSIENT);
        if (r == SQLITE_OK)
                r = sqlite3_step(statement);
        r = r == SQLITE_DONE ? 0 : sqlite_error(db, r);
        sqlite3_finalize(statement);
        return r;
}

static int set_last_job(sqlite3 *db, uint32_t number) {
        sqlite3_stmt *statement = NULL;
        int r = sqlite3_prepare_v2(db,
                                   "INSERT INTO counter(name, value) VALUES ('last_job', ?1)"
                                   " ON CONFLICT(name) DO UPDATE SET value = max(value, excluded.value)",
                                   -1, &statement, NULL);

        if (r == SQLITE_OK)
                r = sqlite3_bind_int64(statement, 1, number);
        if (r == SQLITE_OK)
                r = sqlite3_step(statement);
        r = r == SQLITE_DONE ? 0 : sqlite_error(db, r);
        sqlite3_finalize(statement);
        return r;
}

int store_revive(const char *path, uint64_t term, uint32_t last_job) {
        _cleanup_(db_close_p) sqlite3 *db = NULL;
        int r = open_locked(path, &db);

        if (r >= 0)
                r = sqlite_exec(db, "PRAGMA journal_mode = DELETE; BEGIN IMMEDIATE; DELETE FROM token");
        if (r >= 0)
                r = set_term(db, term);
        if (r >= 0)
                r = set_last_job(db, last_job);
        return r < 0 ? r : sqlite_exec(db, "COMMIT");
}

/* As masterd's own at each start, which takes longer than a microsecond: so no number of starts since the
 * copy was made reaches the microseconds since 1970. */
uint64_t store_revived_term(const struct store_summary *s, uint64_t now_real) {
        return MAX(usec_add(s->term, 1), now_real);
}

uint32_t store_revived_job(const struct store_summary *s, uint64_t copied_real, uint64_t now_real) {
        uint64_t minutes = usec_sub(now_real, copied_real) / (60 * USEC_PER_SEC);
        uint64_t number = (uint64_t)s->last_job + MAX((uint64_t)STORE_JOB_GAP, minutes * JOBS_PER_MINUTE);

        return (uint32_t)MIN(number, (uint64_t)UINT32_MAX - STORE_JOB_GAP);
}
