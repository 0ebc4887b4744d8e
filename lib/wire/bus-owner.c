/* SPDX-License-Identifier: Apache-2.0 */
/* Invariant: who the owner is, is taken from the bus alone. */
#include "lib/wire/bus-owner.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"

#define DRIVER "org.freedesktop.DBus"
#define DRIVER_PATH "/org/freedesktop/DBus"

struct bus_owner {
        const char *name;
        char *owner; /* unique name; NULL: nobody, or not known yet */
        void (*known)(void *userdata);
        void *userdata;
        sd_bus_slot *match, *question;
};

bool bus_itself_sent(sd_bus_message *m) {
        const char *sender = sd_bus_message_get_sender(m);

        return !sender || strcmp(sender, DRIVER) == 0;
}

bool bus_owner_sent(const struct bus_owner *o, sd_bus_message *m) {
        const char *sender = sd_bus_message_get_sender(m);

        /* A bus puts unique names; where the name itself stands, whoever is at the other end has put it
         * there. */
        return !sender || strcmp(sender, o->name) == 0 || (o->owner && strcmp(sender, o->owner) == 0);
}

static void set_owner(struct bus_owner *o, const char *owner) {
        free(o->owner);
        o->owner = *owner ? strdup(owner) : NULL;
}

static int on_changed(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        const char *owner;

        if (bus_itself_sent(m) && sd_bus_message_read(m, "sss", NULL, NULL, &owner) >= 0)
                set_owner(userdata, owner);
        return 0;
}

static int on_owner(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        struct bus_owner *o = userdata;
        const char *owner;

        o->question = sd_bus_slot_unref(o->question);
        if (!sd_bus_message_is_method_error(reply, NULL) && sd_bus_message_read(reply, "s", &owner) >= 0)
                set_owner(o, owner);
        if (o->known)
                o->known(o->userdata);
        return 0;
}

int bus_owner_new(sd_bus *bus, const char *name, void (*known)(void *userdata), void *userdata,
                  struct bus_owner **ret) {
        struct bus_owner *o = calloc(1, sizeof(*o));
        char match[256];
        int r;

        if (!o)
                return -ENOMEM;
        *ret = o;
        o->name = name;
        o->known = known;
        o->userdata = userdata;
        if (sd_bus_is_bus_client(bus) <= 0)
                return 0; /* nobody is in between */
        snprintf(match, sizeof(match),
                 "type='signal',sender='" DRIVER "',path='" DRIVER_PATH "',interface='" DRIVER
                 "',member='NameOwnerChanged',arg0='%s'",
                 name);
        r = sd_bus_add_match_async(bus, &o->match, match, on_changed, NULL, o);
        r = r < 0 ? r
                  : sd_bus_call_method_async(bus, &o->question, DRIVER, DRIVER_PATH, DRIVER, "GetNameOwner",
                                             on_owner, o, "s", name);
        if (r < 0)
                *ret = bus_owner_free(o);
        return MIN(r, 0);
}

struct bus_owner *bus_owner_free(struct bus_owner *o) {
        if (!o)
                return NULL;
        sd_bus_slot_unref(o->match);
        sd_bus_slot_unref(o->question);
        free(o->owner);
        free(o);
        return NULL;
}
