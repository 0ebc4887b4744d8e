/* SPDX-License-Identifier: Apache-2.0 */
/* A job's /dev/shm on a host: a tmpfs of its own at /run/primus/shm/NUMBER.UID8, mounted by systemd and
 * seen as /dev/shm by those of its executors whose role asked for it. Pure but for the names of directories.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-id128.h>

#define SHM_DIR "/run/primus/shm"
#define SHM_NAME_MAX 64

struct shm_names {
        char path[SHM_NAME_MAX];
        char unit[SHM_NAME_MAX]; /* "run-primus-shm-418.9f86d081.mount" */
};
void shm_names(uint32_t job, sd_id128_t job_uid, struct shm_names *ret);
/* The other way round, of a unit's name or of a directory's (NUMBER.UID8). */
bool shm_unit_parse(const char *unit, struct shm_names *ret);
bool shm_entry_parse(const char *entry, struct shm_names *ret);
