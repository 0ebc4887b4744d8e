/* SPDX-License-Identifier: Apache-2.0 */
/* The host's certificate, as far as its dates: a TLS library would take longer to load than everything else
 * here. Invariant: nothing outside the bytes that were given is read, whatever the lengths in them say. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "lib/base/format.h"
#include "tools/primusctl/doctor/doctor.h"

#define NODE_DIR PRIMUS_SYSCONFDIR "/node"
#define PEM_MAX (64u << 10)
#define DAY (86400 * USEC_PER_SEC)

static int base64_digit(char c) {
        static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        const char *p = c ? strchr(digits, c) : NULL;

        return p ? (int)(p - digits) : -1;
}

/* The first certificate of the text, in place of it. */
static size_t decode(const char *pem, uint8_t *to, size_t size) {
        const char *p = strstr(pem, "-----BEGIN CERTIFICATE-----");
        uint32_t bits = 0;
        unsigned n = 0;
        size_t l = 0;

        for (p = p ? strchr(p, '\n') : NULL; p && *p && *p != '-' && *p != '='; p++) {
                int d = base64_digit(*p);
                if (d < 0)
                        continue;
                bits = bits << 6 | (uint32_t)d;
                if (++n % 4 != 1 && l < size)
                        to[l++] = (uint8_t)(bits >> (6 - 2 * ((n - 1) % 4)));
        }
        return l;
}

struct der {
        const uint8_t *p, *end;
};

/* Steps over the next element; *ret (may be NULL) is its contents. Its tag, or -EBADMSG. */
static int der_next(struct der *d, struct der *ret) {
        size_t left = (size_t)(d->end - d->p), length, head = 2;
        struct der contents;
        int tag;

        if (left < 2)
                return -EBADMSG;
        tag = d->p[0];
        length = d->p[1];
        if (length & 0x80) {
                size_t bytes = length & 0x7f;
                if (bytes == 0 || bytes > 3 || left < 2 + bytes)
                        return -EBADMSG;
                length = 0;
                for (size_t i = 0; i < bytes; i++)
                        length = length << 8 | d->p[2 + i];
                head += bytes;
        }
        if (length > left - head)
                return -EBADMSG;
        contents = (struct der){ d->p + head, d->p + head + length };
        d->p = contents.end;
        if (ret)
                *ret = contents; /* which may be d itself */
        return tag;
}

/* UTCTime "YYMMDDHHMMSSZ", GeneralizedTime "YYYYMMDDHHMMSSZ". */
static int der_time(const struct der *d, int tag, uint64_t *ret) {
        char text[20] = "";
        struct tm tm = {};
        time_t t;

        if ((tag != 0x17 && tag != 0x18) || d->end - d->p >= (ptrdiff_t)sizeof(text))
                return -EBADMSG;
        memcpy(text, d->p, (size_t)(d->end - d->p));
        if (sscanf(text, tag == 0x17 ? "%2d%2d%2d%2d%2d%2dZ" : "%4d%2d%2d%2d%2d%2dZ", &tm.tm_year, &tm.tm_mon,
                   &tm.tm_mday, &tm.tm_hour, &tm.tm_min, &tm.tm_sec) != 6)
                return -EBADMSG;
        tm.tm_year = tag == 0x17 ? tm.tm_year + (tm.tm_year < 50 ? 100 : 0) : tm.tm_year - 1900;
        tm.tm_mon--;
        t = timegm(&tm);
        if (t < 0)
                return -EBADMSG;
        *ret = (uint64_t)t * USEC_PER_SEC;
        return 0;
}

/* When the certificate ends (CLOCK_REALTIME usec), of its PEM text. -EBADMSG. */
static int certificate_end(const char *pem, uint64_t *ret) {
        uint8_t bytes[8192];
        struct der d = { bytes, bytes + decode(pem, bytes, sizeof(bytes)) }, element;
        int tag;

        if (der_next(&d, &d) != 0x30 || der_next(&d, &d) != 0x30) /* Certificate, TBSCertificate */
                return -EBADMSG;
        tag = der_next(&d, NULL);
        if (tag == 0xa0) /* version */
                tag = der_next(&d, NULL);
        if (tag != 0x02 || der_next(&d, NULL) != 0x30 ||
            der_next(&d, NULL) != 0x30 || /* serial, algorithm, issuer */
            der_next(&d, &d) != 0x30 || der_next(&d, NULL) < 0 ||
            (tag = der_next(&d, &element)) < 0) /* not before, not after */
                return -EBADMSG;
        return der_time(&element, tag, ret);
}

/* The cluster's authority: the certificates of all its hosts end with it. */
static void check_authority(struct findings *f, const char *root, uint64_t now) {
        _cleanup_free_ char *pem = NULL;
        char when[FORMAT_TIME_MAX];
        uint64_t end;

        if (read_file_below(root, NODE_DIR "/ca.crt", PEM_MAX, &pem) < 0 || certificate_end(pem, &end) < 0)
                return;
        format_time(end, when, sizeof(when));
        if (end < now + 365 * DAY)
                findings_add(
                        f, end <= now ? FINDING_FAIL : FINDING_WARN, "authority",
                        "docs/operations.md, \"Certificates\"",
                        "the cluster's certificate authority %s %s, and with it every host's certificate",
                        end <= now ? "ended" : "ends", when);
        else
                findings_add(f, FINDING_OK, "authority", NULL, "the cluster's is valid until %s", when);
}

void doctor_certificate(struct findings *f, const char *root, uint64_t now) {
        _cleanup_free_ char *pem = NULL;
        char when[FORMAT_TIME_MAX];
        uint64_t end;
        int r = read_file_below(root, NODE_DIR "/node.crt", PEM_MAX, &pem);

        if (r == -EACCES || r == -EPERM)
                findings_add(f, FINDING_UNKNOWN, "certificate", "sudo primusctl doctor",
                             NODE_DIR " is root's to read");
        else if (r == -ENOENT && doctor_joined(root) != JOINED)
                return; /* which is said */
        else if (r < 0 || certificate_end(pem, &end) < 0)
                findings_add(f, FINDING_FAIL, "certificate",
                             "primusctl join, with a new token (on the master: primusctl token create "
                             "--replace, with this host's name)",
                             NODE_DIR "/node.crt cannot be read");
        else if (end <= now)
                findings_add(
                        f, FINDING_FAIL, "certificate",
                        "primusctl join, with a new token (on the master: primusctl token create "
                        "--replace, with this host's name): this certificate cannot renew itself any more",
                        "expired %s", format_time(end, when, sizeof(when)));
        else if (end - now < 14 * DAY)
                findings_add(f, FINDING_WARN, "certificate",
                             "journalctl -u primus-agentd (it renews with a third of its life left, while "
                             "masterd is there)",
                             "expires %s, and was not renewed", format_time(end, when, sizeof(when)));
        else
                findings_add(f, FINDING_OK, "certificate", NULL, "valid until %s",
                             format_time(end, when, sizeof(when)));
        check_authority(f, root, now);
}
