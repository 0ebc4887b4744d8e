/* SPDX-License-Identifier: Apache-2.0 */
/* Schema and migrations. Invariant: PRAGMA user_version says how many of the steps below have been done, and
 * is raised in the same transaction as they are: whatever happens in between, a store is as it was or as it
 * is to be. Steps are never changed once released; new ones are added at the end. */
#include "masterd/store/migrate.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <systemd/sd-daemon.h>
#include <time.h>

#include "lib/base/cleanup.h"
#include "lib/base/exit.h"
#include "lib/base/file.h"
#include "lib/base/log.h"
#include "masterd/store/old-states.h"
#include "masterd/store/sqlite.h"

#define APPLICATION_ID 0x5072696d /* "Prim" */
/* Copying and changing gigabytes takes longer than a start may; systemd is told not to lose patience. */
#define PATIENCE "EXTEND_TIMEOUT_USEC=3600000000"

const char *const store_steps[] = {
        "CREATE TABLE meta(key TEXT NOT NULL PRIMARY KEY, value BLOB NOT NULL) STRICT, WITHOUT ROWID;"
        "CREATE TABLE counter(name TEXT NOT NULL PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;"
        "CREATE TABLE job(number INTEGER NOT NULL PRIMARY KEY, uid BLOB NOT NULL, owner INTEGER NOT NULL,"
        " name TEXT NOT NULL, state INTEGER NOT NULL, attempt INTEGER NOT NULL, submitted INTEGER NOT NULL,"
        " started INTEGER NOT NULL, ended INTEGER NOT NULL, reason TEXT NOT NULL, first_error TEXT NOT NULL,"
        " exit_status INTEGER NOT NULL, state_data BLOB NOT NULL) STRICT;"
        "CREATE INDEX job_active ON job(number) WHERE ended = 0;"
        "CREATE INDEX job_owner ON job(owner, number);"
        "CREATE TABLE job_body(number INTEGER NOT NULL PRIMARY KEY, config BLOB NOT NULL, original BLOB NOT "
        "NULL,"
        " options BLOB NOT NULL, cwd BLOB NOT NULL, env BLOB NOT NULL, warnings BLOB NOT NULL, bundle TEXT "
        "NOT NULL)"
        " STRICT;"
        "CREATE TABLE executor(job INTEGER NOT NULL, role TEXT NOT NULL, idx INTEGER NOT NULL, attempt "
        "INTEGER NOT NULL,"
        " state INTEGER NOT NULL, node TEXT NOT NULL, rank INTEGER NOT NULL, ports BLOB NOT NULL, gpus TEXT "
        "NOT NULL,"
        " invocation BLOB NOT NULL, term INTEGER NOT NULL, epoch INTEGER NOT NULL, placed INTEGER NOT NULL,"
        " started INTEGER NOT NULL, ended INTEGER NOT NULL, result TEXT NOT NULL, code TEXT NOT NULL,"
        " status INTEGER NOT NULL, stop_requested INTEGER NOT NULL, memory_peak INTEGER NOT NULL, cpu "
        "INTEGER NOT NULL,"
        " io_read INTEGER NOT NULL, io_write INTEGER NOT NULL, reason TEXT NOT NULL,"
        " PRIMARY KEY(job, role, idx, attempt)) STRICT, WITHOUT ROWID;"
        "CREATE TABLE event(job INTEGER NOT NULL, seq INTEGER NOT NULL, time INTEGER NOT NULL, kind TEXT NOT "
        "NULL,"
        " role TEXT NOT NULL, idx INTEGER NOT NULL, text TEXT NOT NULL, PRIMARY KEY(job, seq)) STRICT, "
        "WITHOUT ROWID;"
        "CREATE TABLE node(name TEXT NOT NULL PRIMARY KEY, serial TEXT NOT NULL, epoch INTEGER NOT NULL,"
        " boot_id TEXT NOT NULL, state INTEGER NOT NULL, address TEXT NOT NULL, cpus INTEGER NOT NULL,"
        " memory INTEGER NOT NULL, joined INTEGER NOT NULL, seen INTEGER NOT NULL, inventory BLOB NOT NULL)"
        " STRICT, WITHOUT ROWID;"
        "CREATE TABLE token(id BLOB NOT NULL PRIMARY KEY, secret_hash BLOB NOT NULL, uses_left INTEGER NOT "
        "NULL,"
        " expires INTEGER NOT NULL, source TEXT NOT NULL, creator INTEGER NOT NULL) STRICT, WITHOUT ROWID;"
        "CREATE TABLE revoked(serial TEXT NOT NULL PRIMARY KEY, node TEXT NOT NULL, revoked INTEGER NOT NULL,"
        " not_after INTEGER NOT NULL) STRICT, WITHOUT ROWID;"
        "CREATE TABLE source(job INTEGER NOT NULL, source INTEGER NOT NULL, scanned INTEGER NOT NULL,"
        " cursor BLOB NOT NULL, tasks INTEGER NOT NULL, granted INTEGER NOT NULL, error TEXT NOT NULL,"
        " PRIMARY KEY(job, source)) STRICT, WITHOUT ROWID;"
        "CREATE TABLE task(job INTEGER NOT NULL, task INTEGER NOT NULL, source INTEGER NOT NULL, path BLOB "
        "NOT NULL,"
        " size INTEGER NOT NULL, mtime INTEGER NOT NULL, inode INTEGER NOT NULL, state INTEGER NOT NULL,"
        " acked INTEGER NOT NULL, attempts INTEGER NOT NULL, error TEXT NOT NULL, PRIMARY KEY(job, task))"
        " STRICT, WITHOUT ROWID;"
        "CREATE TABLE secret(job INTEGER NOT NULL, name TEXT NOT NULL, data BLOB NOT NULL, PRIMARY KEY(job, "
        "name))"
        " STRICT, WITHOUT ROWID;",

        /* 2: tasks are made as they are needed; on disk are files, blocks of tasks, and exceptions. Before
         * the first release; data of jobs that were active begins anew. */
        "DROP TABLE source;"
        "DROP TABLE task;"
        "CREATE TABLE file(job INTEGER NOT NULL, source INTEGER NOT NULL, file INTEGER NOT NULL, path BLOB "
        "NOT NULL,"
        " size INTEGER NOT NULL, mtime INTEGER NOT NULL, inode INTEGER NOT NULL, first INTEGER NOT NULL,"
        " last INTEGER NOT NULL, batch INTEGER NOT NULL, split INTEGER NOT NULL,"
        " PRIMARY KEY(job, source, file)) STRICT, WITHOUT ROWID;"
        "CREATE TABLE source(job INTEGER NOT NULL, source INTEGER NOT NULL, scanned INTEGER NOT NULL,"
        " cursor BLOB NOT NULL, passed INTEGER NOT NULL, error TEXT NOT NULL, PRIMARY KEY(job, source))"
        " STRICT, WITHOUT ROWID;"
        "CREATE TABLE block(job INTEGER NOT NULL, block INTEGER NOT NULL, state BLOB NOT NULL,"
        " finished BLOB NOT NULL, PRIMARY KEY(job, block)) STRICT, WITHOUT ROWID;"
        "CREATE TABLE task(job INTEGER NOT NULL, task INTEGER NOT NULL, source INTEGER NOT NULL,"
        " file INTEGER NOT NULL, epoch INTEGER NOT NULL, start INTEGER NOT NULL, stop INTEGER NOT NULL,"
        " acked INTEGER NOT NULL, skip INTEGER NOT NULL, records INTEGER NOT NULL,"
        " records_before INTEGER NOT NULL, state INTEGER NOT NULL, failures INTEGER NOT NULL, error TEXT NOT "
        "NULL, PRIMARY KEY(job, task)) STRICT, WITHOUT ROWID;"
        "CREATE TABLE data(job INTEGER NOT NULL PRIMARY KEY, state BLOB NOT NULL) STRICT;"
        "CREATE TABLE savepoint(name TEXT NOT NULL PRIMARY KEY, owner INTEGER NOT NULL, job INTEGER NOT NULL,"
        " job_name TEXT NOT NULL, key INTEGER NOT NULL, created INTEGER NOT NULL, done INTEGER NOT NULL,"
        " acked INTEGER NOT NULL, records INTEGER NOT NULL, partial INTEGER NOT NULL, failed INTEGER NOT "
        "NULL,"
        " bundle TEXT NOT NULL, manifest BLOB NOT NULL, config BLOB NOT NULL) STRICT;",

        /* 3: the scheduler and the life of a job. */
        /* Arrays, and what was used. */
        "ALTER TABLE job ADD COLUMN array INTEGER NOT NULL DEFAULT 0;"
        "ALTER TABLE job ADD COLUMN idx INTEGER NOT NULL DEFAULT 0;"
        "CREATE INDEX job_element ON job(array, idx, number) WHERE array > 0;"
        "CREATE TABLE usage(day INTEGER NOT NULL, owner INTEGER NOT NULL, pool TEXT NOT NULL, job INTEGER "
        "NOT NULL,"
        " role TEXT NOT NULL, cpu_held INTEGER NOT NULL, cpu_used INTEGER NOT NULL, memory_held INTEGER NOT "
        "NULL,"
        " gpu_held INTEGER NOT NULL, attempts INTEGER NOT NULL, unmeasured INTEGER NOT NULL,"
        " PRIMARY KEY(day, owner, pool, job, role)) STRICT, WITHOUT ROWID;"
        "CREATE INDEX usage_job ON usage(job) WHERE job > 0;"
        /* Jobs that are changed while they run. */
        "CREATE TABLE change(job INTEGER NOT NULL, version INTEGER NOT NULL, user INTEGER NOT NULL,"
        " at INTEGER NOT NULL, text TEXT NOT NULL, cuts TEXT NOT NULL, before BLOB NOT NULL,"
        " PRIMARY KEY(job, version)) STRICT, WITHOUT ROWID;"
        /* CPUs of an executor's own. */
        "ALTER TABLE executor ADD COLUMN cpus TEXT NOT NULL DEFAULT '';"
        /* The life of hosts. */
        "CREATE TABLE node_hold(node TEXT NOT NULL, cause INTEGER NOT NULL, drain INTEGER NOT NULL,"
        " reason TEXT NOT NULL, uid INTEGER NOT NULL, since INTEGER NOT NULL, deadline INTEGER NOT NULL,"
        " grace INTEGER NOT NULL, behind INTEGER NOT NULL, boot TEXT NOT NULL, PRIMARY KEY(node, cause))"
        " STRICT, WITHOUT ROWID;"
        "CREATE TABLE node_label(node TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL,"
        " PRIMARY KEY(node, key)) STRICT, WITHOUT ROWID;"
        "CREATE TABLE node_window(node TEXT NOT NULL, start INTEGER NOT NULL, stop INTEGER NOT NULL,"
        " reason TEXT NOT NULL, uid INTEGER NOT NULL, PRIMARY KEY(node, start)) STRICT, WITHOUT ROWID;"
        "CREATE TABLE stuck(node TEXT NOT NULL, job INTEGER NOT NULL, role TEXT NOT NULL, idx INTEGER NOT "
        "NULL, attempt INTEGER NOT NULL, uid BLOB NOT NULL, since INTEGER NOT NULL, cpu INTEGER NOT NULL,"
        " memory INTEGER NOT NULL, gpus TEXT NOT NULL, ports BLOB NOT NULL, reason TEXT NOT NULL,"
        " shm INTEGER NOT NULL, whole INTEGER NOT NULL, cpus TEXT NOT NULL, amounts TEXT NOT NULL,"
        " PRIMARY KEY(node, job, role, idx, attempt)) STRICT, WITHOUT ROWID;"
        "CREATE TABLE job_avoid(job INTEGER NOT NULL, node TEXT NOT NULL, PRIMARY KEY(job, node))"
        " STRICT, WITHOUT ROWID;"
        /* Failures that are counted together, hosts that are blamed. */
        "ALTER TABLE executor ADD COLUMN fate INTEGER NOT NULL DEFAULT 0;"
        "ALTER TABLE executor ADD COLUMN memory INTEGER NOT NULL DEFAULT 0;"
        "CREATE TABLE scope(job INTEGER NOT NULL, role TEXT NOT NULL, state BLOB NOT NULL,"
        " PRIMARY KEY(job, role)) STRICT, WITHOUT ROWID;"
        "CREATE TABLE blame(node TEXT NOT NULL PRIMARY KEY, state BLOB NOT NULL) STRICT, WITHOUT ROWID;"
        /* Shares of users. */
        "CREATE TABLE share(pool TEXT NOT NULL, user INTEGER NOT NULL, usage INTEGER NOT NULL,"
        " at INTEGER NOT NULL, PRIMARY KEY(pool, user)) STRICT, WITHOUT ROWID;",

        /* 4: what is seen of executors. */
        /* Verdicts that stand, and what was done about them. */
        "CREATE TABLE verdict(job INTEGER NOT NULL, role TEXT NOT NULL, idx INTEGER NOT NULL, kind INTEGER "
        "NOT "
        "NULL,"
        " attempt INTEGER NOT NULL, since INTEGER NOT NULL, begun INTEGER NOT NULL, action INTEGER NOT NULL,"
        " acted INTEGER NOT NULL, text TEXT NOT NULL, PRIMARY KEY(job, role, idx, kind)) STRICT, WITHOUT "
        "ROWID;"
        /* How long GPUs were busy. */
        "ALTER TABLE usage ADD COLUMN gpu_used INTEGER NOT NULL DEFAULT 0;"
        "ALTER TABLE usage ADD COLUMN gpu_measured INTEGER NOT NULL DEFAULT 0;",

        /* 5: whom tokens are for, and how hosts came by their names. A token of before is for new names. */
        "ALTER TABLE token ADD COLUMN name TEXT NOT NULL DEFAULT '';"
        "ALTER TABLE token ADD COLUMN \"replace\" INTEGER NOT NULL DEFAULT 0;"
        "ALTER TABLE node ADD COLUMN joined_from TEXT NOT NULL DEFAULT '';"
        "ALTER TABLE node ADD COLUMN joined_by INTEGER NOT NULL DEFAULT 0;"
        "ALTER TABLE node ADD COLUMN taken_over INTEGER NOT NULL DEFAULT 0;",

        /* 6: states by a codec, where they were structs as in memory; what was text for a scanner is columns.
         * What nobody read goes. */
        "UPDATE job SET state_data = job_state_of_5(state_data, started);"
        "UPDATE scope SET state = scope_state_of_5(state);"
        "UPDATE blame SET state = blame_state_of_5(state);"
        /* "FIRST LAST", then the uuid of a GPU a line. A cast takes the number in front. */
        "ALTER TABLE node ADD COLUMN port_first INTEGER NOT NULL DEFAULT 0;"
        "ALTER TABLE node ADD COLUMN port_last INTEGER NOT NULL DEFAULT 0;"
        "ALTER TABLE node ADD COLUMN gpus TEXT NOT NULL DEFAULT '';"
        "WITH old AS (SELECT name, CAST(inventory AS TEXT) AS text FROM node) UPDATE node SET"
        " port_first = CAST(old.text AS INTEGER),"
        " port_last = CAST(substr(old.text, instr(old.text, ' ') + 1) AS INTEGER),"
        " gpus = replace(rtrim(substr(old.text, instr(old.text, char(10)) + 1), char(10)), char(10), ' ')"
        " FROM old WHERE old.name = node.name AND length(old.text) > 0;"
        "ALTER TABLE node DROP COLUMN inventory;"
        /* Lines "ROLE FROM ATTEMPT". */
        "CREATE TABLE change_cut(job INTEGER NOT NULL, version INTEGER NOT NULL, role TEXT NOT NULL,"
        " first INTEGER NOT NULL, attempt INTEGER NOT NULL, PRIMARY KEY(job, version, role))"
        " STRICT, WITHOUT ROWID;"
        "WITH RECURSIVE line(job, version, text, rest) AS"
        " (SELECT job, version, '', cuts FROM change WHERE cuts != '' UNION ALL SELECT job, version,"
        "  substr(rest, 1, instr(rest, char(10)) - 1), substr(rest, instr(rest, char(10)) + 1) FROM line"
        "  WHERE instr(rest, char(10)) > 0),"
        " cut AS (SELECT job, version, substr(text, 1, instr(text, ' ') - 1) AS role,"
        "  substr(text, instr(text, ' ') + 1) AS numbers FROM line WHERE text != '')"
        " INSERT INTO change_cut SELECT job, version, role, CAST(numbers AS INTEGER),"
        " CAST(substr(numbers, instr(numbers, ' ') + 1) AS INTEGER) FROM cut;"
        "ALTER TABLE change DROP COLUMN cuts;"
        "ALTER TABLE job_body DROP COLUMN original;"
        "ALTER TABLE job_body DROP COLUMN options;"
        "ALTER TABLE job DROP COLUMN exit_status;"
        "ALTER TABLE executor DROP COLUMN code;"
        "ALTER TABLE executor DROP COLUMN term;",
        "CREATE TABLE gpu_off(node TEXT NOT NULL, uuid TEXT NOT NULL, uid INTEGER NOT NULL, since INTEGER NOT "
        "NULL,"
        " reason TEXT NOT NULL, PRIMARY KEY(node, uuid)) STRICT, WITHOUT ROWID;",

        /* 8: what a job was kept off, and may use again. */
        "ALTER TABLE job_avoid ADD COLUMN avoided INTEGER NOT NULL DEFAULT 1;"
        "ALTER TABLE job_avoid ADD COLUMN allowed INTEGER NOT NULL DEFAULT 0;",

        /* 9: what was submitted under a key. */
        "CREATE TABLE submit_key(user INTEGER NOT NULL, key TEXT NOT NULL, digest BLOB NOT NULL, job INTEGER NOT "
        "NULL,"
        " at INTEGER NOT NULL, PRIMARY KEY(user, key)) STRICT, WITHOUT ROWID;",

        /* 10: how jobs did that have ended; what happened to hosts. */
        "CREATE TABLE series(job INTEGER NOT NULL, role TEXT NOT NULL, at INTEGER NOT NULL, points BLOB NOT NULL,"
        " PRIMARY KEY(job, role)) STRICT;"
        "CREATE TABLE node_event(node TEXT NOT NULL, seq INTEGER NOT NULL, time INTEGER NOT NULL, kind TEXT NOT NULL,"
        " text TEXT NOT NULL, PRIMARY KEY(node, seq)) STRICT, WITHOUT ROWID;",

        /* 11: what happened to the trials of searches. */
        "CREATE TABLE trial(job INTEGER NOT NULL, seq INTEGER NOT NULL, time INTEGER NOT NULL, kind INTEGER NOT NULL,"
        " trial INTEGER NOT NULL, step INTEGER NOT NULL, metric INTEGER NOT NULL, exit INTEGER NOT NULL,"
        " verdict INTEGER NOT NULL, PRIMARY KEY(job, seq)) STRICT, WITHOUT ROWID;",

        /* 12: what trainers said of their training. */
        "CREATE TABLE metric(job INTEGER NOT NULL, role TEXT NOT NULL, idx INTEGER NOT NULL, local INTEGER NOT NULL,"
        " points BLOB NOT NULL, PRIMARY KEY(job, role, idx, local)) STRICT;",

        /* 13: what a searcher gave a trial. */
        "ALTER TABLE trial ADD COLUMN given TEXT NOT NULL DEFAULT '';",

        /* 14: the checkpoints that trainers have told of, and models. */
        "CREATE TABLE checkpoint(id INTEGER PRIMARY KEY, owner INTEGER NOT NULL, job INTEGER NOT NULL, run INTEGER NOT NULL,"
        " trial INTEGER NOT NULL, step INTEGER NOT NULL, saved INTEGER NOT NULL, bytes INTEGER NOT NULL,"
        " files INTEGER NOT NULL, path TEXT NOT NULL, host TEXT NOT NULL, metrics TEXT NOT NULL, metric TEXT NOT NULL,"
        " value INTEGER NOT NULL, smaller INTEGER NOT NULL, pinned INTEGER NOT NULL, marked INTEGER NOT NULL) STRICT;"
        "CREATE TABLE model(owner INTEGER NOT NULL, name TEXT NOT NULL, version INTEGER NOT NULL, checkpoint INTEGER NOT NULL,"
        " path TEXT NOT NULL, host TEXT NOT NULL, metric TEXT NOT NULL, value INTEGER NOT NULL, step INTEGER NOT NULL,"
        " registered INTEGER NOT NULL, note TEXT NOT NULL, labels TEXT NOT NULL, archived INTEGER NOT NULL,"
        " PRIMARY KEY(owner, name, version)) STRICT, WITHOUT ROWID;",

        /* 15: hosts that are made by demand. */
        "CREATE TABLE provider(name TEXT NOT NULL PRIMARY KEY, last INTEGER NOT NULL, held INTEGER NOT NULL) STRICT, WITHOUT ROWID;"
        "CREATE TABLE instance(token TEXT NOT NULL PRIMARY KEY, provider TEXT NOT NULL, shape TEXT NOT NULL, node TEXT NOT NULL,"
        " id TEXT NOT NULL, state INTEGER NOT NULL, job INTEGER NOT NULL, made INTEGER NOT NULL, since INTEGER NOT NULL,"
        " ready INTEGER NOT NULL, held INTEGER NOT NULL, woken INTEGER NOT NULL, leaves INTEGER NOT NULL, reason TEXT NOT NULL)"
        " STRICT, WITHOUT ROWID;",
        NULL,
};

/* ---- copies */

static char *copy_name(const char *path, int64_t version, const char *suffix) {
        char *name;

        return asprintf(&name, "%s.v%" PRIi64 ".bak%s", path, version, suffix) < 0 ? NULL : name;
}

static int copy_into(sqlite3 *db, const char *path) {
        _cleanup_close_ int fd = -EBADF;
        sqlite3_stmt *statement = NULL;
        int r;

        if (unlink(path) < 0 && errno != ENOENT)
                return -errno;
        fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd < 0)
                return -errno;
        r = sqlite3_prepare_v2(db, "VACUUM INTO ?1", -1, &statement, NULL);
        if (r == SQLITE_OK)
                r = sqlite3_bind_text(statement, 1, path, -1, SQLITE_STATIC);
        if (r == SQLITE_OK)
                r = sqlite3_step(statement);
        r = r == SQLITE_DONE ? 0 : sqlite_error(db, r);
        sqlite3_finalize(statement);
        return r >= 0 && fsync(fd) < 0 ? -errno : r;
}

/* A copy of the whole database in one consistent state, on disk when this returns. What has its name is
 * whole. */
static int back_up(sqlite3 *db, const char *path, int64_t version) {
        _cleanup_free_ char *copy = copy_name(path, version, ""), *half = copy_name(path, version, ".tmp");
        int r;

        if (!copy || !half)
                return log_oom();
        r = copy_into(db, half);
        if (r >= 0 && rename(half, copy) < 0)
                r = -errno;
        if (r >= 0)
                r = sync_directory_of(copy);
        if (r < 0) {
                (void)unlink(half);
                return log_error_errno(r,
                                       "Cannot copy the store to %s, which is needed before it is migrated; "
                                       "nothing was changed. Make room, then: systemctl start primus-masterd",
                                       copy);
        }
        return 0;
}

/* Of the copies of versions before this one, the newest stays. */
static void forget_old_copies(const char *path, int64_t version) {
        bool kept = false;

        for (int64_t v = version - 1; v > 0; v--) {
                _cleanup_free_ char *copy = copy_name(path, v, "");
                if (!copy || access(copy, F_OK) < 0)
                        continue;
                if (kept && unlink(copy) < 0)
                        log_warning_errno(errno, "Cannot remove the old copy %s", copy);
                kept = true;
        }
}

/* ---- migration */

#define WHY_MAX 256

/* why: SQLite's words, which a rollback would replace. */
static int run_steps(sqlite3 *db, const char *const *steps, int64_t version, int64_t newest,
                     char why[static WHY_MAX]) {
        char pragma[64];
        int r = old_states_register(db);

        r = r == SQLITE_OK ? sqlite_exec(db, "BEGIN IMMEDIATE") : sqlite_error(db, r);
        snprintf(why, WHY_MAX, "%s", sqlite3_errmsg(db));
        if (r < 0)
                return r;
        /* A pragma takes no parameters; what is printed here is a number. */
        snprintf(pragma, sizeof(pragma), "PRAGMA user_version = %" PRIi64, newest);
        while (r >= 0 && version < newest)
                r = sqlite_exec(db, steps[version++]);
        if (r >= 0)
                r = sqlite_exec(db, pragma);
        if (r >= 0)
                r = sqlite_exec(db, "COMMIT");
        snprintf(why, WHY_MAX, "%s", sqlite3_errmsg(db));
        if (r < 0 && !sqlite3_get_autocommit(db))
                (void)sqlite_exec(db, "ROLLBACK");
        return r;
}

static int migrate(sqlite3 *db, const char *path, const char *const *steps, int64_t version, int64_t newest) {
        char why[WHY_MAX];
        int r;

        if (version == newest)
                return 0;
        if (version > 0) {
                log_notice("Migrating %s from version %" PRIi64 " to %" PRIi64, path, version, newest);
                (void)sd_notify(false, PATIENCE "\nSTATUS=Migrating the store, after a copy was made");
                r = back_up(db, path, version);
                if (r < 0)
                        return r == -ENOMEM ? r : -EPERSON;
        }
        r = run_steps(db, steps, version, newest, why);
        if (r < 0 && version > 0) {
                log_error_errno(r,
                                "Cannot migrate %s from version %" PRIi64 " to %" PRIi64
                                " (%s), it is as it was. Mend "
                                "that, then: systemctl start primus-masterd",
                                path, version, newest, why);
                return r == -ENOMEM ? r : -EPERSON;
        }
        if (r < 0)
                return log_error_errno(r, "Cannot make the store %s (%s)", path, why);
        if (version > 0) {
                forget_old_copies(path, version);
                log_notice("%s is of version %" PRIi64 " now; it as it was before is %s.v%" PRIi64 ".bak",
                           path, newest, path, version);
        }
        return 0;
}

/* The sentence for a person who has gone back to this version, or wants to. */
static int too_new(const char *path, int64_t version, int64_t newest) {
        char made[64] = "";
        struct stat st;
        struct tm tm;

        for (int64_t v = newest; v > 0; v--) {
                _cleanup_free_ char *copy = copy_name(path, v, "");
                if (!copy || stat(copy, &st) < 0)
                        continue;
                if (localtime_r(&st.st_mtime, &tm))
                        (void)strftime(made, sizeof(made), "%F %R", &tm);
                log_error(
                        "%s was written by a newer Primus (store version %" PRIi64
                        ", this one, " PRIMUS_VERSION ", knows %" PRIi64
                        "). Install the newer primus-master again; or go back to the copy made before the "
                        "upgrade, at %s, and lose what was submitted and what jobs have done since; as root: "
                        "mv %s %s.newer; cp -p %s %s; systemctl start primus-masterd",
                        path, version, newest, made, path, path, copy, path);
                return -EPROTONOSUPPORT;
        }
        log_error("%s was written by a newer Primus (store version %" PRIi64 ", this one, " PRIMUS_VERSION
                  ", knows %" PRIi64
                  "). Install the newer primus-master again; there is no copy from before the "
                  "upgrade beside it (%s.v%" PRIi64 ".bak) to go back to",
                  path, version, newest, path, newest);
        return -EPROTONOSUPPORT;
}

int store_migrate_steps(sqlite3 *db, const char *path, const char *const *steps) {
        int64_t version, application, objects, newest = 0;
        char pragma[64];
        int r;

        while (steps[newest])
                newest++;
        r = sqlite_integer(db, "PRAGMA user_version", &version);
        if (r >= 0)
                r = sqlite_integer(db, "PRAGMA application_id", &application);
        if (r >= 0)
                r = sqlite_integer(db, "SELECT count(*) FROM sqlite_schema", &objects);
        if (r < 0)
                return r;
        if (application != APPLICATION_ID && (application != 0 || version != 0 || objects != 0))
                return -EMEDIUMTYPE;
        if (version < 0 || version > newest)
                return too_new(path, version, newest);
        if (application == 0) {
                snprintf(pragma, sizeof(pragma), "PRAGMA application_id = %d", APPLICATION_ID);
                r = sqlite_exec(db, pragma);
                if (r < 0)
                        return r;
        }
        return migrate(db, path, steps, version, newest);
}

int store_migrate(sqlite3 *db, const char *path) {
        return store_migrate_steps(db, path, store_steps);
}
