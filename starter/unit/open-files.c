/* SPDX-License-Identifier: Apache-2.0 */
/* Invariant: what systemd gives is raised, never lowered. */
#include "starter/unit/open-files.h"

#include "lib/base/cleanup.h"
#include "lib/base/try.h"
#include "starter/unit/property.h"

struct open_files open_files_decide(uint32_t at_least, uint64_t soft, uint64_t hard) {
        const uint64_t raised = MIN((uint64_t)at_least, hard);

        return raised > soft ? (struct open_files){ raised, hard } : (struct open_files){};
}

static int ask_limit(sd_bus *systemd, const char *name, uint64_t *ret) {
        return sd_bus_get_property_trivial(systemd, "org.freedesktop.systemd1", "/org/freedesktop/systemd1",
                                           "org.freedesktop.systemd1.Manager", name, NULL, 't', ret);
}

int open_files_ask(sd_bus *systemd, uint32_t at_least, struct open_files *ret) {
        uint64_t soft, hard;

        TRY(ask_limit(systemd, "DefaultLimitNOFILESoft", &soft));
        TRY(ask_limit(systemd, "DefaultLimitNOFILE", &hard));
        *ret = open_files_decide(at_least, soft, hard);
        return 0;
}

/* Both: systemd makes one alone the other one, too. */
int open_files_append(sd_bus_message *m, const struct open_files *f) {
        if (f->soft == 0)
                return 0;
        TRY(property_u64(m, "LimitNOFILE", f->hard));
        return property_u64(m, "LimitNOFILESoft", f->soft);
}
