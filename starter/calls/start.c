/* SPDX-License-Identifier: Apache-2.0 */
/* Start: an order becomes files and a unit. Invariant: nothing of a unit that exists is touched, and what was
 * made for one that systemd refuses is agentd's to have removed. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/log.h"
#include "lib/base/strv.h"
#include "lib/base/try.h"
#include "lib/base/unitname.h"
#include "lib/unit/files.h"
#include "lib/unit/identity.h"
#include "starter/calls/starter.h"
#include "starter/files/alone.h"
#include "starter/files/private.h"
#include "starter/unit/builder.h"
#include "starter/unit/host.h"

#define READY_FILE "ready"
#define READY_MAX (LINK_PATH_MAX + 64u)

/* What stands beside the order; strings point into the message. */
struct beside {
        uint64_t term;
        bool bundled;
        const char *shared_cpus;
        const void *ready; /* what the file of that name is to have, or NULL */
        size_t ready_size;
};

static int read_ready(sd_bus_message *m, struct beside *b) {
        TRY(sd_bus_message_enter_container(m, 'v', "ay"));
        TRY(link_read_bytes(m, READY_MAX, &b->ready, &b->ready_size));
        return sd_bus_message_exit_container(m);
}

static int read_beside(sd_bus_message *m, const char *key, void *userdata) {
        struct beside *b = userdata;
        int bundled = 0, r;

        if (strcmp(key, "term") == 0)
                return sd_bus_message_read(m, "v", "t", &b->term);
        if (strcmp(key, "bundled") == 0) {
                r = sd_bus_message_read(m, "v", "b", &bundled);
                b->bundled = bundled;
                return r;
        }
        if (strcmp(key, "sharedCpus") == 0)
                return sd_bus_message_read(m, "v", "s", &b->shared_cpus);
        if (strcmp(key, "ready") == 0)
                return read_ready(m, b);
        return -EBADMSG; /* agentd and this are of one version */
}

struct start {
        struct connection *connection;
        struct start_order *order;
        struct beside beside;
        char unit[UNIT_NAME_MAX];
        char *work, *artifacts, *bundle, *why;
        struct io_limit *io;
        size_t n_io;
        struct shm_names shm;
        struct ports_pins pins;
        bool pinned;
};

static void start_done(struct start *s) {
        free(s->work);
        free(s->artifacts);
        free(s->bundle);
        free(s->why);
        io_limits_free(s->io, s->n_io);
}

/* systemd exports a running unit's invocation as a link. */
static bool exists(const struct starter *s, const char *unit) {
        char path[sizeof("/run/systemd/units/invocation:") + UNIT_NAME_MAX], text[64];
        _cleanup_free_ char *full = NULL;

        snprintf(path, sizeof(path), "/run/systemd/units/invocation:%s", unit);
        return asprintf(&full, "%s%s", s->root, path) < 0 || readlink(full, text, sizeof(text)) >= 0;
}

/* A kernel that does not let us leaves the ports to the jobs' good manners. */
static void pin_ports(struct start *s) {
        struct starter *starter = s->connection->starter;
        int r;

        if (*starter->root || starter->ports_open)
                return;
        r = ports_pin(s->unit, starter->policy.port_first, starter->policy.port_last, s->order->ports,
                      s->order->n_ports, &s->pins);
        s->pinned = r >= 0;
        if (r >= 0)
                return;
        starter->ports_open = true; /* and it is not tried again */
        log_full(LOG_NOTICE, r, NULL,
                 "Jobs on this host can listen on ports that others were granted, unless systemd is built "
                 "with its "
                 "BPF framework: the kernel does not take a program that refuses them");
}

static struct unit_context context_of(const struct start *s) {
        const struct start_order *o = s->order;
        const char *root = s->connection->starter->root;

        return (struct unit_context){
                .node = s->connection->node,
                .term = s->beside.term,
                .inventory = &s->connection->inventory,
                .directory = o->cwd && *o->cwd ? o->cwd : s->work,
                .work = s->work,
                .artifacts = s->artifacts,
                .bundle = s->bundle,
                .shared_cpus = o->extra.cpus ? NULL : s->beside.shared_cpus,
                .io = s->io,
                .n_io = s->n_io,
                .hide_managers = s->connection->starter->policy.hide_managers,
                .numa_nodes = *o->extra.numa ? host_numa_nodes(root, o->extra.cpus) : 0,
                .tasks_bound = host_tasks_bound(root),
                .pins = s->pinned ? &s->pins : NULL,
                .open_files = s->connection->starter->open_files,
                .shm = o->extra.job_shm > 0 ? &s->shm : NULL,
        };
}

/* The last ones of the order's environment. */
static char **rendezvous_of(const struct start_order *o) {
        size_t n = strings_count(o->env);

        return o->env ? o->env + (n - MIN(n, (size_t)o->extra.n_rendezvous)) : NULL;
}

/* For when it has ended, nobody was there, and it left no record. */
static int write_identity(struct start *s) {
        const struct connection *c = s->connection;
        _cleanup_(strings_free_p) char **identity = NULL;
        _cleanup_free_ char *text = NULL;
        int r;

        if ((r = unit_identity(s->order, c->node, s->beside.term, &identity)) < 0)
                return r;
        r = identity_text_format(identity, &text);
        if (r < 0)
                return r == -E2BIG ? 0 : r;
        return private_put(c->starter->root, s->unit, PRIVATE_IDENTITY, text, strlen(text));
}

static int write_private(struct start *s, const struct unit_context *context) {
        const char *root = s->connection->starter->root, *bad = NULL;
        const struct start_order *o = s->order;
        _cleanup_(strings_free_p) char **environment = NULL;
        _cleanup_free_ char *text = NULL;
        size_t size;
        int r;

        if ((r = unit_environment(o, context, &environment)) < 0)
                return r;
        r = environment_format(environment, &text, &size, &bad);
        if (r == -EINVAL && asprintf(&s->why,
                                     "environment variable %.*s has no valid name or its value is not UTF-8, "
                                     "which systemd cannot "
                                     "take",
                                     MIN((int)strcspn(bad, "="), 100), bad) < 0)
                s->why = NULL;
        if (r < 0 || (r = private_create(root, s->unit, o->uid, text, size, o->secrets, o->n_secrets)) < 0)
                return r;
        if (o->kind != ORDER_SCAN && (r = private_create_progress(root, s->unit, o->uid)) < 0)
                return r;
        if (o->extra.epoch > 0 &&
            (r = private_write_rendezvous(root, s->unit, o->uid, o->extra.epoch, rendezvous_of(o))) < 0)
                return r;
        if (s->beside.ready &&
            (r = private_put(root, s->unit, READY_FILE, s->beside.ready, s->beside.ready_size)) < 0)
                return r;
        if ((r = write_identity(s)) < 0)
                return r;
        return o->on_partition == ON_PARTITION_STOP ? alone_mark(root, s->unit) : 0;
}

static int make_message(struct start *s, sd_bus_message **ret) {
        struct connection *c = s->connection;
        const struct start_order *o = s->order;
        const char *root = c->starter->root;
        struct unit_context context;
        int r;

        s->work = work_path(root, o->id.job, o->id.job_uid);
        s->artifacts = artifacts_path(root, o->id.job, o->id.job_uid);
        if (!s->work || !s->artifacts)
                return -ENOMEM;
        if (work_owner(root, o->id.job, o->id.job_uid) != o->uid) {
                if (asprintf(&s->why, "the job's work directory on host %s belongs to another user",
                             c->node) < 0)
                        s->why = NULL;
                return -EPERM;
        }
        /* The cache has a directory for each user (agentd/feed/bundles.h). */
        if (s->beside.bundled && asprintf(&s->bundle, BUNDLES_DIR "/%u/%s", o->uid, o->bundle) < 0) {
                s->bundle = NULL;
                return -ENOMEM;
        }
        /* Wanted now: of the cache those go first that were not for long. It is its user's, who alone may say
         * so. */
        if (s->bundle)
                (void)utimensat(AT_FDCWD, s->bundle, NULL, AT_SYMLINK_NOFOLLOW);
        shm_names(o->id.job, o->id.job_uid, &s->shm);
        if ((r = host_io(root, c->node, o->extra.io, o->extra.n_io, &s->io, &s->n_io, &s->why)) < 0)
                return r;
        pin_ports(s);
        context = context_of(s);
        TRY(relay_message(c, "StartTransientUnit", ret));
        TRY(unit_build(*ret, o, &context, &s->why));
        return write_private(s, &context);
}

static int start_unit(struct connection *c, sd_bus_message *call, struct start_order *order,
                      const struct beside *b, sd_bus_error *error) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        _cleanup_(start_done) struct start s = { .connection = c, .order = order, .beside = *b };
        _cleanup_free_ char *why = NULL;
        char text[SERVE_WHY_MAX];
        const char *name = policy_refuses(&c->starter->policy, order, c->node, &why);
        int r;

        if (name)
                return sd_bus_error_set(error, name, why ?: "this host does not allow it");
        if (lookup_refuses(c->starter->lookup, order->uid, c->node, text))
                return sd_bus_error_set(error, LINK_ERROR_NOT_SERVED, text);
        executor_unit_name(order->id.job, order->id.role, order->id.index, order->id.attempt, s.unit);
        if (exists(c->starter, s.unit))
                return sd_bus_error_setf(error, LINK_ERROR_START, "unit %s exists already", s.unit);
        r = make_message(&s, &m);
        if (r < 0)
                return sd_bus_error_setf(error, LINK_ERROR_START, "%s", s.why ?: strerror(-r));
        return relay_job(c, call, m, error);
}

int starter_method_start(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        _cleanup_(start_order_done) struct start_order order = {};
        struct connection *c = userdata;
        struct beside b = {};
        int r = start_order_read(call, &order);

        if (r > 0)
                r = start_extra_read(call, &order.extra);
        if (r >= 0 && link_read_entries(call, read_beside, &b) < 0)
                r = -EBADMSG;
        if (r < 0 || !c->node ||
            (b.shared_cpus && (strlen(b.shared_cpus) > LINK_TEXT_MAX || !*b.shared_cpus)) ||
            (b.bundled && !*order.bundle))
                return starter_malformed(r, error);
        return start_unit(c, call, &order, &b, error);
}
