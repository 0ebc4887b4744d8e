/* SPDX-License-Identifier: Apache-2.0 */
/* org.primus.Master1.Node. */
#include <utlist.h>

#include "lib/base/log.h"
#include "lib/wire/errors.h"
#include "masterd/api/api.h"
#include "masterd/caller/authorize.h"
#include "masterd/caller/reply.h"
#include "masterd/core/host-event.h"
#include "masterd/core/manager.h"
#include "masterd/core/notices.h"
#include "masterd/fleet/liveness.h"

/* The userdata of a node's object is the manager: the node is looked up by path, since a call may wait for
 * polkit meanwhile. */
static struct node *node_at(struct manager *m, const char *path) {
        _cleanup_free_ char *name = NULL;

        return sd_bus_path_decode(path, MASTER_NODE_PREFIX, &name) > 0 ? nodes_get(&m->nodes, name) : NULL;
}

static int declare_dead(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        struct manager *m = userdata;
        struct node *node = node_at(m, sd_bus_message_get_path(call));
        sd_bus_message *reply = NULL;
        int r;

        if (!node)
                return sd_bus_error_set(error, ERROR_NO_SUCH_NODE, "The node is not there any more");
        if (node->state != NODE_SUSPECT && node->state != NODE_LOST)
                return sd_bus_error_setf(
                        error, ERROR_REFUSED,
                        "Node %s is %s: only one that is SUSPECT or LOST can be declared dead", node->name,
                        node_state_to_string(node->state));
        r = sd_bus_message_new_method_return(call, &reply);
        if (r < 0)
                return r;
        host_event(m, node, LOG_NOTICE, "dead", "is declared dead by uid %u", uid);
        liveness_lost(m, node, true);
        manager_schedule(m);
        return manager_reply_later(m, reply);
}

static int on_declare_dead(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        return api_with_permission(userdata, call, OWNER_NONE, ACTION_MANAGE_NODES, declare_dead, error);
}

static void on_events(void *userdata, int error, const struct node_event_record *list, size_t n) {
        sd_bus_message *call = userdata, *reply = NULL;
        int r = error < 0 ? error : reply_list_new(call, "ttss", &reply);

        for (size_t i = 0; r >= 0 && i < n; i++)
                r = sd_bus_message_append(reply, "(ttss)", list[i].seq, list[i].time_real, list[i].kind,
                                          list[i].text);
        reply_list_answer(call, reply, r);
}

static int list_events(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        struct manager *m = userdata;
        struct node *node = node_at(m, sd_bus_message_get_path(call));
        uint64_t after;
        int r;

        if (!node)
                return sd_bus_error_set(error, ERROR_NO_SUCH_NODE, "The node is not there any more");
        r = sd_bus_message_read_basic(call, 't', &after);
        if (r < 0)
                return r;
        r = store_query_node_events(m->store, node->name, after, on_events, sd_bus_message_ref(call));
        if (r < 0)
                sd_bus_message_unref(call);
        return r;
}

static int on_list_events(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        return api_with_caller(userdata, call, list_events, error);
}

static int get_state(sd_bus *bus, const char *path, const char *interface, const char *property,
                     sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        struct node *node = node_at(userdata, path);

        return node ? sd_bus_message_append(reply, "s", node_shown_state(node)) : -ENOENT;
}

static int get_address(sd_bus *bus, const char *path, const char *interface, const char *property,
                       sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        struct node *node = node_at(userdata, path);
        char text[ADDR_TEXT_MAX];

        if (!node)
                return -ENOENT;
        return sd_bus_message_append(reply, "s",
                                     node->address.family ? addr_format(&node->address, text) : "");
}

int api_append_conditions(sd_bus_message *reply, struct manager *m, const struct node *node) {
        const struct node_condition *x;
        int r = 0;

        DL_FOREACH (node->conditions, x) {
                enum condition_severity s = node_condition_severity(&x->c, m->conf.conditions);
                if (r >= 0 && s > CONDITION_FINE)
                        r = sd_bus_message_append(reply, "(sssst)", condition_kind_to_string(x->c.kind),
                                                  x->c.subject, condition_severity_to_string(s), x->c.text,
                                                  x->c.since_real);
        }
        return r;
}

static int get_conditions(sd_bus *bus, const char *path, const char *interface, const char *property,
                          sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        struct node *node = node_at(userdata, path);
        int r = node ? sd_bus_message_open_container(reply, 'a', "(sssst)") : -ENOENT;

        if (r >= 0)
                r = api_append_conditions(reply, userdata, node);
        return r < 0 ? r : sd_bus_message_close_container(reply);
}

static int get_name(sd_bus *bus, const char *path, const char *interface, const char *property,
                    sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        struct node *node = node_at(userdata, path);

        return node ? sd_bus_message_append(reply, "s", node->name) : -ENOENT;
}

static int get_epoch(sd_bus *bus, const char *path, const char *interface, const char *property,
                     sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        struct node *node = node_at(userdata, path);

        return node ? sd_bus_message_append(reply, "t", node->epoch) : -ENOENT;
}

static int get_boot(sd_bus *bus, const char *path, const char *interface, const char *property,
                    sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        struct node *node = node_at(userdata, path);
        char text[SD_ID128_STRING_MAX];

        return node ? sd_bus_message_append(reply, "s", sd_id128_to_string(node->boot_id, text)) : -ENOENT;
}

const sd_bus_vtable api_node_vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_PROPERTY("Name", "s", get_name, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("State", "s", get_state, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
        SD_BUS_PROPERTY("Address", "s", get_address, 0, 0),
        SD_BUS_PROPERTY("Conditions", "a(sssst)", get_conditions, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
        SD_BUS_PROPERTY("Epoch", "t", get_epoch, 0, 0),
        SD_BUS_PROPERTY("BootId", "s", get_boot, 0, 0),
        SD_BUS_METHOD("DeclareDead", "", "", on_declare_dead, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("Cordon", "s", "", api_on_node_cordon, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("Uncordon", "", "s", api_on_node_uncordon, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("DisableGPU", "ss", "", api_on_node_disable_gpu, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("EnableGPU", "s", "", api_on_node_enable_gpu, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("Drain", "a{sv}", "", api_on_node_drain, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("SetLabels", "as", "", api_on_node_set_labels, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("SetMaintenance", "tts", "", api_on_node_set_maintenance, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("CancelMaintenance", "t", "", api_on_node_cancel_maintenance,
                      SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("ListEvents", "t", "a(ttss)", on_list_events, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("Describe", "", "a{sv}", api_on_node_describe, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_VTABLE_END,
};
