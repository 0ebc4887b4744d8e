/* SPDX-License-Identifier: Apache-2.0 */
/* org.primus.Master1 on the system bus: vtables and signals, nothing else. The contract is
 * dbus/org.primus.Master1.xml. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-bus.h>

#include "masterd/caller/caller.h"

struct manager;
struct job;
struct executor;
struct node;

/* The state of api. -ENOMEM. */
int api_new(struct manager *m);
void api_free(struct manager *m);

/* Connects to the system bus (asynchronously) and installs the objects; api_publish() then asks for the name.
 */
int api_connect(struct manager *m);
int api_publish(struct manager *m);
void api_disconnect(struct manager *m);

/* ---- between the objects' files ---- */

/* Submit, of a caller that is known. */
int api_submit(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error);

struct submission;
/* Reads the arguments of Submit, for s->owner; submission_done() after, whatever comes back. */
int api_read_submission(struct manager *m, sd_bus_message *call, struct submission *s, sd_bus_error *error);
/* Sets the error of a job to wait for that there is not, and returns its negative errno. */
int api_no_such_dependency(sd_bus_error *error, const char *name);
/* TrySubmit, of a caller that is known. */
int api_try_submit(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error);
/* Reads the value of one of Submit's options. */
int api_read_submit_option(sd_bus_message *call, const char *key, struct submission *s, sd_bus_error *error);
/* Makes a job of the submission and answers the call with it (u number, o job, as warnings) when it is on
 * disk. */
int api_admit(struct manager *m, sd_bus_message *call, struct submission *s, sd_bus_error *error);
/* That answer. */
int api_submitted(struct manager *m, sd_bus_message *call, struct job *j);

/* Of arrays (array-calls.c): an entry of the manager's table, and "array" of GetStatus. */
int api_on_get_element(sd_bus_message *call, void *userdata, sd_bus_error *error);
/* (sssst) of each: kind, subject, what this cluster makes of it, text, since. */
int api_append_conditions(sd_bus_message *reply, struct manager *m, const struct node *node);
/* "labels" of the dictionary that is open. */
int api_append_labels(sd_bus_message *reply, const struct node *node);
/* Which element of an array it is: key says of which; "index" is left out of the searcher. */
int api_append_place(sd_bus_message *reply, const char *key, uint32_t array, uint32_t index);
int api_append_array(sd_bus_message *reply, struct manager *m, const struct job *j);

/* usage-call.c: an entry of the manager's table. */
int api_on_usage(sd_bus_message *call, void *userdata, sd_bus_error *error);

/* telemetry-calls.c: an entry of the manager's table. */
int api_on_list_telemetry(sd_bus_message *call, void *userdata, sd_bus_error *error);

/* backup-call.c: an entry of the manager's table. */
int api_on_backup(sd_bus_message *call, void *userdata, sd_bus_error *error);

/* Hosts by demand (provider-calls.c): entries of the manager's table. */
int api_on_list_providers(sd_bus_message *call, void *userdata, sd_bus_error *error);
int api_on_list_instances(sd_bus_message *call, void *userdata, sd_bus_error *error);
int api_on_plan_instances(sd_bus_message *call, void *userdata, sd_bus_error *error);
int api_on_hold_provider(sd_bus_message *call, void *userdata, sd_bus_error *error);
int api_on_hold_instance(sd_bus_message *call, void *userdata, sd_bus_error *error);
int api_on_start_instance(sd_bus_message *call, void *userdata, sd_bus_error *error);
int api_on_stop_instance(sd_bus_message *call, void *userdata, sd_bus_error *error);
int api_on_take_provider_request(sd_bus_message *call, void *userdata, sd_bus_error *error);
int api_on_answer_provider_request(sd_bus_message *call, void *userdata, sd_bus_error *error);

/* Of savepoints (savepoint-calls.c): entries of the manager's table. */
int api_on_create_token(sd_bus_message *call, void *userdata, sd_bus_error *error);
int api_on_list_tokens(sd_bus_message *call, void *userdata, sd_bus_error *error);
int api_on_revoke_token(sd_bus_message *call, void *userdata, sd_bus_error *error);

/* banner-call.c; to be loaded before the loop runs. */
int api_on_set_banner(sd_bus_message *call, void *userdata, sd_bus_error *error);
int api_get_banner(sd_bus *bus, const char *path, const char *interface, const char *property,
                   sd_bus_message *reply, void *userdata, sd_bus_error *error);
int api_load_banner(struct manager *m);
int api_on_list_checkpoints(sd_bus_message *call, void *userdata, sd_bus_error *error);
int api_on_collect_checkpoints(sd_bus_message *call, void *userdata, sd_bus_error *error);
int api_on_pin_checkpoint(sd_bus_message *call, void *userdata, sd_bus_error *error);
int api_on_forget_checkpoint(sd_bus_message *call, void *userdata, sd_bus_error *error);
/* That checkpoint is to be removed: the error. */
int api_checkpoint_marked(uint64_t id, sd_bus_error *error);
int api_on_list_models(sd_bus_message *call, void *userdata, sd_bus_error *error);
int api_on_register_model(sd_bus_message *call, void *userdata, sd_bus_error *error);
int api_on_edit_model(sd_bus_message *call, void *userdata, sd_bus_error *error);
int api_on_list_savepoints(sd_bus_message *call, void *userdata, sd_bus_error *error);
int api_on_get_savepoint(sd_bus_message *call, void *userdata, sd_bus_error *error);
int api_on_delete_savepoint(sd_bus_message *call, void *userdata, sd_bus_error *error);

/* Of hosts (node-calls.c): entries of the node's table. */
int api_on_node_cordon(sd_bus_message *call, void *userdata, sd_bus_error *error);
int api_on_node_uncordon(sd_bus_message *call, void *userdata, sd_bus_error *error);
int api_on_node_disable_gpu(sd_bus_message *call, void *userdata, sd_bus_error *error);
int api_on_node_enable_gpu(sd_bus_message *call, void *userdata, sd_bus_error *error);
int api_on_node_drain(sd_bus_message *call, void *userdata, sd_bus_error *error);
int api_on_node_set_labels(sd_bus_message *call, void *userdata, sd_bus_error *error);
int api_on_node_set_maintenance(sd_bus_message *call, void *userdata, sd_bus_error *error);
int api_on_node_cancel_maintenance(sd_bus_message *call, void *userdata, sd_bus_error *error);
int api_on_node_describe(sd_bus_message *call, void *userdata, sd_bus_error *error);

/* Of the queue (queue-calls.c). */
int api_on_list_queue(sd_bus_message *call, void *userdata, sd_bus_error *error);
int api_on_get_job_defaults(sd_bus_message *call, void *userdata, sd_bus_error *error);
int api_on_list_pools(sd_bus_message *call, void *userdata, sd_bus_error *error);

extern const sd_bus_vtable api_manager_vtable[], api_job_vtable[], api_node_vtable[], api_job_change_vtable[];

int api_find_job(sd_bus *bus, const char *path, const char *interface, void *userdata, void **ret,
                 sd_bus_error *error);
int api_find_node(sd_bus *bus, const char *path, const char *interface, void *userdata, void **ret,
                  sd_bus_error *error);

/* Runs work (see caller_handler; userdata is the manager) once the caller's uid is known. Returns like a
 * method handler. */
int api_with_caller(struct manager *m, sd_bus_message *call, caller_handler work, sd_bus_error *error);

/* The same for what only the owner may do, root, and whom polkit grants the action. */
int api_with_permission(struct manager *m, sd_bus_message *call, uint32_t owner, const char *action,
                        caller_handler work, sd_bus_error *error);

/* The job of the object that was called. */
struct job *api_job_of(struct manager *m, sd_bus_message *call);
