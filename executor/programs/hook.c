/* SPDX-License-Identifier: Apache-2.0 */
/* primus-hook NAME: runs the site's hook of that name: SYSCONFDIR/primus/hooks/NAME, then what is in
 * SYSCONFDIR/primus/hooks/NAME.d, by name. Runs in a unit of its own, whose manager watches the time.
 * Invariant: only what root alone may change is run. Exit status: that of the first that fails, or 0.
 *
 * What a hook is told is in its environment; with $CREDENTIALS_DIRECTORY/request, which holds NAME=VALUE each
 * ended by NUL, that is put into it first: names begin with PRIMUS_. */
#include <dirent.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "lib/base/cleanup.h"
#include "lib/base/file.h"
#include "lib/base/names.h"
#include "lib/base/parse.h"

#define HOOKS_DIR PRIMUS_SYSCONFDIR "/hooks"
#define REQUEST_MAX ((size_t)64 << 10)

static const char *const known[] = { "prolog", "epilog", "health", "fence", "notify" };

static void refuse_program(const char *path, const char *why) {
        fprintf(stderr, "%s is not run: %s\n", path, why);
}

/* 0: may be used; -ENOENT; -EPERM, having said why. */
static int check_owner(const char *path, bool directory) {
        struct stat st;

        if (lstat(path, &st) < 0) {
                if (errno != ENOENT)
                        refuse_program(path, strerror(errno));
                return errno == ENOENT ? -ENOENT : -EPERM;
        }
        if (directory ? !S_ISDIR(st.st_mode) : !S_ISREG(st.st_mode))
                refuse_program(path, directory ? "it is no directory" : "it is no regular file");
        else if (st.st_uid != 0)
                refuse_program(path, "it does not belong to root");
        else if (st.st_mode & (S_IWGRP | S_IWOTH))
                refuse_program(path, "others than root may write to it");
        else if (!directory && !(st.st_mode & S_IXUSR))
                refuse_program(path, "it is not executable");
        else
                return 0;
        return -EPERM;
}

static int run_program(const char *path) {
        int status, r = check_owner(path, false);
        pid_t pid;

        if (r < 0)
                return r == -ENOENT ? 0 : EXIT_FAILURE;
        pid = fork();
        if (pid < 0) {
                refuse_program(path, strerror(errno));
                return EXIT_FAILURE;
        }
        if (pid == 0) {
                execl(path, path, (char *)NULL);
                refuse_program(path, strerror(errno));
                _exit(127);
        }
        while (waitpid(pid, &status, 0) < 0)
                if (errno != EINTR)
                        return EXIT_FAILURE;
        if (WIFSIGNALED(status)) {
                fprintf(stderr, "%s was ended by SIG%s\n", path, sigabbrev_np(WTERMSIG(status)));
                return 128 + WTERMSIG(status);
        }
        return WEXITSTATUS(status);
}

/* Editors' and packages' leftovers are no hooks. */
static int is_hook(const struct dirent *d) {
        size_t l = strlen(d->d_name);

        return d->d_name[0] != '.' && d->d_name[l - 1] != '~' && !strstr(d->d_name, ".dpkg-") &&
               !strstr(d->d_name, ".rpm");
}

static int run_directory(const char *directory) {
        _cleanup_free_ struct dirent **list = NULL;
        int n, r = check_owner(directory, true), status = 0;

        if (r < 0)
                return r == -ENOENT ? 0 : EXIT_FAILURE;
        n = scandir(directory, &list, is_hook, alphasort);
        if (n < 0) {
                refuse_program(directory, strerror(errno));
                return EXIT_FAILURE;
        }
        for (int i = 0; i < n; i++) {
                _cleanup_free_ char *path = NULL;
                if (status == 0)
                        status = asprintf(&path, "%s/%s", directory, list[i]->d_name) < 0 ? EXIT_FAILURE
                                                                                          : run_program(path);
                free(list[i]);
        }
        return status;
}

static int take_request(void) {
        const char *directory = getenv("CREDENTIALS_DIRECTORY");
        _cleanup_free_ char *path = NULL;
        char *text, *end;
        size_t size;
        int r;

        if (!directory)
                return 0;
        if (asprintf(&path, "%s/request", directory) < 0)
                return -ENOMEM;
        r = read_file(path, REQUEST_MAX, &text, &size);
        if (r < 0)
                return r == -ENOENT ? 0 : r;
        end = text + size;
        /* putenv() keeps the text; it lives as long as this process. */
        for (char *p = text; p < end; p += strlen(p) + 1) {
                char *value = memchr(p, '=', strnlen(p, (size_t)(end - p)));
                if (!value || strncmp(p, "PRIMUS_", 7) != 0)
                        return -EBADMSG;
                *value = 0;
                if (!env_name_valid(p))
                        return -EBADMSG;
                *value = '=';
                if (putenv(p) != 0)
                        return -ENOMEM;
        }
        return 0;
}

/* Who the job's user is, which may take asking a server: here nobody waits for it but this hook. */
static void name_user(void) {
        const char *uid = getenv("PRIMUS_UID");
        const struct passwd *pw;
        uint32_t n;

        if (!uid || getenv("PRIMUS_USER") || parse_u32(uid, 0, UINT32_MAX, &n) < 0)
                return;
        pw = getpwuid(n);
        if (pw)
                (void)setenv("PRIMUS_USER", pw->pw_name, 1);
}

int main(int argc, char **argv) {
        _cleanup_free_ char *file = NULL, *directory = NULL;
        bool found = false;
        int r, status;

        if (argc == 2 && strcmp(argv[1], "--version") == 0) {
                puts("primus-hook " PRIMUS_VERSION);
                return EXIT_SUCCESS;
        }
        for (size_t i = 0; argc == 2 && i < ELEMENTSOF(known); i++)
                found |= strcmp(argv[1], known[i]) == 0;
        if (!found) {
                fprintf(stderr, "usage: primus-hook prolog|epilog|health|fence|notify\n");
                return 2;
        }
        r = take_request();
        if (r < 0) {
                fprintf(stderr, "The request cannot be read: %s\n", strerror(-r));
                return EXIT_FAILURE;
        }
        (void)setenv("PRIMUS_HOOK", argv[1], 1);
        name_user();
        if (asprintf(&file, HOOKS_DIR "/%s", argv[1]) < 0 ||
            asprintf(&directory, HOOKS_DIR "/%s.d", argv[1]) < 0)
                return EXIT_FAILURE;
        r = check_owner(HOOKS_DIR, true);
        if (r < 0)
                return r == -ENOENT ? 0 : EXIT_FAILURE;
        status = run_program(file);
        return status == 0 ? run_directory(directory) : status;
}
