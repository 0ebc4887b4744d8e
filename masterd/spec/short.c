/* SPDX-License-Identifier: Apache-2.0 */
/* Invariant: no key is dropped; what no table has stays where it was written, and is complained about there.
 */
#include "masterd/spec/short.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "lib/base/cleanup.h"

#define WORD_MAX 32u

int short_form(json_t *root) {
        json_t *role, *roles, *v;
        const char *name;
        void *next;

        if (json_object_get(root, "role") && !json_is_null(json_object_get(root, "role")))
                return 0;
        role = json_object();
        if (!role)
                return -ENOMEM;
        json_object_foreach_safe (root, next, name, v)
                if (!schema_find(&job_schema, name) && schema_find(&role_schema, name)) {
                        if (json_object_set(role, name, v) < 0 || json_object_del(root, name) < 0) {
                                json_decref(role);
                                return -ENOMEM;
                        }
                }
        if (json_object_size(role) == 0) {
                json_decref(role);
                return 1;
        }
        if (!json_object_get(role, "roleName") && !json_object_get(role, "role_name") &&
            json_object_set_new(role, "roleName", json_string(SHORT_ROLE)) < 0) {
                json_decref(role);
                return -ENOMEM;
        }
        roles = json_array();
        if (!roles || json_array_append(roles, role) < 0) {
                json_decref(role);
                json_decref(roles);
                return -ENOMEM;
        }
        json_decref(role);
        return json_object_set_new(root, "role", roles) < 0 ? -ENOMEM : 1;
}

/* Written without blanks, dashes and underscores, in small letters. What several keys could be meant by
 * stands once for each: the schema decides. */
static const struct {
        const char *word, *key;
} known[] = {
        { "args", "argv" },
        { "chdir", "cwd" },
        { "cmd", "command" },
        { "constraint", "constraints" },
        { "core", "cpus" },
        { "cores", "cpus" },
        { "count", "num" },
        { "cpu", "cpus" },
        { "cpuspertask", "cpus" },
        { "dependency", "after" },
        { "dependson", "after" },
        { "directory", "cwd" },
        { "entrypoint", "command" },
        { "environment", "env" },
        { "executors", "num" },
        { "gpuspernode", "gpus" },
        { "gpuspertask", "gpus" },
        { "gres", "gpus" },
        { "host", "nodes" },
        { "hostlist", "nodes" },
        { "jobname", "name" },
        { "maxrestarts", "retries" },
        { "maxretries", "retries" },
        { "mem", "memory" },
        { "memorymib", "memory" },
        { "ngpus", "gpus" },
        { "nnodes", "hosts" },
        { "nodelist", "nodes" },
        { "nprocpernode", "perHost" },
        { "nprocs", "num" },
        { "ntasks", "num" },
        { "ntaskspernode", "perHost" },
        { "numcpus", "cpus" },
        { "numexecutors", "num" },
        { "numgpus", "gpus" },
        { "numhosts", "hosts" },
        { "numnodes", "hosts" },
        { "numretries", "retries" },
        { "numworkers", "num" },
        { "parallelism", "num" },
        { "partition", "queue" },
        { "pool", "queue" },
        { "program", "argv" },
        { "ram", "memory" },
        { "replicas", "num" },
        { "restarts", "retries" },
        { "retry", "retries" },
        { "roles", "role" },
        { "run", "command" },
        { "script", "command" },
        { "shell", "command" },
        { "tasks", "num" },
        { "taskspernode", "perHost" },
        { "timeout", "time" },
        { "ttl", "time" },
        { "variables", "env" },
        { "walltime", "time" },
        { "workdir", "cwd" },
        { "workers", "num" },
        { "workingdir", "cwd" },
        { "workingdirectory", "cwd" },
};

const char *short_known_as(const struct schema *s, const char *word) {
        char plain[WORD_MAX];
        size_t n = 0;

        for (; *word && n < sizeof(plain) - 1; word++)
                if (isalnum((unsigned char)*word))
                        plain[n++] = (char)tolower((unsigned char)*word);
        plain[n] = 0;
        for (size_t i = 0; i < ELEMENTSOF(known); i++) {
                const struct key *k = strcmp(plain, known[i].word) == 0 ? schema_find(s, known[i].key) : NULL;
                if (k && k->status == STATUS_LIVE)
                        return k->name;
        }
        return NULL;
}
