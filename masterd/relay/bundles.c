/* SPDX-License-Identifier: Apache-2.0 */
/* Uploads and downloads of bundles. Invariant: a caller is told that its upload is complete only when that is
 * on disk; the sync is done by a short-lived thread for each upload (at most BUNDLE_UPLOADS_MAX), since it
 * may take as long as the disk wants. */
#include "masterd/relay/bundles.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/eventfd.h>
#include <utlist.h>

#include "lib/base/clock.h"
#include "lib/base/format.h"
#include "lib/base/log.h"
#include "lib/wire/errors.h"
#include "masterd/caller/reply.h"
#include "masterd/core/manager.h"
#include "masterd/core/space.h"
#include "masterd/life/savepoints.h"
#include "masterd/relay/bundle-files.h"
#include "masterd/relay/relay-parts.h"

#define AGE_USEC (UINT64_C(30) * 86400 * USEC_PER_SEC)
#define SWEEP_USEC (600 * USEC_PER_SEC)
#define WAITERS_MAX 8u

/* An upload that is being made durable, and who wants to know. */
struct finish {
        struct bundles *bundles;
        uint32_t uid;
        uint64_t size;
        struct bundle_finish work;
        pthread_t thread;
        int result;
        atomic_bool done;
        sd_bus_message *waiters[WAITERS_MAX];
        unsigned n_waiters;
        struct finish *prev, *next;
};

struct bundles {
        struct manager *manager;
        struct bundle_files *files;
        struct finish *finishing;
        int event_fd;
        sd_event_source *finished, *sweep;
        uint8_t buf[BUNDLE_CHUNK_MAX];
};

static bool in_use(uint32_t uid, const char *sha256, void *userdata) {
        struct manager *m = userdata;
        struct job *j, *next;

        HASH_ITER (hh, m->jobs.by_number, j, next)
                if (j->owner == uid && !job_state_ended(j->state) && strcmp(j->given.bundle, sha256) == 0)
                        return true;
        return savepoints_need(m, uid, sha256);
}

/* ---- the end of an upload ---- */

static void *run_finish(void *userdata) {
        struct finish *f = userdata;

        f->result = bundle_finish(&f->work);
        atomic_store(&f->done, true);
        (void)eventfd_write(f->bundles->event_fd, 1);
        return NULL;
}

static void finish_free(struct finish *f) {
        DL_DELETE(f->bundles->finishing, f);
        for (unsigned i = 0; i < f->n_waiters; i++)
                sd_bus_message_unref(f->waiters[i]);
        free(f);
}

static int disk_error(struct bundles *b, sd_bus_message *call, int error) {
        log_full(LOG_ERR, error, NULL, "Cannot write to %s/bundles", b->manager->conf.state_directory);
        return reply_errorf(call, ERROR_REFUSED, "masterd cannot store the files: %s", strerror(-error));
}

static void finish_end(struct finish *f) {
        struct bundles *b = f->bundles;

        bundle_files_finished(b->files, f->uid, f->work.to, f->result);
        for (unsigned i = 0; i < f->n_waiters; i++)
                if (f->result < 0)
                        (void)disk_error(b, f->waiters[i], f->result);
                else
                        (void)reply_return(f->waiters[i], "t", f->size);
        finish_free(f);
}

static int on_finished(sd_event_source *s, int fd, uint32_t revents, void *userdata) {
        struct bundles *b = userdata;
        struct finish *f, *next;
        eventfd_t n;

        (void)eventfd_read(fd, &n);
        DL_FOREACH_SAFE (b->finishing, f, next)
                if (atomic_load(&f->done)) {
                        pthread_join(f->thread, NULL);
                        finish_end(f);
                }
        return 0;
}

static int finish_start(struct bundles *b, uint32_t uid, uint64_t size, const struct bundle_finish *work,
                        sd_bus_message *call) {
        struct finish *f = calloc(1, sizeof(*f));
        sigset_t all, old;
        int r;

        if (!f) {
                bundle_files_finished(b->files, uid, work->to, -ENOMEM);
                return -ENOMEM;
        }
        f->bundles = b;
        f->uid = uid;
        f->size = size;
        f->work = *work;
        f->waiters[f->n_waiters++] = sd_bus_message_ref(call);
        DL_APPEND(b->finishing, f);
        /* Signals belong to the loop. */
        sigfillset(&all);
        pthread_sigmask(SIG_BLOCK, &all, &old);
        r = -pthread_create(&f->thread, NULL, run_finish, f);
        pthread_sigmask(SIG_SETMASK, &old, NULL);
        if (r < 0) {
                f->result = r;
                finish_end(f);
        }
        return 1;
}

static int finish_wait(struct bundles *b, uint32_t uid, const char *sha256, sd_bus_message *call) {
        struct finish *f;

        DL_FOREACH (b->finishing, f)
                if (f->uid == uid && strcmp(f->work.to, sha256) == 0 && f->n_waiters < WAITERS_MAX) {
                        f->waiters[f->n_waiters++] = sd_bus_message_ref(call);
                        return 1;
                }
        return reply_errorf(call, ERROR_BUSY, "these files are just being stored: ask again in a moment");
}

/* ---- calls ---- */

bool bundles_have(struct manager *m, uint32_t uid, const char *sha256) {
        return bundle_files_have(m->relay->bundles->files, uid, sha256, now_real());
}

static int refuse(struct bundles *b, uint32_t uid, uint64_t size, int outcome, sd_bus_message *call) {
        const struct conf *conf = &b->manager->conf;
        char what[FORMAT_SIZE_MAX], limit[FORMAT_SIZE_MAX], stored[FORMAT_SIZE_MAX];

        format_size(size, what, sizeof(what));
        switch (outcome) {
        case BUNDLE_E_SIZE:
                return reply_errorf(call, ERROR_BAD_BUNDLE,
                                    "size, offset and chunk do not fit together (or not with "
                                    "an earlier call for the same files)");
        case BUNDLE_E_LARGE:
                return reply_errorf(call, ERROR_REFUSED,
                                    "the files are %s packed, this site takes at most %s "
                                    "(BundleMax= in masterd.conf); put large ones "
                                    "on a file system that the hosts share",
                                    what, format_size(conf->bundle_max, limit, sizeof(limit)));
        case BUNDLE_E_QUOTA:
                return reply_errorf(
                        call, ERROR_REFUSED,
                        "%s more do not fit: %s of the %s that a user may have stored (BundlesPerUserMax= in "
                        "masterd.conf) "
                        "are taken by files of jobs that have not ended or were just uploaded",
                        what, format_size(bundle_files_stored(b->files, uid), stored, sizeof(stored)),
                        format_size(conf->bundles_per_user_max, limit, sizeof(limit)));
        case BUNDLE_E_UPLOADS:
                return reply_errorf(
                        call, ERROR_BUSY,
                        "too many uploads at a time (%u, %u of one user): try again when some have ended",
                        BUNDLE_UPLOADS_MAX, BUNDLE_UPLOADS_PER_USER_MAX);
        case BUNDLE_E_CONTENT:
                return reply_errorf(call, ERROR_BAD_BUNDLE,
                                    "the bytes received do not have the SHA-256 they were "
                                    "announced with; they were dropped");
        default:
                return -EINVAL;
        }
}

int bundles_put(struct manager *m, uint32_t uid, sd_bus_message *call) {
        struct bundles *b = m->relay->bundles;
        sd_bus_error error = SD_BUS_ERROR_NULL;
        struct bundle_finish finish;
        const char *sha256;
        uint64_t size, offset, next;
        const void *chunk;
        size_t n;
        int r;

        r = sd_bus_message_read(call, "stt", &sha256, &size, &offset);
        if (r >= 0)
                r = sd_bus_message_read_array(call, 'y', &chunk, &n);
        if (r < 0)
                return r;
        if (!bundle_name_valid(sha256))
                return reply_errorf(call, SD_BUS_ERROR_INVALID_ARGS,
                                    "sha256: 64 lower-case hex digits are expected");
        if (n > BUNDLE_CHUNK_MAX)
                return reply_errorf(call, SD_BUS_ERROR_INVALID_ARGS,
                                    "chunk: at most %u bytes are taken in one call", BUNDLE_CHUNK_MAX);
        if (offset == 0 && (r = space_admit_disk(m, size, &error)) < 0) {
                r = reply_failed(call, r, &error);
                sd_bus_error_free(&error);
                return r;
        }
        r = bundle_files_put(b->files, uid, sha256, size, offset, chunk, n, now_real(), &next, &finish);
        if (r == -ENOMEM)
                return r;
        if (r < 0)
                return disk_error(b, call, r);
        if (r == BUNDLE_OK)
                return reply_return(call, "t", next);
        if (r == BUNDLE_RECEIVED)
                return finish_start(b, uid, size, &finish, call);
        if (r == BUNDLE_FINISHING)
                return finish_wait(b, uid, sha256, call);
        return refuse(b, uid, size, r, call);
}

/* A job that has not ended, of that user and with those files, has an executor on the node. */
static bool node_uses(const struct node *node, uint32_t uid, const char *sha256) {
        for (const struct executor *e = node->executors; e; e = e->node_next)
                if (e->job->owner == uid && !job_state_ended(e->job->state) &&
                    strcmp(e->job->given.bundle, sha256) == 0)
                        return true;
        return false;
}

int bundles_serve(struct manager *m, struct node *node, sd_bus_message *call) {
        struct bundles *b = m->relay->bundles;
        sd_bus_message *reply = NULL;
        const char *sha256;
        uint64_t offset, size;
        uint32_t uid, max;
        size_t n;
        int r = sd_bus_message_read(call, "ustu", &uid, &sha256, &offset, &max);

        if (r >= 0)
                r = link_skip_extra(call);
        if (r < 0)
                return r;
        if (!bundle_name_valid(sha256) || !node_uses(node, uid, sha256))
                return reply_errorf(call, LINK_ERROR_REFUSED,
                                    "no job of user %u with an executor on %s has such files", uid,
                                    node->name);
        r = bundle_files_read(b->files, uid, sha256, offset, b->buf, MIN((size_t)max, sizeof(b->buf)), &size,
                              &n);
        if (r < 0)
                return reply_errorf(call, LINK_ERROR_NOT_FOUND, "masterd cannot read the files: %s",
                                    strerror(-r));
        r = sd_bus_message_new_method_return(call, &reply);
        if (r >= 0)
                r = sd_bus_message_append_basic(reply, 't', &size);
        if (r >= 0)
                r = sd_bus_message_append_array(reply, 'y', b->buf, n);
        if (r >= 0)
                r = link_append_extra_empty(reply);
        if (r >= 0)
                r = reply_send(reply);
        sd_bus_message_unref(reply);
        return r < 0 ? r : 1;
}

/* ---- the module ---- */

static int on_sweep(sd_event_source *s, uint64_t usec, void *userdata) {
        struct bundles *b = userdata;

        bundle_files_sweep(b->files, now_real(), AGE_USEC);
        if (sd_event_source_set_time_relative(s, SWEEP_USEC) >= 0)
                (void)sd_event_source_set_enabled(s, SD_EVENT_ONESHOT);
        return 0;
}

int bundles_new(struct manager *m, struct bundles **ret) {
        struct bundle_limits limits = { m->conf.bundle_max, m->conf.bundles_per_user_max };
        _cleanup_free_ char *directory = NULL;
        struct bundles *b;
        int r;

        if (asprintf(&directory, "%s/bundles", m->conf.state_directory) < 0)
                return -ENOMEM;
        b = calloc(1, sizeof(*b));
        if (!b)
                return -ENOMEM;
        b->manager = m;
        b->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        r = b->event_fd < 0 ? -errno : 0;
        if (r >= 0)
                r = bundle_files_new(directory, &limits, in_use, m, &b->files);
        if (r >= 0)
                r = sd_event_add_io(m->event, &b->finished, b->event_fd, EPOLLIN, on_finished, b);
        /* The first one only when the jobs are loaded. */
        if (r >= 0)
                r = sd_event_add_time_relative(m->event, &b->sweep, CLOCK_BOOTTIME, SWEEP_USEC, USEC_PER_SEC,
                                               on_sweep, b);
        if (r < 0) {
                bundles_free(b);
                return r;
        }
        *ret = b;
        return 0;
}

void bundles_free(struct bundles *b) {
        struct finish *f, *next;

        if (!b)
                return;
        DL_FOREACH_SAFE (b->finishing, f, next) {
                pthread_join(f->thread, NULL);
                finish_free(f);
        }
        sd_event_source_disable_unref(b->sweep);
        sd_event_source_disable_unref(b->finished);
        bundle_files_free(b->files);
        (void)close_fd(b->event_fd);
        free(b);
}
