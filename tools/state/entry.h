/* SPDX-License-Identifier: Apache-2.0 */
/* The names of what a backup holds. Anything else in an archive is refused: no name leads out of the
 * directory that it is unpacked to. Pure. */
#pragma once

#define ENTRY_DATABASE_NAME "primus.db"
#define ENTRY_MANIFEST_NAME "manifest.json"
#define ENTRY_SEAL_NAME                                                                                      \
        "manifest.mac" /* behind the manifest; a Primus that knows of none stops before it                   \
                        */
#define ENTRY_SETTINGS_PREFIX "settings/"
#define ENTRY_BUNDLES_PREFIX "bundles/"
#define ENTRY_SETTING_BYTES_MAX (16u << 20)

enum entry_kind {
        ENTRY_DATABASE,
        ENTRY_SETTING, /* settings/masterd.conf, settings/masterd.conf.d/NAME.conf, settings/hooks/NAME[/NAME]
                        */
        ENTRY_BUNDLE,  /* bundles/UID/SHA256 */
        ENTRY_MANIFEST,
        ENTRY_SEAL,
        _ENTRY_MAX,
        _ENTRY_INVALID = -22,
};

/* _ENTRY_INVALID: not a name of ours. */
enum entry_kind entry_kind_of(const char *name);
