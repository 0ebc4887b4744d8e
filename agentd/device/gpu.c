/* SPDX-License-Identifier: Apache-2.0 */
/* GPUs. Invariant: a GPU is reported only with a device node that exists: without its driver it is no use to
 * a job. */
#include "agentd/device/gpu.h"

#include <dirent.h>
#include <string.h>

#include "agentd/device/locality.h"
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

static bool is_complete(const struct gpu_info *g) {
        return g->uuid && g->model && g->nodes;
}

static void discard(struct gpu_info *g) {
        free(g->uuid);
        free(g->model);
        free(g->nodes);
        free(g->mig);
        free(g->parent);
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
        if (!is_complete(&g)) {
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

/* ---- by the PCI bus ---- */

static bool pci_has(const char *directory, const char *name, const char *file, const char *prefix) {
        _cleanup_free_ char *path = NULL, *text = NULL;

        return asprintf(&path, "%s/%s/%s", directory, name, file) >= 0 &&
               read_file(path, 256, &text, NULL) >= 0 && strncmp(text, prefix, strlen(prefix)) == 0;
}

int gpus_find_pci(const char *root, struct gpu_info *gpus, size_t *n) {
        _cleanup_free_ char *directory = NULL;
        struct dirent **entries = NULL;
        int count = scan(root, "/sys/bus/pci/devices", alphasort, &entries, &directory),
            r = count < 0 ? count : 0;
        unsigned minor = 0;

        for (int i = 0; i < count; i++) {
                const char *name = entries[i]->d_name;
                char node[32];

                /* VGA and 3D controllers of NVIDIA. */
                if (r >= 0 && *n < LINK_GPUS_MAX && pci_has(directory, name, "vendor", "0x10de") &&
                    (pci_has(directory, name, "class", "0x0300") ||
                     pci_has(directory, name, "class", "0x0302"))) {
                        struct gpu_info g = { .model = strdup("NVIDIA GPU") };

                        snprintf(node, sizeof(node), "/dev/nvidia%u", minor++);
                        g.nodes = strdup(node);
                        if (asprintf(&g.uuid, "pci-%s", name) < 0)
                                g.uuid = NULL;
                        snprintf(g.pci, sizeof(g.pci), "%.*s", (int)sizeof(g.pci) - 1, name);
                        if (!is_complete(&g))
                                r = -ENOMEM;
                        if (r >= 0 && node_exists(root, node))
                                gpus[(*n)++] = g;
                        else
                                discard(&g);
                }
                free(entries[i]);
        }
        free(entries);
        return r;
}

/* ---- by NVIDIA's library ---- */

/* The node by which a part is opened: of the GPU instance, or of the compute instance in it. */
static bool capability(const char *root, const struct gpu_state *s, bool compute, char *buf, size_t size) {
        _cleanup_free_ char *text = NULL, *minor = NULL;
        char path[160], inner[40] = "";
        uint32_t n;

        if (compute)
                snprintf(inner, sizeof(inner), "/ci%u", s->compute_instance);
        snprintf(path, sizeof(path), "/proc/driver/nvidia/capabilities/gpu%u/mig/gi%u%s/access", s->minor,
                 s->instance, inner);
        if (read_file_below(root, path, SYSTEM_FILE_MAX, &text) < 0)
                return false;
        minor = find_line(text, "DeviceFileMinor");
        if (!minor || parse_u32(minor, 0, UINT32_MAX, &n) < 0)
                return false;
        snprintf(buf, size, "/dev/nvidia-caps/nvidia-cap%u", n);
        return true;
}

static int take_state(const char *root, const struct gpu_state *s, struct gpu_info *ret) {
        char node[32], instance[48], compute[48];
        struct gpu_info g = {};
        int r;

        snprintf(node, sizeof(node), "/dev/nvidia%u", s->minor);
        if (!node_exists(root, node))
                return 0;
        if (!s->mig[0])
                r = asprintf(&g.nodes, "%s", node);
        else if (capability(root, s, false, instance, sizeof(instance)) &&
                 capability(root, s, true, compute, sizeof(compute)))
                r = asprintf(&g.nodes, "%s %s %s", node, instance, compute);
        else
                return 0; /* nobody could open it */
        if (r < 0)
                g.nodes = NULL;
        g.uuid = strdup(s->uuid);
        g.model = strdup(s->model);
        g.memory = s->values[GPU_MEMORY_TOTAL] == GPU_UNKNOWN ? 0 : s->values[GPU_MEMORY_TOTAL];
        memcpy(g.pci, s->pci, sizeof(g.pci));
        if (s->mig[0]) {
                g.mig = strdup(s->mig);
                g.parent = strdup(s->parent);
        }
        if (!is_complete(&g) || (s->mig[0] && (!g.mig || !g.parent))) {
                discard(&g);
                return -ENOMEM;
        }
        *ret = g;
        return 1;
}

/* From the library's numbers to the inventory's. */
static void take_links(const struct gpu_state *states, size_t n_states, struct gpu_info *gpus, size_t n) {
        for (size_t i = 0; i < n_states; i++)
                for (size_t k = 0; k < n && !states[i].mig[0]; k++) {
                        if (strcmp(gpus[k].uuid, states[i].uuid) != 0)
                                continue;
                        for (size_t j = 0; j < n_states; j++)
                                for (size_t l = 0; l < n; l++)
                                        if (!states[j].mig[0] &&
                                            states[i].links >> (states[j].index & 63) & 1 &&
                                            strcmp(gpus[l].uuid, states[j].uuid) == 0)
                                                gpus[k].links |= UINT64_C(1) << l;
                }
}

int gpus_take(const char *root, const struct gpu_state *states, size_t n_states, struct gpu_info *gpus,
              size_t *n) {
        for (size_t i = 0; i < n_states && *n < LINK_GPUS_MAX; i++) {
                int r = states[i].cut ? 0 : take_state(root, states + i, &gpus[*n]);

                if (r < 0)
                        return r;
                *n += r > 0;
        }
        take_links(states, n_states, gpus, *n);
        return 0;
}

/* ---- AMD ---- */

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
        if (!is_complete(&g)) {
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
