/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs on this host: the slice that their units share and their work directory. Invariant: a slice is stopped
 * after its last unit (systemd never collects one), a work directory is removed when masterd drops the job.
 */
#include <assert.h>
#include <dirent.h>
#include <string.h>
#include <unistd.h>

#include "agentd/executors/units-internal.h"
#include "lib/base/file.h"
#include "lib/base/parse.h"
#include "lib/base/try.h"

int job_append(const struct job *j, sd_bus_message *m) {
        int r = sd_bus_message_append(m, "u", j->number);

        return r < 0 ? r : link_append_id128(m, j->uid);
}

void job_free(struct job *j) {
        HASH_DEL(j->units->jobs, j);
        starts_drop(j);
        sd_event_source_disable_unref(j->linger);
        free(j);
}

static struct job *job_find(struct units *u, sd_id128_t uid) {
        struct job *j;

        HASH_FIND(hh, u->jobs, &uid, sizeof(uid), j);
        return j;
}

static struct job *job_get(struct units *u, sd_id128_t uid, uint32_t number) {
        struct job *j = job_find(u, uid);

        if (j)
                return j;
        j = calloc(1, sizeof(*j));
        if (!j)
                return NULL;
        j->uid = uid;
        j->number = number;
        j->units = u;
        j->hooked = hooked_marked(u->options.root, number, uid);
        HASH_ADD(hh, u->jobs, uid, sizeof(j->uid), j);
        return j;
}

/* ---- shared memory ---- */

static void drop_shm(struct job *j) {
        struct shm_names names;

        if (!j->shm)
                return;
        j->shm = false;
        shm_names(j->number, j->uid, &names);
        (void)systemd_stop_in_turn(j->units->systemd, j->owner, names.unit); /* job_shm_changed() follows */
}

static bool shm_is_used(struct units *u, const struct shm_names *names) {
        struct job *j, *next;

        HASH_ITER (hh, u->jobs, j, next) {
                struct shm_names mine;
                shm_names(j->number, j->uid, &mine);
                if (j->n_units > 0 && strcmp(mine.unit, names->unit) == 0)
                        return true;
        }
        return false;
}

static void remove_shm(struct units *u, const struct shm_names *names) {
        starter_tell(u->systemd, "RemoveSharedMemory", "s", strrchr(names->path, '/') + 1);
}

bool job_shm_changed(struct units *u, const char *unit, const char *result) {
        struct shm_names names;

        if (!shm_unit_parse(unit, &names))
                return false;
        if (strcmp(result, "failed") == 0)
                log_warning("systemd did not mount or unmount %s: %s", names.path, result);
        remove_shm(u, &names); /* of one that is mounted it fails */
        return true;
}

/* What an earlier agentd left of jobs that have no unit here any more; and of the others, that it is there.
 */
static void find_shm(struct units *u) {
        _cleanup_free_ char *path = NULL;
        struct job *j, *next;
        struct dirent *entry;
        DIR *dir;

        if (asprintf(&path, "%s" SHM_DIR, u->options.root) < 0 || !(dir = opendir(path)))
                return;
        while ((entry = readdir(dir))) {
                struct shm_names names, mine;
                if (!shm_entry_parse(entry->d_name, &names))
                        continue;
                if (!shm_is_used(u, &names)) {
                        (void)systemd_stop(u->systemd, names.unit, NULL, NULL);
                        remove_shm(u, &names);
                        continue;
                }
                HASH_ITER (hh, u->jobs, j, next) {
                        shm_names(j->number, j->uid, &mine);
                        j->shm |= strcmp(mine.unit, names.unit) == 0;
                }
        }
        (void)closedir(dir);
}

static void on_shm(sd_bus_message *reply, void *userdata) {
        const sd_bus_error *e = sd_bus_message_get_error(reply);

        /* The executors that need it are refused, see on_job_removed(). */
        if (e && !sd_bus_error_has_name(e, "org.freedesktop.systemd1.UnitExists"))
                log_warning("systemd did not mount the shared memory of a job: %s", e->message);
}

int job_make_shm(struct job *j, uint64_t size) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        struct shm_names names;

        if (j->shm)
                return 0;
        shm_names(j->number, j->uid, &names);
        TRY(starter_message(j->units->systemd, "MakeSharedMemory", &m));
        TRY(job_append(j, m));
        TRY(sd_bus_message_append(m, "tu", size, j->owner));
        TRY(systemd_call_job(j->units->systemd, j->owner, names.unit, m, on_shm, NULL));
        j->shm = true;
        return 0;
}

/* ---- slices ---- */

static void stop_slice(struct job *j) {
        char slice[UNIT_NAME_MAX];

        if (!j->sliced)
                return;
        j->sliced = false;
        (void)systemd_stop_in_turn(j->units->systemd, j->owner, job_slice_name(j->number, slice));
        drop_shm(j);
}

static void remove_work_named(struct units *u, const char *name) {
        starter_tell(u->systemd, "RemoveWork", "s", name);
}

static void remove_work(struct job *j) {
        char name[32], hex[SD_ID128_STRING_MAX];

        snprintf(name, sizeof(name), "%u-%.8s", j->number, sd_id128_to_string(j->uid, hex));
        remove_work_named(j->units, name);
}

/* Begins its age anew, and that of its artifacts. */
static void touch_work(struct job *j) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        struct systemd *s = j->units->systemd;

        if (starter_message(s, "TouchWork", &m) < 0 || job_append(j, m) < 0 || starter_send(s, m) < 0)
                log_oom();
}

static int visit_old(const char *name, void *userdata) {
        struct units *u = userdata;
        struct job *j, *next;
        char hex[SD_ID128_STRING_MAX], used[32];
        uint32_t number;
        sd_id128_t uid;

        HASH_ITER (hh, u->jobs, j, next) {
                snprintf(used, sizeof(used), "%u-%.8s", j->number, sd_id128_to_string(j->uid, hex));
                if (strcmp(used, name) == 0)
                        return 0;
        }
        /* Its epilog first, if it is to have one. */
        if (work_name_parse(name, &number, &uid) >= 0 && hooked_marked(u->options.root, number, uid))
                units_drop_job(u, uid, number);
        else
                remove_work_named(u, name);
        return 0;
}

static int visit_kept(const char *name, void *userdata) {
        struct units *u = userdata;
        struct job *j, *next;
        char used[WORK_NAME_MAX];

        HASH_ITER (hh, u->jobs, j, next)
                if (strcmp(work_name(j->number, j->uid, used), name) == 0)
                        return 0;
        if (*name != '.')
                log_notice("Artifacts %s have been kept for ArtifactsKeepSec= and are removed", name);
        starter_tell(u->systemd, "RemoveArtifacts", "s", name);
        return 0;
}

/* What a user may leave here is bounded by bytes, too: who is over loses the oldest. */
static void trim_artifacts(struct units *u) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        struct job *j, *next;
        char name[WORK_NAME_MAX];
        int r;

        if (u->options.artifacts_max == 0)
                return;
        if ((r = starter_message(u->systemd, "TrimArtifacts", &m)) >= 0 &&
            (r = sd_bus_message_append(m, "t", u->options.artifacts_max)) >= 0 &&
            (r = sd_bus_message_open_container(m, 'a', "s")) >= 0) {
                HASH_ITER (hh, u->jobs, j, next)
                        if (r >= 0)
                                r = sd_bus_message_append(m, "s", work_name(j->number, j->uid, name));
        }
        if (r < 0 || (r = sd_bus_message_close_container(m)) < 0 || (r = starter_send(u->systemd, m)) < 0)
                log_warning_errno(r, "Cannot ask for what is too much of artifacts");
}

static int on_sweep(sd_event_source *s, uint64_t usec, void *userdata) {
        struct units *u = userdata;
        const uint64_t keep = u->options.artifacts_usec ?: ARTIFACTS_KEEP_USEC;
        int r = work_visit_old(u->options.root, now_real(), WORK_AGE_USEC, visit_old, u);

        if (r < 0)
                log_warning_errno(r, "Cannot look for old work directories in " WORK_DIR);
        r = artifacts_visit_old(u->options.root, now_real(), keep, visit_kept, u);
        if (r < 0)
                log_warning_errno(r, "Cannot look for old artifacts in " ARTIFACTS_DIR);
        trim_artifacts(u);
        (void)sd_event_source_set_time_relative(s, MIN(WORK_SWEEP_USEC, keep));
        (void)sd_event_source_set_enabled(s, SD_EVENT_ONESHOT);
        return 0;
}

/* masterd says when a job is over, but not to a host that was away. */
int jobs_start_sweeping(struct units *u) {
        return sd_event_add_time_relative(u->event, &u->sweep, CLOCK_BOOTTIME, 0, USEC_PER_SEC, on_sweep, u);
}

static int on_linger(sd_event_source *s, uint64_t usec, void *userdata) {
        struct job *j = userdata;

        if (j->n_units == 0 && j->hook == HOOK_NONE) {
                stop_slice(j);
                job_free(j);
        }
        return 0;
}

void job_idle(struct job *j) {
        if (j->hook != HOOK_NONE)
                return; /* its end brings us back */
        if (j->dropped) {
                if (job_run_epilog(j))
                        return;
                stop_slice(j);
                touch_work(j); /* artifacts are kept from now on */
                remove_work(j);
                job_free(j);
                return;
        }
        touch_work(j);
        if (!j->linger && sd_event_add_time_relative(j->units->event, &j->linger, CLOCK_BOOTTIME,
                                                     SLICE_LINGER_USEC, 0, on_linger, j) < 0)
                log_oom();
        else {
                (void)sd_event_source_set_time_relative(j->linger, SLICE_LINGER_USEC);
                (void)sd_event_source_set_enabled(j->linger, SD_EVENT_ONESHOT);
        }
}

int job_enter(struct units *u, struct executor *e, const struct slice_limits *limits) {
        struct job *j = job_get(u, e->id.job_uid, e->id.job);

        if (!j)
                return -ENOMEM;
        if (limits)
                j->limits = *limits;
        j->n_units++;
        j->owner = e->uid;
        j->dropped = false;
        if (j->linger)
                (void)sd_event_source_set_enabled(j->linger, SD_EVENT_OFF);
        e->job = j;
        return 0;
}

void job_leave(struct executor *e) {
        struct job *j = TAKE_PTR(e->job);

        if (!j)
                return;
        assert(j->n_units > 0);
        if (--j->n_units == 0)
                job_idle(j);
        else if (e->gpus)
                devices_share(j, true);
}

static void on_slice_memory(sd_bus_message *reply, void *userdata) {
        const sd_bus_error *e = sd_bus_message_get_error(reply);

        if (e)
                log_warning("systemd did not change the limits of a job's slice: %s", e->message);
}

static int append_slice(const struct job *j, sd_bus_message *m) {
        const struct slice_limits *l = &j->limits;

        return sd_bus_message_append(m, "utttu", j->number, l->memory_max, l->cpu_usec_per_sec, l->tasks_max,
                                     l->cpu_weight);
}

/* More or fewer executors of the job are here than when its slice was made. */
static int update_slice(struct job *j) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;

        TRY(starter_message(j->units->systemd, "SetSlice", &m));
        TRY(append_slice(j, m));
        TRY(systemd_call(j->units->systemd, m, false, on_slice_memory, NULL));
        j->told = j->limits;
        j->told_known = true;
        return 0;
}

static void on_slice(sd_bus_message *reply, void *userdata) {
        const sd_bus_error *e = sd_bus_message_get_error(reply);

        /* It may be there from before a restart of agentd. */
        if (e && !sd_bus_error_has_name(e, "org.freedesktop.systemd1.UnitExists"))
                log_warning("systemd did not make the slice of a job, whose limits are not enforced now: %s",
                            e->message);
}

static bool same_limits(const struct slice_limits *a, const struct slice_limits *b) {
        return a->memory_max == b->memory_max && a->cpu_usec_per_sec == b->cpu_usec_per_sec &&
               a->tasks_max == b->tasks_max && a->cpu_weight == b->cpu_weight;
}

int job_make_slice(struct job *j) {
        static const struct slice_limits none;
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        char slice[UNIT_NAME_MAX];

        if (j->sliced)
                return j->told_known && same_limits(&j->told, &j->limits) ? 0 : update_slice(j);
        /* Without a limit there is nothing to say about it: systemd makes it with the first unit, which costs
         * less than a call. */
        if (same_limits(&j->limits, &none)) {
                j->sliced = j->told_known = true;
                j->told = none;
                return 0;
        }
        TRY(starter_message(j->units->systemd, "MakeSlice", &m));
        TRY(append_slice(j, m));
        TRY(systemd_call_job(j->units->systemd, j->owner, job_slice_name(j->number, slice), m, on_slice,
                             NULL));
        j->sliced = j->told_known = true;
        j->told = j->limits;
        return 0;
}

void units_drop_job(struct units *u, sd_id128_t job_uid, uint32_t number) {
        struct job *j = job_get(u, job_uid, number);

        if (!j) {
                log_oom();
                return;
        }
        j->dropped = true;
        if (j->n_units == 0)
                job_idle(j);
}

static bool work_in_use(struct units *u, const char *name) {
        struct job *j, *next;

        HASH_ITER (hh, u->jobs, j, next) {
                char mine[WORK_NAME_MAX];

                if (j->n_units > 0 && strcmp(work_name(j->number, j->uid, mine), name) == 0)
                        return true;
        }
        return false;
}

static int append_names(struct units *u, sd_bus_message *m, DIR *dir) {
        struct dirent *entry;
        unsigned n = 0;
        uint32_t number;
        sd_id128_t uid;
        int r = 0;

        while (r >= 0 && n < LINK_WORK_MAX && (entry = readdir(dir)))
                if (work_name_parse(entry->d_name, &number, &uid) >= 0 && !work_in_use(u, entry->d_name)) {
                        r = sd_bus_message_append_basic(m, 's', entry->d_name);
                        n++;
                }
        return r;
}

int units_append_work(struct units *u, sd_bus_message *m) {
        _cleanup_free_ char *path = NULL;
        DIR *dir;
        int r;

        if (asprintf(&path, "%s" WORK_DIR, u->options.root) < 0)
                return -ENOMEM;
        dir = opendir(path);
        if (!dir)
                return errno == ENOENT ? 0 : -errno;
        if ((r = sd_bus_message_open_container(m, 'e', "sv")) >= 0 &&
            (r = sd_bus_message_append(m, "s", "work")) >= 0 &&
            (r = sd_bus_message_open_container(m, 'v', "as")) >= 0 &&
            (r = sd_bus_message_open_container(m, 'a', "s")) >= 0)
                r = append_names(u, m, dir);
        (void)closedir(dir);
        if (r < 0 || (r = sd_bus_message_close_container(m)) < 0 ||
            (r = sd_bus_message_close_container(m)) < 0)
                return r;
        return sd_bus_message_close_container(m);
}

int job_note_slice(struct units *u, const char *name) {
        char number[11] = "", slice[UNIT_NAME_MAX];
        uint32_t *bigger, n;

        if (sscanf(name, "primus-%10[0-9].slice", number) != 1 || parse_u32(number, 1, UINT32_MAX, &n) < 0 ||
            strcmp(job_slice_name(n, slice), name) != 0)
                return 0;
        bigger = reallocarray(u->slices, u->n_slices + 1, sizeof(*bigger));
        if (!bigger)
                return -ENOMEM;
        u->slices = bigger;
        u->slices[u->n_slices++] = n;
        return 0;
}

void jobs_stop_empty_slices(struct units *u) {
        char slice[UNIT_NAME_MAX];
        struct job *j, *next;

        for (size_t i = 0; i < u->n_slices; i++) {
                bool used = false;

                HASH_ITER (hh, u->jobs, j, next)
                        used |= j->number == u->slices[i];
                if (!used)
                        (void)systemd_stop(u->systemd, job_slice_name(u->slices[i], slice), NULL, NULL);
        }
        free(TAKE_PTR(u->slices));
        u->n_slices = 0;
        find_shm(u);
}
