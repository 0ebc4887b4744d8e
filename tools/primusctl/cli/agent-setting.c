/* SPDX-License-Identifier: Apache-2.0 */
/* A look at agentd.conf without the daemon: the last one of the files that sets the key counts. */
#include "tools/primusctl/cli/agent-setting.h"

#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/file.h"

#define FILE_MAX (256u << 10)

static void last_value(const char *text, const char *key, char **value) {
        size_t l = strlen(key);

        for (const char *line = text; line && *line;
             line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
                const char *p = line + strspn(line, " \t"), *v;
                if (strncmp(p, key, l) != 0)
                        continue;
                v = p + l + strspn(p + l, " \t");
                if (*v != '=')
                        continue;
                v += 1 + strspn(v + 1, " \t");
                free(*value);
                *value = strndup(v, strcspn(v, "\r\n"));
        }
}

int agent_setting(const char *root, const char *key, char **ret) {
        static const char *const patterns[] = { PRIMUS_SYSCONFDIR "/agentd.conf",
                                                PRIMUS_SYSCONFDIR "/agentd.conf.d/*.conf",
                                                "/run/primus/agentd.conf.d/*.conf" };
        char *value = NULL;

        for (size_t i = 0; i < ELEMENTSOF(patterns); i++) {
                char full[4096];
                glob_t g;
                if (snprintf(full, sizeof(full), "%s%s", root, patterns[i]) >= (int)sizeof(full) ||
                    glob(full, 0, NULL, &g) != 0)
                        continue;
                for (size_t k = 0; k < g.gl_pathc; k++) {
                        _cleanup_free_ char *text = NULL;
                        if (read_file(g.gl_pathv[k], FILE_MAX, &text, NULL) >= 0)
                                last_value(text, key, &value);
                }
                globfree(&g);
        }
        if (!value)
                return -ENOENT;
        *ret = value;
        return 0;
}
