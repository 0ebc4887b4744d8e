/* SPDX-License-Identifier: Apache-2.0 */
/* How executors find each other. Invariant: everything is a function of the placement, so that a master that
 * restarts hands out the same values. */
#include "masterd/job/rendezvous.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdarg.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"

#define TF_CONFIG_MAX (100u << 10)

struct position {
        uint32_t rank;
        uint32_t node_rank, local_rank;
        bool placed;
};

struct node_seen {
        const char *name;
        uint32_t rank;  /* of the first member there */
        uint32_t count; /* members there */
};

struct rendezvous {
        const struct rendezvous_job *job;
        struct position *positions;
        struct node_seen *nodes; /* by node rank */
        uint32_t n_nodes, world_size;
        size_t master; /* member that is rank 0 */
        char master_address[ADDR_TEXT_MAX];
        char *cluster_text; /* JSON; NULL: no TF_CONFIG */
        char *roles_list, *hosts;
};

void rendezvous_free(struct rendezvous *r) {
        if (!r)
                return;
        free(r->positions);
        free(r->nodes);
        free(r->roles_list);
        free(r->hosts);
        free(r->cluster_text);
        free(r);
}
DEFINE_CLEANUP(struct rendezvous *, rendezvous_free)
DEFINE_CLEANUP(json_t *, json_decref)

struct by_node {
        const char *node;
        uint32_t member;
};

static int compare_by_node(const void *a, const void *b) {
        const struct by_node *x = a, *y = b;
        int c = strcmp(x->node, y->node);

        return c ? c : (x->member > y->member) - (x->member < y->member);
}

static int compare_seen(const void *a, const void *b) {
        const struct node_seen *x = a, *y = b;

        return (x->rank > y->rank) - (x->rank < y->rank);
}

/* Numbers the hosts by the lowest rank on each. */
static int number_nodes(struct rendezvous *r) {
        const struct rendezvous_job *job = r->job;
        _cleanup_free_ struct by_node *sorted = calloc(job->n_members + 1, sizeof(*sorted));
        _cleanup_free_ uint32_t *node_of = NULL;
        uint32_t n = 0;

        r->nodes = calloc(job->n_members + 1, sizeof(*r->nodes));
        if (!sorted || !r->nodes)
                return -ENOMEM;
        for (uint32_t i = 0; i < job->n_members; i++)
                if (r->positions[i].placed)
                        sorted[n++] = (struct by_node){ job->members[i].node, i };
        qsort(sorted, n, sizeof(*sorted), compare_by_node);
        for (uint32_t i = 0; i < n; i++) {
                struct node_seen *seen = r->n_nodes ? r->nodes + r->n_nodes - 1 : NULL;
                if (!seen || strcmp(seen->name, sorted[i].node) != 0) {
                        seen = r->nodes + r->n_nodes++;
                        *seen = (struct node_seen){ sorted[i].node, r->positions[sorted[i].member].rank, 0 };
                }
                r->positions[sorted[i].member].local_rank = seen->count++;
                r->positions[sorted[i].member].node_rank = seen->rank; /* for now: to find it again below */
        }
        qsort(r->nodes, r->n_nodes, sizeof(*r->nodes), compare_seen);
        node_of = calloc(r->world_size + 1, sizeof(*node_of));
        if (!node_of)
                return -ENOMEM;
        for (uint32_t i = 0; i < r->n_nodes; i++)
                node_of[r->nodes[i].rank] = i;
        for (uint32_t i = 0; i < n; i++)
                r->positions[sorted[i].member].node_rank = node_of[r->positions[sorted[i].member].node_rank];
        return 0;
}

/* Roles whose placed executors are not 0, 1, 2, ...: a list would give them wrong indices. */
static bool *roles_with_gaps(const struct rendezvous *r) {
        const struct rendezvous_job *job = r->job;
        _cleanup_free_ uint32_t *next = calloc(job->n_roles + 1, sizeof(*next));
        bool *gaps = next ? calloc(job->n_roles + 1, sizeof(*gaps)) : NULL;

        for (size_t i = 0; gaps && i < job->n_members; i++)
                if (r->positions[i].placed && job->members[i].index != next[job->members[i].role]++)
                        gaps[job->members[i].role] = true;
        return gaps;
}

static int add_to_cluster(json_t *cluster, const char *role, const struct rendezvous_member *m, bool gaps) {
        json_t *tasks = json_object_get(cluster, role), *endpoint;
        struct addr a = *m->address;
        char text[ADDR_TEXT_MAX], index[16];

        if (!tasks) {
                tasks = gaps ? json_object() : json_array();
                if (json_object_set_new(cluster, role, tasks) < 0)
                        return -ENOMEM;
        }
        a.port = m->n_ports > 0 ? m->ports[0] : 0;
        endpoint = json_string(addr_format(&a, text));
        if (!gaps)
                return json_array_append_new(tasks, endpoint) < 0 ? -ENOMEM : 0;
        snprintf(index, sizeof(index), "%u", m->index);
        return json_object_set_new(tasks, index, endpoint) < 0 ? -ENOMEM : 0;
}

static int make_cluster(struct rendezvous *r) {
        const struct rendezvous_job *job = r->job;
        _cleanup_(json_decref_p) json_t *cluster = NULL;
        _cleanup_free_ bool *gaps = NULL;
        int k;

        if (job->n_members <= 1)
                return 0;
        gaps = roles_with_gaps(r);
        cluster = json_object();
        if (!gaps || !cluster)
                return -ENOMEM;
        for (size_t i = 0; i < job->n_members; i++) {
                const struct rendezvous_member *m = job->members + i;
                if (!r->positions[i].placed)
                        continue;
                k = add_to_cluster(cluster, job->roles[m->role].name, m, gaps[m->role]);
                if (k < 0)
                        return k;
        }
        r->cluster_text = json_dumps(cluster, JSON_COMPACT);
        if (!r->cluster_text)
                return -ENOMEM;
        if (strlen(r->cluster_text) > TF_CONFIG_MAX) {
                free(r->cluster_text);
                r->cluster_text = NULL;
        }
        return 0;
}

int rendezvous_new(const struct rendezvous_job *job, struct rendezvous **ret) {
        _cleanup_(rendezvous_free_p) struct rendezvous *r = calloc(1, sizeof(*r));
        FILE *f;
        size_t size;
        int k;

        if (!r)
                return -ENOMEM;
        r->job = job;
        r->positions = calloc(job->n_members + 1, sizeof(*r->positions));
        if (!r->positions)
                return -ENOMEM;
        for (size_t i = 0; i < job->n_members; i++) {
                if (!job->members[i].node)
                        continue;
                r->positions[i].placed = true;
                if (r->world_size == 0) {
                        struct addr a = *job->members[i].address;
                        r->master = i;
                        a.port = 0;
                        addr_format(&a, r->master_address);
                }
                r->positions[i].rank = r->world_size++;
        }
        k = number_nodes(r);
        if (k < 0)
                return k;
        k = make_cluster(r);
        if (k < 0)
                return k;

        f = open_memstream(&r->roles_list, &size);
        if (!f)
                return -ENOMEM;
        for (size_t i = 0; i < job->n_roles; i++)
                fprintf(f, "%s%s", i ? "," : "", job->roles[i].name);
        if (fclose(f) != 0)
                return -ENOMEM;
        f = open_memstream(&r->hosts, &size);
        if (!f)
                return -ENOMEM;
        for (uint32_t i = 0; i < r->n_nodes; i++)
                fprintf(f, "%s%s", i ? "," : "", r->nodes[i].name);
        if (fclose(f) != 0)
                return -ENOMEM;
        *ret = TAKE_PTR(r);
        return 0;
}

#define ENVIRONMENT_MAX 48

struct environment {
        char **list;
        size_t n;
        int error;
};

static void add_variable(struct environment *e, const char *format, ...) _printf_(2, 3);
static void add_variable(struct environment *e, const char *format, ...) {
        va_list ap;

        if (e->error < 0)
                return;
        if (e->n + 1 >= ENVIRONMENT_MAX) {
                e->error = -E2BIG;
                return;
        }
        va_start(ap, format);
        if (vasprintf(e->list + e->n, format, ap) < 0) {
                e->list[e->n] = NULL;
                e->error = -ENOMEM;
        } else
                e->list[++e->n] = NULL;
        va_end(ap);
}

/* The cluster, which is the same for all, is encoded once: for a gang of 2,000 the encoding of its addresses
 * for each of them took most of the start. So these two pieces of JSON are joined as text. */
static void add_tf_config(struct environment *e, const struct rendezvous *r,
                          const struct rendezvous_member *m) {
        _cleanup_(json_decref_p) json_t *task = NULL;
        _cleanup_free_ char *text = NULL;

        if (!r->cluster_text || e->error < 0)
                return;
        task = json_pack("{s:s, s:I}", "type", r->job->roles[m->role].name, "index", (json_int_t)m->index);
        text = task ? json_dumps(task, JSON_COMPACT) : NULL;
        if (!text)
                e->error = -ENOMEM;
        else if (strlen(r->cluster_text) + strlen(text) + strlen("{\"cluster\":,\"task\":}") <= TF_CONFIG_MAX)
                add_variable(e, "TF_CONFIG={\"cluster\":%s,\"task\":%s}", r->cluster_text, text);
}

static void add_ports(struct environment *e, const char *name, const struct rendezvous_member *m) {
        char text[512];
        size_t l = 0;

        text[0] = 0;
        for (size_t i = 0; i < m->n_ports && l < sizeof(text) - 8; i++)
                l += (size_t)snprintf(text + l, sizeof(text) - l, "%s%u", i ? "," : "", m->ports[i]);
        add_variable(e, "%s=%s", name, text);
}

int rendezvous_environment(const struct rendezvous *r, size_t i, char ***ret) {
        const struct rendezvous_job *job = r->job;

        if (i >= job->n_members || !r->positions[i].placed)
                return -ENOENT;

        const struct rendezvous_member *m = job->members + i, *master = job->members + r->master;
        const struct position *p = r->positions + i;
        const struct rendezvous_role *role = job->roles + m->role;
        struct environment e = { .list = calloc(ENVIRONMENT_MAX, sizeof(char *)) };
        uint32_t local;

        if (!e.list)
                return -ENOMEM;
        local = r->nodes[p->node_rank].count;

        add_tf_config(&e, r, m);
        add_variable(&e, "MASTER_ADDR=%s", r->master_address);
        if (master->n_ports > 0) {
                add_variable(&e, "MASTER_PORT=%u", master->ports[0]);
                add_variable(&e, "PET_MASTER_PORT=%u", master->ports[0]);
        }
        add_variable(&e, "RANK=%u", p->rank);
        add_variable(&e, "WORLD_SIZE=%u", r->world_size);
        add_variable(&e, "LOCAL_RANK=%u", p->local_rank);
        add_variable(&e, "LOCAL_WORLD_SIZE=%u", local);
        add_variable(&e, "NODE_RANK=%u", p->node_rank);
        /* torchrun counts agents, of which each executor runs one. */
        add_variable(&e, "PET_NNODES=%u", r->world_size);
        add_variable(&e, "PET_NODE_RANK=%u", p->rank);
        add_variable(&e, "PET_MASTER_ADDR=%s", r->master_address);

        add_variable(&e, "EXECUTOR_ID=%u", m->index);
        add_variable(&e, "EXECUTOR_ROLE=%s", role->name);
        add_variable(&e, "EXECUTOR_INDEX=%u", m->index);
        add_ports(&e, "PORT_LIST", m);
        add_variable(&e, "ROLES_LIST=%s", r->roles_list);
        add_variable(&e, "NUM_OF_PRIMUS_%s=%u", role->name, role->wanted);
        add_variable(&e, "PRIMUS_EXECUTOR_UNIQID=%s-%s-%u", job->uid, role->name, m->index);
        add_variable(&e, "PRIMUS_ROLE_CATEGORY=%s", role->category);
        add_variable(&e, "PRIMUS_SUBMIT_TIMESTAMP=%" PRIu64, job->submitted_real / USEC_PER_MSEC);

        add_variable(&e, "PRIMUS_JOB_NAME=%s", job->name);
        add_variable(&e, "PRIMUS_RANK=%u", p->rank);
        add_variable(&e, "PRIMUS_WORLD_SIZE=%u", r->world_size);
        add_variable(&e, "PRIMUS_ROLE_SIZE=%u", role->wanted);
        add_variable(&e, "PRIMUS_NUM_NODES=%u", r->n_nodes);
        add_variable(&e, "PRIMUS_NODE_RANK=%u", p->node_rank);
        add_variable(&e, "PRIMUS_LOCAL_RANK=%u", p->local_rank);
        add_variable(&e, "PRIMUS_LOCAL_WORLD_SIZE=%u", local);
        add_ports(&e, "PRIMUS_PORTS", m);
        if (strlen(r->hosts) <= TF_CONFIG_MAX)
                add_variable(&e, "PRIMUS_HOSTS=%s", r->hosts);
        if (e.error < 0) {
                for (size_t k = 0; k < e.n; k++)
                        free(e.list[k]);
                free(e.list);
                return e.error;
        }
        *ret = e.list;
        return 0;
}
