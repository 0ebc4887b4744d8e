/* SPDX-License-Identifier: Apache-2.0 */
/* Ends that agents report: of executors, of units that list a source, of what did not die. */
#pragma once

struct manager;
struct node;
struct exit_report;

void exit_reported(struct manager *m, struct node *node, const struct exit_report *report);
