/* SPDX-License-Identifier: Apache-2.0 */
/* Who the cluster is and who belongs to it. Invariants: a token's secret is never stored, only its hash; a
 * certificate is handed out only when the node's record and the token's spent use are on disk. */
#include "masterd/link/identity.h"

#include <endian.h>
#include <string.h>
#include <sys/random.h>

#include "lib/base/audit.h"
#include "lib/base/clock.h"
#include "lib/base/format.h"
#include "lib/base/log.h"
#include "masterd/caller/audit.h"
#include "masterd/core/listeners.h"
#include "masterd/core/manager.h"
#include "masterd/core/record.h"
#include "masterd/link/link-parts.h"
#include "masterd/link/link.h"
#include "masterd/node/claim.h"

#define KEEP_REVOKED (UINT64_C(800) * 86400 * USEC_PER_SEC)
#define OWN_LIFETIME (UINT64_C(30) * 86400 * USEC_PER_SEC)

static int load_token(void *userdata, const struct token_record *r) {
        struct manager *m = userdata;
        struct token *t = calloc(1, sizeof(*t));

        if (!t)
                return -ENOMEM;
        memcpy(t->id, r->id, sizeof(t->id));
        memcpy(t->secret_hash, r->secret_hash, sizeof(t->secret_hash));
        t->uses_left = r->uses_left;
        t->expires_real = r->expires_real;
        t->from = strdup(r->from);
        t->creator = r->creator;
        snprintf(t->name, sizeof(t->name), "%s", r->name);
        t->replace = r->replace;
        if (!t->from) {
                free(t);
                return -ENOMEM;
        }
        HASH_ADD(hh, m->link->tokens, id, sizeof(t->id), t);
        return 0;
}

static int add_revoked(struct manager *m, const char *serial, const char *node, uint64_t revoked_real) {
        struct revoked *r;

        HASH_FIND_STR(m->link->revoked, serial, r);
        if (!r) {
                r = calloc(1, sizeof(*r));
                if (!r)
                        return -ENOMEM;
                snprintf(r->serial, sizeof(r->serial), "%s", serial);
                HASH_ADD_STR(m->link->revoked, serial, r);
        }
        snprintf(r->node, sizeof(r->node), "%s", node);
        r->revoked_real = revoked_real;
        return 0;
}

static int load_revoked(void *userdata, const struct revoked_record *r) {
        return add_revoked(userdata, r->serial, r->node, r->revoked_real);
}

static int load_id(struct manager *m) {
        _cleanup_free_ void *data = NULL;
        size_t size;
        int r = store_load_meta(m->store, "cluster", &data, &size);

        if (r == -ENOENT) {
                r = sd_id128_randomize(&m->cluster);
                if (r >= 0)
                        store_set_meta(m->store, "cluster", &m->cluster, sizeof(m->cluster));
                return r;
        }
        if (r < 0)
                return r;
        if (size != sizeof(m->cluster))
                return -EUCLEAN;
        memcpy(&m->cluster, data, size);
        return 0;
}

static int raise_term(struct manager *m) {
        _cleanup_free_ void *data = NULL;
        size_t size;
        int r = store_load_meta(m->store, "term", &data, &size);

        if (r < 0 && r != -ENOENT)
                return r;
        if (r >= 0 && size != sizeof(m->term))
                return -EUCLEAN;
        if (r >= 0)
                memcpy(&m->term, data, size);
        m->term = le64toh(m->term);
        /* Higher than ever before, also where the store is an old copy that was put back: agents do not
         * follow a master whose term is lower than one that they have followed. A start takes longer than a
         * microsecond. */
        m->term = MAX(m->term + 1, now_real());
        store_set_meta(m->store, "term", &(uint64_t){ htole64(m->term) }, sizeof(m->term));
        return 0;
}

static int load_authority(struct manager *m) {
        void *cert = NULL, *key = NULL;
        int r = store_load_meta(m->store, "ca.cert", &cert, NULL);

        if (r >= 0)
                r = store_load_meta(m->store, "ca.key", &key, NULL);
        if (r == -ENOENT && !cert) {
                r = authority_new("Primus " PRIMUS_VERSION, now_real(), m->conf.authority_usec, &m->link->ca);
                if (r < 0)
                        return r;
                store_set_meta(m->store, "ca.cert", m->link->ca.cert_pem, strlen(m->link->ca.cert_pem));
                store_set_meta(m->store, "ca.key", m->link->ca.key_pem, strlen(m->link->ca.key_pem));
                log_notice("Made a certificate authority for this new cluster");
                return 0;
        }
        m->link->ca.cert_pem = cert;
        m->link->ca.key_pem = key;
        return r;
}

/* When a quarter of the authority's life is left; 0: it cannot be told, or now. */
static uint64_t authority_due(const struct manager *m) {
        uint64_t from, until;

        if (certificate_validity(m->link->ca.cert_pem, &from, &until) < 0)
                return 0;
        from = MIN(usec_add(from, AUTHORITY_BACKDATE_USEC), until);
        /* One that was renewed is good from the beginning of the first. */
        return until - MIN(until - from, m->conf.authority_usec) / 4;
}

/* The authority lives on under the same key, so that nobody has to join again; agents are given its new
 * certificate with their next own. In the open batch. */
static int renew_authority(struct manager *m) {
        struct certificate fresh;
        char until[FORMAT_TIME_MAX];
        int r;

        if (now_real() < authority_due(m))
                return 0;
        r = authority_renew(&m->link->ca, now_real(), m->conf.authority_usec, &fresh);
        if (r < 0)
                return r;
        store_set_meta(m->store, "ca.cert", fresh.cert_pem, strlen(fresh.cert_pem));
        manager_touch(m);
        log_notice("Renewed the certificate of the cluster's authority, good until %s; agents get it with "
                   "their next one",
                   format_time(fresh.not_after_real, until, sizeof(until)));
        certificate_done(&m->link->ca);
        m->link->ca = fresh;
        return 0;
}

/* Until the next time that something here is to be renewed. */
static uint64_t next_renewal(const struct manager *m) {
        uint64_t due = usec_sub(authority_due(m), now_real());

        return MAX(MIN(due, OWN_LIFETIME / 2), USEC_PER_SEC);
}

/* masterd's own certificate lives in memory only: a new one at every start, and at half of its life. */
static int issue_own(struct manager *m) {
        struct certificate own = {};
        struct tls_credentials *fresh = NULL;
        int r;

        r = authority_issue_master(&m->link->ca, now_real(), OWN_LIFETIME, &own);
        if (r >= 0)
                r = tls_credentials_new(m->link->ca.cert_pem, own.cert_pem, own.key_pem, &fresh);
        certificate_done(&own);
        if (r < 0)
                return r;
        if (m->link->listener)
                listener_set_credentials(m->link->listener, fresh);
        tls_credentials_free(m->link->credentials);
        m->link->credentials = fresh;
        return 0;
}

static int on_renew(sd_event_source *s, uint64_t usec, void *userdata) {
        int r = renew_authority(userdata);

        if (r >= 0)
                r = issue_own(userdata);
        if (r < 0)
                log_warning_errno(r, "Cannot renew the master's certificate, trying again in an hour");
        (void)sd_event_source_set_time_relative(s, r < 0 ? 3600 * USEC_PER_SEC : next_renewal(userdata));
        return sd_event_source_set_enabled(s, SD_EVENT_ONESHOT);
}

int identity_load(struct manager *m) {
        int r = load_id(m);

        if (r >= 0)
                r = raise_term(m);
        if (r >= 0)
                r = load_authority(m);
        if (r >= 0)
                r = store_load_tokens(m->store, load_token, m);
        if (r >= 0)
                r = store_load_revoked(m->store, load_revoked, m);
        if (r < 0)
                return log_error_errno(r, "Cannot load the cluster's identity from the store");
        r = renew_authority(m);
        if (r >= 0)
                r = issue_own(m);
        if (r >= 0)
                r = sd_event_add_time_relative(m->event, &m->link->renew_timer, CLOCK_BOOTTIME,
                                               next_renewal(m), USEC_PER_SEC, on_renew, m);
        if (r < 0)
                return log_error_errno(r, "Cannot issue the master's own certificate");
        manager_touch(m);
        return 0;
}

static void token_free(struct manager *m, struct token *t) {
        HASH_DEL(m->link->tokens, t);
        free(t->from);
        free(t);
}

int link_state_new(struct manager *m) {
        m->link = calloc(1, sizeof(*m->link));
        return m->link ? 0 : -ENOMEM;
}

void link_state_free(struct manager *m) {
        struct token *t, *t_next;
        struct revoked *r, *r_next;

        if (!m->link)
                return;
        HASH_ITER (hh, m->link->tokens, t, t_next)
                token_free(m, t);
        HASH_ITER (hh, m->link->revoked, r, r_next) {
                HASH_DEL(m->link->revoked, r);
                free(r);
        }
        tls_credentials_free(m->link->credentials);
        certificate_done(&m->link->ca);
        sd_event_source_disable_unref(m->link->renew_timer);
        free(m->link);
        m->link = NULL;
}

static int by_expiry(struct token *a, struct token *b) {
        return a->expires_real < b->expires_real ? -1 : a->expires_real > b->expires_real;
}

struct token *identity_tokens(struct manager *m) {
        HASH_SORT(m->link->tokens, by_expiry);
        return m->link->tokens;
}

const char *identity_authority(const struct manager *m) {
        return m->link->ca.cert_pem;
}

static void put_token(struct manager *m, const struct token *t) {
        struct token_record record = { .uses_left = t->uses_left,
                                       .expires_real = t->expires_real,
                                       .from = t->from,
                                       .creator = t->creator,
                                       .name = t->name,
                                       .replace = t->replace };

        memcpy(record.id, t->id, sizeof(record.id));
        memcpy(record.secret_hash, t->secret_hash, sizeof(record.secret_hash));
        store_put_token(m->store, &record);
        manager_touch(m);
}

static void forget_token(struct manager *m, struct token *t) {
        store_delete_token(m->store, t->id);
        token_free(m, t);
        manager_touch(m);
}

int identity_token_new(struct manager *m, const struct token_terms *terms, uint32_t creator,
                       char ret_text[static TOKEN_TEXT_MAX]) {
        struct join_token text;
        uint8_t fingerprint[32];
        struct token *t, *next;
        int r;

        HASH_ITER (hh, m->link->tokens, t, next)
                if (t->expires_real < now_real())
                        forget_token(m, t);
        if (HASH_COUNT(m->link->tokens) >= TOKENS_MAX)
                return -ENOBUFS;
        r = authority_fingerprint(m->link->ca.cert_pem, fingerprint);
        if (r >= 0)
                r = join_token_new(fingerprint, &text);
        if (r >= 0)
                r = join_token_format(&text, ret_text);
        if (r < 0)
                return r;
        t = calloc(1, sizeof(*t));
        if (!t)
                return -ENOMEM;
        memcpy(t->id, text.id, sizeof(t->id));
        join_secret_hash(text.secret, t->secret_hash);
        t->uses_left = terms->uses;
        t->expires_real = usec_add(now_real(), terms->lifetime_usec);
        t->creator = creator;
        snprintf(t->name, sizeof(t->name), "%s", terms->name);
        t->replace = terms->replace;
        t->from = strdup(terms->from);
        if (!t->from) {
                free(t);
                return -ENOMEM;
        }
        HASH_ADD(hh, m->link->tokens, id, sizeof(t->id), t);
        put_token(m, t);
        return 0;
}

char *token_id_format(const struct token *t, char buf[static TOKEN_ID_TEXT_MAX]) {
        return format_hex(t->id, sizeof(t->id), buf);
}

int identity_token_revoke(struct manager *m, const char *id) {
        struct token *t, *next;

        HASH_ITER (hh, m->link->tokens, t, next) {
                char text[TOKEN_ID_TEXT_MAX];
                if (strcmp(token_id_format(t, text), id) == 0) {
                        forget_token(m, t);
                        return 0;
                }
        }
        return -ENOENT;
}

/* Equal without telling by its time how much is. */
static bool equal_secret(const uint8_t a[static 32], const uint8_t b[static 32]) {
        uint8_t difference = 0;

        for (size_t i = 0; i < 32; i++)
                difference |= a[i] ^ b[i];
        return difference == 0;
}

static const char *refuse_join(struct manager *m, const struct join_request *q, struct token **ret) {
        struct addr_cidr from;
        uint8_t hash[32];
        struct token *t;

        HASH_FIND(hh, m->link->tokens, q->id, 8, t);
        join_secret_hash(q->secret, hash);
        if (!t || !equal_secret(hash, t->secret_hash))
                return "the token is not known here (spent, revoked, or of another cluster); make another on "
                       "the master: "
                       "primusctl token create";
        if (t->expires_real < now_real())
                return "the token has expired; make another on the master: primusctl token create";
        if (t->uses_left == 0)
                return "the token has been used as often as it may be";
        if (*t->from && (addr_parse_cidr(t->from, &from) < 0 || !addr_cidr_contains(&from, &q->from)))
                return "the token is not for this address (it was made with --from)";
        if (store_full(m->store))
                return "the master's store is slow or full, try again later";
        *ret = t;
        return NULL;
}

struct granted {
        struct join_pending *pending;
        struct certificate certificate;
};

static void grant_join(struct manager *m, void *data) {
        struct granted *g = data;

        join_answer(g->pending, NULL, g->certificate.cert_pem, m->link->ca.cert_pem);
        certificate_done(&g->certificate);
        free(g);
}

/* In the record of the node, and to people: a name that changes its owner is never given away in silence. */
static void joined(struct manager *m, struct node *node, enum claim claim, const struct token *t,
                   const struct addr *from) {
        char text[160], address[ADDR_TEXT_MAX], id[TOKEN_ID_TEXT_MAX];

        node->joined.real = now_real();
        node->joined.from = *from;
        node->joined.from.port = 0;
        node->joined.by = t->creator;
        node->joined.taken_over = claim == CLAIM_TAKES_OVER;
        record_node(m, node);
        snprintf(text, sizeof(text), "from %s, with the token %s of uid %u", addr_format(from, address),
                 token_id_format(t, id), t->creator);
        log_full(LOG_NOTICE, 0, &(struct log_fields){ .node = node->name }, "Node %s %s %s%s", node->name,
                 claim == CLAIM_NEW     ? "joined"
                 : claim == CLAIM_AGAIN ? "joined again, without having come before,"
                                        : "was taken over",
                 text, claim == CLAIM_TAKES_OVER ? "; the certificate that it had is revoked" : "");
        TELL(m, node_joined, m, node, claim == CLAIM_TAKES_OVER, text);
}

/* Who comes with a token, and what became of it. Strangers may ask as often as they like: their lines are
 * counted. */
static void audit_join(const struct join_request *q, const char *result, const char *arguments) {
        struct audit_line line = AUDIT_LINE_EMPTY;
        struct token asked = {};
        char id[TOKEN_ID_TEXT_MAX], from[ADDR_TEXT_MAX];

        if (strcmp(result, "ok") != 0 && !audit_admit_stranger())
                return;
        memcpy(asked.id, q->id, sizeof(asked.id));
        line.what = line.method = "join";
        line.address = addr_format(&q->from, from);
        line.arguments = arguments;
        line.node = line.object = q->name;
        line.token = token_id_format(&asked, id);
        line.result = result;
        audit_write(&line);
}

void identity_join(struct join_pending *pending, const struct join_request *q, void *userdata) {
        struct manager *m = userdata;
        enum claim claim = CLAIM_NEW;
        struct granted *g = NULL;
        struct token *t = NULL;
        struct node *node;
        const char *why = refuse_join(m, q, &t);
        char from[ADDR_TEXT_MAX], text[CLAIM_TEXT_MAX];
        int r;

        if (!why) {
                node = nodes_get(&m->nodes, q->name);
                claim = claim_judge(node, q->name, t->name, t->replace, &q->from);
                if (claim >= _CLAIM_GRANTED)
                        why = claim_refusal(claim, q->name, t->name, text);
        }
        if (why) {
                audit_join(q, why, NULL);
                join_answer(pending, why, NULL, NULL);
                return;
        }
        g = calloc(1, sizeof(*g));
        r = g ? authority_issue_node(&m->link->ca, q->csr_pem, q->csr_size, q->name, now_real(),
                                     m->conf.certificate_usec, &g->certificate)
              : -ENOMEM;
        if (r >= 0)
                r = nodes_add(&m->nodes, q->name, &node);
        if (r < 0) {
                if (g)
                        certificate_done(&g->certificate);
                free(g);
                log_warning_errno(r, "Cannot issue a certificate for %s (%s)", q->name,
                                  addr_format(&q->from, from));
                audit_join(q, "no certificate", NULL);
                join_answer(pending,
                            r == -EBADMSG ? "the certificate request is not valid"
                                          : "the master cannot issue a certificate now",
                            NULL, NULL);
                return;
        }
        /* A name that joins again gets a new certificate; the old one must not open doors any more. */
        if (node->serial[0])
                (void)identity_revoke(m, node);
        link_drop(node, "the name was given to another host");
        snprintf(node->serial, sizeof(node->serial), "%s", g->certificate.serial_hex);
        joined(m, node, claim, t, &q->from);
        if (t->uses_left != UINT32_MAX)
                t->uses_left--;
        if (t->uses_left == 0)
                forget_token(m, t);
        else
                put_token(m, t);
        audit_join(q, "ok", claim == CLAIM_TAKES_OVER ? "takes-over=yes" : NULL);
        g->pending = pending;
        (void)manager_effect(m, grant_join, g);
}

const char *identity_check(const char *name, const char *serial_hex, void *userdata) {
        struct manager *m = userdata;
        struct revoked *r;

        HASH_FIND_STR(m->link->revoked, serial_hex, r);
        if (r && r->revoked_real > 0)
                return *r->node ? "the certificate was revoked (the node joined again, or has a newer one)"
                                : peer_removed;
        return nodes_get(&m->nodes, name) ? NULL : "no node of this name belongs to the cluster";
}

/* Whose a certificate is that was revoked with its node: nobody's. The host that comes with it is told, and
 * stops what it runs; one that comes with a certificate that has a successor, or whose name joined again, is
 * not. */
#define REMOVED ""

/* revoked_real 0: it has a successor that has not been seen. */
static int record_revoked(struct manager *m, const char *node, const char *serial, uint64_t revoked_real) {
        struct revoked_record record = { .serial = serial,
                                         .node = node,
                                         .revoked_real = revoked_real,
                                         /* It may have been issued when CertificateSec= was longer. */
                                         .not_after_real = usec_add(
                                                 now_real(), MAX(m->conf.certificate_usec, KEEP_REVOKED)) };
        int r = add_revoked(m, serial, node, revoked_real);

        if (r < 0)
                return r;
        store_put_revoked(m->store, &record);
        manager_touch(m);
        return 0;
}

int identity_renew(struct manager *m, struct node *node, const char *csr, size_t size,
                   struct certificate *ret) {
        uint64_t pause = MIN(m->conf.certificate_usec / 100, 3600 * USEC_PER_SEC);
        int r;

        /* Each one is a signature and a record. */
        if (node->renewed_boot > 0 && now_boot() < usec_add(node->renewed_boot, pause))
                return -EBUSY;
        node->renewed_boot = now_boot();
        r = authority_issue_node(&m->link->ca, csr, size, node->name, now_real(), m->conf.certificate_usec,
                                 ret);
        /* The answer may get lost: the old certificate is good until the agent comes with the new one. */
        if (r >= 0 && node->serial[0]) {
                r = record_revoked(m, node->name, node->serial, 0);
                if (r < 0)
                        certificate_done(ret);
        }
        if (r < 0)
                return r;
        snprintf(node->serial, sizeof(node->serial), "%s", ret->serial_hex);
        record_node(m, node);
        return 0;
}

/* as: of whom, or REMOVED. */
static int revoke_superseded(struct manager *m, const struct node *node, const char *as) {
        struct revoked *e, *next;
        int r = 0;

        HASH_ITER (hh, m->link->revoked, e, next)
                if (e->revoked_real == 0 && strcmp(e->node, node->name) == 0 && r >= 0)
                        r = record_revoked(m, as, e->serial, now_real());
        return r;
}

/* A good certificate of ours that the store does not know was issued after the backup that it was restored
 * from: it is the node's latest, and is written down, so that it can be revoked one day. */
static void adopt(struct manager *m, struct node *node, const char *serial_hex) {
        struct revoked *known;

        HASH_FIND_STR(m->link->revoked, serial_hex, known);
        if (known || (node->serial[0] && record_revoked(m, node->name, node->serial, 0) < 0))
                return;
        log_notice("The certificate of %s was issued after this state was backed up; taken over", node->name);
        snprintf(node->serial, sizeof(node->serial), "%s", serial_hex);
}

void identity_seen(struct manager *m, struct node *node, const char *serial_hex) {
        if (strcmp(serial_hex, node->serial) != 0)
                adopt(m, node, serial_hex);
        if (strcmp(serial_hex, node->serial) == 0)
                (void)revoke_superseded(m, node, node->name);
}

int identity_revoke(struct manager *m, struct node *node) {
        int r = revoke_superseded(m, node, node->name);

        return r < 0 ? r : record_revoked(m, node->name, node->serial, now_real());
}

int identity_remove(struct manager *m, struct node *node) {
        int r = revoke_superseded(m, node, REMOVED);

        return r < 0 ? r : record_revoked(m, REMOVED, node->serial, now_real());
}
