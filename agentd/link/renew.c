/* SPDX-License-Identifier: Apache-2.0 */
/* The node's certificate: loaded from /etc/primus/node, renewed over the link when a third of its life is
 * left. Invariant: at every moment the files on disk, with a node.key.new beside them, hold one certificate
 * and its key. */
#include "agentd/link/renew.h"

#include <string.h>

#include "agentd/core/manager.h"
#include "agentd/link/link.h"
#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "lib/base/format.h"
#include "lib/base/log.h"
#include "lib/base/try.h"
#include "lib/wire/authority.h"
#include "lib/wire/peer.h"
#include "lib/wire/skip.h"

#define NODE_DIR PRIMUS_SYSCONFDIR "/node"
#define CA_FILE NODE_DIR "/ca.crt"
#define CERT_FILE NODE_DIR "/node.crt"
#define KEY_FILE NODE_DIR "/node.key"
#define NEW_KEY_FILE NODE_DIR "/node.key.new"
#define PEM_MAX (64u << 10)
#define RETRY_USEC (UINT64_C(600) * USEC_PER_SEC)
#define WATCH_USEC (UINT64_C(15) * USEC_PER_SEC) /* in which a link comes up where there is a master */
#define WARN_USEC (UINT64_C(86400) * USEC_PER_SEC)
#define CALL_USEC (UINT64_C(60) * USEC_PER_SEC)

int identity_load(struct tls_credentials **ret, char **ret_name) {
        struct tls_credentials *credentials;
        _cleanup_free_ char *pem = NULL;
        char serial[41];
        uint64_t end;
        int r;

        r = tls_credentials_load(CA_FILE, CERT_FILE, KEY_FILE, &credentials);
        if (r == -EKEYREJECTED && tls_credentials_load(CA_FILE, CERT_FILE, NEW_KEY_FILE, &credentials) >= 0) {
                /* The certificate was replaced, its key not yet. */
                r = rename(NEW_KEY_FILE, KEY_FILE) < 0 ? -errno : 0;
                if (r < 0)
                        tls_credentials_free(credentials);
        }
        if (r < 0)
                return log_error_errno(r, "Cannot use this host's identity in " NODE_DIR
                                          " (primusctl join makes it)");
        r = read_file(CERT_FILE, PEM_MAX, &pem, NULL);
        if (r >= 0)
                r = certificate_info(pem, ret_name, serial, &end);
        if (r < 0) {
                tls_credentials_free(credentials);
                return log_error_errno(r, "Cannot read " CERT_FILE);
        }
        *ret = credentials;
        return 0;
}

/* When the certificate should be renewed, on the wall clock. */
static int renewal_time(uint64_t *ret) {
        _cleanup_free_ char *pem = NULL;
        uint64_t from, until;
        int r;

        if ((r = read_file(CERT_FILE, PEM_MAX, &pem, NULL)) < 0 ||
            (r = certificate_validity(pem, &from, &until)) < 0)
                return r;
        /* Of the life that begins when it is issued: a short-lived one would else be due at once. */
        from = MIN(usec_add(from, AUTHORITY_BACKDATE_USEC), until);
        *ret = until - (until - from) / 3;
        return 0;
}

static int set_timer(struct manager *m, uint64_t usec);

/* The authority's certificate that masterd sent with the host's, where that is a new one of the same
 * authority: written first, since the old and the new certificate of this host are good under both. *ca is
 * replaced by it. */
static int install_authority(char **ca, const char *offered) {
        int r;

        if (!offered || strcmp(*ca, offered) == 0)
                return 0;
        r = authority_same_key(*ca, offered);
        if (r <= 0) {
                log_warning("masterd offered the certificate of another authority; " CA_FILE " stays");
                return 0;
        }
        r = write_file_atomic(CA_FILE, offered, strlen(offered), 0644, true);
        if (r < 0)
                return r;
        free(*ca);
        *ca = strdup(offered);
        if (!*ca)
                return -ENOMEM;
        log_info("The authority's certificate in " CA_FILE " was renewed");
        return 0;
}

static int install(struct manager *m, const char *cert_pem, const char *authority_pem) {
        struct tls_credentials *fresh;
        _cleanup_free_ char *ca = NULL;
        int r;

        if ((r = read_file(CA_FILE, PEM_MAX, &ca, NULL)) < 0 ||
            (r = install_authority(&ca, authority_pem)) < 0 ||
            (r = tls_credentials_new(ca, cert_pem, m->renewal_key, &fresh)) < 0)
                return r;
        if ((r = write_file_atomic(NEW_KEY_FILE, m->renewal_key, strlen(m->renewal_key), 0600, true)) < 0 ||
            (r = write_file_atomic(CERT_FILE, cert_pem, strlen(cert_pem), 0644, true)) < 0 ||
            (r = rename(NEW_KEY_FILE, KEY_FILE) < 0 ? -errno : 0) < 0) {
                tls_credentials_free(fresh);
                return r;
        }
        link_set_credentials(m->link, fresh);
        tls_credentials_free(m->credentials);
        m->credentials = fresh;
        return 0;
}

/* What the reply says beside the certificate; borrowed from it. */
static int read_more(sd_bus_message *reply, const char *key, void *userdata) {
        const char **authority = userdata;

        return strcmp(key, "authority") == 0 ? sd_bus_message_read(reply, "v", "s", authority)
                                             : message_skip(reply, "v");
}

static int on_renewed(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        const sd_bus_error *e = sd_bus_message_get_error(reply);
        struct manager *m = userdata;
        _cleanup_free_ char *pem = NULL;
        const char *authority = NULL;
        const void *bytes;
        size_t n;
        int r = 0;

        if (e)
                log_warning("masterd did not renew this host's certificate: %s", e->message ?: e->name);
        else if (sd_bus_message_read_array(reply, 'y', &bytes, &n) <= 0 || n > PEM_MAX ||
                 !(pem = strndup(bytes, n)) || link_read_entries(reply, read_more, &authority) < 0)
                r = -EBADMSG;
        else
                r = install(m, pem, authority);
        if (r < 0)
                log_error_errno(r, "Cannot install the renewed certificate in " NODE_DIR);
        else if (!e)
                log_info("The certificate of this host was renewed");
        m->renewal_key = (free(m->renewal_key), NULL);
        if (e || r < 0)
                (void)set_timer(m, RETRY_USEC);
        else
                (void)renewal_start(m);
        return 0;
}

static int ask_certificate(struct manager *m) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *message = NULL;
        _cleanup_free_ char *csr = NULL;

        m->renewal_key = (free(m->renewal_key), NULL);
        TRY(link_message(m->link, false, "Renew", &message));
        TRY(certificate_request_new(m->node, &m->renewal_key, &csr));
        TRY(sd_bus_message_append_array(message, 'y', csr, strlen(csr)));
        TRY(sd_bus_message_append(message, "a{sv}", 0));
        return sd_bus_call_async(sd_bus_message_get_bus(message), NULL, message, on_renewed, m, CALL_USEC);
}

/* There is still a third of its life for that; behind it only a person can help. */
static void warn_of_end(void) {
        _cleanup_free_ char *pem = NULL;
        char when[FORMAT_TIME_MAX];
        uint64_t from, until;

        if (read_file(CERT_FILE, PEM_MAX, &pem, NULL) < 0 || certificate_validity(pem, &from, &until) < 0)
                return;
        if (until > now_real())
                log_warning("The certificate of this host is good until %s and is to be renewed, but masterd "
                            "is not there",
                            format_time(until, when, sizeof(when)));
        else
                log_warning("The certificate of this host has expired at %s: make a token on the master "
                            "(primusctl token create --replace, with this host's name) and join again here "
                            "(primusctl join MASTER)",
                            format_time(until, when, sizeof(when)));
}

static int on_renewal(sd_event_source *s, uint64_t usec, void *userdata) {
        struct manager *m = userdata;
        int r;

        if (!m->link || !link_bus(m->link)) { /* set again when the link is up */
                warn_of_end();
                return set_timer(m, WARN_USEC);
        }
        r = ask_certificate(m);
        if (r < 0) {
                log_warning_errno(r, "Cannot ask for a new certificate");
                (void)set_timer(m, RETRY_USEC);
        }
        return 0;
}

static int set_timer(struct manager *m, uint64_t usec) {
        int r;

        if (!m->renewal)
                return sd_event_add_time_relative(m->event, &m->renewal, CLOCK_BOOTTIME, usec, 0, on_renewal,
                                                  m);
        r = sd_event_source_set_time_relative(m->renewal, usec);
        return r < 0 ? r : sd_event_source_set_enabled(m->renewal, SD_EVENT_ONESHOT);
}

static int start_timer(struct manager *m, uint64_t at_least) {
        uint64_t at;
        int r = renewal_time(&at);

        if (r < 0)
                return log_warning_errno(r, "Cannot tell when " CERT_FILE " has to be renewed");
        return set_timer(m, MAX(usec_sub(at, now_real()), at_least));
}

int renewal_start(struct manager *m) {
        return start_timer(m, 0);
}

int renewal_watch(struct manager *m) {
        return start_timer(m, WATCH_USEC);
}
