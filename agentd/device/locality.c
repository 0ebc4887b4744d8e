/* SPDX-License-Identifier: Apache-2.0 */
/* Invariant: NUMA nodes are numbered without gaps, and have the CPUs that are online, each in one of them. */
#include "agentd/device/locality.h"

#include <dirent.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>

#include "lib/base/cleanup.h"
#include "lib/base/cpulist.h"
#include "lib/base/file.h"
#include "lib/base/labels.h"
#include "lib/base/try.h"

#define WORDS 16u

static bool any(const uint64_t *bits) {
        uint64_t all = 0;

        for (size_t w = 0; w < WORDS; w++)
                all |= bits[w];
        return all;
}

static int add_numa(struct inventory *i, size_t *n, const uint64_t *bits) {
        i->numa[*n] = cpulist_format(bits, WORDS);
        if (!i->numa[*n])
                return -ENOMEM;
        ++*n;
        return 0;
}

static int is_node(const struct dirent *d) {
        return strncmp(d->d_name, "node", 4) == 0 && d->d_name[4] >= '0' && d->d_name[4] <= '9';
}

/* The CPUs of the node with that number of the kernel's. */
static bool read_node(const char *root, const char *name, const uint64_t *online, uint64_t *ret) {
        _cleanup_free_ char *text = NULL;
        char path[128];

        snprintf(path, sizeof(path), "/sys/devices/system/node/%.32s/cpulist", name);
        if (read_file_below(root, path, SYSTEM_FILE_MAX, &text) < 0 || cpulist_parse(text, ret, WORDS) < 0)
                return false;
        for (size_t w = 0; w < WORDS; w++)
                ret[w] &= online[w];
        return any(ret);
}

int locality_read_numa(const char *root, struct inventory *i) {
        _cleanup_free_ char *text = NULL, *directory = NULL;
        uint64_t online[WORDS], bits[WORDS];
        struct dirent **entries = NULL;
        size_t n = 0;
        int count, r = 0;

        if (read_file_below(root, "/sys/devices/system/cpu/online", SYSTEM_FILE_MAX, &text) < 0 ||
            cpulist_parse(text, online, WORDS) < 0)
                return 0;
        if (asprintf(&directory, "%s/sys/devices/system/node", root) < 0)
                return -ENOMEM;
        i->numa = calloc(LINK_NUMA_MAX + 1, sizeof(*i->numa));
        if (!i->numa)
                return -ENOMEM;
        count = scandir(directory, &entries, is_node, versionsort);
        for (int k = 0; k < count; k++) {
                if (r >= 0 && n < LINK_NUMA_MAX && read_node(root, entries[k]->d_name, online, bits))
                        r = add_numa(i, &n, bits);
                free(entries[k]);
        }
        free(entries);
        return r >= 0 && n == 0 ? add_numa(i, &n, online) : r;
}

/* The kernel's number, to ours: that of the node whose first CPU is of the kernel's. */
uint32_t locality_numa_of_pci(const char *root, const char *pci, const struct inventory *i) {
        _cleanup_free_ char *text = NULL;
        uint64_t mine[WORDS], theirs[WORDS];
        char path[160];

        snprintf(path, sizeof(path), "/sys/bus/pci/devices/%.32s/local_cpulist", pci);
        if (read_file_below(root, path, SYSTEM_FILE_MAX, &text) < 0 || cpulist_parse(text, theirs, WORDS) < 0)
                return 0;
        for (uint32_t k = 0; i->numa && i->numa[k]; k++) {
                uint64_t both = 0;
                if (cpulist_parse(i->numa[k], mine, WORDS) < 0)
                        continue;
                for (size_t w = 0; w < WORDS; w++)
                        both |= mine[w] & theirs[w];
                if (both)
                        return k;
        }
        return 0;
}

uint64_t locality_read_shm(const char *root) {
        _cleanup_free_ char *path = NULL;
        struct statvfs v;

        if (asprintf(&path, "%s/dev/shm", root) < 0 || statvfs(path, &v) < 0)
                return 0;
        return (uint64_t)v.f_blocks * v.f_frsize;
}

/* ---- labels ---- */

/* NAME=value or NAME="value" of os-release, in out; "" where it has none. */
static void os_field(const char *text, const char *name, char *out, size_t size) {
        size_t l = strlen(name);

        *out = 0;
        for (const char *line = text; line && *line; line = strchr(line, '\n'), line = line ? line + 1 : NULL)
                if (strncmp(line, name, l) == 0 && line[l] == '=') {
                        line += l + 1;
                        line += *line == '"' || *line == '\'';
                        snprintf(out, size, "%.*s", (int)strcspn(line, "\"'\n"), line);
                        return;
                }
}

static bool has_key(char *const *labels, const char *label) {
        char key[LABEL_MAX + 1];

        snprintf(key, sizeof(key), "%.*s", (int)strcspn(label, "="), label);
        for (; labels && *labels; labels++)
                if (label_value(*labels, key))
                        return true;
        return false;
}

/* One that is no label, or is said by the configuration, is left out. */
static int add_label(struct inventory *i, size_t *n, const char *label, char *const *over) {
        if (label_check(label, NULL) < 0 || has_key(over, label) || *n == LINK_LABELS_MAX)
                return 0;
        i->labels[*n] = strdup(label);
        if (!i->labels[*n])
                return -ENOMEM;
        ++*n;
        return 0;
}

static int is_verbs(const struct dirent *d) {
        return strncmp(d->d_name, "uverbs", 6) == 0 && d->d_name[6] >= '0' && d->d_name[6] <= '9';
}

/* An adapter that user programs can reach: one with a node of its own, not the kernel's side alone. */
static bool has_rdma(const char *root) {
        _cleanup_free_ char *directory = NULL;
        struct dirent **entries = NULL;
        int n = asprintf(&directory, "%s/dev/infiniband", root) < 0
                        ? -1
                        : scandir(directory, &entries, is_verbs, NULL);

        for (int k = 0; k < n; k++)
                free(entries[k]);
        free(entries);
        return n > 0;
}

int locality_set_labels(const char *root, char *const *extra, struct inventory *i) {
        _cleanup_free_ char *text = NULL;
        char id[64] = "", version[64] = "", label[LABEL_MAX + 1];
        struct utsname u;
        size_t n = 0;

        i->labels = calloc(LINK_LABELS_MAX + 1, sizeof(*i->labels));
        if (!i->labels || uname(&u) < 0)
                return -ENOMEM;
        if (read_file_below(root, "/etc/os-release", SYSTEM_FILE_MAX, &text) >= 0 ||
            read_file_below(root, "/usr/lib/os-release", SYSTEM_FILE_MAX, &text) >= 0) {
                os_field(text, "ID", id, sizeof(id));
                os_field(text, "VERSION_ID", version, sizeof(version));
        }
        snprintf(label, sizeof(label), "arch=%s", u.machine);
        TRY(add_label(i, &n, label, extra));
        snprintf(label, sizeof(label), "kernel=%s", u.release);
        TRY(add_label(i, &n, label, extra));
        snprintf(label, sizeof(label), "os=%s%s%s", id, *version ? "-" : "", version);
        if (*id)
                TRY(add_label(i, &n, label, extra));
        if (has_rdma(root))
                TRY(add_label(i, &n, RDMA_LABEL, extra));
        for (; extra && *extra; extra++)
                TRY(add_label(i, &n, *extra, NULL));
        return 0;
}
