/* SPDX-License-Identifier: Apache-2.0 */
/* org.primus.Master1.Manager: tokens, with which hosts join. Invariant: what is listed opens no door. */
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/names.h"
#include "lib/base/utf8.h"
#include "lib/wire/errors.h"
#include "masterd/api/api.h"
#include "masterd/api/options.h"
#include "masterd/caller/audit.h"
#include "masterd/caller/authorize.h"
#include "masterd/caller/reply.h"
#include "masterd/core/manager.h"
#include "masterd/link/identity.h"

struct token_options {
        uint32_t uses;
        uint64_t expires;
        const char *from, *name;
        bool replace;
};

static const struct call_option token_options[] = {
        { "uses", 'u', offsetof(struct token_options, uses), NULL },
        { "expires", 't', offsetof(struct token_options, expires), NULL },
        { "from", 's', offsetof(struct token_options, from), NULL },
        { "name", 's', offsetof(struct token_options, name), NULL },
        { "replace", 'b', offsetof(struct token_options, replace), NULL },
        { NULL },
};

/* The id of a token, which opens nothing, and by which its uses are found. */
static void note_token(sd_bus_message *call, const char *text) {
        struct join_token token;
        struct token t = {};
        char id[TOKEN_ID_TEXT_MAX];

        if (join_token_parse(text, &token) < 0)
                return;
        memcpy(t.id, token.id, sizeof(t.id));
        explicit_bzero(&token, sizeof(token));
        audit_note(call, "token", token_id_format(&t, id));
}

static int create_token(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        struct manager *m = userdata;
        struct token_options o = { .uses = 1, .expires = 3600 * USEC_PER_SEC, .from = "", .name = "" };
        char text[TOKEN_TEXT_MAX];
        struct addr_cidr cidr;
        sd_bus_message *reply = NULL;
        int r = options_read(call, "CreateToken", "option", token_options, &o, error);

        if (r < 0)
                return r;
        if (o.uses < 1 || o.uses > TOKEN_USES_MAX || o.expires < USEC_PER_SEC ||
            o.expires > 365 * 86400 * USEC_PER_SEC)
                return sd_bus_error_setf(error, SD_BUS_ERROR_INVALID_ARGS,
                                         "uses: 1 to %u; expires: one second to one year", TOKEN_USES_MAX);
        if (*o.from && addr_parse_cidr(o.from, &cidr) < 0)
                return sd_bus_error_setf(error, SD_BUS_ERROR_INVALID_ARGS,
                                         "from: '%.*s' is no address or block like 192.0.2.0/24",
                                         utf8_fit(o.from, 64), o.from);
        if (*o.name && !node_name_valid(o.name))
                return sd_bus_error_setf(error, SD_BUS_ERROR_INVALID_ARGS,
                                         "name: '%.*s' cannot be a node's name: lower case letters, digits, "
                                         "'-' and '.', at most 64",
                                         utf8_fit(o.name, 64), o.name);
        if (*o.name ? o.uses > 1 : o.replace)
                return sd_bus_error_set(error, SD_BUS_ERROR_INVALID_ARGS,
                                        *o.name ? "name: a token for one name is good for one host (uses)"
                                                : "replace: which node is to be replaced, name has to say");
        r = identity_token_new(m,
                               &(struct token_terms){ .uses = o.uses,
                                                      .lifetime_usec = o.expires,
                                                      .from = o.from,
                                                      .name = o.name,
                                                      .replace = o.replace },
                               uid, text);
        if (r == -ENOBUFS)
                return sd_bus_error_setf(error, ERROR_REFUSED, "There are %u valid tokens already",
                                         TOKENS_MAX);
        if (r >= 0)
                r = sd_bus_message_new_method_return(call, &reply);
        if (r >= 0)
                r = sd_bus_message_append(reply, "s", text);
        if (r >= 0)
                note_token(call, text);
        explicit_bzero(text, sizeof(text));
        if (r < 0) {
                sd_bus_message_unref(reply);
                return r;
        }
        /* The token is for its creator's eyes: bus monitors need privileges of their own, but say it all the
         * same. */
        (void)sd_bus_message_sensitive(reply);
        return manager_reply_later(m, reply);
}

static int append_token(sd_bus_message *reply, const struct token *t) {
        char id[TOKEN_ID_TEXT_MAX];
        int r = sd_bus_message_open_container(reply, 'r', "sutsua{sv}");

        if (r >= 0)
                r = sd_bus_message_append(reply, "sutsu", token_id_format(t, id), t->uses_left,
                                          t->expires_real, t->from, t->creator);
        if (r >= 0)
                r = sd_bus_message_open_container(reply, 'a', "{sv}");
        if (r >= 0 && *t->name)
                r = sd_bus_message_append(reply, "{sv}{sv}", "name", "s", t->name, "replace", "b",
                                          (int)t->replace);
        if (r >= 0)
                r = sd_bus_message_close_container(reply);
        return r < 0 ? r : sd_bus_message_close_container(reply);
}

static int list_tokens(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        struct manager *m = userdata;
        sd_bus_message *reply = NULL;
        const struct token *t;
        uint64_t now = now_real();
        int r;

        r = reply_list_new(call, "sutsua{sv}", &reply);
        for (t = identity_tokens(m); t; t = t->hh.next)
                if (r >= 0 && t->expires_real >= now)
                        r = append_token(reply, t);
        return reply_list_send(reply, r);
}

static int revoke_token(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        struct manager *m = userdata;
        sd_bus_message *reply = NULL;
        const char *id;
        int r = sd_bus_message_read_basic(call, 's', &id);

        if (r < 0)
                return r;
        r = sd_bus_message_new_method_return(call, &reply);
        if (r < 0)
                return r;
        r = identity_token_revoke(m, id);
        if (r < 0) {
                sd_bus_message_unref(reply);
                return r != -ENOENT ? r
                                    : sd_bus_error_setf(error, ERROR_NOT_FOUND,
                                                        "There is no token '%.*s' (spent, expired, or "
                                                        "revoked)",
                                                        utf8_fit(id, 64), id);
        }
        log_notice("Token %s is revoked by uid %u", id, uid);
        return manager_reply_later(m, reply);
}

int api_on_create_token(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        return api_with_permission(userdata, call, OWNER_NONE, ACTION_MANAGE_NODES, create_token, error);
}

int api_on_list_tokens(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        return api_with_permission(userdata, call, OWNER_NONE, ACTION_MANAGE_NODES, list_tokens, error);
}

int api_on_revoke_token(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        return api_with_permission(userdata, call, OWNER_NONE, ACTION_MANAGE_NODES, revoke_token, error);
}
