/* SPDX-License-Identifier: Apache-2.0 */
/* Invariant: what changes something has passed all checks. What asks only has passed those of the name and of
 * where the request comes from; that others cannot read the answer is the browser's to see to, for there is
 * no header by which an answer is theirs. */
#include "webd/route/guard.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "lib/base/cleanup.h"

/* Without the port. */
static size_t name_length(const char *host) {
        const char *end = *host == '[' ? strchr(host, ']') : NULL;

        return end ? (size_t)(end + 1 - host) : strcspn(host, ":");
}

static bool is_among(const char *const *names, const char *host, size_t n) {
        for (; names && *names; names++)
                if (strlen(*names) == n && strncasecmp(host, *names, n) == 0)
                        return true;
        return false;
}

/* A socket of the person's own, or a tunnel to it: only names that no DNS decides about, and those that an
 * administrator has given to the door. */
static bool host_allowed(const char *host, const char *const *more) {
        static const char *const own[] = { "localhost", "127.0.0.1", "[::1]", "primus", NULL };
        size_t n = name_length(host);

        if (host[n] && (host[n] != ':' || strspn(host + n + 1, "0123456789") != strlen(host + n + 1)))
                return false;
        return is_among(own, host, n) || is_among(more, host, n);
}

static bool asks_only(const char *method) {
        return strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;
}

/* With a charset or without. */
static bool is_json(const char *type) {
        size_t n = strlen("application/json");

        return type && strncasecmp(type, "application/json", n) == 0 && (!type[n] || strchr("; \t", type[n]));
}

static bool same_origin(const char *origin, const char *host) {
        const char *name = strstr(origin, "://");

        return name && strcasecmp(name + 3, host) == 0;
}

static unsigned check_change(const struct guard_request *r, const char **ret_why) {
        if (!is_json(r->content_type)) {
                *ret_why = "The content type has to be application/json";
                return 415;
        }
        if (!r->marker || strcmp(r->marker, "1") != 0) {
                *ret_why = "A request that changes something has the header " GUARD_MARKER ": 1";
                return 403;
        }
        return 0;
}

unsigned guard_check(const struct guard_request *r, const char **ret_why) {
        if (!r->host || !host_allowed(r->host, r->names)) {
                *ret_why = r->reads_only ? "This is no name of this host's page (primus-webd --name)"
                                         : "The host has to be localhost, 127.0.0.1, [::1] or primus";
                return 421;
        }
        if (r->reads_only && !asks_only(r->method)) {
                *ret_why = "Nothing is changed here: this page is for looking";
                return 405;
        }
        if (!r->api)
                return 0;
        /* What a browser sends of itself; other programs do not say it. */
        if (r->fetch_site && strcmp(r->fetch_site, "same-origin") != 0 &&
            strcmp(r->fetch_site, "none") != 0) {
                *ret_why = "The request comes from another site's page";
                return 403;
        }
        if (r->origin && !same_origin(r->origin, r->host)) {
                *ret_why = "The request comes from another origin's page";
                return 403;
        }
        return asks_only(r->method) ? 0 : check_change(r, ret_why);
}
