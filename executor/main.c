/* SPDX-License-Identifier: Apache-2.0 */
/* primus-executor: what runs as the job's user inside an executor's unit. */
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "executor/feed/feed.h"
#include "executor/files/collect.h"
#include "executor/files/stage.h"
#include "executor/scan/scan.h"
#include "lib/base/cleanup.h"
#include "lib/base/parse.h"

#define EXIT_USAGE 2

static void print_usage(FILE *f) {
        fputs("Usage:\n"
              "  primus-executor --feed [--] COMMAND [ARGUMENT...]\n"
              "  primus-executor --scan --source NUMBER [--after PATH] [--batch NUMBER]\n"
              "  primus-executor --stage BUNDLE DIRECTORY\n"
              "  primus-executor --collect DIRECTORY\n"
              "\n"
              "Runs inside the unit of an executor, started by primus-agentd, which it finds by "
              "$PRIMUS_SOCKET.\n"
              "\n"
              "  --feed    run COMMAND with the data granted to this executor on its standard input, and end "
              "as it ends\n"
              "  --scan    list a data source of $PRIMUS_INPUT, behind PATH of that batch\n"
              "  --stage   unpack a bundle of files, once for all executors of a job on this host\n"
              "  --collect send what a job has left there to the agent, which is at the other end of "
              "standard input\n"
              "  --help    this text\n"
              "  --version the version\n",
              f);
}

static int usage_error(const char *why) {
        fprintf(stderr, "primus-executor: %s; see primus-executor --help\n", why);
        return EXIT_USAGE;
}

static const char *agent_socket(void) {
        const char *e = getenv("PRIMUS_SOCKET");

        return e && *e ? e : "/run/primus/feed.sock";
}

static int main_feed(int argc, char *argv[]) {
        if (argc > 0 && strcmp(argv[0], "--") == 0)
                argc--, argv++;
        if (argc == 0)
                return usage_error("--feed wants a command");
        return feed_run(agent_socket(), argv);
}

static int main_scan(int argc, char *argv[]) {
        static const struct option options[] = {
                { "source", required_argument, NULL, 's' }, { "after", required_argument, NULL, 'a' },
                { "batch", required_argument, NULL, 'b' },  { "path", required_argument, NULL, 'p' },
                { "name", required_argument, NULL, 'n' },   { NULL, 0, NULL, 0 },
        };
        struct scan_options o = { .socket = agent_socket(), .input = getenv("PRIMUS_INPUT") };
        const char *source = NULL;
        int c;

        while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0)
                switch (c) {
                case 's':
                        source = optarg;
                        break;
                case 'a':
                        o.after = *optarg ? optarg : NULL;
                        break;
                case 'b':
                        if (parse_u64(optarg, 0, UINT64_MAX, &o.batch) < 0)
                                return usage_error("--batch wants a number");
                        break;
                default:
                        return EXIT_USAGE;
                }
        if (!source || optind < argc)
                return usage_error("--scan wants --source NUMBER and options only");
        if (parse_u32(source, 0, INPUT_SOURCES_MAX - 1, &o.source) < 0)
                return usage_error("--source wants the number of a source");
        return scan_run(&o);
}

static int main_stage(int argc, char *argv[]) {
        if (argc != 2)
                return usage_error("--stage wants a bundle and a directory");
        return stage_run(argv[0], argv[1]);
}

int main(int argc, char *argv[]) {
        const char *mode = argc > 1 ? argv[1] : "";

        if (strcmp(mode, "--feed") == 0)
                return main_feed(argc - 2, argv + 2);
        if (strcmp(mode, "--scan") == 0)
                return main_scan(argc - 1, argv + 1);
        if (strcmp(mode, "--stage") == 0)
                return main_stage(argc - 2, argv + 2);
        if (strcmp(mode, "--collect") == 0)
                return argc == 3 ? collect_run(0, argv[2]) : usage_error("--collect wants a directory");
        if (strcmp(mode, "--help") == 0) {
                print_usage(stdout);
                return 0;
        }
        if (strcmp(mode, "--version") == 0) {
                puts("primus-executor " PRIMUS_VERSION);
                return 0;
        }
        return usage_error("the first argument says what to do");
}
