/* SPDX-License-Identifier: Apache-2.0 */
/* Opening SQLite the way masterd wants it, and its errors as errno. Invariant: a file that is no store of
 * ours is not changed. */
#include "masterd/store/sqlite.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

#include "lib/base/cleanup.h"
#include "lib/base/exit.h"
#include "lib/base/log.h"
#include "masterd/store/migrate.h"

#define CHECK_BYTES_MAX                                                                                      \
        (64 << 20) /* a larger database is not read through at start: it would be slow to serve */

/* What the system said when input or output failed. sqlite3_system_errno() is whatever errno was when the
 * statement had been rolled back; the files themselves remember, first of all the log, to which everything is
 * written. */
static int system_error(sqlite3 *db) {
        sqlite3_file *log = NULL;
        int e = 0;

        if (!db)
                return 0;
        if (sqlite3_file_control(db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log) == SQLITE_OK && log &&
            log->pMethods)
                (void)log->pMethods->xFileControl(log, SQLITE_FCNTL_LAST_ERRNO, &e);
        if (e == 0)
                (void)sqlite3_file_control(db, "main", SQLITE_FCNTL_LAST_ERRNO, &e);
        return e > 0 ? e : sqlite3_system_errno(db);
}

int sqlite_error(sqlite3 *db, int code) {
        int e = system_error(db);

        switch (code & 0xff) {
        case SQLITE_NOMEM:
                return -ENOMEM;
        case SQLITE_BUSY:
        case SQLITE_LOCKED:
                return -EBUSY;
        case SQLITE_FULL:
                return -ENOSPC;
        case SQLITE_IOERR:
                return e > 0 ? -e : -EIO;
        case SQLITE_CORRUPT:
                return -EUCLEAN;
        case SQLITE_NOTADB:
                return -EMEDIUMTYPE;
        case SQLITE_READONLY:
                return -EROFS;
        case SQLITE_PERM:
        case SQLITE_AUTH:
                return -EACCES;
        case SQLITE_CANTOPEN:
                return e > 0 ? -e : -ENOENT;
        case SQLITE_TOOBIG:
                return -EFBIG;
        case SQLITE_CONSTRAINT:
        case SQLITE_MISMATCH:
        case SQLITE_RANGE:
                return -EINVAL;
        default:
                return -EIO;
        }
}

bool sqlite_error_is_space(int error) {
        return error == -ENOSPC || error == -EDQUOT || error == -EFBIG;
}

int sqlite_exec(sqlite3 *db, const char *sql) {
        int r = sqlite3_exec(db, sql, NULL, NULL, NULL);

        return r == SQLITE_OK ? 0 : sqlite_error(db, r);
}

int sqlite_integer(sqlite3 *db, const char *sql, int64_t *ret) {
        sqlite3_stmt *statement = NULL;
        int r = sqlite3_prepare_v2(db, sql, -1, &statement, NULL);

        if (r == SQLITE_OK)
                r = sqlite3_step(statement);
        if (r == SQLITE_ROW) {
                *ret = sqlite3_column_int64(statement, 0);
                r = 0;
        } else
                r = r == SQLITE_DONE ? -ENOENT : sqlite_error(db, r);
        sqlite3_finalize(statement);
        return r;
}

/* A write-ahead log that is still there was left by a process that did not close. */
static bool left_open(const char *path) {
        _cleanup_free_ char *wal = NULL;
        struct stat st;

        if (asprintf(&wal, "%s-wal", path) < 0) {
                wal = NULL;
                return true;
        }
        return stat(wal, &st) >= 0 && st.st_size > 0;
}

static int check(sqlite3 *db, const char *path) {
        sqlite3_stmt *statement = NULL;
        struct stat st;
        const char *text;
        int r;

        if (stat(path, &st) < 0 || st.st_size > CHECK_BYTES_MAX)
                return 0;
        r = sqlite3_prepare_v2(db, "PRAGMA quick_check(1)", -1, &statement, NULL);
        if (r == SQLITE_OK)
                r = sqlite3_step(statement);
        if (r == SQLITE_ROW) {
                text = (const char *)sqlite3_column_text(statement, 0);
                r = text && sqlite3_stricmp(text, "ok") == 0 ? 0 : -EUCLEAN;
                if (r < 0)
                        log_error("%s: %s", path, text ?: "?");
        } else
                r = sqlite_error(db, r);
        sqlite3_finalize(statement);
        return r;
}

/* ret_explained: the error has been logged already. */
static int configure(sqlite3 *db, const char *path, bool unclean, bool *ret_explained) {
        int r = sqlite_exec(db, "PRAGMA trusted_schema = OFF;"
                                "PRAGMA mmap_size = 0;"
                                "PRAGMA cache_size = -256;"
                                "PRAGMA temp_store = MEMORY;"
                                "PRAGMA secure_delete = ON;" /* secrets */
                                "PRAGMA synchronous = FULL;"
                                "PRAGMA wal_autocheckpoint = 0;"
                                "PRAGMA journal_size_limit = 16777216");

        if (r >= 0 && unclean)
                r = check(db, path);
        if (r < 0)
                return r;
        r = store_migrate(db, path);
        if (r < 0) {
                *ret_explained = r == -EPROTONOSUPPORT || r == -EPERSON;
                return r;
        }
        r = sqlite_exec(db, "PRAGMA journal_mode = WAL");
        if (r >= 0) /* takes its locks now, not at the first write */
                r = sqlite_exec(db, "BEGIN IMMEDIATE; COMMIT");
        if (r >= 0) /* what one prune deletes, see records.c */
                r = sqlite_exec(db, "CREATE TEMP TABLE doomed(number INTEGER NOT NULL PRIMARY KEY) STRICT");
        if (r >= 0) /* nobody is waited for from here on */
                (void)sqlite3_busy_timeout(db, 0);
        return r;
}

static int explain(int error, const char *path) {
        switch (error) {
        case -EBUSY:
                return log_error_errno(error, "%s is in use by another primus-masterd", path);
        case -EUCLEAN:
                return log_error_errno(
                        error, "%s is damaged; restore a backup, or move it away to start empty", path);
        case -EMEDIUMTYPE:
                return log_error_errno(error, "%s is not a store of Primus; move it away", path);
        default:
                return log_error_errno(error, "Cannot open the store %s", path);
        }
}

/* One master at a time. The lock is the descriptor's, not the process's. Waits a little for one that is just
 * being restarted. */
static int lock_master(int fd) {
        struct flock l = {
                .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = SQLITE_LOCK_MASTER, .l_len = 1
        };

        for (unsigned i = 0;; i++) {
                if (fcntl(fd, F_OFD_SETLK, &l) >= 0)
                        return 0;
                if ((errno != EAGAIN && errno != EACCES) || i == 50)
                        return errno == EAGAIN || errno == EACCES ? -EBUSY : -errno;
                (void)nanosleep(&(struct timespec){ .tv_nsec = 10 * 1000000 }, NULL);
        }
}

int sqlite_open_reader(const char *path, sqlite3 **ret) {
        sqlite3 *db = NULL;
        int r = sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, NULL);

        if (r != SQLITE_OK)
                r = sqlite_error(db, r);
        else {
                (void)sqlite3_extended_result_codes(db, 1);
                (void)sqlite3_busy_timeout(db, 500); /* it reads while the log is begun anew */
                r = sqlite_exec(db, "PRAGMA trusted_schema = OFF; PRAGMA query_only = ON;"
                                    "PRAGMA mmap_size = 0; PRAGMA cache_size = -256;"
                                    "PRAGMA temp_store = MEMORY");
        }
        if (r < 0) {
                (void)sqlite3_close(db);
                return explain(r, path);
        }
        *ret = db;
        return 0;
}

int sqlite_open(const char *path, sqlite3 **ret, int *ret_lock, bool *ret_unclean) {
        bool unclean = left_open(path), explained = false;
        sqlite3 *db = NULL;
        int r, fd;

        /* Created here for its mode; the files beside it take the same. It stays open: closing it would take
         * SQLite's locks away, which are the process's. */
        fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0)
                return explain(-errno, path);
        r = lock_master(fd);
        if (r < 0) {
                (void)close(fd);
                return explain(r, path);
        }
        r = sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
        if (r != SQLITE_OK)
                r = sqlite_error(db, r);
        else {
                (void)sqlite3_extended_result_codes(db, 1);
                (void)sqlite3_busy_timeout(db, 500); /* one that is just being restarted */
                r = configure(db, path, unclean, &explained);
        }
        if (r < 0) {
                (void)sqlite3_close(db);
                (void)close(fd);
                return explained ? r : explain(r, path);
        }
        *ret = db;
        *ret_lock = fd;
        *ret_unclean = unclean;
        return 0;
}
