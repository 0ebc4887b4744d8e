/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that wait for changes of jobs and hosts. */
#pragma once

#include <systemd/sd-bus.h>

struct manager;

int changes_call_start(struct manager *m);
void changes_call_stop(struct manager *m);
/* Something has changed: whoever waits hears of it soon. */
void changes_call_wake(struct manager *m);

/* An entry of the manager's table. */
int api_on_changes(sd_bus_message *call, void *userdata, sd_bus_error *error);
