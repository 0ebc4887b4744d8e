/* SPDX-License-Identifier: Apache-2.0 */
/* What the a{sv} of a registration says of the host beyond its inventory. */
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/cpulist.h"
#include "lib/base/labels.h"
#include "lib/base/strv.h"
#include "lib/base/try.h"
#include "lib/wire/messages-parts.h"

#define CPU_WORDS 16u

static int append_texts(sd_bus_message *m, const char *key, char *const *texts) {
        if (!texts || !*texts)
                return 0;
        TRY(sd_bus_message_open_container(m, 'e', "sv"));
        TRY(sd_bus_message_append(m, "s", key));
        TRY(sd_bus_message_open_container(m, 'v', "as"));
        TRY(sd_bus_message_append_strv(m, (char **)texts));
        TRY(sd_bus_message_close_container(m));
        return sd_bus_message_close_container(m);
}

static int append_gpu_numa(sd_bus_message *m, const struct inventory *i) {
        if (i->n_gpus == 0)
                return 0;
        TRY(sd_bus_message_open_container(m, 'e', "sv"));
        TRY(sd_bus_message_append(m, "s", "gpuNuma"));
        TRY(sd_bus_message_open_container(m, 'v', "au"));
        TRY(sd_bus_message_open_container(m, 'a', "u"));
        for (size_t k = 0; k < i->n_gpus; k++)
                TRY(sd_bus_message_append(m, "u", i->gpus[k].numa));
        TRY(sd_bus_message_close_container(m));
        TRY(sd_bus_message_close_container(m));
        return sd_bus_message_close_container(m);
}

/* A text of each GPU, "" for those without; nothing where no GPU has one. */
static int append_gpu_texts(sd_bus_message *m, const char *key, const struct inventory *i, size_t offset) {
        char *texts[LINK_GPUS_MAX + 1];
        bool any = false;

        for (size_t k = 0; k < i->n_gpus && k < LINK_GPUS_MAX; k++) {
                memcpy(&texts[k], (const char *)&i->gpus[k] + offset, sizeof(texts[k]));
                any |= texts[k] != NULL;
                texts[k] = texts[k] ?: (char *)"";
        }
        texts[MIN(i->n_gpus, (size_t)LINK_GPUS_MAX)] = NULL;
        return any ? append_texts(m, key, texts) : 0;
}

static int append_gpu_links(sd_bus_message *m, const struct inventory *i) {
        uint64_t links[LINK_GPUS_MAX], any = 0;

        for (size_t k = 0; k < i->n_gpus && k < LINK_GPUS_MAX; k++)
                any |= links[k] = i->gpus[k].links;
        if (any == 0)
                return 0;
        TRY(sd_bus_message_open_container(m, 'e', "sv"));
        TRY(sd_bus_message_append(m, "s", "gpuLinks"));
        TRY(sd_bus_message_open_container(m, 'v', "at"));
        TRY(sd_bus_message_append_array(m, 't', links, i->n_gpus * sizeof(*links)));
        TRY(sd_bus_message_close_container(m));
        return sd_bus_message_close_container(m);
}

static int append_networks(sd_bus_message *m, const struct inventory *i) {
        char address[ADDR_TEXT_MAX];

        if (i->n_networks == 0)
                return 0;
        TRY(sd_bus_message_open_container(m, 'e', "sv"));
        TRY(sd_bus_message_append(m, "s", "networks"));
        TRY(sd_bus_message_open_container(m, 'v', "a(ssyu)"));
        TRY(sd_bus_message_open_container(m, 'a', "(ssyu)"));
        for (size_t k = 0; k < i->n_networks; k++)
                TRY(sd_bus_message_append(m, "(ssyu)", i->networks[k].name,
                                          addr_format(&i->networks[k].address, address), i->networks[k].bits,
                                          i->networks[k].mbps));
        TRY(sd_bus_message_close_container(m));
        TRY(sd_bus_message_close_container(m));
        return sd_bus_message_close_container(m);
}

static int append_serves(sd_bus_message *m, const struct serves_info *s) {
        if (!s->known)
                return 0;
        TRY(sd_bus_message_open_container(m, 'e', "sv"));
        TRY(sd_bus_message_append(m, "s", "serves"));
        TRY(sd_bus_message_open_container(m, 'v', "(ubbauau)"));
        TRY(sd_bus_message_open_container(m, 'r', "ubbauau"));
        TRY(sd_bus_message_append(m, "ubb", s->min_uid, (int)s->listed, (int)s->groups));
        TRY(sd_bus_message_append_array(m, 'u', s->allow, s->n_allow * sizeof(*s->allow)));
        TRY(sd_bus_message_append_array(m, 'u', s->deny, s->n_deny * sizeof(*s->deny)));
        TRY(sd_bus_message_close_container(m));
        TRY(sd_bus_message_close_container(m));
        return sd_bus_message_close_container(m);
}

int inventory_append_extra(sd_bus_message *m, const struct inventory *i) {
        TRY(append_texts(m, "labels", i->labels));
        TRY(append_texts(m, "numa", i->numa));
        TRY(append_gpu_numa(m, i));
        TRY(append_gpu_texts(m, "gpuMig", i, offsetof(struct gpu_info, mig)));
        TRY(append_gpu_texts(m, "gpuParents", i, offsetof(struct gpu_info, parent)));
        TRY(append_gpu_links(m, i));
        if (i->shm > 0)
                TRY(sd_bus_message_append(m, "{sv}", "shm", "t", i->shm));
        TRY(append_networks(m, i));
        return append_serves(m, &i->serves);
}

static bool labels_valid(char *const *labels) {
        size_t n = 0;

        for (; labels[n]; n++)
                if (n == LINK_LABELS_MAX || label_check(labels[n], NULL) < 0)
                        return false;
        return true;
}

static bool numa_valid(char *const *numa) {
        uint64_t bits[CPU_WORDS];
        size_t n = 0;

        for (; numa[n]; n++)
                if (n == LINK_NUMA_MAX || cpulist_parse(numa[n], bits, CPU_WORDS) < 0)
                        return false;
        return true;
}

static int read_texts(sd_bus_message *m, bool (*valid)(char *const *), char ***to) {
        _cleanup_(strings_free_p) char **texts = NULL;

        TRY(sd_bus_message_enter_container(m, 'v', "as"));
        TRY(sd_bus_message_read_strv(m, &texts));
        TRY(sd_bus_message_exit_container(m));
        if (texts && (!valid(texts) || *to))
                return -EBADMSG;
        *to = TAKE_PTR(texts);
        return 1;
}

static int read_gpu_numa(sd_bus_message *m, struct inventory *i) {
        const void *numbers;
        size_t size;

        TRY(sd_bus_message_enter_container(m, 'v', "au"));
        TRY(sd_bus_message_read_array(m, 'u', &numbers, &size));
        for (size_t k = 0; k < size / sizeof(uint32_t) && k < i->n_gpus; k++)
                memcpy(&i->gpus[k].numa, (const char *)numbers + k * sizeof(uint32_t), sizeof(uint32_t));
        TRY(sd_bus_message_exit_container(m));
        return 1;
}

static int read_gpu_texts(sd_bus_message *m, struct inventory *i, size_t offset) {
        const char *text;
        size_t k = 0;
        int r;

        TRY(sd_bus_message_enter_container(m, 'v', "as"));
        TRY(sd_bus_message_enter_container(m, 'a', "s"));
        while ((r = sd_bus_message_read_basic(m, 's', &text)) > 0) {
                char **target = k < i->n_gpus ? (char **)((char *)&i->gpus[k] + offset) : NULL;

                if (++k > LINK_GPUS_MAX || strlen(text) > LINK_GPU_NAME_MAX || (target && *target))
                        return -EBADMSG;
                if (target && *text && !(*target = strdup(text)))
                        return -ENOMEM;
        }
        TRY(r);
        TRY(sd_bus_message_exit_container(m));
        TRY(sd_bus_message_exit_container(m));
        return 1;
}

static int read_gpu_links(sd_bus_message *m, struct inventory *i) {
        const void *numbers;
        size_t size;

        TRY(sd_bus_message_enter_container(m, 'v', "at"));
        TRY(sd_bus_message_read_array(m, 't', &numbers, &size));
        for (size_t k = 0; k < size / sizeof(uint64_t) && k < i->n_gpus; k++)
                memcpy(&i->gpus[k].links, (const char *)numbers + k * sizeof(uint64_t), sizeof(uint64_t));
        TRY(sd_bus_message_exit_container(m));
        return 1;
}

static int read_network(sd_bus_message *m, struct network_info *ret) {
        const char *name, *address;
        int r = sd_bus_message_read(m, "(ssyu)", &name, &address, &ret->bits, &ret->mbps);

        if (r <= 0)
                return r;
        if (strlen(name) >= sizeof(ret->name) || addr_parse(address, 0, &ret->address) < 0 ||
            ret->address.port != 0 || ret->bits > (ret->address.family == AF_INET ? 32 : 128))
                return -EBADMSG;
        strcpy(ret->name, name);
        return 1;
}

static int read_networks(sd_bus_message *m, struct inventory *i) {
        int r = 0;

        if (i->networks)
                return -EBADMSG;
        TRY(sd_bus_message_enter_container(m, 'v', "a(ssyu)"));
        TRY(sd_bus_message_enter_container(m, 'a', "(ssyu)"));
        i->networks = calloc(LINK_NETWORKS_MAX, sizeof(*i->networks));
        if (!i->networks)
                return -ENOMEM;
        while (i->n_networks < LINK_NETWORKS_MAX && (r = read_network(m, i->networks + i->n_networks)) > 0)
                i->n_networks++;
        TRY(r);
        TRY(sd_bus_message_exit_container(m)); /* -EBUSY: there are more */
        TRY(sd_bus_message_exit_container(m));
        return 1;
}

static int read_uids(sd_bus_message *m, uint32_t **ret, size_t *ret_n) {
        const void *uids;
        size_t size;
        int r = sd_bus_message_read_array(m, 'u', &uids, &size);

        if (r < 0)
                return r;
        if (size > LINK_SERVES_MAX * sizeof(**ret))
                return -EBADMSG;
        *ret = malloc(size + 1);
        if (!*ret)
                return -ENOMEM;
        if (size > 0)
                memcpy(*ret, uids, size);
        *ret_n = size / sizeof(**ret);
        return 0;
}

static int read_serves(sd_bus_message *m, struct serves_info *s) {
        int listed, groups;

        if (s->known)
                return -EBADMSG;
        s->known = true;
        TRY(sd_bus_message_enter_container(m, 'v', "(ubbauau)"));
        TRY(sd_bus_message_enter_container(m, 'r', "ubbauau"));
        TRY(sd_bus_message_read(m, "ubb", &s->min_uid, &listed, &groups));
        TRY(read_uids(m, &s->allow, &s->n_allow));
        TRY(read_uids(m, &s->deny, &s->n_deny));
        TRY(sd_bus_message_exit_container(m));
        TRY(sd_bus_message_exit_container(m));
        s->listed = listed;
        s->groups = groups;
        return 1;
}

/* 1: it was one of these; 0: another, which is still to be read. */
static int read_key(sd_bus_message *m, const char *key, struct inventory *i) {
        if (strcmp(key, "labels") == 0)
                return read_texts(m, labels_valid, &i->labels);
        if (strcmp(key, "numa") == 0)
                return read_texts(m, numa_valid, &i->numa);
        if (strcmp(key, "gpuNuma") == 0)
                return read_gpu_numa(m, i);
        if (strcmp(key, "gpuMig") == 0)
                return read_gpu_texts(m, i, offsetof(struct gpu_info, mig));
        if (strcmp(key, "gpuParents") == 0)
                return read_gpu_texts(m, i, offsetof(struct gpu_info, parent));
        if (strcmp(key, "gpuLinks") == 0)
                return read_gpu_links(m, i);
        if (strcmp(key, "networks") == 0)
                return read_networks(m, i);
        if (strcmp(key, "serves") == 0)
                return read_serves(m, &i->serves);
        if (strcmp(key, "shm") != 0)
                return 0;
        TRY(sd_bus_message_read(m, "v", "t", &i->shm));
        return 1;
}

int inventory_read_extra(sd_bus_message *m, const char *key, struct inventory *i) {
        int r = read_key(m, key, i);

        return r < 0 ? link_bad(r) : r;
}
