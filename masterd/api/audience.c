/* SPDX-License-Identifier: Apache-2.0 */
/* Who gets a job's signals. Invariant: who only looks gets none any more when he may not look any more. */
#include "masterd/api/audience.h"

#include <stdlib.h>
#include <string.h>

#include "masterd/api/api-parts.h"
#include "masterd/api/looking.h"
#include "masterd/caller/people.h"
#include "masterd/core/manager.h"

#define WATCHERS_MAX 32u
#define LOOKERS_MAX 32u
#define LOOKERS_PER_USER 4u
#define LOOKERS_MORE 4u

/* May look at the job, and gets its signals as long as that holds. */
struct looker {
        char *name; /* unique, on the bus; NULL: free */
        uint32_t uid;
        uint64_t since; /* a number that rises */
};

struct audience {
        char *watchers[WATCHERS_MAX]; /* unique names on the bus that get signals by right */
        unsigned next_watcher;
        unsigned n_lookers; /* places, at most LOOKERS_MAX */
        struct looker *lookers;
};

static void watch(struct audience *a, const char *name) {
        char *copy;

        for (unsigned i = 0; i < WATCHERS_MAX && a->watchers[i]; i++)
                if (strcmp(a->watchers[i], name) == 0)
                        return;
        copy = strdup(name);
        if (!copy)
                return;
        free(a->watchers[a->next_watcher]);
        a->watchers[a->next_watcher] = copy;
        a->next_watcher = (a->next_watcher + 1) % WATCHERS_MAX;
}

/* Makes room for a few more. */
static struct looker *more_places(struct audience *a) {
        struct looker *more = reallocarray(a->lookers, a->n_lookers + LOOKERS_MORE, sizeof(*more));

        if (!more)
                return NULL;
        a->lookers = more;
        more += a->n_lookers;
        memset(more, 0, LOOKERS_MORE * sizeof(*more));
        a->n_lookers += LOOKERS_MORE;
        return more;
}

/* A free place, or of this user who has enough the oldest, or of all. NULL: out of memory. */
static struct looker *place_for(struct audience *a, uint32_t uid) {
        struct looker *oldest = a->lookers, *own = NULL;
        unsigned n_own = 0;

        for (struct looker *l = a->lookers; l < a->lookers + a->n_lookers; l++) {
                if (l->since < oldest->since)
                        oldest = l;
                if (!l->name || l->uid != uid)
                        continue;
                n_own++;
                if (!own || l->since < own->since)
                        own = l;
        }
        if (n_own >= LOOKERS_PER_USER)
                return own;
        return a->n_lookers == LOOKERS_MAX || (oldest && !oldest->name) ? oldest : more_places(a);
}

static void look(struct audience *a, const char *name, uint32_t uid) {
        struct looker *l;
        uint64_t last = 0;
        char *copy;

        for (l = a->lookers; l < a->lookers + a->n_lookers; l++) {
                if (l->name && strcmp(l->name, name) == 0)
                        return;
                last = MAX(last, l->since);
        }
        copy = strdup(name);
        l = copy ? place_for(a, uid) : NULL;
        if (!l) {
                free(copy);
                return;
        }
        free(l->name);
        *l = (struct looker){ copy, uid, last + 1 };
}

void audience_add(struct job *j, sd_bus_message *call, uint32_t uid, bool looks) {
        const char *name = sd_bus_message_get_sender(call);

        if (!name)
                return;
        if (!j->audience)
                j->audience = calloc(1, sizeof(*j->audience));
        if (!j->audience)
                return; /* it asks again, or looks at the job now and then */
        if (!looks)
                watch(j->audience, name);
        else if (!audience_has(j, name))
                look(j->audience, name, uid);
}

bool audience_has(const struct job *j, const char *name) {
        for (unsigned i = 0; j->audience && i < WATCHERS_MAX && j->audience->watchers[i]; i++)
                if (strcmp(j->audience->watchers[i], name) == 0)
                        return true;
        return false;
}

void audience_forget(struct job *j) {
        struct audience *a = TAKE_PTR(j->audience);

        if (!a)
                return;
        for (unsigned i = 0; i < WATCHERS_MAX; i++)
                free(a->watchers[i]);
        for (unsigned i = 0; i < a->n_lookers; i++)
                free(a->lookers[i].name);
        free(a->lookers);
        free(a);
}

struct telling {
        struct manager *manager;
        uint32_t number, uid;
        char *watcher;
        watcher_function send;
        char data[];
};

static void telling_free(void *userdata) {
        struct telling *t = userdata;

        free(t->watcher);
        free(t);
}

static void tell(void *userdata) {
        struct telling *t = userdata;
        const struct job *j = manager_job(t->manager, t->number);

        if (j && api_sees(t->manager, t->uid, j))
                t->send(t->manager, t->watcher, t->data);
        telling_free(t);
}

static void tell_looker(struct job *j, const struct looker *w, watcher_function send, const void *data,
                        size_t size) {
        struct telling *t = malloc(sizeof(*t) + size);
        uint32_t uids[2] = { w->uid, j->owner };

        if (!t)
                return;
        *t = (struct telling){ j->manager, j->number, w->uid, strdup(w->name), send };
        memcpy(t->data, data, size);
        if (!t->watcher ||
            people_ask(j->manager->api->people, w->uid, uids, ELEMENTSOF(uids), tell, telling_free, t) < 0)
                telling_free(t);
}

void audience_tell(struct job *j, watcher_function send, const void *data, size_t size) {
        const struct audience *a = j->audience;

        if (!a)
                return;
        for (unsigned i = 0; i < WATCHERS_MAX && a->watchers[i]; i++)
                send(j->manager, a->watchers[i], data);
        for (unsigned i = 0; i < a->n_lookers; i++)
                if (a->lookers[i].name && !audience_has(j, a->lookers[i].name))
                        tell_looker(j, a->lookers + i, send, data, size);
}
