/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a join. Invariant: the identity is replaced as a whole or not at all. */
#include "tools/join/place.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/cleanup.h"
#include "lib/base/conf.h"
#include "lib/base/file.h"

/* agentd's: which cluster this host has followed since it booted */
#define FOLLOWED "/run/primus/agent/link"
#define PEM_MAX (64u << 10)
#define NODE_DIRECTORY_NEW PRIMUS_SYSCONFDIR "/.node.new"

int fail(int status, const char *format, ...) {
        va_list ap;

        if (!getenv("JOURNAL_STREAM"))
                fputs("primus-join: ", stderr);
        va_start(ap, format);
        vfprintf(stderr, format, ap);
        va_end(ap);
        fputc('\n', stderr);
        return status;
}

bool identity_there(void) {
        return access(NODE_DIRECTORY "/node.key", F_OK) >= 0;
}

bool identity_named(const char *node) {
        _cleanup_free_ char *pem = NULL, *name = NULL;
        char serial[41];
        uint64_t until;

        return identity_there() && read_file(NODE_DIRECTORY "/node.crt", PEM_MAX, &pem, NULL) >= 0 &&
               certificate_info(pem, &name, serial, &until) >= 0 && strcmp(name, node) == 0;
}

int identity_writable(void) {
        int r = make_directories(PRIMUS_SYSCONFDIR, 0755);

        if (r >= 0 && access(PRIMUS_SYSCONFDIR, W_OK) < 0)
                r = -errno;
        return r < 0 ? fail(JOIN_FAILED, "cannot write to %s: %s; run this as root", PRIMUS_SYSCONFDIR,
                            strerror(-r))
                     : JOIN_OK;
}

int identity_write(const char *ca_pem, const struct certificate *certificate) {
        const struct {
                const char *name, *text;
                mode_t mode;
        } files[] = {
                { "node.key", certificate->key_pem, 0600 },
                { "node.crt", certificate->cert_pem, 0644 },
                { "ca.crt", ca_pem, 0644 },
        };
        _cleanup_free_ char *old_ca = NULL;
        int r;

        (void)read_file(NODE_DIRECTORY "/ca.crt", PEM_MAX, &old_ca, NULL);
        r = make_directories(PRIMUS_SYSCONFDIR, 0755);
        if (r >= 0)
                r = remove_tree(NODE_DIRECTORY_NEW);
        if (r >= 0 && mkdir(NODE_DIRECTORY_NEW, 0755) < 0)
                r = -errno;
        for (size_t i = 0; r >= 0 && i < ELEMENTSOF(files); i++) {
                char path[256];

                snprintf(path, sizeof(path), NODE_DIRECTORY_NEW "/%s", files[i].name);
                r = write_file_atomic(path, files[i].text, strlen(files[i].text), files[i].mode, true);
        }
        if (r >= 0 && chmod(NODE_DIRECTORY_NEW, 0755) < 0)
                r = -errno;
        if (r >= 0 && renameat2(AT_FDCWD, NODE_DIRECTORY_NEW, AT_FDCWD, NODE_DIRECTORY, RENAME_EXCHANGE) < 0)
                r = errno == ENOENT && rename(NODE_DIRECTORY_NEW, NODE_DIRECTORY) >= 0 ? 0 : -errno;
        if (r >= 0 && (!old_ca || strcmp(old_ca, ca_pem) != 0) && unlink(FOLLOWED) < 0 && errno != ENOENT)
                r = -errno;
        /* The token is spent: a power cut must not take what it was spent on. */
        if (r >= 0)
                r = sync_directory_of(NODE_DIRECTORY);
        if (r >= 0)
                r = remove_tree(NODE_DIRECTORY_NEW); /* the old identity, if there was one */
        else
                (void)remove_tree(NODE_DIRECTORY_NEW);
        return r < 0 ? fail(JOIN_FAILED, "cannot write %s: %s", NODE_DIRECTORY, strerror(-r)) : JOIN_OK;
}

char *master_set_by_others(void) {
        _cleanup_free_ char *master = conf_lookup("agentd.conf", "Agent", "Master");

        return master && *master && access(MASTER_DROP_IN, F_OK) < 0 ? TAKE_PTR(master) : NULL;
}

int master_write(const char *host) {
        _cleanup_free_ char *text = NULL;
        int r;

        if (asprintf(&text, "# Written by 'primusctl join'.\n[Agent]\nMaster=%s\n", host) < 0) {
                text = NULL;
                return fail(JOIN_FAILED, "out of memory");
        }
        r = make_directories(PRIMUS_SYSCONFDIR "/agentd.conf.d", 0755);
        if (r >= 0)
                r = write_file_atomic(MASTER_DROP_IN, text, strlen(text), 0644, true);
        return r < 0 ? fail(JOIN_FAILED, "cannot write %s: %s", MASTER_DROP_IN, strerror(-r)) : JOIN_OK;
}
