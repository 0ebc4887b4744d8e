/* SPDX-License-Identifier: Apache-2.0 */
/* org.primus.Agent1 on the system bus: the vtable and nothing else (dbus/org.primus.Agent1.xml). */
#include "agentd/api/agentbus.h"

#include "agentd/core/manager.h"
#include "agentd/executors/executor-state.h"
#include "agentd/executors/units.h"
#include "agentd/host/conditions.h"
#include "agentd/host/hostwatch.h"
#include "agentd/link/link.h"
#include "agentd/probe/probe.h"
#include "agentd/telemetry/sampling.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/try.h"

#define AGENT_NAME "org.primus.Agent1"
#define AGENT_PATH "/org/primus/Agent1"
#define AGENT_INTERFACE "org.primus.Agent1.Manager"

static int append_unit(const char *unit, const struct unit_facts *f, void *userdata) {
        return sd_bus_message_append(userdata, "(susuuust)", unit, f->id.job, f->id.role, f->id.index,
                                     f->id.attempt, f->uid, executor_state_to_string(f->state),
                                     f->started_real);
}

static int method_list_units(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        struct manager *m = userdata;

        TRY(sd_bus_message_new_method_return(call, &reply));
        TRY(sd_bus_message_open_container(reply, 'a', "(susuuust)"));
        TRY(units_visit(m->units, append_unit, reply));
        TRY(sd_bus_message_close_container(reply));
        return sd_bus_send(NULL, reply, NULL);
}

#define PROPERTY(function, signature, value)                                                                 \
        static int function(sd_bus *bus, const char *path, const char *interface, const char *name,          \
                            sd_bus_message *reply, void *userdata, sd_bus_error *error) {                    \
                struct manager *m = userdata;                                                                \
                return sd_bus_message_append(reply, signature, value);                                       \
        }

static int get_version(sd_bus *bus, const char *path, const char *interface, const char *name,
                       sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        return sd_bus_message_append(reply, "s", PRIMUS_VERSION);
}
PROPERTY(get_node, "s", m->node)
PROPERTY(get_master, "s", m->settings.master ?: "")
PROPERTY(get_connected, "b", (int)(link_bus(m->link) != NULL))
PROPERTY(get_refused, "s", m->refused ?: "")
PROPERTY(get_term, "t", m->fence.term)
PROPERTY(get_epoch, "t", m->fence.epoch)
PROPERTY(get_cpus, "u", m->inventory.cpus)
PROPERTY(get_memory, "t", m->inventory.memory)
PROPERTY(get_limits, "b", (int)m->inventory.controllers)

static int get_gpus(sd_bus *bus, const char *path, const char *interface, const char *name,
                    sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        struct manager *m = userdata;
        int r = sd_bus_message_open_container(reply, 'a', "(ssts)");

        for (size_t i = 0; i < m->inventory.n_gpus && r >= 0; i++) {
                const struct gpu_info *g = &m->inventory.gpus[i];
                r = sd_bus_message_append(reply, "(ssts)", g->uuid, g->model, g->memory, g->nodes);
        }
        return r < 0 ? r : sd_bus_message_close_container(reply);
}

static int append_condition(const struct host_condition *c, void *userdata) {
        return sd_bus_message_append(userdata, "(sssst)", condition_kind_to_string(c->kind), c->subject,
                                     condition_severity_to_string(c->severity), c->text, c->since_real);
}

static int get_conditions(sd_bus *bus, const char *path, const char *interface, const char *name,
                          sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        struct manager *m = userdata;

        TRY(sd_bus_message_open_container(reply, 'a', "(sssst)"));
        TRY(conditions_visit(hostwatch_conditions(m->watch), append_condition, reply));
        return sd_bus_message_close_container(reply);
}

static int get_probes(sd_bus *bus, const char *path, const char *interface, const char *name,
                      sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        const struct probe_program *programs = NULL;
        struct manager *m = userdata;
        size_t n = probe_programs(sampling_probes(m->sampling), &programs);
        int r = sd_bus_message_open_container(reply, 'a', "(sbs)");

        for (size_t i = 0; i < n && r >= 0; i++)
                r = sd_bus_message_append(reply, "(sbs)", programs[i].name, (int)programs[i].up,
                                          programs[i].why);
        return r < 0 ? r : sd_bus_message_close_container(reply);
}

static int get_heard(sd_bus *bus, const char *path, const char *interface, const char *name,
                     sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        struct manager *m = userdata;
        uint64_t heard = m->link_state.acked_boot;

        return sd_bus_message_append(reply, "t", heard > 0 ? now_real() - (now_boot() - heard) : UINT64_C(0));
}

static const sd_bus_vtable vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_METHOD_WITH_ARGS("ListUnits", SD_BUS_NO_ARGS, SD_BUS_RESULT("a(susuuust)", units),
                                method_list_units, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_PROPERTY("Version", "s", get_version, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("Node", "s", get_node, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("Master", "s", get_master, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("Connected", "b", get_connected, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
        SD_BUS_PROPERTY("Refused", "s", get_refused, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
        SD_BUS_PROPERTY("Probes", "a(sbs)", get_probes, 0, 0),
        SD_BUS_PROPERTY("Heard", "t", get_heard, 0, 0),
        SD_BUS_PROPERTY("Term", "t", get_term, 0, 0),
        SD_BUS_PROPERTY("Epoch", "t", get_epoch, 0, 0),
        SD_BUS_PROPERTY("CPUs", "u", get_cpus, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("Memory", "t", get_memory, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("GPUs", "a(ssts)", get_gpus, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
        SD_BUS_PROPERTY("Conditions", "a(sssst)", get_conditions, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
        SD_BUS_PROPERTY("Limits", "b", get_limits, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_VTABLE_END,
};

void agent_bus_changed(struct manager *m, const char *property) {
        (void)sd_bus_emit_properties_changed(m->bus, AGENT_PATH, AGENT_INTERFACE, property, NULL);
}

static int on_name(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        const sd_bus_error *e = sd_bus_message_get_error(reply);

        if (e) /* only busctl and the like miss it */
                log_warning("Cannot take the name " AGENT_NAME " on the system bus: %s",
                            e->message ?: e->name);
        return 0;
}

int agent_bus_offer(struct manager *m) {
        int r = sd_bus_add_object_vtable(m->bus, NULL, AGENT_PATH, AGENT_INTERFACE, vtable, m);

        return r < 0 ? r : sd_bus_request_name_async(m->bus, NULL, AGENT_NAME, 0, on_name, m);
}
