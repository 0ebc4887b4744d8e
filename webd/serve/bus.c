/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/try.h"
#include "webd/serve/serve-parts.h"

void serve_bus_close(struct serve *s) {
        if (!s->bus)
                return;
        (void)sd_bus_detach_event(s->bus);
        s->bus = sd_bus_close_unref(s->bus);
}

int serve_bus(struct serve *s, sd_bus **ret) {
        if (s->bus && sd_bus_is_open(s->bus) <= 0) {
                exchanges_end(s, 502, "The bus has gone; try again");
                events_bus_gone(s->events);
                serve_bus_close(s);
        }
        if (!s->bus) {
                bool agent;

                TRY(s->options.host ? sd_bus_open_system_remote(&s->bus, s->options.host)
                                    : master_bus_open(&s->bus, &agent));
                TRY(sd_bus_attach_event(s->bus, s->event, SD_EVENT_PRIORITY_NORMAL));
        }
        *ret = s->bus;
        return 0;
}
