/* SPDX-License-Identifier: Apache-2.0 */
/* org.primus.Master1: models. They are their owner's, who is the owner of the checkpoint. Others, root too,
 * look at most: a name is its owner's word. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/try.h"
#include "lib/wire/errors.h"
#include "masterd/api/api.h"
#include "masterd/api/job-calls.h"
#include "masterd/api/options.h"
#include "masterd/caller/reply.h"
#include "masterd/core/manager.h"
#include "masterd/watch/checkpoints.h"
#include "masterd/watch/models.h"

#define LABELS_TEXT_MAX (MODEL_LABELS_MAX * (MODEL_LABEL_MAX + 1))

struct model_words {
        const char *note, *labels; /* NULL: not said */
        bool archived_said, archived;
};

static int read_archived(sd_bus_message *call, const char *key, void *target, sd_bus_error *error) {
        struct model_words *w = target;
        int archived;

        TRY(sd_bus_message_read(call, "v", "b", &archived));
        w->archived_said = true;
        w->archived = archived;
        return 0;
}

static const struct call_option register_options[] = {
        { "note", 's', offsetof(struct model_words, note), NULL },
        { "labels", 's', offsetof(struct model_words, labels), NULL },
        { NULL },
};

static const struct call_option edit_options[] = {
        { "note", 's', offsetof(struct model_words, note), NULL },
        { "labels", 's', offsetof(struct model_words, labels), NULL },
        { "archived", 0, 0, read_archived },
        { NULL },
};

/* Into buf with a space in between each two. */
static bool labels_valid(const char *labels, char buf[static LABELS_TEXT_MAX]) {
        _cleanup_free_ char *words = strdup(labels);
        char *p = words, *word;
        unsigned n = 0;

        *buf = 0;
        while (p && (word = strsep(&p, " "))) {
                if (!*word)
                        continue;
                if (!model_label_valid(word) || ++n > MODEL_LABELS_MAX)
                        return false;
                (void)stpcpy(stpcpy(buf + strlen(buf), *buf ? " " : ""), word);
        }
        return words != NULL;
}

static int check_words(struct model_words *w, char labels[static LABELS_TEXT_MAX], sd_bus_error *error) {
        if (w->note && !model_note_valid(w->note))
                return sd_bus_error_setf(error, SD_BUS_ERROR_INVALID_ARGS,
                                         "A note is one line of at most %u bytes", MODEL_NOTE_MAX);
        if (w->labels && !labels_valid(w->labels, labels))
                return sd_bus_error_setf(
                        error, SD_BUS_ERROR_INVALID_ARGS,
                        "Labels are at most %u words of letters, digits, _, . and -, each of "
                        "at most %u bytes",
                        MODEL_LABELS_MAX, MODEL_LABEL_MAX);
        w->labels = w->labels ? labels : NULL;
        return 0;
}

/* ---- ListModels ---- */

static int append_model(sd_bus_message *reply, const struct checkpoints *c, const struct model *x) {
        const bool gone = checkpoints_get(c, x->checkpoint) == NULL;

        TRY(sd_bus_message_open_container(reply, 'a', "{sv}"));
        TRY(sd_bus_message_append(reply, "{sv}{sv}{sv}{sv}{sv}{sv}", "name", "s", x->name, "version", "u",
                                  x->version, "owner", "u", x->owner, "checkpoint", "t", x->checkpoint,
                                  "path", "s", x->path, "host", "s", x->host));
        TRY(sd_bus_message_append(reply, "{sv}{sv}{sv}{sv}{sv}{sv}", "step", "t", x->step, "registered", "t",
                                  x->registered_real, "note", "s", x->note, "labels", "s", x->labels,
                                  "archived", "b", (int)x->archived, "gone", "b", (int)gone));
        if (*x->metric)
                TRY(sd_bus_message_append(reply, "{sv}", "metric", "s", x->metric));
        if (!isnan(x->value))
                TRY(sd_bus_message_append(reply, "{sv}", "value", "d", x->value));
        return sd_bus_message_close_container(reply);
}

static int list_models(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        struct manager *m = userdata;
        const struct models *all = models_of(m);
        sd_bus_message *reply = NULL;
        const char *name;
        int r;

        TRY(sd_bus_message_rewind(call, true));
        TRY(sd_bus_message_read_basic(call, 's', &name));
        r = reply_dicts_new(call, &reply);
        for (const struct model *x = models_next(all, NULL); r >= 0 && x; x = models_next(all, x))
                if ((uid == 0 || x->owner == uid) && (!*name || strcmp(x->name, name) == 0))
                        r = append_model(reply, checkpoints_of(m), x);
        return reply_list_send(reply, r);
}

int api_on_list_models(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        return api_with_caller(userdata, call, list_models, error);
}

/* ---- RegisterModel ---- */

static int refuse_register(int r, uint64_t id, sd_bus_error *error) {
        if (r == -EBUSY)
                return api_checkpoint_marked(id, error);
        if (r == -EDQUOT || r == -ENOSPC)
                return sd_bus_error_setf(error, ERROR_REFUSED,
                                         "%s %u versions of models are there, as many as may be",
                                         r == -EDQUOT ? "Of you" : "Of all users",
                                         r == -EDQUOT ? MODELS_PER_USER_MAX : MODELS_MAX);
        return r;
}

static int register_model(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        char labels[LABELS_TEXT_MAX];
        struct model_words words = {};
        struct manager *m = userdata;
        const struct checkpoint *x;
        uint32_t version;
        const char *name;
        uint64_t id;
        int r;

        TRY(sd_bus_message_rewind(call, true));
        TRY(sd_bus_message_read(call, "st", &name, &id));
        TRY(options_read(call, "RegisterModel", "option", register_options, &words, error));
        if (!model_name_valid(name))
                return sd_bus_error_setf(
                        error, SD_BUS_ERROR_INVALID_ARGS,
                        "A model's name is 1 to %u letters, digits, _, . and -, the first a letter",
                        MODEL_NAME_MAX);
        TRY(check_words(&words, labels, error));
        x = checkpoints_get(checkpoints_of(m), id);
        if (!x || x->facts.owner != uid)
                return sd_bus_error_setf(
                        error, ERROR_NOT_FOUND,
                        "You have no checkpoint %" PRIu64 "; 'primusctl checkpoints list' shows yours", id);
        r = model_register(m, x, name, words.note ?: "", words.labels ?: "", &version);
        return r < 0 ? refuse_register(r, id, error) : manager_answer_later(m, call, "u", version);
}

int api_on_register_model(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        return api_with_caller(userdata, call, register_model, error);
}

/* ---- EditModel ---- */

static int edit_model(sd_bus_message *call, uint32_t uid, void *userdata, sd_bus_error *error) {
        char labels[LABELS_TEXT_MAX];
        struct model_words words = {};
        struct manager *m = userdata;
        uint32_t version;
        struct model *x;
        const char *name;
        int r;

        TRY(sd_bus_message_rewind(call, true));
        TRY(sd_bus_message_read(call, "su", &name, &version));
        TRY(options_read(call, "EditModel", "option", edit_options, &words, error));
        TRY(check_words(&words, labels, error));
        x = models_find(models_of(m), uid, name, version);
        if (!x)
                return sd_bus_error_setf(
                        error, ERROR_NOT_FOUND,
                        "You have no such version of a model; 'primusctl model list' shows yours");
        r = model_edit(m, x, words.note, words.labels, words.archived_said ? &words.archived : NULL);
        return r < 0 ? refuse_register(r, x->checkpoint, error) : manager_answer_later(m, call, "");
}

int api_on_edit_model(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        return api_with_caller(userdata, call, edit_model, error);
}
