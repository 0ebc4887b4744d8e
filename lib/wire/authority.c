/* SPDX-License-Identifier: Apache-2.0 */
/* The cluster's CA: makes its certificate, masterd's and the nodes'. Invariant: what a certificate may be
 * used for follows from who asked (EKU), the name in it from the caller; nothing of a request but its public
 * key is taken over. */
#include "lib/wire/authority.h"

#include <gnutls/abstract.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/names.h"
#include "lib/base/utf8.h"

#define SERIAL_BYTES 16u
#define REQUEST_MAX 8192u
#define COMMON_NAME_MAX 64u

DEFINE_CLEANUP(gnutls_x509_crt_t, gnutls_x509_crt_deinit)
DEFINE_CLEANUP(gnutls_x509_crq_t, gnutls_x509_crq_deinit)
DEFINE_CLEANUP(gnutls_x509_privkey_t, gnutls_x509_privkey_deinit)
DEFINE_CLEANUP(gnutls_pubkey_t, gnutls_pubkey_deinit)

void certificate_done(struct certificate *c) {
        free(c->cert_pem);
        if (c->key_pem)
                explicit_bzero(c->key_pem, strlen(c->key_pem));
        free(c->key_pem);
        *c = (struct certificate){};
}

/* GnuTLS's own errors have no errno: out of memory is told apart, the rest is what the caller says it means.
 */
static int tls_errno(int r, int otherwise) {
        return r == GNUTLS_E_MEMORY_ERROR ? -ENOMEM : otherwise;
}

/* Turns GnuTLS's datum into a string of ours. */
static int take_text(gnutls_datum_t *d, char **ret) {
        char *s = strndup((const char *)d->data, d->size);
        gnutls_memset(d->data, 0, d->size);
        gnutls_free(d->data);
        if (!s)
                return -ENOMEM;
        *ret = s;
        return 0;
}

static int export_cert(gnutls_x509_crt_t crt, char **ret) {
        gnutls_datum_t d = {};
        int r = gnutls_x509_crt_export2(crt, GNUTLS_X509_FMT_PEM, &d);
        return r < 0 ? tls_errno(r, -EIO) : take_text(&d, ret);
}

static int export_key(gnutls_x509_privkey_t key, char **ret) {
        gnutls_datum_t d = {};
        int r = gnutls_x509_privkey_export2_pkcs8(key, GNUTLS_X509_FMT_PEM, NULL, GNUTLS_PKCS_PLAIN, &d);
        return r < 0 ? tls_errno(r, -EIO) : take_text(&d, ret);
}

static int key_new(gnutls_x509_privkey_t *ret) {
        _cleanup_(gnutls_x509_privkey_deinit_p) gnutls_x509_privkey_t key = NULL;
        int r = gnutls_x509_privkey_init(&key);
        if (r >= 0)
                r = gnutls_x509_privkey_generate(key, GNUTLS_PK_ECDSA,
                                                 GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0);
        if (r < 0)
                return tls_errno(r, -EIO);
        *ret = TAKE_PTR(key);
        return 0;
}

static int import_cert(const char *pem, gnutls_x509_crt_t *ret) {
        _cleanup_(gnutls_x509_crt_deinit_p) gnutls_x509_crt_t crt = NULL;
        const gnutls_datum_t d = { .data = (unsigned char *)pem, .size = (unsigned)strlen(pem) };
        int r = gnutls_x509_crt_init(&crt);
        if (r >= 0)
                r = gnutls_x509_crt_import(crt, &d, GNUTLS_X509_FMT_PEM);
        if (r < 0)
                return tls_errno(r, -EBADMSG);
        *ret = TAKE_PTR(crt);
        return 0;
}

static int import_key(const char *pem, gnutls_x509_privkey_t *ret) {
        _cleanup_(gnutls_x509_privkey_deinit_p) gnutls_x509_privkey_t key = NULL;
        const gnutls_datum_t d = { .data = (unsigned char *)pem, .size = (unsigned)strlen(pem) };
        int r = gnutls_x509_privkey_init(&key);
        if (r >= 0)
                r = gnutls_x509_privkey_import(key, &d, GNUTLS_X509_FMT_PEM);
        if (r < 0)
                return tls_errno(r, -EBADMSG);
        *ret = TAKE_PTR(key);
        return 0;
}

static void write_hex(const uint8_t *bytes, size_t n, char *ret) {
        static const char digits[] = "0123456789abcdef";
        for (size_t i = 0; i < n; i++) {
                ret[2 * i] = digits[bytes[i] >> 4];
                ret[2 * i + 1] = digits[bytes[i] & 15];
        }
        ret[2 * n] = '\0';
}

/* ---- making certificates ---- */

struct certificate_plan {
        const char *common_name;
        const char *purpose; /* the only extended key usage; NULL: a CA */
        uint64_t now_real;
        uint64_t not_after_real;
};

static int set_identity(gnutls_x509_crt_t crt, const struct certificate_plan *plan,
                        char ret_serial_hex[static 41]) {
        uint8_t serial[SERIAL_BYTES];
        int r = gnutls_rnd(GNUTLS_RND_NONCE, serial, sizeof serial);
        if (r < 0)
                return r;
        serial[0] = (uint8_t)((serial[0] & 0x7f) | 0x40); /* positive, and of one length */
        write_hex(serial, sizeof serial, ret_serial_hex);
        if ((r = gnutls_x509_crt_set_version(crt, 3)) < 0 ||
            (r = gnutls_x509_crt_set_serial(crt, serial, sizeof serial)) < 0 ||
            (r = gnutls_x509_crt_set_dn_by_oid(crt, GNUTLS_OID_X520_ORGANIZATION_NAME, 0, "Primus", 6)) < 0 ||
            (r = gnutls_x509_crt_set_dn_by_oid(crt, GNUTLS_OID_X520_COMMON_NAME, 0, plan->common_name,
                                               (unsigned)strlen(plan->common_name))) < 0)
                return r;
        uint64_t from = usec_sub(plan->now_real, AUTHORITY_BACKDATE_USEC);
        if ((r = gnutls_x509_crt_set_activation_time(crt, (time_t)(from / USEC_PER_SEC))) < 0)
                return r;
        return gnutls_x509_crt_set_expiration_time(crt, (time_t)(plan->not_after_real / USEC_PER_SEC));
}

static int set_usage(gnutls_x509_crt_t crt, const struct certificate_plan *plan) {
        int r;
        if (!plan->purpose) {
                if ((r = gnutls_x509_crt_set_basic_constraints(crt, 1, 0)) < 0)
                        return r;
                return gnutls_x509_crt_set_key_usage(crt, GNUTLS_KEY_KEY_CERT_SIGN | GNUTLS_KEY_CRL_SIGN);
        }
        if ((r = gnutls_x509_crt_set_basic_constraints(crt, 0, -1)) < 0 ||
            (r = gnutls_x509_crt_set_key_usage(crt, GNUTLS_KEY_DIGITAL_SIGNATURE)) < 0)
                return r;
        return gnutls_x509_crt_set_key_purpose_oid(crt, plan->purpose, 1);
}

static int set_key_id(gnutls_x509_crt_t crt, gnutls_x509_crt_t issuer) {
        uint8_t id[64];
        size_t size = sizeof id;
        int r = gnutls_x509_crt_get_key_id(crt, GNUTLS_KEYID_USE_SHA256, id, &size);
        if (r < 0 || (r = gnutls_x509_crt_set_subject_key_id(crt, id, size)) < 0)
                return r;
        if (issuer == crt)
                return 0;
        size = sizeof id;
        unsigned critical;
        if ((r = gnutls_x509_crt_get_subject_key_id(issuer, id, &size, &critical)) < 0)
                return r;
        return gnutls_x509_crt_set_authority_key_id(crt, id, size);
}

/* Completes and signs crt, whose public key is set. issuer may be crt itself. */
static int finish_certificate(gnutls_x509_crt_t crt, const struct certificate_plan *plan,
                              gnutls_x509_crt_t issuer, gnutls_x509_privkey_t issuer_key,
                              struct certificate *ret) {
        _cleanup_(certificate_done) struct certificate c = { .not_after_real = plan->not_after_real };
        int r;
        if ((r = set_identity(crt, plan, c.serial_hex)) < 0 || (r = set_usage(crt, plan)) < 0 ||
            (r = set_key_id(crt, issuer)) < 0 ||
            (r = gnutls_x509_crt_sign2(crt, issuer, issuer_key, GNUTLS_DIG_SHA256, 0)) < 0)
                return tls_errno(r, -EIO);
        if ((r = export_cert(crt, &c.cert_pem)) < 0)
                return r;
        *ret = c;
        c = (struct certificate){};
        return 0;
}

static int own_new(const struct certificate_plan *plan, gnutls_x509_crt_t issuer,
                   gnutls_x509_privkey_t issuer_key, struct certificate *ret) {
        _cleanup_(gnutls_x509_crt_deinit_p) gnutls_x509_crt_t crt = NULL;
        _cleanup_(gnutls_x509_privkey_deinit_p) gnutls_x509_privkey_t key = NULL;
        _cleanup_(certificate_done) struct certificate c = {};
        int r = key_new(&key);
        if (r < 0)
                return r;
        if ((r = gnutls_x509_crt_init(&crt)) < 0 || (r = gnutls_x509_crt_set_key(crt, key)) < 0)
                return tls_errno(r, -EIO);
        if ((r = finish_certificate(crt, plan, issuer ? issuer : crt, issuer_key ? issuer_key : key, &c)) <
                    0 ||
            (r = export_key(key, &c.key_pem)) < 0)
                return r;
        *ret = c;
        c = (struct certificate){};
        return 0;
}

int authority_new(const char *cluster_name, uint64_t now_real, uint64_t lifetime_usec,
                  struct certificate *ret_ca) {
        char cn[COMMON_NAME_MAX + 1] = "Primus CA of ";
        size_t n = strlen(cn);
        utf8_clean(cluster_name, strlen(cluster_name), cn + n, sizeof cn - n);
        const struct certificate_plan plan = {
                .common_name = cn,
                .now_real = now_real,
                .not_after_real = usec_add(now_real, lifetime_usec),
        };
        return own_new(&plan, NULL, NULL, ret_ca);
}

struct issuer {
        gnutls_x509_crt_t crt;
        gnutls_x509_privkey_t key;
        uint64_t not_after_real;
};

static void issuer_done(struct issuer *i) {
        gnutls_x509_crt_deinit_p(&i->crt);
        gnutls_x509_privkey_deinit_p(&i->key);
}

static int issuer_load(const struct certificate *ca, struct issuer *ret) {
        if (!ca->cert_pem || !ca->key_pem)
                return -EINVAL;
        int r = import_cert(ca->cert_pem, &ret->crt);
        if (r < 0 || (r = import_key(ca->key_pem, &ret->key)) < 0)
                return r;
        ret->not_after_real = (uint64_t)gnutls_x509_crt_get_expiration_time(ret->crt) * USEC_PER_SEC;
        return 0;
}

int authority_renew(const struct certificate *ca, uint64_t now_real, uint64_t lifetime_usec,
                    struct certificate *ret_ca) {
        _cleanup_(issuer_done) struct issuer old = {};
        _cleanup_(gnutls_x509_crt_deinit_p) gnutls_x509_crt_t crt = NULL;
        _cleanup_(certificate_done) struct certificate c = {};
        char cn[COMMON_NAME_MAX + 1];
        size_t size = sizeof cn;
        int r = issuer_load(ca, &old);
        if (r < 0)
                return r;
        if ((r = gnutls_x509_crt_get_dn_by_oid(old.crt, GNUTLS_OID_X520_COMMON_NAME, 0, 0, cn, &size)) < 0)
                return tls_errno(r, -EBADMSG);
        time_t from = gnutls_x509_crt_get_activation_time(old.crt);
        if (from < 0)
                return -EBADMSG;
        /* From when the old one was good: one that was made while the clock was ahead would else be of no use
         * once it is right again. */
        const struct certificate_plan plan = {
                .common_name = cn,
                .now_real = MIN(now_real, (uint64_t)from * USEC_PER_SEC + AUTHORITY_BACKDATE_USEC),
                .not_after_real = usec_add(now_real, lifetime_usec),
        };
        if ((r = gnutls_x509_crt_init(&crt)) < 0 || (r = gnutls_x509_crt_set_key(crt, old.key)) < 0)
                return tls_errno(r, -EIO);
        if ((r = finish_certificate(crt, &plan, crt, old.key, &c)) < 0)
                return r;
        c.key_pem = strdup(ca->key_pem);
        if (!c.key_pem)
                return -ENOMEM;
        *ret_ca = c;
        c = (struct certificate){};
        return 0;
}

static int key_id(const char *pem, uint8_t id[static 64], size_t *ret_size) {
        _cleanup_(gnutls_x509_crt_deinit_p) gnutls_x509_crt_t crt = NULL;
        int r = import_cert(pem, &crt);
        *ret_size = 64;
        if (r < 0)
                return r;
        r = gnutls_x509_crt_get_key_id(crt, GNUTLS_KEYID_USE_SHA256, id, ret_size);
        return r < 0 ? tls_errno(r, -EBADMSG) : 0;
}

int authority_same_key(const char *a_pem, const char *b_pem) {
        uint8_t a[64], b[64];
        size_t a_size, b_size;
        int r = key_id(a_pem, a, &a_size);
        if (r < 0 || (r = key_id(b_pem, b, &b_size)) < 0)
                return r;
        return a_size == b_size && memcmp(a, b, a_size) == 0;
}

int authority_issue_master(const struct certificate *ca, uint64_t now_real, uint64_t lifetime_usec,
                           struct certificate *ret) {
        _cleanup_(issuer_done) struct issuer issuer = {};
        int r = issuer_load(ca, &issuer);
        if (r < 0)
                return r;
        const struct certificate_plan plan = {
                .common_name = AUTHORITY_MASTER_NAME,
                .purpose = GNUTLS_KP_TLS_WWW_SERVER,
                .now_real = now_real,
                .not_after_real = MIN(usec_add(now_real, lifetime_usec), issuer.not_after_real),
        };
        return own_new(&plan, issuer.crt, issuer.key, ret);
}

/* The request's public key, once the request proves that its maker has the private one. ECDSA of at most 521
 * bits: a huge RSA key would make every later handshake expensive. */
static int request_key(const char *csr_pem, size_t csr_size, gnutls_pubkey_t *ret) {
        _cleanup_(gnutls_x509_crq_deinit_p) gnutls_x509_crq_t crq = NULL;
        _cleanup_(gnutls_pubkey_deinit_p) gnutls_pubkey_t key = NULL;
        const gnutls_datum_t d = { .data = (unsigned char *)csr_pem, .size = (unsigned)csr_size };
        unsigned bits = 0;
        if (csr_size == 0 || csr_size > REQUEST_MAX)
                return -EBADMSG;
        int r;
        if ((r = gnutls_x509_crq_init(&crq)) < 0 || (r = gnutls_pubkey_init(&key)) < 0)
                return -ENOMEM;
        if ((r = gnutls_x509_crq_import(crq, &d, GNUTLS_X509_FMT_PEM)) < 0 ||
            (r = gnutls_x509_crq_get_pk_algorithm(crq, &bits)) < 0)
                return tls_errno(r, -EBADMSG);
        if (r != GNUTLS_PK_ECDSA || bits < 256 || bits > 521)
                return -EBADMSG;
        if ((r = gnutls_x509_crq_verify(crq, 0)) < 0 || (r = gnutls_pubkey_import_x509_crq(key, crq, 0)) < 0)
                return tls_errno(r, -EBADMSG);
        *ret = TAKE_PTR(key);
        return 0;
}

int authority_issue_node(const struct certificate *ca, const char *csr_pem, size_t csr_size, const char *name,
                         uint64_t now_real, uint64_t lifetime_usec, struct certificate *ret) {
        _cleanup_(issuer_done) struct issuer issuer = {};
        _cleanup_(gnutls_x509_crt_deinit_p) gnutls_x509_crt_t crt = NULL;
        _cleanup_(gnutls_pubkey_deinit_p) gnutls_pubkey_t key = NULL;
        if (!node_name_valid(name) || strcmp(name, AUTHORITY_MASTER_NAME) == 0)
                return -EINVAL;
        int r = request_key(csr_pem, csr_size, &key);
        if (r < 0 || (r = issuer_load(ca, &issuer)) < 0)
                return r;
        if ((r = gnutls_x509_crt_init(&crt)) < 0 || (r = gnutls_x509_crt_set_pubkey(crt, key)) < 0)
                return tls_errno(r, -EBADMSG);
        const struct certificate_plan plan = {
                .common_name = name,
                .purpose = GNUTLS_KP_TLS_WWW_CLIENT,
                .now_real = now_real,
                .not_after_real = MIN(usec_add(now_real, lifetime_usec), issuer.not_after_real),
        };
        return finish_certificate(crt, &plan, issuer.crt, issuer.key, ret);
}

/* ---- requests and reading ---- */

int certificate_request_new(const char *name, char **ret_key_pem, char **ret_csr_pem) {
        _cleanup_(gnutls_x509_privkey_deinit_p) gnutls_x509_privkey_t key = NULL;
        _cleanup_(gnutls_x509_crq_deinit_p) gnutls_x509_crq_t crq = NULL;
        _cleanup_(certificate_done) struct certificate c = {};
        gnutls_datum_t d = {};
        if (!node_name_valid(name))
                return -EINVAL;
        int r = key_new(&key);
        if (r < 0)
                return r;
        if ((r = gnutls_x509_crq_init(&crq)) < 0 || (r = gnutls_x509_crq_set_version(crq, 1)) < 0 ||
            (r = gnutls_x509_crq_set_dn_by_oid(crq, GNUTLS_OID_X520_COMMON_NAME, 0, name,
                                               (unsigned)strlen(name))) < 0 ||
            (r = gnutls_x509_crq_set_key(crq, key)) < 0 ||
            (r = gnutls_x509_crq_sign2(crq, key, GNUTLS_DIG_SHA256, 0)) < 0 ||
            (r = gnutls_x509_crq_export2(crq, GNUTLS_X509_FMT_PEM, &d)) < 0)
                return tls_errno(r, -EIO);
        if ((r = take_text(&d, &c.cert_pem)) < 0 || (r = export_key(key, &c.key_pem)) < 0)
                return r;
        *ret_csr_pem = TAKE_PTR(c.cert_pem);
        *ret_key_pem = TAKE_PTR(c.key_pem);
        return 0;
}

int certificate_info(const char *cert_pem, char **ret_name, char ret_serial_hex[static 41],
                     uint64_t *ret_not_after_real) {
        _cleanup_(gnutls_x509_crt_deinit_p) gnutls_x509_crt_t crt = NULL;
        char cn[256];
        uint8_t serial[20];
        size_t size = sizeof cn, serial_size = sizeof serial;
        int r = import_cert(cert_pem, &crt);
        if (r < 0)
                return r;
        if ((r = gnutls_x509_crt_get_dn_by_oid(crt, GNUTLS_OID_X520_COMMON_NAME, 0, 0, cn, &size)) < 0 ||
            (r = gnutls_x509_crt_get_serial(crt, serial, &serial_size)) < 0)
                return tls_errno(r, -EBADMSG);
        time_t t = gnutls_x509_crt_get_expiration_time(crt);
        if (strlen(cn) != size || t < 0)
                return -EBADMSG;
        char *name = strdup(cn);
        if (!name)
                return -ENOMEM;
        *ret_name = name;
        write_hex(serial, serial_size, ret_serial_hex);
        *ret_not_after_real = (uint64_t)t * USEC_PER_SEC;
        return 0;
}

int certificate_validity(const char *cert_pem, uint64_t *ret_from_real, uint64_t *ret_until_real) {
        _cleanup_(gnutls_x509_crt_deinit_p) gnutls_x509_crt_t crt = NULL;
        int r = import_cert(cert_pem, &crt);
        if (r < 0)
                return r;
        time_t from = gnutls_x509_crt_get_activation_time(crt),
               until = gnutls_x509_crt_get_expiration_time(crt);
        if (from < 0 || until < from)
                return -EBADMSG;
        *ret_from_real = (uint64_t)from * USEC_PER_SEC;
        *ret_until_real = (uint64_t)until * USEC_PER_SEC;
        return 0;
}

int authority_fingerprint(const char *ca_cert_pem, uint8_t ret[static 32]) {
        _cleanup_(gnutls_x509_crt_deinit_p) gnutls_x509_crt_t crt = NULL;
        size_t size = 32;
        int r = import_cert(ca_cert_pem, &crt);
        if (r < 0)
                return r;
        r = gnutls_x509_crt_get_fingerprint(crt, GNUTLS_DIG_SHA256, ret, &size);
        return r < 0 ? tls_errno(r, -EBADMSG) : 0;
}
