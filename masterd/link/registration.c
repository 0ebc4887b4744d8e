/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a registration. Invariant: arrays grow with what was really read, not with what the sender claims.
 */
#include "masterd/link/registration.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/unitname.h"
#include "lib/wire/skip.h"

/* Room for one more element of an array that grows by halves. */
static void *grow(void *array, size_t n, size_t *allocated, size_t element) {
        void *bigger;

        if (n < *allocated)
                return array;
        bigger = reallocarray(array, n + n / 2 + 16, element);
        if (bigger)
                *allocated = n + n / 2 + 16;
        return bigger;
}

static int read_units(sd_bus_message *m, struct registration *g) {
        size_t allocated = 0;
        int r = sd_bus_message_enter_container(m, 'a', "((ayusuu)saytb)");

        while (r >= 0 && sd_bus_message_at_end(m, false) == 0) {
                struct unit_report *list;
                if (g->n_units >= LINK_UNITS_MAX)
                        return -EBADMSG;
                list = grow(g->units, g->n_units, &allocated, sizeof(*list));
                if (!list)
                        return -ENOMEM;
                g->units = list;
                list[g->n_units] = (struct unit_report){};
                r = unit_report_read(m, list + g->n_units);
                if (r >= 0)
                        g->n_units++;
        }
        return r < 0 ? r : sd_bus_message_exit_container(m);
}

static int read_exits(sd_bus_message *m, struct registration *g) {
        size_t allocated = 0;
        int r = sd_bus_message_enter_container(m, 'a', "((ayusuu)ayssibbttttttts)");

        while (r >= 0 && sd_bus_message_at_end(m, false) == 0) {
                struct exit_report *list;
                if (g->n_exits >= LINK_UNITS_MAX)
                        return -EBADMSG;
                list = grow(g->exits, g->n_exits, &allocated, sizeof(*list));
                if (!list)
                        return -ENOMEM;
                g->exits = list;
                list[g->n_exits] = (struct exit_report){};
                r = exit_report_read(m, list + g->n_exits);
                if (r >= 0)
                        g->n_exits++;
        }
        return r < 0 ? r : sd_bus_message_exit_container(m);
}

static int read_work(sd_bus_message *m, struct registration *g) {
        size_t allocated = 0;
        const char *name;
        int r = sd_bus_message_enter_container(m, 'v', "as");

        if (r >= 0)
                r = sd_bus_message_enter_container(m, 'a', "s");
        while (r >= 0 && (r = sd_bus_message_read_basic(m, 's', &name)) > 0) {
                struct work *list;
                if (g->n_work >= LINK_WORK_MAX)
                        return -EBADMSG;
                list = grow(g->work, g->n_work, &allocated, sizeof(*list));
                if (!list)
                        return -ENOMEM;
                g->work = list;
                if (work_name_parse(name, &list[g->n_work].job, &list[g->n_work].uid) < 0)
                        return -EBADMSG;
                g->n_work++;
        }
        if (r >= 0)
                r = sd_bus_message_exit_container(m);
        return r < 0 ? r : sd_bus_message_exit_container(m);
}

static int read_conditions(sd_bus_message *m, struct registration *g) {
        struct host_condition c;
        int r = sd_bus_message_enter_container(m, 'v', "a" CONDITION_SIGNATURE);

        g->conditions = calloc(CONDITIONS_MAX, sizeof(*g->conditions));
        if (!g->conditions)
                return -ENOMEM;
        if (r >= 0)
                r = sd_bus_message_enter_container(m, 'a', CONDITION_SIGNATURE);
        while (r >= 0 && (r = host_condition_read(m, &c)) > 0) {
                if (g->n_conditions >= CONDITIONS_MAX)
                        return -EBADMSG;
                if (c.kind >= 0)
                        g->conditions[g->n_conditions++] = c;
        }
        if (r >= 0)
                r = sd_bus_message_exit_container(m);
        return r < 0 ? r : sd_bus_message_exit_container(m);
}

/* As many as there are units, or they are of no use. */
static int read_epochs(sd_bus_message *m, struct registration *g) {
        const void *list;
        size_t size;
        int r = sd_bus_message_enter_container(m, 'v', "at");

        if (r >= 0)
                r = sd_bus_message_read_array(m, 't', &list, &size);
        if (r < 0)
                return r;
        if (size > 0 && size == g->n_units * sizeof(*g->epochs)) {
                g->epochs = malloc(size);
                if (!g->epochs)
                        return -ENOMEM;
                memcpy(g->epochs, list, size);
        }
        return sd_bus_message_exit_container(m);
}

static int read_extra(sd_bus_message *m, struct registration *g) {
        int r = sd_bus_message_enter_container(m, 'a', "{sv}");

        while (r >= 0 && (r = sd_bus_message_enter_container(m, 'e', "sv")) > 0) {
                const char *key;
                r = sd_bus_message_read_basic(m, 's', &key);
                if (r >= 0)
                        r = inventory_read_extra(m, key, &g->inventory);
                if (r == 0)
                        r = strcmp(key, "work") == 0 && !g->work               ? read_work(m, g)
                            : strcmp(key, "conditions") == 0 && !g->conditions ? read_conditions(m, g)
                            : strcmp(key, "epochs") == 0 && !g->epochs         ? read_epochs(m, g)
                                                                               : message_skip(m, "v");
                if (r >= 0)
                        r = sd_bus_message_exit_container(m);
        }
        return r < 0 ? r : sd_bus_message_exit_container(m);
}

int registration_read(sd_bus_message *m, struct registration *g) {
        const char *boot;
        int r;

        r = sd_bus_message_read_basic(m, 's', &boot);
        if (r < 0)
                return r;
        if (sd_id128_from_string(boot, &g->boot_id) < 0)
                return -EBADMSG;
        r = inventory_read(m, &g->inventory);
        if (r >= 0)
                r = read_units(m, g);
        if (r >= 0)
                r = read_exits(m, g);
        if (r >= 0)
                r = read_extra(m, g);
        return r;
}

void registration_done(struct registration *g) {
        inventory_done(&g->inventory);
        for (size_t i = 0; i < g->n_exits; i++)
                exit_report_done(g->exits + i);
        free(g->exits);
        free(g->units);
        free(g->work);
        free(g->epochs);
        free(g->conditions);
        *g = (struct registration){};
}
