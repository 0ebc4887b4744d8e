/* SPDX-License-Identifier: Apache-2.0 */
/* Who listens on a port. Invariant: an address is given only where a process of the cgroup has the very
 * socket open. */
#include "session/listening.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/cleanup.h"

#define LISTENERS_MAX 64u
#define STATE_LISTEN 0x0au

struct listener {
        unsigned long inode;
        struct sockaddr_storage address;
        socklen_t size;
};

/* "0100007F" or 32 digits: words in the host's order. */
static bool read_address(const char *text, uint16_t port, struct listener *l) {
        uint32_t words[4];
        size_t n = strlen(text) / 8;

        if ((n != 1 && n != 4) || strlen(text) % 8 != 0)
                return false;
        for (size_t i = 0; i < n; i++) {
                char word[9] = "";
                memcpy(word, text + 8 * i, 8);
                words[i] = (uint32_t)strtoul(word, NULL, 16);
        }
        memset(&l->address, 0, sizeof(l->address));
        if (n == 1) {
                struct sockaddr_in *a = (struct sockaddr_in *)&l->address;
                a->sin_family = AF_INET;
                a->sin_port = htons(port);
                a->sin_addr.s_addr = words[0] ? words[0] : htonl(INADDR_LOOPBACK);
                l->size = sizeof(*a);
        } else {
                struct sockaddr_in6 *a = (struct sockaddr_in6 *)&l->address;
                a->sin6_family = AF_INET6;
                a->sin6_port = htons(port);
                memcpy(&a->sin6_addr, words, sizeof(words));
                if (memcmp(&a->sin6_addr, &in6addr_any, sizeof(in6addr_any)) == 0)
                        a->sin6_addr = in6addr_loopback;
                l->size = sizeof(*a);
        }
        return true;
}

static size_t read_listeners(const char *root, const char *table, uint16_t port, struct listener *list,
                             size_t n) {
        _cleanup_fclose_ FILE *f = NULL;
        char path[512], line[512];

        snprintf(path, sizeof(path), "%s/proc/net/%s", root, table);
        f = fopen(path, "re");
        while (f && fgets(line, sizeof(line), f) && n < LISTENERS_MAX) {
                char address[33];
                unsigned local, state;
                unsigned long inode;

                if (sscanf(line, " %*u: %32[0-9A-F]:%x %*[0-9A-F]:%*x %x %*x:%*x %*x:%*x %*x %*u %*u %lu",
                           address, &local, &state, &inode) == 4 &&
                    local == port && state == STATE_LISTEN && inode > 0 &&
                    read_address(address, port, list + n))
                        list[n++].inode = inode;
        }
        return n;
}

static int cgroup_of(const char *root, const char *pid, char **ret) {
        _cleanup_fclose_ FILE *f = NULL;
        char path[512], line[4096];
        const char *name;

        snprintf(path, sizeof(path), "%s/proc/%s/cgroup", root, pid);
        f = fopen(path, "re");
        if (!f)
                return -errno;
        while (fgets(line, sizeof(line), f)) {
                line[strcspn(line, "\n")] = 0;
                name = strchr(line, ':');
                if (!name || (strncmp(name, "::", 2) != 0 && strncmp(name, ":name=systemd:", 14) != 0))
                        continue;
                *ret = strdup(strchr(name + 1, ':') + 1);
                return *ret ? 0 : -ENOMEM;
        }
        return -ENOENT;
}

int listening_own_cgroup(const char *root, char **ret) {
        return cgroup_of(root, "self", ret);
}

static const struct listener *holds(const char *root, const char *pid, const struct listener *list,
                                    size_t n) {
        _cleanup_closedir_ DIR *dir = NULL;
        struct dirent *entry;
        char path[512];

        snprintf(path, sizeof(path), "%s/proc/%s/fd", root, pid);
        dir = opendir(path);
        while (dir && (entry = readdir(dir))) {
                char target[64];
                unsigned long inode;
                ssize_t l = readlinkat(dirfd(dir), entry->d_name, target, sizeof(target) - 1);

                if (l < 0)
                        continue;
                target[l] = 0;
                if (sscanf(target, "socket:[%lu]", &inode) != 1)
                        continue;
                for (size_t i = 0; i < n; i++)
                        if (list[i].inode == inode)
                                return list + i;
        }
        return NULL;
}

int listening_find(const char *root, const char *cgroup, uint16_t port, struct sockaddr_storage *ret,
                   socklen_t *ret_size) {
        _cleanup_free_ struct listener *list = calloc(LISTENERS_MAX, sizeof(*list));
        _cleanup_closedir_ DIR *dir = NULL;
        struct dirent *entry;
        char path[512];
        size_t n;

        if (!list)
                return -ENOMEM;
        n = read_listeners(root, "tcp", port, list, 0);
        n = read_listeners(root, "tcp6", port, list, n);
        snprintf(path, sizeof(path), "%s/proc", root);
        dir = n > 0 ? opendir(path) : NULL;
        while (dir && (entry = readdir(dir))) {
                _cleanup_free_ char *theirs = NULL;
                const struct listener *l;

                if (!isdigit((unsigned char)*entry->d_name) || cgroup_of(root, entry->d_name, &theirs) < 0 ||
                    strcmp(theirs, cgroup) != 0 || !(l = holds(root, entry->d_name, list, n)))
                        continue;
                *ret = l->address;
                *ret_size = l->size;
                return 0;
        }
        return -ECONNREFUSED;
}
