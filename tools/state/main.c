/* SPDX-License-Identifier: Apache-2.0 */
/* primus-state: the master's state as one file, and back. Run by 'primusctl backup' and 'primusctl restore',
 * apart from it because it links SQLite and libarchive. */
#include <getopt.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/conf.h"
#include "lib/base/parse.h"
#include "tools/state/say.h"
#include "tools/state/seal.h"
#include "tools/state/state.h"

int say(int error, const char *format, ...) {
        va_list ap;

        fputs("primusctl: ", stderr);
        va_start(ap, format);
        vfprintf(stderr, format, ap);
        va_end(ap);
        fputc('\n', stderr);
        return error;
}

int state_directory(char **ret) {
        _cleanup_free_ char *directory = conf_lookup("masterd.conf", "Master", "StateDirectory");

        if (!directory)
                directory = strdup("/var/lib/primus");
        if (!directory)
                return say(-ENOMEM, "out of memory");
        for (size_t n = strlen(directory); n > 1 && directory[n - 1] == '/'; n--)
                directory[n - 1] = 0;
        if (*directory != '/' || !directory[1])
                return say(-EINVAL, "StateDirectory=%s in masterd.conf is not the path of a directory",
                           directory);
        *ret = TAKE_PTR(directory);
        return 0;
}

static int usage(FILE *f, int status) {
        fputs("primus-state backup [--bundles] [--plain] [--keep N] FILE|DIRECTORY|-\n"
              "primus-state restore [--check] [--no-settings] [--with-hooks] [--key FILE] [--without-mac] "
              "FILE|-\n"
              "primus-state key\n\n"
              "The state of this host's primus-masterd as one file, and back. See primusctl(1).\n",
              f);
        return status;
}

int main(int argc, char **argv) {
        static const struct option options[] = {
                { "bundles", no_argument, NULL, 'b' },
                { "plain", no_argument, NULL, 'p' },
                { "keep", required_argument, NULL, 'k' },
                { "check", no_argument, NULL, 'c' },
                { "no-settings", no_argument, NULL, 's' },
                { "with-hooks", no_argument, NULL, 'w' },
                { "without-mac", no_argument, NULL, 'm' },
                { "key", required_argument, NULL, 'K' },
                { "help", no_argument, NULL, 'h' },
                { "version", no_argument, NULL, 'V' },
                { 0 },
        };
        struct restore_options restore = { 0 };
        struct backup_options backup = { 0 };
        int o;

        while ((o = getopt_long(argc, argv, "h", options, NULL)) >= 0)
                switch (o) {
                case 'b':
                        backup.bundles = true;
                        break;
                case 'p':
                        backup.plain = true;
                        break;
                case 'k':
                        if (parse_u32(optarg, 1, 10000, &backup.keep) < 0) {
                                say(0, "--keep: expected a number from 1 to 10000, not '%s'", optarg);
                                return 2;
                        }
                        break;
                case 'c':
                        restore.check = true;
                        break;
                case 's':
                        restore.no_settings = true;
                        break;
                case 'w':
                        restore.with_hooks = true;
                        break;
                case 'm':
                        restore.without_mac = true;
                        break;
                case 'K':
                        restore.key = optarg;
                        break;
                case 'h':
                        return usage(stdout, 0);
                case 'V':
                        puts("primus-state " PRIMUS_VERSION);
                        return 0;
                default:
                        return 2;
                }
        /* For primus-backup-key.service: the unit of backups is not root's. */
        if (optind + 1 == argc && strcmp(argv[optind], "key") == 0)
                return seal_key_make(SEAL_KEY_FILE) < 0 ? 1 : 0;
        if (optind + 2 != argc)
                return usage(stderr, 2);
        if (restore.with_hooks && (restore.no_settings || restore.without_mac)) {
                say(0,
                    "--with-hooks: hooks are settings, and taken from a backup with a good MAC alone; "
                    "without "
                    "%s",
                    restore.no_settings ? "--no-settings"
                                        : "--without-mac. Look at them, and copy "
                                          "those that you want to " PRIMUS_SYSCONFDIR
                                          "/hooks yourself: tar -xf FILE settings/hooks");
                return 2;
        }
        (void)signal(SIGPIPE, SIG_IGN);
        if (strcmp(argv[optind], "backup") == 0) {
                backup.to = argv[optind + 1];
                return state_backup(&backup);
        }
        if (strcmp(argv[optind], "restore") == 0) {
                restore.from = argv[optind + 1];
                return state_restore(&restore);
        }
        return usage(stderr, 2);
}
