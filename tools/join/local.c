/* SPDX-License-Identifier: Apache-2.0 */
/* Asking the master of this host. Invariant: the token is in this process's memory and nowhere else. */
#include "tools/join/local.h"

#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-bus.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/conf.h"
#include "lib/wire/master-bus.h"
#include "tools/join/place.h"

#define TOKEN_USEC (60 * USEC_PER_SEC)

DEFINE_CLEANUP(struct addrinfo *, freeaddrinfo)

void listen_target(const char *listen, struct addr *ret) {
        static const uint8_t any[16], loopback4[16] = { 127, 0, 0, 1 }, loopback6[16] = { [15] = 1 };
        _cleanup_free_ char *copy = listen ? strdup(listen) : NULL;
        char text[ADDR_TEXT_MAX], *save = NULL, *word = copy ? strtok_r(copy, " \t", &save) : NULL;

        for (; word; word = strtok_r(NULL, " \t", &save)) {
                if (word[0] == '*' && (word[1] == ':' || !word[1])) {
                        snprintf(text, sizeof(text), "0.0.0.0%s", word + 1);
                        word = text;
                }
                if (addr_parse(word, MASTER_PORT, ret) >= 0)
                        break;
        }
        if (!word)
                *ret = (struct addr){ .family = AF_INET, .port = MASTER_PORT };
        if (memcmp(ret->bytes, any, ret->family == AF_INET ? 4 : 16) == 0)
                memcpy(ret->bytes, ret->family == AF_INET ? loopback4 : loopback6, sizeof(ret->bytes));
}

void local_target(struct addr *ret) {
        _cleanup_free_ char *listen = conf_lookup("masterd.conf", "Master", "Listen");

        listen_target(listen, ret);
}

bool is_this_host(const char *master) {
        const struct addrinfo hints = { .ai_socktype = SOCK_DGRAM };
        _cleanup_(freeaddrinfo_p) struct addrinfo *list = NULL;
        _cleanup_free_ char *host = NULL;
        uint16_t port;

        if (addr_split(master, MASTER_PORT, &host, &port) < 0 || getaddrinfo(host, NULL, &hints, &list) != 0)
                return false;
        for (const struct addrinfo *a = list; a; a = a->ai_next) {
                _cleanup_close_ int fd = socket(a->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
                if (fd >= 0 && bind(fd, a->ai_addr, a->ai_addrlen) >= 0)
                        return true;
        }
        return false;
}

static int say_refusal(const sd_bus_error *error, int r) {
        return fail(JOIN_FAILED,
                    "primus-masterd on this host gives no token: %s; see: systemctl status primus-masterd",
                    error->message ? error->message : strerror(-r));
}

int local_token(const struct addr *from, const char *name, struct join_token *ret) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *call = NULL, *reply = NULL;
        _cleanup_(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        struct addr address = *from;
        char text[ADDR_TEXT_MAX];
        const char *token;
        int r = sd_bus_open_system(&bus);

        if (r < 0)
                return fail(JOIN_FAILED, "cannot reach the system bus: %s; see: systemctl status dbus",
                            strerror(-r));
        address.port = 0;
        addr_format(&address, text);
        r = sd_bus_message_new_method_call(bus, &call, MASTER_NAME, "/org/primus/Master1",
                                           "org.primus.Master1.Manager", "CreateToken");
        if (r >= 0)
                r = sd_bus_message_append(call, "a{sv}", 5, "uses", "u", UINT32_C(1), "expires", "t",
                                          TOKEN_USEC, "from", "s", text, "name", "s", name, "replace", "b",
                                          1);
        if (r < 0)
                return fail(JOIN_FAILED, "cannot make a call: %s", strerror(-r));
        r = sd_bus_call(bus, call, 0, &error, &reply);
        if (r < 0)
                return say_refusal(&error, r);
        (void)sd_bus_message_sensitive(reply);
        r = sd_bus_message_read(reply, "s", &token);
        if (r < 0 || join_token_parse(token, ret) < 0)
                return fail(JOIN_FAILED,
                            "primus-masterd on this host answers with no token; are primus-master and "
                            "primus-agent of one version?");
        return JOIN_OK;
}
