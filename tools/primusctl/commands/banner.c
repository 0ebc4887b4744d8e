/* SPDX-License-Identifier: Apache-2.0 */
/* primusctl banner. */
#include <jansson.h>
#include <stdio.h>

#include "tools/primusctl/cli/commands.h"
#include "tools/primusctl/cli/text.h"

static int set_text(struct cli *c, const char *text) {
        _cleanup_(sd_bus_message_unref_p) sd_bus_message *m = NULL;
        int r = cli_manager_call(c, "SetBanner", &m);

        if (r)
                return r;
        if (sd_bus_message_append(m, "s", text) < 0)
                return cli_oom(c);
        return cli_call(c, m, NULL, NULL);
}

static int show_text(struct cli *c) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        _cleanup_free_ char *text = NULL;
        int r = cli_connect(c);

        if (r)
                return r;
        r = sd_bus_get_property_string(c->bus, MASTER_NAME, MASTER_PATH, MASTER_MANAGER, "Banner", &error,
                                       &text);
        if (r < 0)
                return cli_call_failed(c, &error, r, NULL, NULL);
        text_clean(text);
        if (c->json)
                return cli_print_json(c, json_pack("{s:s}", "banner", text));
        if (*text)
                puts(text);
        else
                fprintf(stderr, "There is no banner\n");
        return CLI_OK;
}

static int banner_run(struct cli *c, void *options, char **args, size_t n) {
        (void)options;
        return n == 0 ? show_text(c) : set_text(c, args[0]);
}

const struct command banner_command = {
        .name = "banner",
        .arguments = "[TEXT]",
        .help = "Show, or set, what the administrators say to everybody",
        .details =
                "One line, which stands on top of the page. An empty one takes it away. To set it takes the right to\n"
                "manage hosts.",
        .min = 0,
        .max = 1,
        .run = banner_run,
};
