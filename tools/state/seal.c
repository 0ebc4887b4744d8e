/* SPDX-License-Identifier: Apache-2.0 */
/* Invariant: a key is used only where nobody but its owner can have written or read it. */
#include "tools/state/seal.h"

#include <fcntl.h>
#include <gnutls/crypto.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/file.h"
#include "tools/state/say.h"

#define KEY_TEXT (2u * 32u)
#define HEAD "primus-backup-mac 1 "
/* So that what is sealed here means nothing anywhere else. */
#define DOMAIN "Primus backup, manifest, 1\n"

static void to_hex(const uint8_t *bytes, size_t n, char *ret) {
        for (size_t i = 0; i < n; i++)
                snprintf(ret + 2 * i, 3, "%02x", bytes[i]);
}

static int from_hex(const char *text, size_t n, uint8_t *ret) {
        static const char digits[] = "0123456789abcdef";

        for (size_t i = 0; i < 2 * n; i++) {
                const char *at = text[i] ? strchr(digits, text[i]) : NULL;
                if (!at)
                        return -EINVAL;
                ret[i / 2] = (uint8_t)(i % 2 ? ret[i / 2] << 4 | (at - digits) : at - digits);
        }
        return 0;
}

void seal_key_done(struct seal_key *k) {
        explicit_bzero(k, sizeof(*k));
}

/* ---- the key ---- */

static int key_parse(const char *text, size_t size, struct seal_key *ret) {
        struct seal_key k = { .known = true };
        uint8_t digest[32];

        if (size < KEY_TEXT || strspn(text + KEY_TEXT, "\n") != size - KEY_TEXT ||
            from_hex(text, sizeof(k.bytes), k.bytes) < 0)
                return -EINVAL;
        if (gnutls_hash_fast(GNUTLS_DIG_SHA256, k.bytes, sizeof(k.bytes), digest) < 0)
                return -EIO;
        to_hex(digest, 8, k.id);
        *ret = k;
        seal_key_done(&k);
        return 0;
}

static int read_key(const char *path, bool alone, struct seal_key *ret) {
        _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
        char text[KEY_TEXT + 8] = "";
        struct stat st;
        ssize_t n;
        int r;

        if (fd < 0)
                return errno == ENOENT ? -ENOENT : say(-errno, "cannot read %s: %s", path, strerror(errno));
        if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
                return say(-EINVAL, "%s is no regular file", path);
        if (alone && (st.st_uid != geteuid() || (st.st_mode & 077)))
                return say(
                        -EPERM,
                        "%s is not a key any more: others may have read or written it. Remove it, and make "
                        "new backups; where you know that nobody did: chown root: %s; chmod 600 %s",
                        path, path, path);
        n = read(fd, text, sizeof(text) - 1);
        r = n < 0 ? -errno : key_parse(text, (size_t)n, ret);
        explicit_bzero(text, sizeof(text));
        return r < 0 ? say(r, "%s is no key of backups (64 hexadecimal digits)", path) : 0;
}

int seal_key_read(const char *path, struct seal_key *ret) {
        return read_key(path, true, ret);
}

int seal_key_make(const char *path) {
        _cleanup_free_ char *temporary = NULL;
        _cleanup_close_ int fd = -EBADF;
        char text[KEY_TEXT + 2];
        uint8_t bytes[32];
        int r = 0;

        if (access(path, F_OK) >= 0)
                return 0;
        if (asprintf(&temporary, "%s.XXXXXX", path) < 0)
                return say(-ENOMEM, "out of memory");
        if (gnutls_rnd(GNUTLS_RND_KEY, bytes, sizeof(bytes)) < 0)
                return say(-EIO, "cannot make a key: no random bytes");
        fd = mkostemp(temporary, O_CLOEXEC); /* 0600 */
        if (fd < 0)
                return say(-errno, "cannot make %s: %s", path, strerror(errno));
        to_hex(bytes, sizeof(bytes), text);
        strcpy(text + KEY_TEXT, "\n");
        r = write_all(fd, text, strlen(text));
        explicit_bzero(text, sizeof(text));
        explicit_bzero(bytes, sizeof(bytes));
        if (r >= 0 && fsync(fd) < 0)
                r = -errno;
        /* Whoever comes first: no key is ever replaced. */
        if (r >= 0 && link(temporary, path) < 0)
                r = -errno;
        (void)unlink(temporary);
        if (r == -EEXIST)
                return 0;
        if (r >= 0)
                r = sync_directory_of(path);
        return r < 0 ? say(r, "cannot make %s: %s", path, strerror(-r)) : 1;
}

int seal_key_for_backup(struct seal_key *ret) {
        const char *credentials = getenv("CREDENTIALS_DIRECTORY");
        _cleanup_free_ char *path = NULL;
        int r;

        *ret = (struct seal_key){};
        if (geteuid() == 0) {
                r = seal_key_make(SEAL_KEY_FILE);
                if (r > 0)
                        fprintf(stderr,
                                "%s was made: backups carry a MAC with it, without which a restore takes no "
                                "settings and no hooks. Keep a copy of it, apart from the backups.\n",
                                SEAL_KEY_FILE);
                return r < 0 ? r : seal_key_read(SEAL_KEY_FILE, ret);
        }
        if (!credentials)
                return 0;
        if (asprintf(&path, "%s/" SEAL_CREDENTIAL, credentials) < 0)
                return say(-ENOMEM, "out of memory");
        r = read_key(path, false, ret);
        return r == -ENOENT ? 0 : r;
}

/* ---- the seal ---- */

static int mac_of(const struct seal_key *k, const char *text, size_t size, char ret[static 65]) {
        uint8_t mac[32];
        gnutls_hmac_hd_t h;
        int r;

        if (gnutls_hmac_init(&h, GNUTLS_MAC_SHA256, k->bytes, sizeof(k->bytes)) < 0)
                return -ENOMEM;
        r = gnutls_hmac(h, DOMAIN, strlen(DOMAIN));
        if (r >= 0 && size > 0)
                r = gnutls_hmac(h, text, size);
        gnutls_hmac_deinit(h, mac);
        to_hex(mac, sizeof(mac), ret);
        return r < 0 ? -EIO : 0;
}

int seal_make(const struct seal_key *k, const char *text, size_t size, char ret[static SEAL_TEXT_MAX]) {
        char mac[65];
        int r = mac_of(k, text, size, mac);

        if (r < 0)
                return say(r, "cannot compute a MAC");
        snprintf(ret, SEAL_TEXT_MAX, HEAD "%s %s\n", k->id, mac);
        return 0;
}

enum seal seal_check(const struct seal_key *k, const char *text, size_t size, const char *seal,
                     char ret_id[static 17]) {
        static const char hex[] = "0123456789abcdef";
        char expected[65];
        const char *mac;

        *ret_id = 0;
        if (!seal)
                return SEAL_NONE;
        if (strncmp(seal, HEAD, strlen(HEAD)) != 0)
                return SEAL_WRONG;
        seal += strlen(HEAD);
        mac = seal + 17;
        if (strspn(seal, hex) != 16 || seal[16] != ' ' || strspn(mac, hex) != 64 ||
            strcmp(mac + 64, "\n") != 0)
                return SEAL_WRONG;
        snprintf(ret_id, 17, "%.16s", seal);
        if (!k->known)
                return SEAL_NO_KEY;
        if (strcmp(ret_id, k->id) != 0)
                return SEAL_OTHER_KEY;
        if (mac_of(k, text, size, expected) < 0)
                return SEAL_WRONG;
        return gnutls_memcmp(mac, expected, 64) == 0 ? SEAL_GOOD : SEAL_WRONG;
}
