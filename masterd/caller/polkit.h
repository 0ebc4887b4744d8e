/* SPDX-License-Identifier: Apache-2.0 */
/* Asks polkit, over D-Bus, whether the sender of a call may do something. Answers are not kept: an
 * administrator's change counts from the next call on. Never blocks. */
#pragma once

#include <stdbool.h>

#include <systemd/sd-bus.h>

#define POLKIT_PENDING_MAX 256u        /* questions under way in all */
#define POLKIT_PENDING_PER_USER_MAX 8u /* over all his connections */

enum polkit_answer {
        POLKIT_NO,
        POLKIT_YES,
        POLKIT_CHALLENGE, /* it would, after a password, which the caller did not allow to be asked for */
        POLKIT_ABSENT,    /* polkit is not there or did not answer */
        POLKIT_FAR,       /* the caller is on another host, of whose people polkit here knows nothing */
};

/* Gets the answer. Returns as a handler of a vtable does; an error is sent as the reply to m. */
typedef int (*polkit_handler)(sd_bus_message *m, enum polkit_answer answer, void *userdata,
                              sd_bus_error *ret_error);

struct polkit;
int polkit_new(sd_bus *bus, struct polkit **ret);
struct polkit *polkit_free(struct polkit *p);

/* Asks about m's sender, who is uid, and an action. A password may be asked for only with dialog, and if the
 * caller's message allows it. The handler may ask again. Returns 1 when the handler will be called, what it
 * returned where it was called at once, or a negative errno with *ret_error set: then destroy (may be NULL)
 * has been called. Otherwise destroy is called with userdata after the handler, or instead of it when p is
 * freed before. */
int polkit_check(struct polkit *p, sd_bus_message *m, uint32_t uid, const char *action, bool dialog,
                 polkit_handler handler, void *userdata, void (*destroy)(void *userdata),
                 sd_bus_error *ret_error);
