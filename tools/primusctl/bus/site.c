/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/primusctl/bus/site.h"

#include <errno.h>
#include <string.h>

#include "lib/base/cleanup.h"

static int read_layers(sd_bus_message *m, struct layers *l, char **ret_error) {
        const char *name, *text;
        int r = sd_bus_message_enter_container(m, 'a', "(ss)");

        while (r >= 0 && (r = sd_bus_message_read(m, "(ss)", &name, &text)) > 0)
                r = layers_add(l, name, text, strlen(text), ret_error);
        return r < 0 ? r : sd_bus_message_exit_container(m);
}

int site_layers(struct cli *c, struct layers **ret) {
        _cleanup_(sd_bus_message_unref_p) sd_bus_message *m = NULL, *reply = NULL;
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        _cleanup_(layers_free_p) struct layers *l = layers_new();
        _cleanup_free_ char *why = NULL;
        int r;

        if (!l)
                return cli_oom(c);
        *ret = NULL;
        r = cli_manager_call(c, "GetJobDefaults", &m);
        if (r)
                return r;
        r = cli_send(c, m, &error, &reply);
        /* A master of before this method has nothing to say. */
        if (r < 0 && sd_bus_error_has_name(&error, SD_BUS_ERROR_UNKNOWN_METHOD))
                return 0;
        if (r < 0)
                return cli_call_failed(c, &error, r, NULL, NULL);
        r = read_layers(reply, l, &why);
        if (r == -EBADMSG && why)
                return cli_fail(c, "the site's job defaults cannot be read by this primusctl: %s", why);
        if (r < 0)
                return cli_bad_reply(c, r);
        *ret = TAKE_PTR(l);
        return 0;
}
