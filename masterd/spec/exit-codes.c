/* SPDX-License-Identifier: Apache-2.0 */
/* The texts of exitCodes. Invariant: what is valid is read in the same way when it is matched. */
#include <signal.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/parse.h"
#include "masterd/spec/spec-failure.h"

static const char *const ready_kind_names[_READY_KIND_MAX] = { "started", "tcp", "notify", "file" };

const char *ready_kind_to_string(enum ready_kind k) {
        return k < _READY_KIND_MAX ? ready_kind_names[k] : NULL;
}

static const char *const kind_words[_EXIT_KIND_MAX] = {
        [EXIT_KIND_OOM] = "oom",
        [EXIT_KIND_WATCHDOG] = "watchdog",
};

const char *const exit_action_words[_EXIT_ACTION_MAX] = { "restart", "fail",    "success", "ignore",
                                                          "blame",   "requeue", "note" };

/* One entry of the list: a range of statuses, or a kind (first > last). */
struct range {
        uint32_t first, last;
        enum exit_kind kind;
};

static bool signal_status(const char *word, uint32_t *ret) {
        if (strncmp(word, "SIG", 3) != 0)
                return false;
        for (int n = 1; n < 32; n++) {
                const char *name = sigabbrev_np(n);
                if (name && strcmp(name, word + 3) == 0) {
                        *ret = 128 + (uint32_t)n;
                        return true;
                }
        }
        return false;
}

static bool range_parse(char *word, struct range *ret, const char **ret_why) {
        char *dash;

        *ret = (struct range){};
        for (enum exit_kind k = EXIT_KIND_STATUS + 1; k < _EXIT_KIND_MAX; k++)
                if (strcmp(word, kind_words[k]) == 0) {
                        *ret = (struct range){ .first = 1, .kind = k };
                        return true;
                }
        if (signal_status(word, &ret->first)) {
                ret->last = ret->first;
                return true;
        }
        *ret_why =
                "must be exit statuses (1 to 255), ranges of them, names of signals, oom or watchdog, such "
                "as \"75\" or \"130-140,SIGSEGV,oom\"";
        dash = strchr(word, '-');
        if (dash)
                *dash = 0;
        if (parse_u32(word, 1, 255, &ret->first) < 0)
                return false;
        ret->last = ret->first;
        if (dash && parse_u32(dash + 1, 1, 255, &ret->last) < 0)
                return false;
        if (ret->last < ret->first)
                *ret_why = "has a range whose end is before its beginning";
        return ret->last >= ret->first;
}

/* Calls each() for every entry until it returns true. -EINVAL: malformed. */
static int walk_ranges(const char *codes, bool (*each)(const struct range *r, void *userdata), void *userdata,
                       const char **ret_why) {
        char copy[SPEC_CODES_MAX + 1], *save = NULL;
        size_t n = strlen(codes);
        bool found = false;

        *ret_why = "must be a list of exit statuses without empty entries";
        if (n == 0 || n > SPEC_CODES_MAX || codes[0] == ',' || codes[n - 1] == ',' || strstr(codes, ",,"))
                return -EINVAL;
        memcpy(copy, codes, n + 1);
        for (char *word = strtok_r(copy, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
                struct range r;
                while (*word == ' ')
                        word++;
                for (char *end = word + strlen(word); end > word && end[-1] == ' ';)
                        *--end = 0;
                if (!range_parse(word, &r, ret_why))
                        return -EINVAL;
                found = found || (each && each(&r, userdata));
        }
        return found;
}

bool exit_codes_valid(const char *codes, const char **ret_why) {
        return walk_ranges(codes, NULL, NULL, ret_why) >= 0;
}

struct match {
        uint32_t status;
        enum exit_kind kind;
};

static bool matches(const struct range *r, void *userdata) {
        const struct match *m = userdata;

        if (r->kind != m->kind || m->kind != EXIT_KIND_STATUS)
                return r->kind == m->kind;
        return m->status >= r->first && m->status <= r->last;
}

bool exit_codes_match(const char *codes, int status, enum exit_kind kind) {
        struct match m = { status < 0 ? 0 : (uint32_t)status, kind };
        const char *why;

        return walk_ranges(codes, matches, &m, &why) > 0;
}
