/* SPDX-License-Identifier: Apache-2.0 */
/* job-keys: the keys of a job's configuration that take a text, from the tables that masterd reads it by: a
 * line for each, its type, its greatest length, and its path ("role[].command"; "env{}" is an object of
 * texts). */
#include <stdio.h>
#include <string.h>

#include "masterd/spec/schema.h"

#define DEPTH_MAX 12

static void show(const struct schema *s, const char *path, bool live, unsigned depth);

static void show_key(const struct key *k, const char *path, bool live, unsigned depth) {
        char name[512];

        live = live && k->status == STATUS_LIVE;
        snprintf(name, sizeof(name), "%s%s%s", path, *path ? "." : "", k->name);
        switch (k->type) {
        case KEY_TEXT:
                printf("%s text %llu %s\n", live ? "live" : "idle", (unsigned long long)k->max, name);
                break;
        case KEY_ENUM:
        case KEY_DURATION:
        case KEY_SIZE:
        case KEY_TIME:
                printf("%s word 0 %s\n", live ? "live" : "idle", name);
                break;
        case KEY_NODES:
        case KEY_TEXTS:
                printf("%s texts 0 %s[]\n", live ? "live" : "idle", name);
                break;
        case KEY_MAP:
                printf("%s map 0 %s{}\n", live ? "live" : "idle", name);
                break;
        case KEY_LIST:
                strncat(name, "[]", sizeof(name) - strlen(name) - 1);
                show(k->message, name, live, depth + 1);
                break;
        case KEY_MESSAGE:
                show(k->message, name, live, depth + 1);
                break;
        default:
                break;
        }
}

static void show(const struct schema *s, const char *path, bool live, unsigned depth) {
        for (size_t i = 0; depth < DEPTH_MAX && s && i < s->n; i++)
                if (s->keys[i].status != STATUS_UNBUILT)
                        show_key(s->keys + i, path, live, depth);
}

int main(void) {
        show(&job_schema, "", true, 0);
        return 0;
}
