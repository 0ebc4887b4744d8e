/* SPDX-License-Identifier: Apache-2.0 */
/* The ledger of calls. Invariants: a changing call runs only when it is in the ledger; what is in it leaves
 * it by one line, or by one more in the count of refusals that have none. */
#include "masterd/caller/audit.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <uthash.h>
#include <utlist.h>

#include "lib/base/audit.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/parse.h"
#include "lib/wire/skip.h"
#include "masterd/caller/audit-table.h"
#include "masterd/caller/caller.h"
#include "masterd/caller/refusals.h"

#define UNIT_USEC (5 * USEC_PER_SEC)       /* for systemd's answer */
#define LOST_USEC (15 * 60 * USEC_PER_SEC) /* a call that nobody has answered by then will not be */
#define KEY_MAX 288u
#define JOB_PREFIX "/org/primus/Master1/job/"
#define NODE_PREFIX "/org/primus/Master1/node"

static const char *const permissions[AUDIT_PERMISSION_MAX] = {
        [AUDIT_EVERYBODY] = "everybody",
        [AUDIT_OWNER] = "owner",
        [AUDIT_ROOT] = "root",
        [AUDIT_POLKIT_YES] = "polkit:yes",
        [AUDIT_POLKIT_NO] = "polkit:no",
        [AUDIT_POLKIT_CHALLENGE] = "polkit:challenge",
        [AUDIT_POLKIT_ABSENT] = "polkit:absent",
        [AUDIT_POLKIT_FAR] = "polkit:far",
};

/* A call that has, or may have, a line. */
struct entry {
        struct audit *audit;
        UT_hash_handle hh;    /* by key */
        char key[KEY_MAX];    /* "SENDER SERIAL" */
        sd_bus_message *call; /* until it is known who made it */
        struct audit_rule rule;
        char *sender, *object, *unit;
        char *from; /* the host that it came from; NULL: this one */
        char arguments[AUDIT_TEXT_MAX];
        char result[128];
        uint32_t uid, pid, job;
        enum audit_permission permission;
        const char *action;
        uint64_t since_boot, at_real;
        bool identified, identifying, asked, answered;
        bool only_failure;
};

/* systemd was asked for the unit of a caller. */
struct asking {
        struct audit *audit;
        sd_bus_slot *slot;
        char *sender;
        struct asking *prev, *next;
};

/* The method that a call is led on to. */
struct method {
        struct audit_rule rule;
        sd_bus_message_handler_t handler;
};

struct table {
        sd_bus_slot *slot, *far; /* the buses read the vtable as long as they are there */
        sd_bus_vtable *vtable;
        struct method *methods;
        size_t n_methods;
        char *interface;
        struct table *next;
};

struct audit {
        sd_bus *bus, *far;
        sd_event *event;
        struct callers *callers;
        struct table *tables;
        struct entry *entries;
        struct asking *asking;
        unsigned n_asking;
        struct refusals *refusals;
        sd_event_source *timer;
        bool timer_set;
};

static struct audit *ledger;

static void set_timer(struct audit *a);

/* ---- entries ---- */

static char *make_key(const char *sender, uint64_t serial, char buf[static KEY_MAX]) {
        snprintf(buf, KEY_MAX, "%s %" PRIu64, sender ?: "", serial);
        return buf;
}

static struct entry *find_key(const char *sender, uint64_t serial) {
        struct entry *e = NULL;
        char key[KEY_MAX];

        if (ledger)
                HASH_FIND_STR(ledger->entries, make_key(sender, serial, key), e);
        return e;
}

/* Links are buses too, and an agent may write into the head of its messages what it likes. */
static bool is_on_bus(sd_bus_message *m) {
        const sd_bus *bus = sd_bus_message_get_bus(m);

        return bus == ledger->bus || (ledger->far && bus == ledger->far);
}

static struct entry *entry_of(sd_bus_message *call) {
        uint64_t serial;

        return ledger && is_on_bus(call) && sd_bus_message_get_cookie(call, &serial) >= 0
                       ? find_key(sd_bus_message_get_sender(call), serial)
                       : NULL;
}

static void entry_free(struct entry *e) {
        HASH_DEL(e->audit->entries, e);
        sd_bus_message_unref(e->call);
        free(e->sender);
        free(e->object);
        free(e->unit);
        free(e->from);
        free(e);
}

static int entry_new(struct audit *a, sd_bus_message *call, const struct audit_rule *rule, bool only_failure,
                     struct entry **ret) {
        const char *sender = sd_bus_message_get_sender(call), *object = sd_bus_message_get_path(call);
        struct entry *e;
        uint64_t serial;
        int r = sd_bus_message_get_cookie(call, &serial);

        if (r < 0)
                return r;
        if (HASH_COUNT(a->entries) >= AUDIT_CALLS_MAX)
                return -EBUSY;
        if (find_key(sender, serial))
                return -EEXIST;
        e = calloc(1, sizeof(*e));
        if (!e)
                return -ENOMEM;
        *e = (struct entry){ .audit = a,
                             .rule = *rule,
                             .only_failure = only_failure,
                             .since_boot = now_boot(),
                             .at_real = now_real(),
                             .sender = strdup(sender ?: ""),
                             .object = strdup(object ?: "") };
        make_key(sender, serial, e->key);
        HASH_ADD_STR(a->entries, key, e);
        if (!e->sender || !e->object) {
                entry_free(e);
                return -ENOMEM;
        }
        e->call = sd_bus_message_ref(call);
        (void)audit_arguments(rule, call, e->arguments, sizeof(e->arguments));
        set_timer(a);
        *ret = e;
        return 0;
}

static bool succeeded(const struct entry *e) {
        return strcmp(e->result, "ok") == 0;
}

static void write_entry(const struct entry *e) {
        struct audit_line line = AUDIT_LINE_EMPTY;
        _cleanup_free_ char *node = NULL;
        char method[96];

        snprintf(method, sizeof(method), "%s.%s", e->rule.interface, e->rule.member);
        line.what = "call";
        line.method = method;
        line.object = e->object;
        line.arguments = e->arguments;
        if (e->identified) {
                line.uid = e->uid;
                line.pid = e->pid;
        }
        line.unit = e->unit;
        line.from = e->from;
        line.permission = permissions[e->permission];
        line.action = e->action;
        line.result = e->result;
        line.at_real = e->at_real;
        line.job = e->job;
        if (e->job == 0 && strncmp(e->object, JOB_PREFIX, strlen(JOB_PREFIX)) == 0)
                (void)parse_u32(e->object + strlen(JOB_PREFIX), 1, UINT32_MAX, &line.job);
        if (sd_bus_path_decode(e->object, NODE_PREFIX, &node) > 0)
                line.node = node;
        audit_write(&line);
}

static void forget_caller_of(void *userdata);

static int on_identified(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        return 1; /* audit_identified() was told */
}

static bool unit_is_asked(const struct audit *a, const char *sender) {
        const struct asking *q;

        DL_FOREACH (a->asking, q)
                if (strcmp(q->sender, sender) == 0)
                        return true;
        return false;
}

/* Writes the line when there is nothing left to wait for. The entry may be gone afterwards. */
static void entry_advance(struct entry *e) {
        sd_bus_error error = SD_BUS_ERROR_NULL;

        if (!e->answered || e->identifying)
                return;
        if (succeeded(e) && e->only_failure) {
                entry_free(e);
                return;
        }
        if (!e->identified && e->call) {
                /* It failed before anybody asked who calls. */
                sd_bus_message *call = TAKE_PTR(e->call);

                e->identifying = true;
                (void)caller_identify_full(e->audit->callers, call, on_identified, e, forget_caller_of,
                                           &error);
                sd_bus_error_free(&error);
                sd_bus_message_unref(call);
                return;
        }
        if (e->asked && !e->unit && unit_is_asked(e->audit, e->sender))
                return;
        if (succeeded(e) ||
            refusals_admit(e->audit->refusals, e->identified ? e->uid : REFUSALS_OTHERS, now_boot()))
                write_entry(e);
        entry_free(e);
}

static void forget_caller_of(void *userdata) {
        struct entry *e = userdata;

        e->identifying = false;
        entry_advance(e);
}

/* ---- the caller's unit ---- */

static void asking_free(struct asking *q) {
        DL_DELETE(q->audit->asking, q);
        q->audit->n_asking--;
        sd_bus_slot_unref(q->slot);
        free(q->sender);
        free(q);
}

static int on_unit(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        struct asking *q = userdata;
        struct audit *a = q->audit;
        _cleanup_free_ char *unit = NULL, *sender = TAKE_PTR(q->sender);
        const char *path;
        struct entry *e, *next;

        if (!sd_bus_message_is_method_error(reply, NULL) && sd_bus_message_read_basic(reply, 'o', &path) > 0)
                (void)sd_bus_path_decode(path, "/org/freedesktop/systemd1/unit", &unit);
        asking_free(q);
        callers_set_unit(a->callers, sender, unit ?: "");
        HASH_ITER (hh, a->entries, e, next)
                if (e->asked && !e->unit && strcmp(e->sender, sender) == 0) {
                        e->unit = strdup(unit ?: "");
                        entry_advance(e);
                }
        return 0;
}

/* PID 1 is asked once for a connection, and not for the sake of lines that are not written. */
static void ask_unit(struct entry *e) {
        struct audit *a = e->audit;
        const char *known = callers_unit(a->callers, e->sender);
        sd_bus_message *m = NULL;
        struct asking *q;
        int r;

        if (known)
                e->unit = strdup(known);
        if (known || e->pid == 0 || refusals_full(a->refusals, e->uid))
                return;
        e->asked = true;
        if (unit_is_asked(a, e->sender))
                return;
        q = a->n_asking < AUDIT_UNITS_ASKED_MAX ? calloc(1, sizeof(*q)) : NULL;
        if (!q)
                return;
        q->audit = a;
        q->sender = strdup(e->sender);
        DL_APPEND(a->asking, q);
        a->n_asking++;
        r = q->sender ? sd_bus_message_new_method_call(a->bus, &m, "org.freedesktop.systemd1",
                                                       "/org/freedesktop/systemd1",
                                                       "org.freedesktop.systemd1.Manager", "GetUnitByPID")
                      : -ENOMEM;
        if (r >= 0)
                r = sd_bus_message_append(m, "u", e->pid);
        if (r >= 0)
                r = sd_bus_call_async(a->bus, &q->slot, m, on_unit, q, UNIT_USEC);
        sd_bus_message_unref(m);
        if (r < 0)
                asking_free(q);
}

/* ---- what is found out ---- */

static const struct method *method_of(const struct audit *a, sd_bus_message *call) {
        const char *interface = sd_bus_message_get_interface(call), *member = sd_bus_message_get_member(call);
        const struct table *t;

        LL_FOREACH (a->tables, t)
                for (size_t i = 0; interface && member && i < t->n_methods; i++)
                        if (strcmp(t->methods[i].rule.member, member) == 0 &&
                            strcmp(t->interface, interface) == 0)
                                return t->methods + i;
        return NULL;
}

void audit_identified(sd_bus_message *call, uint32_t uid, uint32_t pid) {
        struct entry *e = entry_of(call);
        const char *from;

        if (!e || e->identified)
                return;
        e->uid = uid;
        e->pid = pid;
        e->identified = true;
        from = callers_host(e->audit->callers, e->sender);
        e->from = from ? strdup(from) : NULL;
        e->call = sd_bus_message_unref(e->call);
        ask_unit(e);
}

void audit_permission(sd_bus_message *call, enum audit_permission permission, const char *action) {
        struct entry *e = entry_of(call);
        const struct method *m;

        /* What is only read has a line when it is refused by right. */
        if (!e && permission > AUDIT_POLKIT_YES && ledger && (m = method_of(ledger, call)))
                (void)entry_new(ledger, call, &m->rule, true, &e);
        if (!e)
                return;
        e->permission = permission;
        e->action = action;
}

void audit_job(sd_bus_message *call, uint32_t job) {
        struct entry *e = entry_of(call);

        if (e)
                e->job = job;
}

void audit_note(sd_bus_message *call, const char *name, const char *value) {
        struct entry *e = entry_of(call);
        size_t n;

        if (!e)
                return;
        n = strlen(e->arguments);
        snprintf(e->arguments + n, sizeof(e->arguments) - n, "%s%s=%s", n > 0 ? " " : "", name, value);
}

static void entry_answered(struct entry *e, const char *result) {
        if (e->answered)
                return;
        e->answered = true;
        snprintf(e->result, sizeof(e->result), "%s", result);
        entry_advance(e);
}

void audit_failed(sd_bus_message *call, const sd_bus_error *error, int r) {
        struct entry *e = entry_of(call);
        sd_bus_error named = SD_BUS_ERROR_NULL;

        if (!e)
                return;
        if (!sd_bus_error_is_set(error))
                (void)sd_bus_error_set_errno(&named, r);
        entry_answered(e, sd_bus_error_is_set(error) ? error->name : named.name ?: "failed");
        sd_bus_error_free(&named);
}

void audit_succeeded(sd_bus_message *call) {
        struct entry *e = entry_of(call);

        if (e)
                entry_answered(e, "ok");
}

void audit_answered(sd_bus_message *reply) {
        const sd_bus_error *error = sd_bus_message_get_error(reply);
        struct entry *e;
        uint64_t serial;

        if (!ledger || !is_on_bus(reply) || sd_bus_message_get_reply_cookie(reply, &serial) < 0)
                return;
        e = find_key(sd_bus_message_get_destination(reply), serial);
        if (e)
                entry_answered(e, error ? error->name : "ok");
}

bool audit_admit_stranger(void) {
        if (!ledger)
                return true;
        set_timer(ledger);
        return refusals_admit(ledger->refusals, REFUSALS_OTHERS, now_boot());
}

/* ---- on the way in ---- */

/* A piece that is not the first. */
static bool is_later_piece(sd_bus_message *call) {
        uint64_t offset = 0;

        if (message_skip(call, "st") >= 0)
                (void)sd_bus_message_read_basic(call, 't', &offset);
        (void)sd_bus_message_rewind(call, true);
        return offset > 0;
}

static int begin(struct audit *a, const struct audit_rule *rule, sd_bus_message *call, sd_bus_error *error) {
        bool only_failure =
                rule->class == AUDIT_PART || (rule->class == AUDIT_PIECES && is_later_piece(call));
        struct entry *e;
        int r = entry_new(a, call, rule, only_failure, &e);

        if (r == -EBUSY)
                return sd_bus_error_set(error, SD_BUS_ERROR_LIMITS_EXCEEDED,
                                        "Too many calls wait for their answers; try again.");
        if (r == -EEXIST)
                return sd_bus_error_set(error, SD_BUS_ERROR_INVALID_ARGS,
                                        "An earlier call with the same serial number is not answered yet.");
        return r;
}

static int dispatch(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        const struct method *m = ledger ? method_of(ledger, call) : NULL;
        int r;

        if (!m)
                return -EIO;
        r = m->rule.class == AUDIT_READS ? 0 : begin(ledger, &m->rule, call, error);
        if (r < 0)
                return r;
        r = m->handler(call, userdata, error);
        if (r < 0 || sd_bus_error_is_set(error))
                audit_failed(call, error, r);
        return r;
}

/* ---- tables ---- */

static void table_free(struct table *t) {
        sd_bus_slot_unref(t->slot);
        sd_bus_slot_unref(t->far);
        free(t->vtable);
        free(t->methods);
        free(t->interface);
        free(t);
}

/* A method that the table of rules has not heard of is taken for one that changes something. */
static int table_new(const char *interface, const sd_bus_vtable *vtable, struct table **ret) {
        struct table *t = calloc(1, sizeof(*t));
        const char *dot = strrchr(interface, '.');
        size_t n = 0;

        while (vtable[n].type != _SD_BUS_VTABLE_END)
                n++;
        if (!t)
                return -ENOMEM;
        t->vtable = calloc(n + 1, sizeof(*vtable));
        t->methods = calloc(n + 1, sizeof(*t->methods));
        t->interface = strdup(interface);
        if (!t->vtable || !t->methods || !t->interface) {
                table_free(t);
                return -ENOMEM;
        }
        memcpy(t->vtable, vtable, (n + 1) * sizeof(*vtable));
        for (size_t i = 0; i < n; i++) {
                sd_bus_vtable *v = t->vtable + i;
                const struct audit_rule *rule;

                if (v->type != _SD_BUS_VTABLE_METHOD)
                        continue;
                rule = audit_rule_find(interface, v->x.method.member);
                t->methods[t->n_methods++] =
                        (struct method){ .rule = rule ? *rule
                                                      : (struct audit_rule){ dot ? dot + 1 : interface,
                                                                             v->x.method.member,
                                                                             AUDIT_CHANGES, NULL },
                                         .handler = v->x.method.handler };
                v->x.method.handler = dispatch;
        }
        *ret = t;
        return 0;
}

static int add_to(sd_bus *bus, sd_bus_slot **slot, const struct table *t, const char *path,
                  sd_bus_object_find_t find, void *userdata) {
        return find ? sd_bus_add_fallback_vtable(bus, slot, path, t->interface, t->vtable, find, userdata)
                    : sd_bus_add_object_vtable(bus, slot, path, t->interface, t->vtable, userdata);
}

int audit_add_vtable(struct audit *a, const char *path, const char *interface, const sd_bus_vtable *vtable,
                     sd_bus_object_find_t find, void *userdata) {
        struct table *t;
        int r = table_new(interface, vtable, &t);

        if (r < 0)
                return r;
        LL_PREPEND(a->tables, t);
        r = add_to(a->bus, &t->slot, t, path, find, userdata);
        return r < 0 || !a->far ? r : add_to(a->far, &t->far, t, path, find, userdata);
}

/* ---- the ledger ---- */

static void write_suppressed(struct audit *a, uint64_t now, bool all) {
        uint64_t suppressed;
        uint32_t uid;

        while (refusals_over(a->refusals, now, all, &uid, &suppressed)) {
                struct audit_line line = AUDIT_LINE_EMPTY;

                if (suppressed == 0)
                        continue;
                line.what = "suppressed";
                line.uid = uid == REFUSALS_OTHERS ? AUDIT_NO_UID : uid;
                line.suppressed = suppressed;
                audit_write(&line);
        }
}

static int on_timer(sd_event_source *s, uint64_t usec, void *userdata) {
        struct audit *a = userdata;
        uint64_t now = now_boot();
        struct entry *e, *next;

        a->timer_set = false;
        write_suppressed(a, now, false);
        HASH_ITER (hh, a->entries, e, next)
                if (now >= usec_add(e->since_boot, LOST_USEC) && !e->answered)
                        entry_answered(e, "unknown");
        if (a->entries || refusals_any(a->refusals))
                set_timer(a);
        return 0;
}

static void set_timer(struct audit *a) {
        int r;

        if (a->timer_set)
                return;
        r = sd_event_source_set_time_relative(a->timer, REFUSALS_USEC);
        if (r >= 0)
                r = sd_event_source_set_enabled(a->timer, SD_EVENT_ONESHOT);
        if (r < 0)
                log_warning_errno(r, "Cannot set the audit's timer; counts of refusals will be late");
        a->timer_set = r >= 0;
}

int audit_new(sd_bus *bus, sd_bus *far, sd_event *event, struct callers *callers, struct audit **ret) {
        _cleanup_(audit_free_p) struct audit *a = calloc(1, sizeof(*a));
        int r;

        if (!a)
                return -ENOMEM;
        a->bus = bus;
        a->far = far;
        a->event = event;
        a->callers = callers;
        r = refusals_new(&a->refusals);
        if (r >= 0)
                r = sd_event_add_time_relative(event, &a->timer, CLOCK_BOOTTIME, REFUSALS_USEC, USEC_PER_SEC,
                                               on_timer, a);
        if (r >= 0)
                r = sd_event_source_set_enabled(a->timer, SD_EVENT_OFF);
        if (r < 0)
                return r;
        ledger = a;
        *ret = TAKE_PTR(a);
        return 0;
}

struct audit *audit_free(struct audit *a) {
        struct entry *e, *next;
        struct asking *q, *q_next;
        struct table *t, *t_next;

        if (!a)
                return NULL;
        DL_FOREACH_SAFE (a->asking, q, q_next)
                asking_free(q);
        HASH_ITER (hh, a->entries, e, next) {
                if (!e->answered)
                        snprintf(e->result, sizeof(e->result), "unknown");
                write_entry(e);
                entry_free(e);
        }
        if (a->refusals)
                write_suppressed(a, 0, true);
        refusals_free(a->refusals);
        LL_FOREACH_SAFE (a->tables, t, t_next)
                table_free(t);
        sd_event_source_unref(a->timer);
        if (ledger == a)
                ledger = NULL;
        free(a);
        return NULL;
}
