/* SPDX-License-Identifier: Apache-2.0 */
/* Exit status of the daemons. Invariant: 78 means that the next start would end in the same way. */
#include "lib/base/exit.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <systemd/sd-daemon.h>

#include "lib/base/cleanup.h"
#include "lib/base/log.h"
#include "lib/base/utf8.h"

int exit_person(int r) {
        static const int staying[] = { EPERSON,         EACCES,       EPERM,   EROFS,       ENOTDIR,
                                       EISDIR,          ELOOP,        EUCLEAN, EMEDIUMTYPE, EBADMSG,
                                       EPROTONOSUPPORT, ENAMETOOLONG, EINVAL,  EKEYREJECTED };

        for (size_t i = 0; i < ELEMENTSOF(staying); i++)
                if (r == -staying[i])
                        return -EPERSON;
        return r;
}

/* What the host lacks for the moment, which may well be some user's doing. */
static bool passes(int r) {
        static const int passing[] = {
                ENOMEM, ENFILE, EMFILE, ENOSPC, EDQUOT, EAGAIN, EINTR, EBUSY, ETIMEDOUT
        };

        for (size_t i = 0; i < ELEMENTSOF(passing); i++)
                if (r == -passing[i])
                        return true;
        return false;
}

int exit_person_unless_short(int r) {
        return r < 0 && !passes(r) ? -EPERSON : r;
}

int exit_status(int r) {
        char said[1536];

        if (r >= 0)
                return EXIT_SUCCESS;
        snprintf(said, sizeof(said), "%s", log_last_error());
        if (*said)
                (void)sd_notifyf(false, "STATUS=%s", text_one_line(said));
        return r == -EPERSON ? EXIT_PERSON : EXIT_FAILURE;
}
