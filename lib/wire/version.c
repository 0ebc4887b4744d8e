/* SPDX-License-Identifier: Apache-2.0 */
/* Versions of the link. Invariant: two programs come to the same answer, whichever of them decides. */
#include "lib/wire/version.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/utf8.h"

#define BUILD_MAX 64u

bool link_versions_fit(uint16_t major, uint16_t minor) {
        return major == LINK_MAJOR && minor <= LINK_MINOR + 1 && minor + 1 >= LINK_MINOR;
}

uint16_t link_minor_spoken(uint16_t peer) {
        return MIN(peer, (uint16_t)LINK_MINOR);
}

const char *link_version_refusal(enum link_side me, const char *build, uint16_t major, uint16_t minor,
                                 char text[static LINK_VERSION_TEXT_MAX]) {
        static const char *const sides[] = { [LINK_AGENT] = "agent", [LINK_MASTER] = "master" };
        enum link_side peer = me == LINK_MASTER ? LINK_AGENT : LINK_MASTER;
        bool newer = major != LINK_MAJOR ? major > LINK_MAJOR : minor > LINK_MINOR;
        char clean[BUILD_MAX + 1];

        utf8_clean(build, strlen(build), clean, sizeof(clean));
        (void)text_one_line(clean);
        snprintf(text, LINK_VERSION_TEXT_MAX,
                 "%s %s speaks link %u.%u, this %s (" PRIMUS_VERSION ") %u.%u: upgrade the %s", sides[peer],
                 clean, major, minor, sides[me], LINK_MAJOR, LINK_MINOR, sides[newer ? me : peer]);
        return text;
}
