/* SPDX-License-Identifier: Apache-2.0 */
/* primus-state: backup and restore. Both return an exit status. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "tools/state/manifest.h"

#define STATE_USER "primus"

struct backup_options {
        const char *to; /* a file, "-", or with keep a directory */
        bool bundles;
        bool plain;    /* not compressed */
        uint32_t keep; /* > 0: to is a directory, in which so many are kept */
};
int state_backup(const struct backup_options *o);

struct restore_options {
        const char *from; /* a file, or "-" */
        bool check;       /* look at it, change nothing */
        bool no_settings;
        bool with_hooks;  /* programs too, which this host runs */
        bool without_mac; /* nobody vouches for it: its state alone */
        const char *key;  /* a file with the key that it was sealed with; NULL: this host's */
};
int state_restore(const struct restore_options *o);

/* StateDirectory= of masterd.conf; allocated. */
int state_directory(char **ret);
