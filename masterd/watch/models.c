/* SPDX-License-Identifier: Apache-2.0 */
/* Invariant: a checkpoint's held counts the versions of it that are not archived. */
#include "masterd/watch/models.h"

#include <errno.h>
#include <string.h>

#include "lib/base/bits.h"
#include "lib/base/clock.h"
#include "lib/base/try.h"
#include "masterd/core/manager.h"
#include "masterd/watch/watch-parts.h"

static void hold_checkpoint(struct manager *m, const struct model *model, int by) {
        struct checkpoint *x = checkpoints_get(m->watch->checkpoints, model->checkpoint);

        if (x)
                x->held += (uint32_t)by;
}

static void put_model(struct manager *m, const struct model *x) {
        store_put_model(m->store, &(struct model_record){
                                          .owner = x->owner,
                                          .name = x->name,
                                          .version = x->version,
                                          .checkpoint = x->checkpoint,
                                          .path = x->path,
                                          .host = x->host,
                                          .metric = x->metric,
                                          .value = double_bits(x->value),
                                          .step = x->step,
                                          .registered_real = x->registered_real,
                                          .note = x->note,
                                          .labels = x->labels,
                                          .archived = x->archived,
                                  });
        manager_touch(m);
}

static int load_model(void *userdata, const struct model_record *r) {
        struct manager *m = userdata;
        const struct model model = { .owner = r->owner,
                                     .name = r->name,
                                     .version = r->version,
                                     .checkpoint = r->checkpoint,
                                     .path = r->path,
                                     .host = r->host,
                                     .metric = r->metric,
                                     .value = bits_double(r->value),
                                     .step = r->step,
                                     .registered_real = r->registered_real,
                                     .note = r->note,
                                     .labels = r->labels,
                                     .archived = r->archived };
        struct model *x;
        int k = model_name_valid(r->name) && r->version > 0 ? models_add(m->watch->models, &model, &x)
                                                            : -EUCLEAN;

        if (k < 0)
                return k == -ENOMEM ? k : -EUCLEAN;
        if (!x->archived)
                hold_checkpoint(m, x, 1);
        return 0;
}

int models_load(struct manager *m) {
        return store_load_models(m->store, load_model, m);
}

const struct models *models_of(const struct manager *m) {
        return m->watch->models;
}

int model_register(struct manager *m, const struct checkpoint *x, const char *name, const char *note,
                   const char *labels, uint32_t *ret_version) {
        const struct model model = { .owner = x->facts.owner,
                                     .name = name,
                                     .checkpoint = x->id,
                                     .path = x->facts.path,
                                     .host = x->facts.host,
                                     .metric = x->facts.metric,
                                     .value = x->facts.value,
                                     .step = x->facts.step,
                                     .registered_real = now_real(),
                                     .note = note,
                                     .labels = labels };
        struct model *added;

        if (x->marked)
                return -EBUSY;
        TRY(models_add(m->watch->models, &model, &added));
        hold_checkpoint(m, added, 1);
        put_model(m, added);
        *ret_version = added->version;
        return 0;
}

int model_edit(struct manager *m, struct model *model, const char *note, const char *labels,
               const bool *archived) {
        const struct checkpoint *x = checkpoints_get(m->watch->checkpoints, model->checkpoint);
        const bool archive = archived ? *archived : model->archived;

        if (model->archived && !archive && x && x->marked)
                return -EBUSY;
        TRY(models_edit(model, note, labels));
        if (model->archived != archive)
                hold_checkpoint(m, model, archive ? -1 : 1);
        model->archived = archive;
        put_model(m, model);
        return 0;
}
