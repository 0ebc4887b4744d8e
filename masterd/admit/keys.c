/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of submissions. Invariant: a key that names a job is in the batch that has the job, so both are known
 * after a crash, or none. */
#include "masterd/admit/keys.h"

#include <gnutls/crypto.h>
#include <string.h>
#include <uthash.h>
#include <utlist.h>

#include "lib/base/clock.h"
#include "lib/wire/errors.h"
#include "masterd/core/manager.h"

struct submit_key {
        struct user *user;
        char text[KEY_MAX + 1];
        uint8_t digest[STORE_DIGEST_BYTES]; /* of what was submitted */
        uint32_t job;                       /* 0: under way */
        uint64_t at_real;
        struct submit_key *prev, *next; /* by age, the oldest first; not of those under way */
        UT_hash_handle hh;
};

struct user {
        uint32_t uid;
        struct submit_key *by_text, *by_age;
        uint32_t n; /* in by_age */
        UT_hash_handle hh;
};

struct keys {
        struct user *users;
};

bool key_valid(const char *text) {
        size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:@+=/");

        return n > 0 && n <= KEY_MAX && !text[n];
}

int keys_new(struct manager *m) {
        m->keys = calloc(1, sizeof(*m->keys));
        return m->keys ? 0 : -ENOMEM;
}

/* ---- what was submitted ---- */

/* With its length, so that no two lists of texts look alike. */
static void mix_bytes(gnutls_hash_hd_t hash, const void *data, size_t size) {
        uint64_t n = size;

        (void)gnutls_hash(hash, &n, sizeof(n));
        if (size > 0)
                (void)gnutls_hash(hash, data, size);
}

static void mix_text(gnutls_hash_hd_t hash, const char *s) {
        mix_bytes(hash, s ? s : "", s ? strlen(s) : 0);
}

static int submission_digest(const struct submission *s, uint8_t ret[static STORE_DIGEST_BYTES]) {
        gnutls_hash_hd_t hash;
        char *overrides = s->overrides ? json_dumps(s->overrides, JSON_COMPACT | JSON_SORT_KEYS) : NULL;

        if ((s->overrides && !overrides) || gnutls_hash_init(&hash, GNUTLS_DIG_SHA256) < 0) {
                free(overrides);
                return -ENOMEM;
        }
        mix_bytes(hash, s->config, s->config_size);
        mix_text(hash, s->name);
        mix_text(hash, s->savepoint);
        mix_text(hash, overrides);
        mix_text(hash, s->given.cwd);
        mix_text(hash, s->given.bundle);
        for (char **e = s->given.env; e && *e; e++)
                mix_text(hash, *e);
        for (size_t i = 0; i < s->given.n_secrets; i++) {
                mix_text(hash, s->given.secrets[i].name);
                mix_bytes(hash, s->given.secrets[i].data, s->given.secrets[i].size);
        }
        gnutls_hash_deinit(hash, ret);
        free(overrides);
        return 0;
}

/* ---- the tables ---- */

static void key_forget(struct submit_key *k) {
        struct user *u = k->user;

        if (k->job > 0) {
                DL_DELETE(u->by_age, k);
                u->n--;
        }
        HASH_DEL(u->by_text, k);
        free(k);
}

/* A user of whom nothing is remembered is not, either. */
static void user_done(struct keys *keys, struct user *u) {
        if (u->by_text)
                return;
        HASH_DEL(keys->users, u);
        free(u);
}

static void forget_old(struct user *u, uint64_t now) {
        while (u->by_age && (u->n > KEYS_PER_USER || usec_add(u->by_age->at_real, STORE_KEY_USEC) <= now))
                key_forget(u->by_age);
}

static struct user *user_get(struct keys *keys, uint32_t uid) {
        struct user *u;

        HASH_FIND(hh, keys->users, &uid, sizeof(uid), u);
        if (!u) {
                u = calloc(1, sizeof(*u));
                if (!u)
                        return NULL;
                u->uid = uid;
                HASH_ADD(hh, keys->users, uid, sizeof(u->uid), u);
        }
        return u;
}

static struct submit_key *key_add(struct user *u, const char *text,
                                  const uint8_t of[static STORE_DIGEST_BYTES]) {
        struct submit_key *k = calloc(1, sizeof(*k));

        if (!k)
                return NULL;
        k->user = u;
        snprintf(k->text, sizeof(k->text), "%s", text);
        memcpy(k->digest, of, sizeof(k->digest));
        HASH_ADD_STR(u->by_text, text, k);
        return k;
}

static void key_remember(struct submit_key *k, uint32_t job, uint64_t at_real) {
        k->job = job;
        k->at_real = at_real;
        DL_APPEND(k->user->by_age, k);
        k->user->n++;
}

void keys_free(struct manager *m) {
        struct submit_key *k, *next_k;
        struct user *u, *next_u;

        if (!m->keys)
                return;
        HASH_ITER (hh, m->keys->users, u, next_u) {
                HASH_ITER (hh, u->by_text, k, next_k)
                        key_forget(k);
                HASH_DEL(m->keys->users, u);
                free(u);
        }
        free(m->keys);
        m->keys = NULL;
}

static int load_key(void *userdata, const struct submit_key_record *r) {
        struct manager *m = userdata;
        struct user *u = user_get(m->keys, r->user);
        struct submit_key *k;

        if (!key_valid(r->key) || r->job == 0)
                return -EUCLEAN;
        k = u ? key_add(u, r->key, r->digest) : NULL;
        if (!k)
                return -ENOMEM;
        key_remember(k, r->job, r->at_real);
        forget_old(u, now_real());
        return 0;
}

int keys_load(struct manager *m) {
        return store_load_submit_keys(m->store, load_key, m);
}

/* ---- submissions ---- */

int keys_begin(struct manager *m, const struct submission *s, struct submit_key **ret, uint32_t *ret_job,
               sd_bus_error *error) {
        uint8_t mine[STORE_DIGEST_BYTES];
        struct submit_key *k;
        struct user *u;

        *ret = NULL;
        if (!s->key)
                return 0;
        u = user_get(m->keys, s->owner);
        if (!u || submission_digest(s, mine) < 0)
                return -ENOMEM;
        forget_old(u, now_real());
        HASH_FIND_STR(u->by_text, s->key, k);
        if (!k) {
                *ret = key_add(u, s->key, mine);
                return *ret ? 0 : -ENOMEM;
        }
        if (k->job == 0)
                return sd_bus_error_setf(error, ERROR_BUSY,
                                         "A submission with the key '%s' is under way; ask again in a moment",
                                         s->key);
        if (memcmp(k->digest, mine, sizeof(mine)) != 0)
                return sd_bus_error_setf(error, ERROR_CONFLICT,
                                         "The key '%s' was used for job %u, which was submitted as something "
                                         "else; use another key for this one",
                                         s->key, k->job);
        *ret_job = k->job;
        return 1;
}

void keys_end(struct manager *m, struct submit_key *k, const struct job *j) {
        struct submit_key_record record;

        if (!k)
                return;
        if (!j) {
                struct user *u = k->user;

                key_forget(k);
                user_done(m->keys, u);
                return;
        }
        key_remember(k, j->number, j->submitted_real);
        record = (struct submit_key_record){
                .user = k->user->uid, .key = k->text, .job = k->job, .at_real = k->at_real
        };
        memcpy(record.digest, k->digest, sizeof(record.digest));
        store_put_submit_key(m->store, &record);
        manager_touch(m);
        forget_old(k->user, now_real());
}
