/* SPDX-License-Identifier: Apache-2.0 */
/* Who vouches for a backup: a MAC of its manifest, and so of all that is in it, with a key of root's. The key
 * is on no command line, in no archive, and out of reach of masterd's user, who may write the archive.
 * Functions that fail say why on standard error and return a negative errno. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SEAL_KEY_FILE PRIMUS_SYSCONFDIR "/backup.key"
#define SEAL_CREDENTIAL "backup.key"
#define SEAL_TEXT_MAX 128u

struct seal_key {
        bool known;
        char id[17]; /* hex, by which people tell two keys apart; opens nothing */
        uint8_t bytes[32];
};
void seal_key_done(struct seal_key *k);

/* The key in the file, which must be ours alone. -ENOENT, without a word: there is none. */
int seal_key_read(const char *path, struct seal_key *ret);
/* Makes one where there is none: 1 it was made, 0 there is one. */
int seal_key_make(const char *path);
/* What a backup is sealed with: the unit's credential where we are not root, else this host's key, made where
 * there is none. Not known: nobody gave us one. */
int seal_key_for_backup(struct seal_key *ret);

/* "primus-backup-mac 1 KEYID MAC\n". */
int seal_make(const struct seal_key *k, const char *text, size_t size, char ret[static SEAL_TEXT_MAX]);

enum seal {
        SEAL_GOOD,
        SEAL_NONE,      /* the backup has none */
        SEAL_NO_KEY,    /* there is no key here to check it with */
        SEAL_OTHER_KEY, /* made with another */
        SEAL_WRONG,     /* made with this key, for other bytes; or nothing that can be read */
};
/* seal: what stands in the archive, ended by NUL; NULL: nothing. ret_id: of the key that it was made with, or
 * "". */
enum seal seal_check(const struct seal_key *k, const char *text, size_t size, const char *seal,
                     char ret_id[static 17]);
