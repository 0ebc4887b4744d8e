/* SPDX-License-Identifier: Apache-2.0 */
/* Watching the host. Invariant: masterd hears of each change while it is connected, and of everything when it
 * registers us. */
#include "agentd/host/hostwatch.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agentd/core/manager.h"
#include "agentd/device/sensors.h"
#include "agentd/host/kernel-lines.h"
#include "agentd/link/link.h"
#include "agentd/log/kernel.h"
#include "agentd/net/links.h"
#include "lib/base/log.h"
#include "lib/base/try.h"

#define LOOK_USEC (10 * USEC_PER_SEC)
#define KERNEL_USEC (5 * USEC_PER_SEC)
#define KERNEL_BACK_USEC (3600 * USEC_PER_SEC) /* of what the kernel said before agentd was started */
#define AGAIN_USEC (30 * USEC_PER_SEC)
#define CONTAINER_FILE "/run/systemd/container" /* PID 1's */
#define KEPT_USEC (300 * USEC_PER_SEC)
#define DISKS_MAX 16u
#define GPU_LINE_AGE (120 * USEC_PER_SEC)

/* File systems without which jobs do not run well here. What a job fills by itself holds nobody up. */
static const struct {
        const char *path;
        enum condition_severity worst;
} disks[] = {
        { "/var/lib/primus-agent", CONDITION_DRAIN },
        { "/run/primus", CONDITION_DRAIN },
        { "/dev/shm", CONDITION_WARN },
        { "/var/log/journal", CONDITION_WARN },
        { "/tmp", CONDITION_WARN },
};

struct disk {
        char path[CONDITION_SUBJECT_MAX + 1];
        enum condition_severity worst;
        struct disk_facts facts;
        int error;
        bool same; /* as one before it */
};

struct remembered {
        char name[LINK_NAME_MAX];
        struct link_memory memory;
};

struct hostwatch {
        struct manager *manager;
        struct conditions *conditions;
        sd_event_source *due, *look;
        struct worker *worker; /* for what may wait: the journal, file systems */
        struct kernel_log *kernel;
        struct links *links; /* NULL: there is no rtnetlink for us */
        struct remembered remembered[LINKS_MAX];
        size_t n_remembered;
        struct addr local; /* from which masterd is reached */
        uint64_t again_boot;
        uint64_t addresses; /* a number for those we had when we registered */
        struct disk disks[DISKS_MAX];
        size_t n_disks;
        bool disks_busy;
        struct clock_watch clock;
        uint64_t clock_asked;
        sd_bus_slot *asking_clock;
        void (*gpu_lines)(const char *line, void *userdata);
        void *gpu_lines_data;
};

/* ---- conditions ---- */

static int send_condition(struct manager *m, const struct host_condition *c) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *message = NULL;
        int r = link_message(m->link, false, "HostCondition", &message);

        if (r == -ENOTCONN)
                return 0; /* with the next registration */
        if (r < 0 || (r = host_condition_append(message, c)) < 0 ||
            (r = link_append_extra_empty(message)) < 0)
                return r;
        return link_send(m->link, message);
}

static void on_condition(const struct host_condition *c, void *userdata) {
        struct hostwatch *w = userdata;
        int r;

        if (c->severity == CONDITION_FINE)
                log_notice("%s %s: fine again", condition_kind_to_string(c->kind), c->subject);
        else
                log_full(c->severity == CONDITION_NOTE ? LOG_NOTICE : LOG_WARNING, 0, NULL, "%s %s: %s",
                         condition_kind_to_string(c->kind), c->subject, c->text);
        r = send_condition(w->manager, c);
        if (r < 0)
                log_warning_errno(
                        r, "Cannot tell masterd how the host is; it is told with the next registration");
        r = w->conditions ? conditions_save(w->conditions, "") : 0;
        if (r < 0)
                log_full(LOG_DEBUG, r, NULL, "Cannot write /run/primus/agent/conditions");
        if (w->manager->bus)
                w->manager->ops->changed(w->manager, "Conditions");
}

static int on_due(sd_event_source *s, uint64_t usec, void *userdata) {
        struct hostwatch *w = userdata;
        uint64_t next = conditions_tick_at(w->conditions, now_boot());

        if (next == USEC_INFINITY)
                return sd_event_source_set_enabled(s, SD_EVENT_OFF);
        (void)sd_event_source_set_time(s, next);
        return sd_event_source_set_enabled(s, SD_EVENT_ONESHOT);
}

static void arm_sensors(uint64_t boot_usec, void *userdata) {
        struct hostwatch *w = userdata;

        (void)sd_event_source_set_time(w->due, boot_usec);
        (void)sd_event_source_set_enabled(w->due, SD_EVENT_ONESHOT);
}

const struct links *hostwatch_links(const struct hostwatch *w) {
        return w ? w->links : NULL;
}

struct conditions *hostwatch_conditions(struct hostwatch *w) {
        return w->conditions;
}

int hostwatch_append(struct hostwatch *w, sd_bus_message *m) {
        TRY(sd_bus_message_open_container(m, 'e', "sv"));
        TRY(sd_bus_message_append(m, "s", "conditions"));
        TRY(sd_bus_message_open_container(m, 'v', "a" CONDITION_SIGNATURE));
        TRY(conditions_append(w->conditions, m));
        TRY(sd_bus_message_close_container(m));
        return sd_bus_message_close_container(m);
}

/* ---- interfaces ---- */

static struct link_memory *memory_of(struct hostwatch *w, const char *name) {
        struct remembered *x;

        for (size_t i = 0; i < w->n_remembered; i++)
                if (strcmp(w->remembered[i].name, name) == 0)
                        return &w->remembered[i].memory;
        /* Names come and go where virtual ones are watched: then the first makes room. */
        if (w->n_remembered == LINKS_MAX)
                memmove(w->remembered, w->remembered + 1, --w->n_remembered * sizeof(*w->remembered));
        x = w->remembered + w->n_remembered++;
        *x = (struct remembered){};
        memcpy(x->name, name, LINK_NAME_MAX);
        return &x->memory;
}

static void judge_link(struct hostwatch *w, const struct link_facts *f, bool gone) {
        static const enum condition_severity worth[_LINK_GRADE_MAX] = {
                [LINK_GOOD] = CONDITION_FINE,  [LINK_SLOW] = CONDITION_NOTE,
                [LINK_OFF] = CONDITION_WARN,   [LINK_DAMAGED] = CONDITION_WARN,
                [LINK_FLAPS] = CONDITION_WARN, [LINK_SLOWER] = CONDITION_WARN,
                [LINK_DOWN] = CONDITION_DRAIN,
        };
        struct link_memory *memory = memory_of(w, f->name);
        enum link_grade grade;
        char text[160];

        grade = link_judge(memory, f, gone, now_boot(), text, sizeof(text));
        conditions_set(w->conditions, CONDITION_LINK, f->name, worth[grade], text);
        grade = link_judge_speed(memory, f, text, sizeof(text));
        conditions_set(w->conditions, CONDITION_LINK_SPEED, f->name, gone ? CONDITION_FINE : worth[grade],
                       text);
}

/* A number for all addresses that others may reach us by. */
static uint64_t addresses_number(const struct hostwatch *w) {
        uint64_t h = UINT64_C(0xcbf29ce484222325);
        const struct link_facts *list;
        size_t n = 0;

        list = w->links ? links_list(w->links, &n) : NULL;
        for (size_t i = 0; i < n; i++)
                for (size_t k = 0; k < list[i].n_addresses; k++)
                        for (size_t b = 0; b < sizeof(list[i].addresses[k].address.bytes); b++)
                                h = (h ^ list[i].addresses[k].address.bytes[b]) * UINT64_C(0x100000001b3);
        return h;
}

/* Of the interface that the settings name: an address of the family in which masterd is reached, else any. */
static bool named_address(const struct hostwatch *w, struct addr *ret) {
        const char *patterns = w->manager->settings.watch.rendezvous_interface;
        const struct addr *found = NULL;
        const struct link_facts *list;
        size_t n = 0;

        list = w->links ? links_list(w->links, &n) : NULL;
        for (size_t i = 0; i < n; i++)
                for (size_t k = 0;
                     links_match(patterns, list[i].name) && list[i].carrier && k < list[i].n_addresses; k++)
                        if (!found || (found->family != w->local.family &&
                                       list[i].addresses[k].address.family == w->local.family))
                                found = &list[i].addresses[k].address;
        if (found)
                *ret = *found;
        return found;
}

struct addr hostwatch_address(struct hostwatch *w, const struct addr *local) {
        const char *patterns = w->manager->settings.watch.rendezvous_interface;
        char text[CONDITION_TEXT_MAX], address[ADDR_TEXT_MAX];
        struct addr a = *local;

        w->local = *local;
        w->addresses = addresses_number(w);
        if (!patterns)
                return a;
        if (named_address(w, &a)) {
                conditions_set(w->conditions, CONDITION_LINK, patterns, CONDITION_FINE, "");
                return a;
        }
        snprintf(text, sizeof(text),
                 "RendezvousInterface= names no interface that is up and has an address: jobs meet at %s",
                 addr_format(local, address));
        conditions_set(w->conditions, CONDITION_LINK, patterns, CONDITION_WARN, text);
        return a;
}

int hostwatch_networks(struct hostwatch *w, struct inventory *inventory) {
        const struct settings *s = &w->manager->settings;
        const struct link_facts *list;
        size_t n = 0;

        free(inventory->networks);
        inventory->n_networks = 0;
        inventory->networks = calloc(LINK_NETWORKS_MAX, sizeof(*inventory->networks));
        if (!inventory->networks)
                return -ENOMEM;
        if (s->address.family != AF_UNSPEC || s->watch.rendezvous_interface || !w->links)
                return 0;
        list = links_list(w->links, &n);
        for (size_t i = 0; i < n; i++)
                for (size_t k = 0; k < list[i].n_addresses && inventory->n_networks < LINK_NETWORKS_MAX;
                     k++) {
                        struct network_info *x = inventory->networks + inventory->n_networks;
                        if (!list[i].device || !list[i].carrier || list[i].mbps == 0)
                                continue;
                        *x = (struct network_info){ .address = list[i].addresses[k].address,
                                                    .bits = list[i].addresses[k].bits,
                                                    .mbps = (uint32_t)MIN(list[i].mbps,
                                                                          (uint64_t)UINT32_MAX) };
                        memcpy(x->name, list[i].name, LINK_NAME_MAX);
                        inventory->n_networks++;
                }
        return 0;
}

/* masterd is on this host: our link goes on whatever happens to its addresses, of which masterd is to hear.
 */
static void review_loopback(struct hostwatch *w) {
        uint64_t now = now_boot();

        if (!addr_is_loopback(&w->local) || now < w->again_boot || addresses_number(w) == w->addresses)
                return;
        w->again_boot = now + AGAIN_USEC;
        link_again(w->manager->link, "the host's addresses have changed");
}

/* Jobs are told the address with which we registered. */
static void review_address(struct hostwatch *w) {
        const struct manager *m = w->manager;
        uint64_t now = now_boot();
        struct addr a;

        review_loopback(w);
        if (!m->settings.watch.rendezvous_interface || m->settings.address.family != AF_UNSPEC ||
            w->local.family == AF_UNSPEC || now < w->again_boot || !named_address(w, &a) ||
            addr_equal(&a, &m->inventory.address))
                return;
        w->again_boot = now + AGAIN_USEC;
        link_again(m->link, "the address that jobs are to use has changed");
}

static void on_link(const struct link_facts *before, const struct link_facts *now, void *userdata) {
        struct hostwatch *w = userdata;

        judge_link(w, now ?: before, !now);
        if (w->links)
                review_address(w);
}

static void look_at_links(struct hostwatch *w) {
        const struct link_facts *list;
        size_t n;

        if (!w->links || links_look(w->links) < 0)
                return;
        list = links_list(w->links, &n);
        for (size_t i = 0; i < n; i++)
                judge_link(w, list + i, false);
        review_address(w);
}

/* ---- disks ---- */

static void add_disk(struct hostwatch *w, const char *path, enum condition_severity worst) {
        struct disk *d;

        if (w->n_disks == DISKS_MAX || path[0] != '/' || strlen(path) > CONDITION_SUBJECT_MAX) {
                log_warning(
                        "Disks=: %s is left out: expected up to %u absolute paths of at most %u characters",
                        path, DISKS_MAX, CONDITION_SUBJECT_MAX);
                return;
        }
        d = w->disks + w->n_disks++;
        *d = (struct disk){ .worst = worst };
        strcpy(d->path, path);
}

static void add_disks(struct hostwatch *w) {
        _cleanup_free_ char *copy =
                w->manager->settings.watch.disks ? strdup(w->manager->settings.watch.disks) : NULL;
        char *save = NULL;

        for (size_t i = 0; i < ELEMENTSOF(disks); i++)
                add_disk(w, disks[i].path, disks[i].worst);
        for (char *word = copy ? strtok_r(copy, " \t", &save) : NULL; word;
             word = strtok_r(NULL, " \t", &save))
                add_disk(w, word, CONDITION_DRAIN);
}

static void run_disks(void *data) {
        struct hostwatch *w = data;

        for (size_t i = 0; i < w->n_disks; i++) {
                struct disk *d = w->disks + i;
                d->error = disk_read("", d->path, &d->facts);
                d->same = false;
                for (size_t k = 0; k < i && d->error >= 0; k++)
                        d->same |= w->disks[k].error >= 0 && w->disks[k].facts.device == d->facts.device &&
                                   w->disks[k].worst >= d->worst;
        }
}

static void on_disks(void *data) {
        const struct settings *s = &((struct hostwatch *)data)->manager->settings;
        struct hostwatch *w = data;
        char text[160];

        w->disks_busy = false;
        for (size_t i = 0; i < w->n_disks; i++) {
                struct disk *d = w->disks + i;
                enum condition_severity severity = CONDITION_FINE;
                *text = 0;
                if (d->error >= 0 && !d->same)
                        severity = disk_judge(&d->facts, &s->watch.disk_warn, &s->watch.disk_drain, d->worst,
                                              text, sizeof(text));
                conditions_set(w->conditions, CONDITION_DISK, d->path, severity, text);
        }
}

/* ---- clock ---- */

void hostwatch_clock(struct hostwatch *w, uint64_t master_real, uint64_t sent_boot) {
        uint64_t limit = w->manager->settings.watch.clock_skew_usec;
        char text[160];

        clock_note(&w->clock, master_real, now_real(), now_boot() - sent_boot);
        conditions_set(w->conditions, CONDITION_CLOCK, "skew",
                       clock_judge(&w->clock, limit, text, sizeof(text)), text);
}

/* NTPSynchronized: what the kernel says, which it tells nobody from whom setting the clock is kept. A host
 * without timedated does not say. */
static int on_kept(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        struct hostwatch *w = userdata;
        int kept = true;

        w->asking_clock = sd_bus_slot_unref(w->asking_clock);
        if (!sd_bus_message_is_method_error(reply, NULL) && sd_bus_message_read(reply, "v", "b", &kept) <= 0)
                kept = true;
        conditions_set(w->conditions, CONDITION_CLOCK, "kept", kept ? CONDITION_FINE : CONDITION_NOTE,
                       kept ? "" : "no time service keeps it ('timedatectl set-ntp yes')");
        return 0;
}

/* timedated is started for it. A container's clock is its host's to keep. */
static void look_at_clock(struct hostwatch *w) {
        const uint64_t now = now_boot();
        int r;

        if (access(CONTAINER_FILE, F_OK) >= 0 || w->asking_clock ||
            now < w->manager->settings.watch.clock_kept_usec ||
            (w->clock_asked && now < w->clock_asked + KEPT_USEC))
                return;
        w->clock_asked = now;
        r = sd_bus_call_method_async(w->manager->bus, &w->asking_clock, "org.freedesktop.timedate1",
                                     "/org/freedesktop/timedate1", "org.freedesktop.DBus.Properties", "Get",
                                     on_kept, w, "ss", "org.freedesktop.timedate1", "NTPSynchronized");
        if (r < 0)
                log_full(LOG_DEBUG, r, NULL, "Cannot ask whether a time service keeps the clock");
}

/* ---- the kernel ---- */

void hostwatch_gpu_lines(struct hostwatch *w, void (*handler)(const char *line, void *userdata),
                         void *userdata) {
        w->gpu_lines = handler;
        w->gpu_lines_data = userdata;
}

static void on_kernel_line(const char *line, uint64_t age, void *userdata) {
        struct hostwatch *w = userdata;
        struct kernel_complaint c;

        /* What was said before this agent was started, the one before it has told of. */
        if (kernel_line_is_gpu(line) && w->gpu_lines && age < GPU_LINE_AGE)
                w->gpu_lines(line, w->gpu_lines_data);
        if (kernel_line_read(line, &c) && age < c.for_usec)
                conditions_happened(w->conditions, c.kind, c.subject, c.severity, line, c.for_usec - age);
}

/* ---- start ---- */

static int on_look(sd_event_source *s, uint64_t usec, void *userdata) {
        struct hostwatch *w = userdata;

        (void)sd_event_source_set_time_relative(s, LOOK_USEC);
        (void)sd_event_source_set_enabled(s, SD_EVENT_ONESHOT);
        look_at_links(w);
        look_at_clock(w);
        if (!w->disks_busy && worker_submit(w->worker, run_disks, on_disks, w) >= 0)
                w->disks_busy = true;
        return 0;
}

static int start_sensors(struct hostwatch *w) {
        static const struct links_ops ops = { .changed = on_link };
        const struct kernel_log_options options = { .back_usec = KERNEL_BACK_USEC,
                                                    .every_usec = KERNEL_USEC,
                                                    .wanted = kernel_line_wanted };
        const struct manager *m = w->manager;
        int r;

        TRY(worker_new(m->event, &w->worker));
        TRY(kernel_log_new(m->event, w->worker, &options, on_kernel_line, w, &w->kernel));
        TRY(sd_event_add_time_relative(m->event, &w->look, CLOCK_BOOTTIME, 0, USEC_PER_SEC, on_look, w));
        add_disks(w);
        r = links_new(m->event, m->settings.watch.interfaces, &ops, w, &w->links);
        if (r == -ENOMEM)
                return r;
        if (r < 0)
                log_full(LOG_NOTICE, r, NULL, "Cannot watch the network interfaces");
        return 0;
}

int hostwatch_new(struct manager *m, struct hostwatch **ret) {
        static const struct conditions_ops ops = { .tell = on_condition, .due = arm_sensors };
        struct hostwatch *w = calloc(1, sizeof(*w));
        struct conditions *c;
        int r;

        if (!w)
                return -ENOMEM;
        w->manager = m;
        *ret = w; /* the caller frees it in any case */
        TRY(sd_event_add_time(m->event, &w->due, CLOCK_BOOTTIME, USEC_INFINITY, 100 * USEC_PER_MSEC, on_due,
                              w));
        TRY(conditions_new(m->settings.condition_settle_usec, &ops, w, &c));
        r = conditions_load_at(c, now_boot(), "");
        w->conditions = c;
        if (r < 0)
                log_full(LOG_NOTICE, r, NULL, "Ignoring /run/primus/agent/conditions");
        return start_sensors(w);
}

void hostwatch_free(struct hostwatch *w) {
        if (!w)
                return;
        sd_bus_slot_unref(w->asking_clock);
        worker_free(w->worker);
        kernel_log_free(w->kernel);
        links_free(w->links);
        sd_event_source_disable_unref(w->look);
        sd_event_source_disable_unref(w->due);
        conditions_free(w->conditions);
        free(w);
}
