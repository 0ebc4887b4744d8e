/* SPDX-License-Identifier: Apache-2.0 */
/* org.primus.Starter1.Units: the vtable, and the calls that need no file of their own. Invariant: a name from
 * a call reaches systemd or the file system only when lib/unit/ours.h says that it is one of ours. */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/cpulist.h"
#include "lib/base/log.h"
#include "lib/base/strv.h"
#include "lib/base/try.h"
#include "lib/base/unitname.h"
#include "lib/unit/files.h"
#include "lib/unit/ours.h"
#include "starter/calls/starter.h"
#include "starter/files/alone.h"
#include "starter/files/private-usage.h"
#include "starter/files/private.h"
#include "starter/systemd/slices.h"
#include "starter/unit/devices.h"
#include "starter/unit/enforce.h"
#include "starter/unit/shm-unit.h"

#define FILE_BYTES_MAX 4096u
/* More than there are on any host: one has an executor each at least. */
#define ARTIFACTS_JOBS_MAX 65536u
#define USAGES_MAX 4096u
#define USAGE_ANSWERS_MAX 256u

int starter_malformed(int r, sd_bus_error *error) {
        if (r < 0 && r != -EBADMSG && r != -ENXIO && r != -EINVAL)
                return r;
        return sd_bus_error_set(error, SD_BUS_ERROR_INVALID_ARGS,
                                "the message is not within the bounds of org.primus.Starter1");
}

static int reply_empty(sd_bus_message *call) {
        return sd_bus_reply_method_return(call, NULL);
}

/* What an operation on the host's files came to. */
static int answer_call(sd_bus_message *call, int r, sd_bus_error *error) {
        return r < 0 ? sd_bus_error_set_errno(error, r) : reply_empty(call);
}

/* > 0: an executor's unit; else what the handler returns. */
static int read_executor(sd_bus_message *call, const char **ret, sd_bus_error *error) {
        int r = sd_bus_message_read_basic(call, 's', ret);

        return r > 0 && executor_unit_name_valid(*ret) ? 1 : starter_malformed(r, error);
}

static int read_job(sd_bus_message *call, uint32_t *ret_job, sd_id128_t *ret_uid) {
        int r = sd_bus_message_read_basic(call, 'u', ret_job);

        if (r > 0)
                r = link_read_id128(call, ret_uid);
        return r > 0 && *ret_job == 0 ? -EBADMSG : r;
}

/* ---- units ---- */

static int method_stop(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        struct connection *c = userdata;
        const char *unit;
        int r = sd_bus_message_read_basic(call, 's', &unit);

        if (r <= 0 || !unit_is_ours(unit))
                return starter_malformed(r, error);
        slice_forget(c->starter->systemd, c->starter->root, unit);
        TRY(relay_message(c, "StopUnit", &m));
        TRY(sd_bus_message_append(m, "ss", unit, "replace"));
        return relay_job(c, call, m, error);
}

static int method_kill(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        struct connection *c = userdata;
        const char *unit, *whom;
        int32_t number;
        int r = sd_bus_message_read(call, "ssi", &unit, &whom, &number);

        if (r <= 0 || !(executor_unit_name_valid(unit) || session_unit_name_valid(unit)) ||
            (strcmp(whom, "all") != 0 && strcmp(whom, "main") != 0) || number < 1 || number > SIGRTMAX)
                return starter_malformed(r, error);
        TRY(relay_message(c, "KillUnit", &m));
        TRY(sd_bus_message_append(m, "ssi", unit, whom, number));
        return relay_call(c, call, m, error);
}

static int method_freeze(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        struct connection *c = userdata;
        const char *unit;
        int freeze = 0, r = read_executor(call, &unit, error);

        if (r <= 0)
                return r;
        if ((r = sd_bus_message_read_basic(call, 'b', &freeze)) <= 0)
                return starter_malformed(r, error);
        TRY(relay_message(c, freeze ? "FreezeUnit" : "ThawUnit", &m));
        TRY(sd_bus_message_append(m, "s", unit));
        return relay_call(c, call, m, error);
}

/* ---- what may change of a unit that runs ---- */

static int method_set_limits(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        struct connection *c = userdata;
        struct unit_limits limits;
        const char *unit;
        int r = read_executor(call, &unit, error);

        if (r <= 0)
                return r;
        if ((r = unit_limits_read(call, &limits)) <= 0)
                return starter_malformed(r, error);
        TRY(relay_message(c, "SetUnitProperties", &m));
        TRY(limits_build(m, unit, &limits));
        return relay_call(c, call, m, error);
}

static int method_set_cpus(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        uint64_t bits[UNIT_CPU_WORDS];
        struct connection *c = userdata;
        const char *unit, *list;
        int r = read_executor(call, &unit, error);

        if (r <= 0)
                return r;
        if ((r = sd_bus_message_read_basic(call, 's', &list)) <= 0 ||
            cpulist_parse(list, bits, UNIT_CPU_WORDS) < 0)
                return starter_malformed(r, error);
        TRY(relay_message(c, "SetUnitProperties", &m));
        TRY(unit_cpus_build(m, unit, bits));
        return relay_call(c, call, m, error);
}

static int method_set_devices(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        _cleanup_(strings_free_p) char **gpus = NULL;
        struct connection *c = userdata;
        const char *unit;
        int rdma, r = read_executor(call, &unit, error);

        if (r <= 0)
                return r;
        if ((r = sd_bus_message_read_strv(call, &gpus)) < 0 ||
            (r = sd_bus_message_read_basic(call, 'b', &rdma)) <= 0)
                return starter_malformed(r, error);
        TRY(relay_message(c, "SetUnitProperties", &m));
        TRY(devices_build(m, unit, gpus, &c->inventory, rdma));
        return relay_call(c, call, m, error);
}

/* ---- slices and shared memory ---- */

static int read_slice(sd_bus_message *call, uint32_t *ret_job, struct slice_limits *ret) {
        struct slice_limits l = {};
        int r = sd_bus_message_read(call, "utttu", ret_job, &l.memory_max, &l.cpu_usec_per_sec, &l.tasks_max,
                                    &l.cpu_weight);

        if (r > 0 && (*ret_job == 0 || l.cpu_weight > 10000))
                return -EBADMSG;
        *ret = l;
        return r;
}

static int method_make_slice(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        struct connection *c = userdata;
        struct slice_limits limits;
        uint32_t job;
        int r = read_slice(call, &job, &limits);

        if (r <= 0)
                return starter_malformed(r, error);
        TRY(relay_message(c, "StartTransientUnit", &m));
        TRY(slice_build(m, job, &limits));
        return relay_job(c, call, m, error);
}

static int method_set_slice(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        struct connection *c = userdata;
        struct slice_limits limits;
        uint32_t job;
        int r = read_slice(call, &job, &limits);

        if (r <= 0)
                return starter_malformed(r, error);
        TRY(relay_message(c, "SetUnitProperties", &m));
        TRY(slice_update_build(m, job, &limits));
        return relay_call(c, call, m, error);
}

static int method_make_shm(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        struct connection *c = userdata;
        struct shm_names names;
        sd_id128_t job_uid;
        uint64_t size;
        uint32_t job, uid;
        int r = read_job(call, &job, &job_uid);

        if (r > 0)
                r = sd_bus_message_read(call, "tu", &size, &uid);
        /* Nobody's directory, which there is none of, is root's by that number. */
        if (r <= 0 || size == 0 || policy_refuses_uid(&c->starter->policy, uid) ||
            work_owner(c->starter->root, job, job_uid) != uid)
                return starter_malformed(r, error);
        shm_names(job, job_uid, &names);
        TRY(relay_message(c, "StartTransientUnit", &m));
        TRY(shm_build(m, &names, job, size, uid));
        return relay_job(c, call, m, error);
}

/* Its mount point, once nothing is mounted there. */
static int method_remove_shm(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        struct connection *c = userdata;
        _cleanup_free_ char *path = NULL;
        struct shm_names names;
        const char *entry;
        int r = sd_bus_message_read_basic(call, 's', &entry);

        if (r <= 0 || !shm_entry_parse(entry, &names))
                return starter_malformed(r, error);
        if (asprintf(&path, "%s%s", c->starter->root, names.path) < 0) {
                path = NULL;
                return -ENOMEM;
        }
        return answer_call(call, rmdir(path) < 0 && errno != ENOENT && errno != EBUSY ? -errno : 0, error);
}

/* ---- files of an executor ---- */

static int method_put(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        static const char *const names[] = { "stop", STOP_TOLD_FILE, "is-ready", "overdue" };
        struct connection *c = userdata;
        const char *unit, *name;
        const void *data;
        size_t size;
        int r = read_executor(call, &unit, error);

        if (r <= 0)
                return r;
        if ((r = sd_bus_message_read_basic(call, 's', &name)) > 0)
                r = link_read_bytes(call, FILE_BYTES_MAX, &data, &size);
        if (r > 0 && strcmp(name, "alone") == 0 && size == 0) { /* in a directory of its own */
                r = alone_mark(c->starter->root, unit);
                return answer_call(call, r == -ENOENT ? 0 : r, error);
        }
        for (size_t i = 0; r > 0 && i < ELEMENTSOF(names); i++)
                if (strcmp(names[i], name) == 0) {
                        r = private_put(c->starter->root, unit, name, data, size);
                        return answer_call(call, r == -ENOENT ? 0 : r, error); /* it has ended */
                }
        return starter_malformed(r, error);
}

static int method_rendezvous(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        _cleanup_(rendezvous_order_done) struct rendezvous_order order = {};
        struct connection *c = userdata;
        const char *unit;
        uint32_t uid;
        int r = read_executor(call, &unit, error);

        if (r <= 0)
                return r;
        if ((r = rendezvous_order_read(call, &order)) <= 0)
                return starter_malformed(r, error);
        r = private_owner(c->starter->root, unit, &uid);
        if (r >= 0)
                r = private_write_rendezvous(c->starter->root, unit, uid, order.epoch, order.env);
        return answer_call(call, r, error);
}

static int method_remove_private(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        struct connection *c = userdata;
        const char *unit, *root = c->starter->root;
        char *path;
        int r = read_executor(call, &unit, error);

        if (r <= 0)
                return r;
        if (!*root)
                ports_unpin(unit);
        alone_clear(root, unit);
        if (asprintf(&path, "%s" PRIVATE_DIR "/%s", root, unit) < 0)
                return -ENOMEM;
        return answer_call(call, remover_take(c->starter->remover, path), error);
}

static int method_remove_fields(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        struct connection *c = userdata;
        const char *unit;
        int r = read_executor(call, &unit, error);

        if (r <= 0)
                return r;
        extra_fields_remove(c->starter->root, unit);
        return reply_empty(call);
}

static int method_remove_record(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        struct connection *c = userdata;
        _cleanup_free_ char *path = NULL;
        const char *unit;
        int r = read_executor(call, &unit, error);

        if (r <= 0)
                return r;
        if (asprintf(&path, "%s" EXITS_DIR "/%s", c->starter->root, unit) < 0) {
                path = NULL;
                return -ENOMEM;
        }
        return answer_call(call, unlink(path) < 0 && errno != ENOENT ? -errno : 0, error);
}

/* What each executor's private directory takes. */
static int append_usages(const char *root, sd_bus_message *reply) {
        _cleanup_free_ char *path = NULL;
        struct dirent *e;
        unsigned n = 0;
        int r = 0;
        DIR *dir;

        if (asprintf(&path, "%s" PRIVATE_DIR, root) < 0) {
                path = NULL;
                return -ENOMEM;
        }
        dir = opendir(path);
        while (dir && r >= 0 && n < USAGES_MAX && (e = readdir(dir))) {
                struct private_usage u;

                if (!executor_unit_name_valid(e->d_name) || private_usage_read(root, e->d_name, &u) < 0)
                        continue;
                r = sd_bus_message_append(reply, "(stu)", e->d_name, u.bytes, u.files);
                n++;
        }
        if (dir)
                (void)closedir(dir);
        return r;
}

static int method_usage(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        struct connection *c = userdata;
        uint64_t waiting;

        /* Of answers of this size only a few are kept (server.c has the bound of the others). */
        if (sd_bus_get_n_queued_write(c->bus, &waiting) < 0 || waiting > USAGE_ANSWERS_MAX)
                return sd_bus_error_set(error, SD_BUS_ERROR_LIMITS_EXCEEDED, "earlier answers come first");
        TRY(sd_bus_message_new_method_return(call, &reply));
        TRY(sd_bus_message_open_container(reply, 'a', "(stu)"));
        TRY(append_usages(c->starter->root, reply));
        TRY(sd_bus_message_close_container(reply));
        return sd_bus_send(NULL, reply, NULL);
}

/* ---- files of a job ---- */

/* > 0: files may become that user's; else what the handler returns. The policy is asked again at the start,
 * as agentd asks it before; this is for one who asks for the files alone. */
static int served(struct connection *c, uint32_t uid, sd_bus_error *error) {
        char why[SERVE_WHY_MAX];

        return lookup_refuses(c->starter->lookup, uid, c->node ?: "", why)
                       ? sd_bus_error_set(error, LINK_ERROR_NOT_SERVED, why)
                       : 1;
}

static int method_make_work(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        struct connection *c = userdata;
        sd_id128_t job_uid;
        uint32_t job, uid;
        int r = read_job(call, &job, &job_uid);

        if (r > 0)
                r = sd_bus_message_read_basic(call, 'u', &uid);
        if (r <= 0)
                return starter_malformed(r, error);
        if ((r = served(c, uid, error)) <= 0)
                return r;
        r = work_create(c->starter->root, job, job_uid, uid);
        if (r >= 0)
                r = artifacts_create(c->starter->root, job, job_uid, uid);
        return answer_call(call, r, error);
}

static int method_touch_work(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        struct connection *c = userdata;
        sd_id128_t job_uid;
        uint32_t job;
        int r = read_job(call, &job, &job_uid);

        if (r <= 0)
                return starter_malformed(r, error);
        work_touch(c->starter->root, job, job_uid);
        artifacts_touch(c->starter->root, job, job_uid);
        return reply_empty(call);
}

static int remove_named(sd_bus_message *call, struct connection *c,
                        int (*detach)(const char *root, const char *name, char **ret), sd_bus_error *error) {
        const char *name;
        char *path;
        int r = sd_bus_message_read_basic(call, 's', &name);

        if (r <= 0)
                return starter_malformed(r, error);
        r = detach(c->starter->root, name, &path);
        if (r >= 0 && path)
                r = remover_take(c->starter->remover, path);
        return answer_call(call, r, error);
}

static int method_remove_work(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        return remove_named(call, userdata, work_detach, error);
}

static int method_remove_artifacts(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        return remove_named(call, userdata, artifacts_detach, error);
}

/* keep: jobs that are here. */
static int method_trim_artifacts(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        _cleanup_(strings_free_p) char **keep = NULL;
        struct connection *c = userdata;
        uint64_t max;
        int r = sd_bus_message_read_basic(call, 't', &max);

        if (r > 0)
                r = sd_bus_message_read_strv(call, &keep);
        if (r < 0 || max == 0 || strings_count(keep) > ARTIFACTS_JOBS_MAX)
                return starter_malformed(r, error);
        if (!keep && !(keep = calloc(1, sizeof(*keep))))
                return -ENOMEM;
        return answer_call(call, remover_trim(c->starter->remover, c->starter->root, max, TAKE_PTR(keep)),
                           error);
}

static int method_mark_hooked(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        struct connection *c = userdata;
        sd_id128_t job_uid;
        uint32_t job;
        int on, r = read_job(call, &job, &job_uid);

        if (r > 0)
                r = sd_bus_message_read_basic(call, 'b', &on);
        if (r <= 0)
                return starter_malformed(r, error);
        if (on)
                return answer_call(call, hooked_mark(c->starter->root, job, job_uid), error);
        hooked_clear(c->starter->root, job, job_uid);
        return reply_empty(call);
}

/* A file of the cache of bundles, complete: its user's from now on. */
static int method_give_bundle(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        struct connection *c = userdata;
        struct stat st;
        uint32_t uid;
        int fd, r = sd_bus_message_read(call, "hu", &fd, &uid);

        if (r <= 0)
                return starter_malformed(r, error);
        if ((r = served(c, uid, error)) <= 0)
                return r;
        if (fstat(fd, &st) < 0)
                return -errno;
        /* Only what is agentd's own to give. */
        if (!S_ISREG(st.st_mode) || st.st_nlink > 1 || st.st_uid != c->starter->agent_uid)
                return starter_malformed(-EBADMSG, error);
        return answer_call(call, fchmod(fd, 0400) < 0 || fchown(fd, uid, (gid_t)-1) < 0 ? -errno : 0, error);
}

/* ---- the host ---- */

static int method_power(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        static const struct {
                const char *action, *target;
        } targets[] = { { "reboot", "reboot.target" }, { "poweroff", "poweroff.target" } };
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        struct connection *c = userdata;
        const char *action;
        int r = sd_bus_message_read_basic(call, 's', &action);

        for (size_t i = 0; r > 0 && i < ELEMENTSOF(targets); i++)
                if (strcmp(action, targets[i].action) == 0) {
                        TRY(relay_message(c, "StartUnit", &m));
                        TRY(sd_bus_message_append(m, "ss", targets[i].target, "replace-irreversibly"));
                        return relay_job(c, call, m, error);
                }
        return starter_malformed(r, error);
}

#define METHOD(name, in, out, handler)                                                                       \
        SD_BUS_METHOD(name, in, out, handler, SD_BUS_VTABLE_UNPRIVILEGED) /* who dialled is known: server.c  \
                                                                           */

static const sd_bus_vtable vtable[] = {
        SD_BUS_VTABLE_START(0),
        METHOD("SetInventory", "s" LINK_INVENTORY_SIGNATURE "a{sv}", "", starter_method_inventory),
        METHOD("Start", LINK_ORDER_SIGNATURE "a{sv}a{sv}", "o", starter_method_start),
        METHOD("StartSession", LINK_ID_SIGNATURE "uuasbth", "o", starter_method_session),
        METHOD("StartGet", "uayuuh", "o", starter_method_get),
        METHOD("StartHook", "ssasth", "o", starter_method_hook),
        METHOD("Stop", "s", "o", method_stop),
        METHOD("Kill", "ssi", "", method_kill),
        METHOD("Freeze", "sb", "", method_freeze),
        METHOD("SetLimits", "sbttta{sv}", "", method_set_limits),
        METHOD("SetCPUs", "ss", "", method_set_cpus),
        METHOD("SetDevices", "sasb", "", method_set_devices),
        METHOD("MakeSlice", "utttu", "o", method_make_slice),
        METHOD("SetSlice", "utttu", "", method_set_slice),
        METHOD("MakeSharedMemory", "uaytu", "o", method_make_shm),
        METHOD("RemoveSharedMemory", "s", "", method_remove_shm),
        METHOD("Put", "ssay", "", method_put),
        METHOD("SetRendezvous", "stuaaya{sv}", "", method_rendezvous),
        METHOD("RemovePrivate", "s", "", method_remove_private),
        METHOD("RemoveFields", "s", "", method_remove_fields),
        METHOD("RemoveRecord", "s", "", method_remove_record),
        METHOD("Usage", "", "a(stu)", method_usage),
        METHOD("MakeWork", "uayu", "", method_make_work),
        METHOD("TouchWork", "uay", "", method_touch_work),
        METHOD("RemoveWork", "s", "", method_remove_work),
        METHOD("RemoveArtifacts", "s", "", method_remove_artifacts),
        METHOD("TrimArtifacts", "tas", "", method_trim_artifacts),
        METHOD("MarkHooked", "uayb", "", method_mark_hooked),
        METHOD("GiveBundle", "hu", "", method_give_bundle),
        METHOD("Power", "s", "o", method_power),
        SD_BUS_VTABLE_END,
};

int connection_new(struct starter *starter, sd_bus *bus, struct connection **ret) {
        _cleanup_(connection_free_p) struct connection *c = calloc(1, sizeof(*c));

        if (!c)
                return -ENOMEM;
        c->starter = starter;
        c->bus = bus;
        TRY(sd_bus_add_object_vtable(bus, NULL, STARTER_PATH, STARTER_UNITS, vtable, c));
        *ret = TAKE_PTR(c);
        return 0;
}

void connection_free(struct connection *c) {
        if (!c)
                return;
        relay_forget(c);
        inventory_done(&c->inventory);
        free(c->node);
        free(c);
}
