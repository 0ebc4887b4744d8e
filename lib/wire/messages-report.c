/* SPDX-License-Identifier: Apache-2.0 */
/* Messages about what is: the welcome, a node's inventory, units and ends of executors, progress and
 * listings. Each reader fills a local struct and hands it over complete, or releases it. */
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/strv.h"
#include "lib/base/try.h"
#include "lib/wire/messages-parts.h"
#include "lib/wire/skip.h"

#define HOSTNAME_TEXT_MAX 255u
#define CPUS_MAX 65536u

/* ---- welcome ---- */

int welcome_append(sd_bus_message *m, const struct welcome *w) {
        if (sd_id128_is_null(w->cluster) || w->heartbeat_usec == 0 || w->lost_usec == 0)
                return -EINVAL;
        int r = sd_bus_message_open_container(m, 'r', "qqsayttttt");
        if (r < 0)
                return r;
        TRY(sd_bus_message_append(m, "qq", w->major, w->minor));
        TRY(link_append_text(m, w->build, LINK_TEXT_MAX));
        TRY(link_append_id128(m, w->cluster));
        TRY(sd_bus_message_append(m, "ttttt", w->term, w->epoch, w->heartbeat_usec, w->lost_usec,
                                  w->spread_usec));
        return sd_bus_message_close_container(m);
}

void welcome_done(struct welcome *w) {
        free(w->build);
        *w = (struct welcome){};
}

int link_refusal_append(sd_bus_message *error, const struct link_refusal *x) {
        int r = link_append_id128(error, x->cluster);

        return r < 0 ? r : sd_bus_message_append_basic(error, 't', &x->term);
}

int link_refusal_read(sd_bus_message *error, struct link_refusal *ret) {
        struct link_refusal x;

        if (sd_bus_message_rewind(error, true) < 0 || message_skip(error, "s") < 0 ||
            link_read_id128(error, &x.cluster) <= 0 || sd_bus_message_read_basic(error, 't', &x.term) <= 0)
                return 0;
        *ret = x;
        return 1;
}

static int welcome_read_fields(sd_bus_message *m, struct welcome *w) {
        int r;
        if ((r = sd_bus_message_read(m, "qq", &w->major, &w->minor)) <= 0)
                return link_bad(r);
        if ((r = link_read_text(m, LINK_TEXT_MAX, &w->build)) <= 0)
                return link_bad(r);
        if ((r = link_read_id128(m, &w->cluster)) <= 0)
                return link_bad(r);
        if ((r = sd_bus_message_read(m, "ttttt", &w->term, &w->epoch, &w->heartbeat_usec, &w->lost_usec,
                                     &w->spread_usec)) <= 0)
                return link_bad(r);
        return w->heartbeat_usec > 0 && w->lost_usec > 0 ? 1 : -EBADMSG;
}

int welcome_read(sd_bus_message *m, struct welcome *ret) {
        _cleanup_(welcome_done) struct welcome w = {};
        int r = sd_bus_message_enter_container(m, 'r', "qqsayttttt");
        if (r <= 0)
                return r < 0 ? link_bad(r) : 0;
        TRY(welcome_read_fields(m, &w));
        if ((r = sd_bus_message_exit_container(m)) < 0)
                return link_bad(r);
        *ret = w;
        w = (struct welcome){};
        return 1;
}

int welcome_append_extra(sd_bus_message *m, bool calls) {
        return sd_bus_message_append(m, "a{sv}", 1, "calls", "b", (int)calls);
}

static int read_welcome_extra(sd_bus_message *m, const char *key, void *userdata) {
        int calls;

        if (strcmp(key, "calls") != 0)
                return message_skip(m, "v");
        TRY(sd_bus_message_read(m, "v", "b", &calls));
        *(bool *)userdata = calls;
        return 0;
}

int welcome_read_extra(sd_bus_message *m, bool *ret_calls) {
        *ret_calls = false;
        return link_read_entries(m, read_welcome_extra, ret_calls);
}

/* ---- inventory ---- */

static void gpu_done(struct gpu_info *g) {
        free(g->mig);
        free(g->parent);
        free(g->uuid);
        free(g->model);
        free(g->nodes);
        *g = (struct gpu_info){};
}

void inventory_done(struct inventory *i) {
        free(i->hostname);
        free(i->kernel);
        free(i->os);
        for (size_t n = 0; n < i->n_gpus; n++)
                gpu_done(&i->gpus[n]);
        free(i->gpus);
        strings_free(i->labels);
        strings_free(i->numa);
        free(i->networks);
        free(i->serves.allow);
        free(i->serves.deny);
        *i = (struct inventory){};
}

static size_t address_size(int family) {
        return family == AF_INET ? 4 : family == AF_INET6 ? 16 : 0;
}

static int address_append(sd_bus_message *m, const struct addr *a) {
        int r = sd_bus_message_open_container(m, 'r', "yayq");
        if (r < 0)
                return r;
        TRY(sd_bus_message_append(m, "y", a->family == AF_INET ? 4 : a->family == AF_INET6 ? 6 : 0));
        TRY(sd_bus_message_append_array(m, 'y', a->bytes, address_size(a->family)));
        TRY(sd_bus_message_append(m, "q", a->port));
        return sd_bus_message_close_container(m);
}

static int address_read(sd_bus_message *m, struct addr *ret) {
        struct addr a = {};
        int r = sd_bus_message_enter_container(m, 'r', "yayq");
        if (r <= 0)
                return link_bad(r);
        uint8_t family;
        const void *p;
        size_t n;
        if ((r = sd_bus_message_read(m, "y", &family)) <= 0)
                return link_bad(r);
        if ((r = link_read_bytes(m, sizeof a.bytes, &p, &n)) <= 0)
                return link_bad(r);
        if ((r = sd_bus_message_read(m, "q", &a.port)) <= 0)
                return link_bad(r);
        if (family != 0 && family != 4 && family != 6)
                return -EBADMSG;
        a.family = family == 4 ? AF_INET : family == 6 ? AF_INET6 : AF_UNSPEC;
        if (n != address_size(a.family))
                return -EBADMSG;
        if (n > 0)
                memcpy(a.bytes, p, n);
        if ((r = sd_bus_message_exit_container(m)) < 0)
                return link_bad(r);
        *ret = a;
        return 1;
}

static int gpus_append(sd_bus_message *m, const struct inventory *i) {
        int r = sd_bus_message_open_container(m, 'a', "(ssts)");
        if (r < 0)
                return r;
        for (size_t n = 0; n < i->n_gpus; n++) {
                const struct gpu_info *g = &i->gpus[n];
                if (!g->uuid || g->uuid[0] == '\0')
                        return -EINVAL;
                TRY(sd_bus_message_open_container(m, 'r', "ssts"));
                TRY(link_append_text(m, g->uuid, LINK_GPU_NAME_MAX));
                TRY(link_append_text(m, g->model, LINK_TEXT_MAX));
                TRY(sd_bus_message_append(m, "t", g->memory));
                TRY(link_append_text(m, g->nodes, LINK_TEXT_MAX));
                TRY(sd_bus_message_close_container(m));
        }
        return sd_bus_message_close_container(m);
}

static int gpu_read(sd_bus_message *m, struct gpu_info *ret) {
        _cleanup_(gpu_done) struct gpu_info g = {};
        int r = sd_bus_message_enter_container(m, 'r', "ssts");
        if (r <= 0)
                return r < 0 ? link_bad(r) : 0;
        if ((r = link_read_text(m, LINK_GPU_NAME_MAX, &g.uuid)) <= 0 ||
            (r = link_read_text(m, LINK_TEXT_MAX, &g.model)) <= 0 ||
            (r = sd_bus_message_read(m, "t", &g.memory)) <= 0 ||
            (r = link_read_text(m, LINK_TEXT_MAX, &g.nodes)) <= 0)
                return link_bad(r);
        if (g.uuid[0] == '\0')
                return -EBADMSG;
        if ((r = sd_bus_message_exit_container(m)) < 0)
                return link_bad(r);
        *ret = g;
        g = (struct gpu_info){};
        return 1;
}

static int gpus_read(sd_bus_message *m, struct inventory *i) {
        int r = sd_bus_message_enter_container(m, 'a', "(ssts)");
        if (r <= 0)
                return link_bad(r);
        i->gpus = calloc(LINK_GPUS_MAX, sizeof *i->gpus);
        if (!i->gpus)
                return -ENOMEM;
        for (;;) {
                struct gpu_info g;
                r = gpu_read(m, &g);
                if (r < 0)
                        return r;
                if (r == 0)
                        break;
                if (i->n_gpus >= LINK_GPUS_MAX) {
                        gpu_done(&g);
                        return -EBADMSG;
                }
                i->gpus[i->n_gpus++] = g;
        }
        if ((r = sd_bus_message_exit_container(m)) < 0)
                return link_bad(r);
        return 1;
}

static bool ports_valid(uint16_t first, uint16_t last) {
        return (first == 0) == (last == 0) && first <= last;
}

int inventory_append(sd_bus_message *m, const struct inventory *i) {
        if (i->n_gpus > LINK_GPUS_MAX)
                return -E2BIG;
        if (!ports_valid(i->port_first, i->port_last) || i->cpus == 0 || i->cpus > CPUS_MAX)
                return -EINVAL;
        int r = sd_bus_message_open_container(m, 'r', "sssuta(ssts)qqbb(yayq)");
        if (r < 0)
                return r;
        TRY(link_append_text(m, i->hostname, HOSTNAME_TEXT_MAX));
        TRY(link_append_text(m, i->kernel, LINK_TEXT_MAX));
        TRY(link_append_text(m, i->os, LINK_TEXT_MAX));
        TRY(sd_bus_message_append(m, "ut", i->cpus, i->memory));
        TRY(gpus_append(m, i));
        TRY(sd_bus_message_append(m, "qqbb", i->port_first, i->port_last, (int)i->allow_root,
                                  (int)i->controllers));
        TRY(address_append(m, &i->address));
        return sd_bus_message_close_container(m);
}

static int inventory_read_fields(sd_bus_message *m, struct inventory *i) {
        int r;
        if ((r = link_read_text(m, HOSTNAME_TEXT_MAX, &i->hostname)) <= 0 ||
            (r = link_read_text(m, LINK_TEXT_MAX, &i->kernel)) <= 0 ||
            (r = link_read_text(m, LINK_TEXT_MAX, &i->os)) <= 0 ||
            (r = sd_bus_message_read(m, "ut", &i->cpus, &i->memory)) <= 0 || (r = gpus_read(m, i)) <= 0 ||
            (r = sd_bus_message_read(m, "qq", &i->port_first, &i->port_last)) <= 0 ||
            (r = link_read_bool(m, &i->allow_root)) <= 0 || (r = link_read_bool(m, &i->controllers)) <= 0 ||
            (r = address_read(m, &i->address)) <= 0)
                return link_bad(r);
        if (!ports_valid(i->port_first, i->port_last) || i->cpus == 0 || i->cpus > CPUS_MAX)
                return -EBADMSG;
        return 1;
}

int inventory_read(sd_bus_message *m, struct inventory *ret) {
        _cleanup_(inventory_done) struct inventory i = {};
        int r = sd_bus_message_enter_container(m, 'r', "sssuta(ssts)qqbb(yayq)");
        if (r <= 0)
                return r < 0 ? link_bad(r) : 0;
        TRY(inventory_read_fields(m, &i));
        if ((r = sd_bus_message_exit_container(m)) < 0)
                return link_bad(r);
        *ret = i;
        i = (struct inventory){};
        return 1;
}

/* ---- units and their ends ---- */

int unit_report_append(sd_bus_message *m, const struct unit_report *u) {
        const char *state = unit_state_to_string(u->state);
        if (!state)
                return -EINVAL;
        TRY(sd_bus_message_open_container(m, 'r', LINK_ID_SIGNATURE "saytb"));
        TRY(executor_id_append(m, &u->id));
        TRY(sd_bus_message_append(m, "s", state));
        TRY(link_append_id128(m, u->invocation));
        TRY(sd_bus_message_append(m, "tb", u->started_real, (int)u->stop_requested));
        return sd_bus_message_close_container(m);
}

/* The invocation id: null while a unit is not started yet. */
static int read_invocation(sd_bus_message *m, sd_id128_t *ret) {
        const void *p;
        size_t n;
        int r = link_read_bytes(m, sizeof ret->bytes, &p, &n);
        if (r <= 0)
                return link_bad(r);
        if (n != sizeof ret->bytes)
                return -EBADMSG;
        memcpy(ret->bytes, p, n);
        return 1;
}

int unit_report_read(sd_bus_message *m, struct unit_report *ret) {
        struct unit_report u = {};
        const char *state;
        int r = sd_bus_message_enter_container(m, 'r', LINK_ID_SIGNATURE "saytb");
        if (r <= 0)
                return r < 0 ? link_bad(r) : 0;
        if ((r = executor_id_read(m, &u.id)) <= 0 || (r = sd_bus_message_read(m, "s", &state)) <= 0 ||
            (r = read_invocation(m, &u.invocation)) <= 0 ||
            (r = sd_bus_message_read(m, "t", &u.started_real)) <= 0 ||
            (r = link_read_bool(m, &u.stop_requested)) <= 0)
                return link_bad(r);
        u.state = unit_state_from_string(state);
        if ((int)u.state < 0)
                return -EBADMSG;
        if ((r = sd_bus_message_exit_container(m)) < 0)
                return link_bad(r);
        *ret = u;
        return 1;
}

int exit_report_append(sd_bus_message *m, const struct exit_report *e) {
        if (e->result[0] == '\0')
                return -EINVAL;
        TRY(sd_bus_message_open_container(m, 'r', LINK_ID_SIGNATURE "ayssibbttttttts"));
        TRY(executor_id_append(m, &e->id));
        TRY(link_append_id128(m, e->invocation));
        TRY(link_append_text(m, e->result, sizeof e->result - 1));
        TRY(link_append_text(m, e->code, sizeof e->code - 1));
        TRY(sd_bus_message_append(m, "ibbttttttt", e->status, (int)e->stop_requested, (int)e->stop_local,
                                  e->started_real, e->ended_real, e->memory_peak, e->cpu_usec, e->io_read,
                                  e->io_write, e->oom_kills));
        TRY(link_append_text(m, e->detail, LINK_TEXT_MAX));
        return sd_bus_message_close_container(m);
}

void exit_report_done(struct exit_report *e) {
        free(e->detail);
        *e = (struct exit_report){};
}

int exit_report_read(sd_bus_message *m, struct exit_report *ret) {
        _cleanup_(exit_report_done) struct exit_report e = {};
        int r = sd_bus_message_enter_container(m, 'r', LINK_ID_SIGNATURE "ayssibbttttttts");
        if (r <= 0)
                return r < 0 ? link_bad(r) : 0;
        if ((r = executor_id_read(m, &e.id)) <= 0 || (r = read_invocation(m, &e.invocation)) <= 0 ||
            (r = link_read_text_into(m, e.result, sizeof e.result)) <= 0 ||
            (r = link_read_text_into(m, e.code, sizeof e.code)) <= 0 ||
            (r = sd_bus_message_read(m, "i", &e.status)) <= 0 ||
            (r = link_read_bool(m, &e.stop_requested)) <= 0 || (r = link_read_bool(m, &e.stop_local)) <= 0 ||
            (r = sd_bus_message_read(m, "ttttttt", &e.started_real, &e.ended_real, &e.memory_peak,
                                     &e.cpu_usec, &e.io_read, &e.io_write, &e.oom_kills)) <= 0 ||
            (r = link_read_text(m, LINK_TEXT_MAX, &e.detail)) <= 0)
                return link_bad(r);
        if (e.result[0] == '\0')
                return -EBADMSG;
        if ((r = sd_bus_message_exit_container(m)) < 0)
                return link_bad(r);
        *ret = e;
        e = (struct exit_report){};
        return 1;
}
