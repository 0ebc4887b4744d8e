/* SPDX-License-Identifier: Apache-2.0 */
/* GPUs. Invariant: a GPU is reported only with a device node that exists: without its driver it is no use to
 * a job. */
#include "agentd/device/gpu.h"

#include <dirent.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/file.h"
#include "lib/base/parse.h"

/* "Key: \t value\n" of /proc/driver/nvidia, allocated; NULL where there is none. */
static char *find_line(const char *text, const char *key) {
        size_t l = strlen(key);

        for (const char *line = text; line && *line; line = strchr(line, '\n'), line = line ? line + 1 : NULL)
                if (strncmp(line, key, l) == 0 && line[l] == ':') {
                        line += l + 1;
                        line += strspn(line, " \t");
                        return strndup(line, strcspn(line, "\n"));
                }
        return NULL;
}

/* "key value\n" of kfd's properties. */
static uint64_t find_number(const char *text, const char *key) {
        size_t l = strlen(key);

        for (const char *line = text; line && *line; line = strchr(line, '\n'), line = line ? line + 1 : NULL)
                if (strncmp(line, key, l) == 0 && line[l] == ' ')
                        return strtoull(line + l + 1, NULL, 10);
        return 0;
}

static int select_visible(const struct dirent *d) {
        return d->d_name[0] != '.';
}

/* PCI addresses are hexadecimal and of one width: their order is that of the text. */
static int scan(const char *root, const char *path,
                int (*order)(const struct dirent **, const struct dirent **), struct dirent ***ret,
                char **ret_path) {
        char *full;
        int n;

        if (asprintf(&full, "%s%s", root, path) < 0)
                return -ENOMEM;
        n = scandir(full, ret, select_visible, order);
        if (n < 0) {
                free(full);
                return 0;
        }
        *ret_path = full;
        return n;
}

static bool node_exists(const char *root, const char *node) {
        char path[512];

        return snprintf(path, sizeof(path), "%s%s", root, node) < (int)sizeof(path) &&
               access(path, F_OK) >= 0;
}

static bool complete(const struct gpu_info *g) {
        return g->uuid && g->model && g->nodes;
}

static void discard(struct gpu_info *g) {
        free(g->uuid);
        free(g->model);
        free(g->nodes);
        *g = (struct gpu_info){ 0 };
}

static int nvidia_gpu(const char *root, const char *directory, const char *pci, struct gpu_info *ret) {
        _cleanup_free_ char *path = NULL, *text = NULL, *minor = NULL;
        struct gpu_info g = { 0 };
        char node[32];
        uint32_t n;

        if (asprintf(&path, "%s/%s/information", directory, pci) < 0)
                return -ENOMEM;
        if (read_file(path, 16 << 10, &text, NULL) < 0)
                return 0;
        minor = find_line(text, "Device Minor");
        if (!minor || parse_u32(minor, 0, 1023, &n) < 0)
                return 0;
        snprintf(node, sizeof(node), "/dev/nvidia%u", n);
        if (!node_exists(root, node))
                return 0;
        g.model = find_line(text, "Model") ?: strdup("NVIDIA GPU");
        g.uuid = find_line(text, "GPU UUID");
        g.nodes = strdup(node);
        snprintf(g.pci, sizeof(g.pci), "%.*s", (int)sizeof(g.pci) - 1, pci);
        if (!g.uuid || strncmp(g.uuid, "GPU-", 4) != 0 ||
            strchr(g.uuid, '?')) { /* not known before the first use */
                free(g.uuid);
                if (asprintf(&g.uuid, "pci-%s", pci) < 0)
                        g.uuid = NULL;
        }
        if (!complete(&g)) {
                discard(&g);
                return -ENOMEM;
        }
        *ret = g;
        return 1;
}

int gpus_find_nvidia(const char *root, struct gpu_info *gpus, size_t *n) {
        _cleanup_free_ char *directory = NULL;
        struct dirent **entries = NULL;
        int count = scan(root, "/proc/driver/nvidia/gpus", alphasort, &entries, &directory),
            r = count < 0 ? count : 0;

        for (int i = 0; i < count; i++) {
                if (r >= 0 && *n < LINK_GPUS_MAX) {
                        r = nvidia_gpu(root, directory, entries[i]->d_name, &gpus[*n]);
                        *n += r > 0;
                }
                free(entries[i]);
        }
        free(entries);
        return r < 0 ? r : 0;
}

static int amd_gpu(const char *root, const char *directory, const char *topology_node, struct gpu_info *ret) {
        _cleanup_free_ char *path = NULL, *text = NULL, *bank = NULL, *memory = NULL;
        struct gpu_info g = { 0 };
        char node[40];
        uint64_t id;

        if (asprintf(&path, "%s/%s/properties", directory, topology_node) < 0 ||
            asprintf(&bank, "%s/%s/mem_banks/0/properties", directory, topology_node) < 0)
                return -ENOMEM;
        if (read_file(path, 16 << 10, &text, NULL) < 0 || find_number(text, "simd_count") == 0)
                return 0; /* a CPU */
        snprintf(node, sizeof(node), "/dev/dri/renderD%u", (unsigned)find_number(text, "drm_render_minor"));
        if (!node_exists(root, node))
                return 0;
        if (read_file(bank, 4096, &memory, NULL) >= 0)
                g.memory = find_number(memory, "size_in_bytes");
        id = find_number(text, "unique_id");
        if ((id ? asprintf(&g.uuid, "kfd-%016llx", (unsigned long long)id)
                : asprintf(&g.uuid, "kfd-at-%llx:%llx", (unsigned long long)find_number(text, "domain"),
                           (unsigned long long)find_number(text, "location_id"))) < 0)
                g.uuid = NULL;
        if (asprintf(&g.model, "AMD gfx%llu", (unsigned long long)find_number(text, "gfx_target_version")) <
            0)
                g.model = NULL;
        g.nodes = strdup(node);
        if (!complete(&g)) {
                discard(&g);
                return -ENOMEM;
        }
        *ret = g;
        return 1;
}

int gpus_find_amd(const char *root, struct gpu_info *gpus, size_t *n) {
        _cleanup_free_ char *directory = NULL;
        struct dirent **entries = NULL;
        int count = scan(root, "/sys/class/kfd/kfd/topology/nodes", versionsort, &entries, &directory),
            r = count < 0 ? count : 0;

        for (int i = 0; i < count; i++) {
                if (r >= 0 && *n < LINK_GPUS_MAX) {
                        r = amd_gpu(root, directory, entries[i]->d_name, &gpus[*n]);
                        *n += r > 0;
                }
                free(entries[i]);
        }
        free(entries);
        return r < 0 ? r : 0;
}
