/* SPDX-License-Identifier: Apache-2.0 */
/* Rendezvous epochs: whenever who is where in a job changes, its epoch rises, and the executors that run are
 * told who their peers are now. */
#pragma once

#include "masterd/job/job.h"

struct manager;
struct node;

/* Places of the job have changed, or may have: raises the epoch in the open batch if so, and has those who
 * run told in a moment (several changes in one). */
void epochs_update(struct manager *m, struct job *j);

/* An executor runs that may have been ordered under an earlier epoch. */
void epochs_running(struct manager *m, struct executor *e);

/* The host has registered, and said which epochs its trainers know. */
void epochs_registered(struct manager *m, struct node *node);
