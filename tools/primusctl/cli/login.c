/* SPDX-License-Identifier: Apache-2.0 */
/* Invariant: what is read is a name that ssh takes for no option. */
#include "tools/primusctl/cli/login.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/file.h"
#include "tools/primusctl/cli/ssh-host.h"

#define FILE_MAX 1024u

char *login_path(void) {
        const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
        char *path;
        int r;

        if (config && *config == '/')
                r = asprintf(&path, "%s/primus/login", config);
        else if (home && *home == '/')
                r = asprintf(&path, "%s/.config/primus/login", home);
        else
                return NULL;
        return r < 0 ? NULL : path;
}

char *login_host(void) {
        _cleanup_free_ char *path = login_path(), *text = NULL, *name = NULL;
        const char *port;

        if (!path || read_file(path, FILE_MAX, &text, NULL) < 0)
                return NULL;
        text[strcspn(text, "\n")] = 0;
        return ssh_host_split(text, &name, &port) < 0 ? NULL : TAKE_PTR(text);
}
