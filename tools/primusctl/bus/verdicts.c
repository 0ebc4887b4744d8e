/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/primusctl/bus/verdicts.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/parse.h"
#include "tools/primusctl/bus/fields.h"
#include "tools/primusctl/cli/text.h"

void verdicts_done(struct verdicts_status *v) {
        for (size_t i = 0; i < v->n; i++) {
                free(v->list[i].kind);
                free(v->list[i].role);
                free(v->list[i].node);
                free(v->list[i].text);
                free(v->list[i].action);
                json_decref(v->list[i].numbers);
        }
        free(v->list);
        *v = (struct verdicts_status){ 0 };
}

static int read_numbers(sd_bus_message *m, void *target) {
        struct verdict_status *v = target;
        int r = sd_bus_message_enter_container(m, 'v', "a{st}");
        const char *name;
        uint64_t value;

        if (r >= 0)
                r = sd_bus_message_enter_container(m, 'a', "{st}");
        while (r >= 0 && (r = sd_bus_message_read(m, "{st}", &name, &value)) > 0)
                (void)json_object_set_new(v->numbers, name, json_integer((json_int_t)value));
        if (r >= 0)
                r = sd_bus_message_exit_container(m);
        return r < 0 ? r : sd_bus_message_exit_container(m);
}

int verdicts_read(sd_bus_message *m, void *verdicts) {
        static const struct field fields[] = {
                { "kind", "s", offsetof(struct verdict_status, kind) },
                { "role", "s", offsetof(struct verdict_status, role) },
                { "node", "s", offsetof(struct verdict_status, node) },
                { "text", "s", offsetof(struct verdict_status, text) },
                { "action", "s", offsetof(struct verdict_status, action) },
                { "index", "u", offsetof(struct verdict_status, index) },
                { "since", "t", offsetof(struct verdict_status, since) },
                { "found", "t", offsetof(struct verdict_status, found) },
                { "acted", "t", offsetof(struct verdict_status, acted) },
                { "all", "b", offsetof(struct verdict_status, all) },
                { "numbers", "a{st}", 0, read_numbers },
        };
        struct verdicts_status *v = verdicts;
        int r = sd_bus_message_enter_container(m, 'v', "aa{sv}");

        if (r >= 0)
                r = sd_bus_message_enter_container(m, 'a', "a{sv}");
        while (r >= 0 && (r = sd_bus_message_at_end(m, false)) == 0) {
                struct verdict_status *bigger = realloc(v->list, (v->n + 1) * sizeof(*bigger));

                if (!bigger)
                        return -ENOMEM;
                v->list = bigger;
                bigger[v->n++] = (struct verdict_status){ .numbers = json_object() };
                r = read_fields(m, fields, ELEMENTSOF(fields), bigger + v->n - 1);
        }
        if (r >= 0)
                r = sd_bus_message_exit_container(m);
        return r < 0 ? r : sd_bus_message_exit_container(m);
}

json_t *verdicts_json(const struct verdicts_status *v) {
        json_t *list = json_array();

        for (size_t i = 0; i < v->n; i++) {
                const struct verdict_status *s = v->list + i;
                json_t *o =
                        json_pack("{s:s, s:b, s:I, s:I, s:s, s:s, s:O}", "kind", s->kind ?: "", "all",
                                  (int)s->all, "since", (json_int_t)s->since, "found", (json_int_t)s->found,
                                  "text", s->text ?: "", "action", s->action ?: "", "numbers", s->numbers);

                if (o && s->role)
                        (void)json_object_update_new(o,
                                                     json_pack("{s:s, s:I, s:s}", "role", s->role, "index",
                                                               (json_int_t)s->index, "node", s->node ?: ""));
                if (o && s->acted)
                        (void)json_object_set_new(o, "acted", json_integer((json_int_t)s->acted));
                (void)json_array_append_new(list, o);
        }
        return list;
}

void verdicts_print(const struct cli *c, const struct verdicts_status *v) {
        for (size_t i = 0; i < v->n; i++) {
                const struct verdict_status *s = v->list + i;
                char since[FORMAT_DURATION_MAX], *text = s->text ?: (char *)"";
                uint64_t usec = usec_sub(now_real(), s->since) / USEC_PER_SEC * USEC_PER_SEC;

                text_clean(text);
                printf("  %s%s%s for %s", c->color ? color_sequence(COLOR_YELLOW) : "", s->kind ?: "",
                       c->color ? COLOR_RESET : "", format_duration(usec, since, sizeof(since)));
                if (s->role)
                        printf(": %s/%" PRIu32 " on %s", s->role, s->index, s->node ?: "?");
                printf(": %s", text);
                if (s->acted)
                        printf(" (%s)", s->action ?: "");
                putchar('\n');
        }
}
