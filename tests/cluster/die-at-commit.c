/* SPDX-License-Identifier: Apache-2.0 */
/* Loaded into masterd (LD_PRELOAD): ends it, as kill -9 does, at each commit that has rows of trials,
 * executors, jobs or instances; ahead of the commit and behind it in turn. $DIE_LOG gets a byte for each
 * time, and says whose turn it is; nothing happens while it is not there. */
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool of_trials; /* the writer's thread alone begins and commits */

int sqlite3_step(sqlite3_stmt *statement) {
        static const char *const tables[] = { "INTO trial(", "INTO executor(", "INTO job(", "INTO instance(",
                                              "FROM instance WHERE" };
        int (*step)(sqlite3_stmt *) = (int (*)(sqlite3_stmt *))dlsym(RTLD_NEXT, "sqlite3_step");
        const char *sql = sqlite3_sql(statement);

        for (unsigned i = 0; sql && i < sizeof(tables) / sizeof(*tables); i++)
                of_trials |= strstr(sql, tables[i]) != NULL;
        return step(statement);
}

/* 0 or 1: it is to end ahead of this commit, or behind it; -1: neither. */
static int whose_turn(void) {
        const char *path = getenv("DIE_LOG");
        int fd = path ? open(path, O_WRONLY | O_APPEND | O_CLOEXEC) : -1, turn = -1;
        struct stat st;

        if (fd < 0)
                return -1;
        if (fstat(fd, &st) == 0 && write(fd, "x", 1) == 1)
                turn = st.st_size % 2;
        (void)close(fd);
        return turn;
}

int sqlite3_exec(sqlite3 *db, const char *sql, int (*row)(void *, int, char **, char **), void *userdata,
                 char **error) {
        int (*exec)(sqlite3 *, const char *, int (*)(void *, int, char **, char **), void *, char **) =
                (int (*)(sqlite3 *, const char *, int (*)(void *, int, char **, char **), void *,
                         char **))dlsym(RTLD_NEXT, "sqlite3_exec");
        int turn = -1, r;

        if (strcmp(sql, "BEGIN IMMEDIATE") == 0)
                of_trials = false;
        if (strcmp(sql, "COMMIT") == 0 && of_trials)
                turn = whose_turn();
        if (turn == 0)
                (void)raise(SIGKILL);
        r = exec(db, sql, row, userdata, error);
        if (turn == 1)
                (void)raise(SIGKILL);
        return r;
}
