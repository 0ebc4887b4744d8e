/* SPDX-License-Identifier: Apache-2.0 */
/* Where primus-starter is met: dbus/org.primus.Starter1.xml has what it does. */
#pragma once

#define STARTER_SOCKET "/run/primus/starter.sock"
#define STARTER_PATH "/org/primus/Starter1"
#define STARTER_UNITS "org.primus.Starter1.Units"
#define STARTER_OBSERVE "org.primus.Starter1.Observe"
#define STARTER_JOURNAL "org.primus.Starter1.Journal"
