/* SPDX-License-Identifier: Apache-2.0 */
/* The audit of calls: one line in the journal (lib/base/audit.h) for each that changes something, and for
 * each that is refused. Every method is reached through here, and audit-table.c says what it is; a line
 * leaves when the call was answered and it is known who made it.
 *
 * One ledger to a process, as there is one log: handlers answer from many places, and none of them has to
 * carry it along. Without one, every function here does nothing. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

#include "lib/base/cleanup.h"

struct audit;
struct callers;

#define AUDIT_CALLS_MAX 8192u     /* changing calls that are not answered yet; further ones are refused */
#define AUDIT_UNITS_ASKED_MAX 16u /* questions to systemd under way; further lines are without the unit */

enum audit_permission {
        AUDIT_EVERYBODY, /* it is about the caller's own */
        AUDIT_OWNER,
        AUDIT_ROOT,
        AUDIT_POLKIT_YES,
        AUDIT_POLKIT_NO,
        AUDIT_POLKIT_CHALLENGE,
        AUDIT_POLKIT_ABSENT,
        AUDIT_POLKIT_FAR,
        AUDIT_PERMISSION_MAX,
};

/* The buses, event and callers outlive it. far: where the calls of other hosts come in, with names that no
 * bus has (caller.h); NULL: none do. */
int audit_new(sd_bus *bus, sd_bus *far, sd_event *event, struct callers *callers, struct audit **ret);
/* Writes what is still to be written, as well as it is known. */
struct audit *audit_free(struct audit *a);
DEFINE_CLEANUP(struct audit *, audit_free)

/* As sd_bus_add_object_vtable(), or with find as sd_bus_add_fallback_vtable(), on both buses; calls pass
 * through the audit. */
int audit_add_vtable(struct audit *a, const char *path, const char *interface, const sd_bus_vtable *vtable,
                     sd_bus_object_find_t find, void *userdata);

/* ---- what is found out about a call, by those who do ---- */
/* Who made it. pid 0: not known. */
void audit_identified(sd_bus_message *call, uint32_t uid, uint32_t pid);
/* Why the caller may, or may not; action is polkit's, a constant, or NULL. */
void audit_permission(sd_bus_message *call, enum audit_permission permission, const char *action);
/* It is about that job, which the object's name does not say. */
void audit_job(sd_bus_message *call, uint32_t job);
/* Stands behind the arguments: "token=..." */
void audit_note(sd_bus_message *call, const char *name, const char *value);
/* It was answered with that; or failed with r, where error is not set. */
void audit_failed(sd_bus_message *call, const sd_bus_error *error, int r);
/* This is an answer, to whatever call. */
void audit_answered(sd_bus_message *reply);
void audit_succeeded(sd_bus_message *call);

/* A refusal that is none of a call's may have a line now: somebody without a uid was refused. */
bool audit_admit_stranger(void);
