/* SPDX-License-Identifier: Apache-2.0 */
/* primus-starter against an agentd that says anything: up to eight calls of org.primus.Starter1 with any
 * values, one time in sixteen with those of another signature. What it asks of systemd then is within
 * order-systemd.c's tables, and of the files below its root none is touched but those of executors and jobs.
 * The first byte says what there is beforehand, and then each call's first its method. Not tried here:
 * processes that look and remove (they would be forked), programs of the kernel, the bytes of messages
 * themselves, which are sd-bus'. How to run it: README.md. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/base/strv.h"
#include "starter/calls/starter.h"
#include "starter/files/artifacts.h"
#include "starter/files/prepare.h"
#include "starter/files/private.h"
#include "starter/observe/child.h"
#include "starter/observe/observe.h"
#include "starter/systemd/journal.h"
#include "tests/fuzz/message.h"
#include "tests/fuzz/order-systemd.h"

#define CALLS_MAX 8u
#define MIN_UID 5u
#define UID 10u
#define UNIT "primus-7-worker-0.1.service"

enum {
        EXECUTOR = 1, /* there is one, and its job's work directory */
        INVENTORY = 2,
        REFUSES = 4, /* systemd does, everything */
        LASTS = 8,   /* systemd's jobs do */
};

static const struct {
        const char *interface, *name, *signature;
} methods[] = {
        { STARTER_UNITS, "Start", LINK_ORDER_SIGNATURE "a{sv}a{sv}" },
        { STARTER_UNITS, "SetInventory", "s" LINK_INVENTORY_SIGNATURE "a{sv}" },
        { STARTER_UNITS, "StartSession", LINK_ID_SIGNATURE "uuasbth" },
        { STARTER_UNITS, "StartHook", "ssasth" },
        { STARTER_UNITS, "Stop", "s" },
        { STARTER_UNITS, "Kill", "ssi" },
        { STARTER_UNITS, "Freeze", "sb" },
        { STARTER_UNITS, "SetLimits", "sbttta{sv}" },
        { STARTER_UNITS, "SetCPUs", "ss" },
        { STARTER_UNITS, "SetDevices", "sasb" },
        { STARTER_UNITS, "MakeSlice", "utttu" },
        { STARTER_UNITS, "SetSlice", "utttu" },
        { STARTER_UNITS, "MakeSharedMemory", "uaytu" },
        { STARTER_UNITS, "RemoveSharedMemory", "s" },
        { STARTER_UNITS, "Put", "ssay" },
        { STARTER_UNITS, "SetRendezvous", "stuaaya{sv}" },
        { STARTER_UNITS, "RemovePrivate", "s" },
        { STARTER_UNITS, "RemoveFields", "s" },
        { STARTER_UNITS, "RemoveRecord", "s" },
        { STARTER_UNITS, "Usage", "" },
        { STARTER_UNITS, "MakeWork", "uayu" },
        { STARTER_UNITS, "TouchWork", "uay" },
        { STARTER_UNITS, "RemoveWork", "s" },
        { STARTER_UNITS, "MarkHooked", "uayb" },
        { STARTER_UNITS, "GiveBundle", "hu" },
        { STARTER_UNITS, "Power", "s" },
        { STARTER_OBSERVE, "Trace", "s" },
        { STARTER_OBSERVE, "Untrace", "s" },
        { STARTER_OBSERVE, "Open", "ss" },
        { STARTER_OBSERVE, "Signal", "si" },
        { STARTER_OBSERVE, "Capture", "ssi" },
        { STARTER_OBSERVE, "Usage", "as" },
        { STARTER_OBSERVE, "Written", "s" },
        { STARTER_OBSERVE, "Widen", "hu" },
        { STARTER_JOURNAL, "Synchronize", "" },
};

static const char *const keys[] = { "ready",      "readyPort",    "readyFile", "epoch",       "rendezvous",
                                    "cpus",       "readyTimeout", "rdma",      "stackSignal", "memoryHigh",
                                    "jobCpu",     "lockedMemory", "jobShm",    "cpuWeight",   "jobWeight",
                                    "numa",       "openFiles",    "io",        "term",        "bundled",
                                    "sharedCpus", "watchdog",     "labels",    "gpuNuma",     "gpuMig",
                                    "gpuParents", "gpuLinks",     "shm",       "networks",    "serves",
                                    "tasksMax",   "jobTasks",     "delegate",  NULL };

static char root[64], hook_work[128]; /* the latter: an executor's job's, as a hook is told it */

/* The first are what one of a kind looks like, the others what is near it. */
static const char *const words[] = {
        "worker", UNIT, "primus-7.slice", "primus-session-7-worker-0.1.3.service",
        "primus-hook-prolog-7-1.1.service", "run-primus-shm-7.01020304.mount", "7.01020304", "7-01020304",
        ".7-01020304.1", "prolog", "health", "all", "main", "stop", "wait", "exact", "sent", "", "/bin/true",
        "/dev/sda", "0-3,8", "notify", "require", "A=b", "n1", "PRIMUS_NODE=n1", "PRIMUS_JOB=7",
        "PRIMUS_UID=10", "PRIMUS_WORK=/etc", hook_work, "GPU-1", "/dev/nvidia0 /dev/nvidia-caps/nvidia-cap1",
        "%j/%r.%i", "01ba4719c80b6fe911b091a7c05124b64eeece964e09c058ef8f9805daca546b", "reboot", "io",
        "memory.pressure", "progress",
        /* near it */
        "sshd.service", "primus-masterd.service", "primus.slice", "primus-7-worker-0.1.service/../x",
        "primus-session-7.service", "../../etc/shadow", "/etc/shadow", "/dev/../etc/shadow",
        "/dev/sda\nExecStopPost=+/bin/sh", "a\\", "$HOME%h;", "+/bin/sh", "multi-user.target", NULL
};

/* ---- what is done by processes of the starter's in life ---- */

struct remover {
        int none;
};

struct children {
        int none;
};

int remover_new(sd_event *event, struct remover **ret) {
        *ret = calloc(1, sizeof(**ret));
        return *ret ? 0 : -ENOMEM;
}

void remover_free(struct remover *r) {
        free(r);
}

int remover_take(struct remover *r, char *path) {
        const char *below = path + strlen(root);

        MUST(strncmp(path, root, strlen(root)) == 0 && !strstr(below, "/../"));
        MUST(strncmp(below, "/run/primus/x/primus-", 21) == 0 ||
             strncmp(below, "/var/lib/primus-agent/work/", 27) == 0 ||
             strncmp(below, "/var/lib/primus-agent/artifacts/", 32) == 0);
        (void)remove_tree(path);
        free(path);
        return 0;
}

int remover_trim(struct remover *r, const char *where, uint64_t max, char **keep) {
        MUST(strcmp(where, root) == 0 && max > 0);
        (void)artifacts_trim(where, max, keep, &(const struct timespec){ .tv_sec = INT64_MAX });
        strings_free(keep);
        return 0;
}

int children_new(sd_event *event, struct children **ret) {
        *ret = calloc(1, sizeof(**ret));
        return *ret ? 0 : -ENOMEM;
}

void children_free(struct children *c) {
        free(c);
}

int child_run(struct children *c, uint32_t owner, uint64_t capabilities, child_function f, void *job, int in,
              int *ret_fd) {
        return -EBUSY;
}

/* ---- the host ---- */

static const char *const others[] = { "/etc/shadow", "/home/file", "/run/other",
                                      "/run/systemd/units/invocation:sshd.service",
                                      "/var/lib/primus-agent/other" };

static struct world {
        struct starter starter;
        struct order_systemd systemd;
        struct widened *widened;
        struct stat others[ELEMENTSOF(others)];
        uint32_t uid; /* whose executor there is */
        bool changed;
} * world;

static void below(const char *path, char buf[static 256]) {
        MUST(snprintf(buf, 256, "%s%s", root, path) < 256);
}

static void remove_root(void) {
        (void)remove_tree(root);
}

static void make_others(struct world *w) {
        char path[256];

        for (size_t i = 0; i < ELEMENTSOF(others); i++) {
                below(others[i], path);
                *strrchr(path, '/') = 0;
                MUST(make_directories(path, 0755) >= 0);
                below(others[i], path);
                MUST(write_file_atomic(path, "x", 1, 0600, false) >= 0);
                MUST(lstat(path, &w->others[i]) == 0);
        }
}

static void check_others(struct world *w) {
        char path[256];
        struct stat st;

        for (size_t i = 0; i < ELEMENTSOF(others); i++) {
                below(others[i], path);
                MUST(lstat(path, &st) == 0 && st.st_ino == w->others[i].st_ino &&
                     st.st_mode == w->others[i].st_mode && st.st_uid == w->others[i].st_uid &&
                     st.st_size == 1 && memcmp(&st.st_ctim, &w->others[i].st_ctim, sizeof(st.st_ctim)) == 0);
        }
}

/* Nothing is in a directory but these. */
static void check_names(const char *directory, const char *const *names) {
        struct dirent *e;
        char path[256];
        DIR *d;

        below(directory, path);
        d = opendir(path);
        MUST(d);
        while ((e = readdir(d))) {
                size_t i = 0;

                while (names[i] && strcmp(names[i], e->d_name) != 0)
                        i++;
                MUST(names[i] || strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0);
        }
        (void)closedir(d);
}

static void check_files(struct world *w) {
        check_others(w);
        check_names("", (const char *[]){ "etc", "home", "run", "var", NULL });
        check_names("/etc", (const char *[]){ "shadow", NULL });
        check_names("/run", (const char *[]){ "other", "primus", "systemd", NULL });
        check_names("/run/primus",
                    (const char *[]){ "agent", "alone", "boot", "exits", "hooked", "shm", "x", NULL });
        check_names("/var/lib/primus-agent",
                    (const char *[]){ "artifacts", "bundles", "other", "progress", "work", NULL });
}

static void clear(const char *directory) {
        char path[256];

        below(directory, path);
        (void)remove_tree(path);
        MUST(mkdir(path, 0755) == 0);
}

static struct world *world_new(void) {
        struct world *w = calloc(1, sizeof(*w));
        struct starter *s;

        MUST(w);
        snprintf(root, sizeof(root), "%s/fuzz-order-XXXXXX",
                 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
        MUST(mkdtemp(root));
        snprintf(hook_work, sizeof(hook_work), "PRIMUS_WORK=%s/var/lib/primus-agent/work/7-01020304", root);
        MUST(atexit(remove_root) == 0);
        log_set_level(LOG_EMERG);
        make_others(w);
        MUST(prepare(root, geteuid(), getegid(), getegid()) == 0);
        /* Without rights over files it is this user's; the rest is the same. */
        w->uid = geteuid() == 0 ? UID : geteuid();
        s = &w->starter;
        *s = (struct starter){ .root = root,
                               .agent_uid = geteuid(),
                               .policy = { .serve = { .min_uid = MIN_UID },
                                           .hide_managers = true,
                                           .port_first = 23000,
                                           .port_last = 27999 } };
        order_systemd_new(&w->systemd, root, &s->policy);
        s->systemd = w->systemd.client;
        MUST(sd_event_new(&s->event) >= 0 && lookup_new(&s->policy.serve, &s->lookup) >= 0 &&
             remover_new(s->event, &s->remover) >= 0 &&
             widened_new(WIDENED_MAX, WIDENED_BYTES_MAX, &w->widened) >= 0);
        return w;
}

/* ---- one agentd ---- */

struct agentd {
        sd_bus *server, *client;
        struct connection *connection;
        struct observe *observe;
        struct journal_syncs *syncs;
};

static int no_lane(sd_bus **ret, void *userdata) {
        return -ENOTCONN;
}

static void agentd_new(struct world *w, struct agentd *a) {
        sd_id128_t id = SD_ID128_MAKE(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16);
        struct starter *s = &w->starter;
        struct observe_options options = { .root = root, .widened = w->widened };
        int fds[2];

        *a = (struct agentd){};
        MUST(relay_new(s->systemd, no_lane, NULL, &s->relay) >= 0);
        MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) == 0);
        MUST(sd_bus_new(&a->server) >= 0 && sd_bus_set_fd(a->server, fds[0], fds[0]) >= 0 &&
             sd_bus_set_server(a->server, true, id) >= 0 && sd_bus_negotiate_fds(a->server, true) >= 0 &&
             sd_bus_set_trusted(a->server, true) >= 0 && sd_bus_start(a->server) >= 0);
        MUST(sd_bus_new(&a->client) >= 0 && sd_bus_set_fd(a->client, fds[1], fds[1]) >= 0 &&
             sd_bus_negotiate_fds(a->client, true) >= 0 && sd_bus_start(a->client) >= 0);
        MUST(connection_new(s, a->server, &a->connection) >= 0 &&
             observe_offer(a->server, s->event, &options, &a->observe) >= 0 &&
             journal_offer(a->server, s->event, "/nonexistent/socket", &a->syncs) >= 0);
}

static void agentd_done(struct world *w, struct agentd *a) {
        connection_free(a->connection);
        observe_free(a->observe);
        journal_syncs_free(a->syncs);
        sd_bus_close_unref(a->client);
        sd_bus_close_unref(a->server);
        relay_free(w->starter.relay);
        w->starter.relay = NULL;
}

static void settle(struct world *w, struct agentd *a) {
        sd_bus *const buses[] = { a->client, a->server, w->systemd.client, w->systemd.server };
        bool moved = true;

        while (moved) {
                moved = false;
                for (size_t i = 0; i < ELEMENTSOF(buses); i++) {
                        int r = sd_bus_process(buses[i], NULL);

                        MUST(r >= 0); /* nobody hangs up for what is in a message */
                        moved |= r > 0;
                }
        }
}

static void prepare_host(struct world *w, struct agentd *a, uint8_t what) {
        static const sd_id128_t job = SD_ID128_MAKE(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16);
        struct connection *c = a->connection;

        w->systemd.refuses = what & REFUSES;
        w->systemd.lasts = what & LASTS;
        if (w->changed) {
                clear("/run/primus/x");
                clear("/run/primus/exits");
                clear("/run/primus/hooked");
                clear("/run/primus/alone");
                clear("/var/lib/primus-agent/work");
                w->changed = false;
        }
        if (what & EXECUTOR) {
                MUST(private_create(root, UNIT, w->uid, "", 0, NULL, 0) >= 0 &&
                     private_create_progress(root, UNIT, w->uid) >= 0 &&
                     work_create(root, 7, job, w->uid) >= 0);
                w->changed = true;
        }
        if (what & INVENTORY) {
                c->node = strdup("n1");
                c->inventory.gpus = calloc(1, sizeof(*c->inventory.gpus));
                MUST(c->node && c->inventory.gpus);
                c->inventory.n_gpus = 1;
                c->inventory.port_first = 23000;
                c->inventory.port_last = 27999;
                c->inventory.gpus[0].uuid = strdup("GPU-1");
                c->inventory.gpus[0].model = strdup("");
                c->inventory.gpus[0].nodes = strdup("/dev/nvidia0");
                MUST(c->inventory.gpus[0].uuid && c->inventory.gpus[0].model && c->inventory.gpus[0].nodes);
        }
}

static void call(struct agentd *a, struct fuzz_input *in) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        size_t i = fuzz_byte(in) % ELEMENTSOF(methods);
        uint8_t other = fuzz_byte(in);
        uint64_t cookie; /* of the answer, which is wanted */

        MUST(sd_bus_message_new_method_call(a->client, &m, NULL, STARTER_PATH, methods[i].interface,
                                            methods[i].name) >= 0);
        fuzz_message_append_words(m, methods[other >= 240 ? other % ELEMENTSOF(methods) : i].signature, in,
                                  keys, words);
        MUST(sd_bus_send(a->client, m, &cookie) >= 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        struct fuzz_input in = { data, size };
        struct agentd a;

        if (!world)
                world = world_new();
        agentd_new(world, &a);
        prepare_host(world, &a, fuzz_byte(&in));
        settle(world, &a);
        for (unsigned n = 0; n < CALLS_MAX && in.size > 0; n++) {
                call(&a, &in);
                settle(world, &a);
                world->changed = true;
        }
        check_files(world);
        agentd_done(world, &a);
        return 0;
}
