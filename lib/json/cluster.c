/* SPDX-License-Identifier: Apache-2.0 */
/* The cluster as a whole. */
#include "lib/json/replies.h"

static const struct json_member cluster[] = {
        { "version", "s", .key = "Version" }, { "cluster", "s", .key = "ClusterId" },
        { "term", "t", .key = "Term" },       { "jobs", "u", .key = "NumJobs" },
        { "nodes", "u", .key = "NumNodes" },  { "banner", "s", .key = "Banner" },
};
const struct json_shape json_cluster = { "cluster", "a{sv}", cluster, ELEMENTSOF(cluster) };
