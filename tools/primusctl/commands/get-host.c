/* SPDX-License-Identifier: Apache-2.0 */
/* Invariant: a host is believed nothing: a record out of turn, more bytes than were said, or a name that goes
 * elsewhere end its stream; and what did not come whole, with its sum, gets no name here. */
#include "tools/primusctl/commands/get-host.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <jansson.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/format.h"
#include "lib/base/utf8.h"
#include "lib/wire/artifacts.h"
#include "tools/primusctl/bus/stream.h"
#include "tools/primusctl/cli/text.h"

/* What a host may list: more is none of a job's. */
#define RECORDS_MAX UINT64_C(20000000)
#define LOCAL_MAX (ARTIFACT_PATH_MAX + 128u)
#define PROGRESS_USEC (200 * USEC_PER_MSEC)
/* What it may cost here before anything is fetched: bytes in wants, and directories and links. */
#define WANTS_MAX (UINT64_C(1) << 30)
#define MADE_MAX UINT64_C(1000000)
/* A host that has no record to say for so long. */
#define SILENT_USEC (60 * USEC_PER_SEC)
#define TICK_USEC USEC_PER_SEC

struct fetching {
        struct get *get;
        const char *node;
        FILE *wants;
        bool fetch, over, complete, input_over;
        uint64_t records, wanted, made; /* made: directories and links */
        uint64_t silent_usec;
        off_t sent, expected; /* in wants */
        /* of the file that comes */
        bool in_file, dropped;
        struct artifact file;
        uint64_t received;
        char local[LOCAL_MAX];
        uint64_t told_boot;
        struct stream *stream;
        struct artifact_decoder decoder;
};

static void complain(struct get *g, const char *path, const char *node, const char *what) {
        g->failures++;
        cli_fail(g->cli, "%s on %s: %s", path, node, what);
}

/* ---- names ---- */

/* Only the host where an executor is, or was last, has the plain name of its directory; what others have is
 * at ROLE-INDEX@HOST. */
static int local_name(const struct get *g, const char *node, const char *path, char buf[static LOCAL_MAX]) {
        size_t first = strcspn(path, "/");
        char directory[64];
        bool plain = false;
        int n;

        for (size_t i = 0; i < g->n_executors && !plain; i++) {
                const struct executor *e = g->executors + i;

                snprintf(directory, sizeof(directory), "%s-%u", e->role, e->index);
                plain = e->node && strcmp(e->node, node) == 0 && strlen(directory) == first &&
                        memcmp(directory, path, first) == 0;
        }
        n = snprintf(buf, LOCAL_MAX, "%s%.*s%s%s%s", g->prefix, (int)first, path, plain ? "" : "@",
                     plain ? "" : node, path + first);
        return n < 0 || (size_t)n > ARTIFACT_PATH_MAX ? -ENAMETOOLONG : 0;
}

/* A pattern means what it matches and everything below it. */
static bool is_wanted(struct get *g, const char *local) {
        const char *path = local + strlen(g->prefix);
        char head[LOCAL_MAX];
        bool any = !*g->wanted;

        for (size_t i = 0; g->wanted[i]; i++) {
                bool match = fnmatch(g->wanted[i], path, FNM_PATHNAME) == 0;

                for (const char *slash = path; !match && (slash = strchr(slash, '/')); slash++) {
                        snprintf(head, sizeof(head), "%.*s", (int)(slash - path), path);
                        match = fnmatch(g->wanted[i], head, FNM_PATHNAME) == 0;
                }
                g->found[i] |= match;
                any |= match;
        }
        return any;
}

/* ---- the list ---- */

static void print_file(struct get *g, const char *local, const struct artifact *a, const char *target,
                       const char *node) {
        char clean[LOCAL_MAX + 1], size[FORMAT_SIZE_MAX], when[TEXT_TIME_MAX];
        const uint64_t mtime_usec = a->mtime_nsec / 1000;

        (void)utf8_clean(local, strlen(local), clean, sizeof(clean));
        if (g->cli->json) {
                json_t *o = json_pack("{s:s, s:s, s:I, s:I}", "path", clean, "node", node, "size",
                                      (json_int_t)a->size, "mtime", (json_int_t)mtime_usec);

                if (o && target) {
                        char text[ARTIFACT_PATH_MAX + 1];
                        (void)json_object_set_new(
                                o, "link",
                                json_string(utf8_clean(target, strlen(target), text, sizeof(text))));
                }
                printf(*g->json_begun ? ",\n  " : "[\n  ");
                *g->json_begun = true;
                (void)json_dumpf(o, stdout, JSON_COMPACT);
                json_decref(o);
                return;
        }
        text_clean(clean);
        printf("%10s  %-16s  %s", format_size(a->size, size, sizeof(size)),
               text_time(mtime_usec, now_real(), when, sizeof(when)), clean);
        if (target) {
                char text[ARTIFACT_PATH_MAX + 1];

                (void)utf8_clean(target, strlen(target), text, sizeof(text));
                text_clean(text);
                printf(" -> %s", text);
        }
        putchar('\n');
}

static int want(struct fetching *f, const struct artifact *a, const char *path) {
        struct artifact w = { .type = ARTIFACT_WANT, .payload_size = a->payload_size, .size = a->size };
        uint8_t head[ARTIFACT_HEAD_SIZE];
        struct get *g = f->get;
        int r = place_look(&g->place, f->local, a->size, a->mtime_nsec);

        if (r == PLACE_EQUAL) {
                g->there++;
                return 0;
        }
        if (r < 0 || (r == PLACE_DIFFERS && !g->place.force)) {
                complain(g, f->local, f->node,
                         r == -ELOOP ? "a link is in the way here; left out"
                         : r < 0     ? strerror(-r)
                                     : "something else has this name here; left out (--force replaces it)");
                return 0;
        }
        if (a->size > UINT64_MAX / 2 - g->bytes)
                return -EBADMSG;
        f->wanted += sizeof(head) + a->payload_size;
        if (f->wanted > WANTS_MAX)
                return -E2BIG;
        artifact_write(&w, head);
        if (fwrite(head, 1, sizeof(head), f->wants) != sizeof(head) ||
            fwrite(path, 1, a->payload_size, f->wants) != a->payload_size)
                return -EIO;
        g->files++;
        g->bytes += a->size;
        return 0;
}

static void list_link(struct fetching *f, const struct artifact *a, const char *target) {
        struct get *g = f->get;
        int r;

        if (g->list) {
                print_file(g, f->local, a, target, f->node);
                return;
        }
        r = place_link(&g->place, f->local, target);
        if (r < 0)
                complain(g, f->local, f->node,
                         r == -EBADMSG  ? "is a link that points out of the directory; left out"
                         : r == -EEXIST ? "something else has this name here; left out"
                                        : strerror(-r));
}

static int on_listed(struct fetching *f, const struct artifact *a, const char *path) {
        const size_t l = strlen(path);
        struct get *g = f->get;
        const char *target = NULL;

        if (a->type == ARTIFACT_LINK) {
                if (l >= a->payload_size || strlen(path + l + 1) != a->payload_size - l - 1)
                        return -EBADMSG;
                target = path + l + 1;
        } else if (l != a->payload_size)
                return -EBADMSG;
        if (!artifact_path_valid(path, l))
                return -EBADMSG;
        if (local_name(g, f->node, path, f->local) < 0) {
                complain(g, path, f->node, "its path is too long; left out");
                return 0;
        }
        if (!is_wanted(g, f->local))
                return 0;
        if (!g->list && (a->type == ARTIFACT_DIRECTORY || a->type == ARTIFACT_LINK) && ++f->made > MADE_MAX)
                return -E2BIG;
        switch (a->type) {
        case ARTIFACT_DIRECTORY: {
                int r = g->list ? 0 : place_directory(&g->place, f->local);
                if (r < 0)
                        complain(g, f->local, f->node, strerror(-r));
                return 0;
        }
        case ARTIFACT_FILE:
                if (!g->list)
                        return want(f, a, path);
                g->files++;
                g->bytes += a->size;
                print_file(g, f->local, a, NULL, f->node);
                return 0;
        case ARTIFACT_LINK:
                list_link(f, a, target);
                return 0;
        case ARTIFACT_LEFT_OUT:
                complain(g, f->local, f->node, artifact_why_text(a->why));
                return 0;
        default:
                return -EBADMSG;
        }
}

/* ---- the files ---- */

/* The next one of those that were asked for: they come in that order. */
static int next_expected(struct fetching *f, struct artifact *ret, char path[static ARTIFACT_PATH_MAX + 1]) {
        uint8_t head[ARTIFACT_HEAD_SIZE];
        const int fd = fileno(f->wants);

        if (pread(fd, head, sizeof(head), f->expected) != sizeof(head))
                return -EBADMSG;
        artifact_read(head, ret);
        if (ret->payload_size > ARTIFACT_PATH_MAX ||
            pread(fd, path, ret->payload_size, f->expected + (off_t)sizeof(head)) != ret->payload_size)
                return -EIO;
        path[ret->payload_size] = 0;
        f->expected += (off_t)sizeof(head) + ret->payload_size;
        return 0;
}

static void drop_file(struct fetching *f, int r) {
        f->dropped = true;
        place_abandon(&f->get->place);
        complain(f->get, f->local, f->node,
                 r == -EEXIST  ? "something else has this name here; left out (--force replaces it)"
                 : r == -ELOOP ? "a link is in the way here; left out"
                               : strerror(-r));
}

static int begin_file(struct fetching *f, const struct artifact *a, const char *path) {
        char expected[ARTIFACT_PATH_MAX + 1];
        struct artifact w;
        int r = next_expected(f, &w, expected);

        if (r < 0)
                return r;
        if (a->payload_size != w.payload_size || memcmp(path, expected, w.payload_size) != 0 ||
            a->size > w.size || local_name(f->get, f->node, expected, f->local) < 0)
                return -EBADMSG;
        if (a->type == ARTIFACT_LEFT_OUT) {
                complain(f->get, f->local, f->node, artifact_why_text(a->why));
                return 0;
        }
        f->in_file = true;
        f->dropped = false;
        f->file = *a;
        f->received = 0;
        r = place_begin(&f->get->place, f->local);
        if (r < 0)
                drop_file(f, r);
        return 0;
}

static void show_progress(struct fetching *f) {
        char got[FORMAT_SIZE_MAX], all[FORMAT_SIZE_MAX];
        const uint64_t now = now_boot();

        if (!f->get->progress || now < f->told_boot + PROGRESS_USEC)
                return;
        f->told_boot = now;
        fprintf(stderr, "\r\033[K%s of %s", format_size(f->get->got, got, sizeof(got)),
                format_size(f->get->bytes, all, sizeof(all)));
}

static int take_data(struct fetching *f, const struct artifact *a, const uint8_t *data) {
        int r;

        if (!f->in_file || a->payload_size > f->file.size - f->received)
                return -EBADMSG;
        f->received += a->payload_size;
        f->get->got += a->payload_size;
        show_progress(f);
        if (!f->dropped && (r = place_data(&f->get->place, data, a->payload_size)) < 0)
                drop_file(f, r);
        return 0;
}

static int end_file(struct fetching *f, const struct artifact *a) {
        struct get *g = f->get;
        int r;

        if (!f->in_file || a->size != f->received || a->payload_size > 0 ||
            (f->received < f->file.size && a->why == 0))
                return -EBADMSG;
        f->in_file = false;
        if (f->dropped)
                return 0;
        if (g->place.sum != a->mode)
                return -EBADMSG;
        if (f->received < f->file.size || (a->why != 0 && a->why != ARTIFACT_CHANGED)) {
                place_abandon(&g->place);
                complain(g, f->local, f->node,
                         a->why == ARTIFACT_CHANGED ? "became shorter while it was read; left out"
                                                    : artifact_why_text(a->why));
                return 0;
        }
        r = place_finish(&g->place, f->file.mode, f->file.mtime_nsec);
        if (r < 0)
                drop_file(f, r);
        else if (a->why == ARTIFACT_CHANGED)
                cli_complain("%s on %s changed while it was read", f->local, f->node);
        return 0;
}

/* ---- the stream ---- */

static int on_record(const struct artifact *a, const uint8_t *payload, void *userdata) {
        struct fetching *f = userdata;
        const char *path = (const char *)payload;

        f->silent_usec = 0;
        if (f->complete || (f->in_file && a->type != ARTIFACT_DATA && a->type != ARTIFACT_EOF))
                return -EBADMSG;
        if (a->type == ARTIFACT_END) {
                f->complete = a->size == f->records;
                return f->complete ? 0 : -EBADMSG;
        }
        f->records++;
        if (!f->fetch)
                return f->records > RECORDS_MAX ? -E2BIG : on_listed(f, a, path);
        switch (a->type) {
        case ARTIFACT_FILE:
        case ARTIFACT_LEFT_OUT:
                return begin_file(f, a, path);
        case ARTIFACT_DATA:
                return take_data(f, a, payload);
        case ARTIFACT_EOF:
                return end_file(f, a);
        default:
                return -EBADMSG;
        }
}

static void on_data(struct stream *stream, enum stream_kind kind, const void *data, size_t size,
                    void *userdata) {
        struct fetching *f = userdata;
        int r = 0;

        if (f->over || kind != STREAM_OUTPUT)
                return;
        r = artifact_decode(&f->decoder, data, size, on_record, f);
        if (r >= 0)
                return;
        f->over = true;
        complain(f->get, "artifacts", f->node,
                 r == -EBADMSG ? "what the host sends is not what was asked for; the rest is left out"
                 : r == -E2BIG ? "more files, directories or links than are taken of a host"
                               : strerror(-r));
}

static void on_ended(struct stream *stream, int status, const char *why, void *userdata) {
        struct fetching *f = userdata;

        if (!f->over && (*why || status != 0 || !f->complete))
                complain(f->get, "artifacts", f->node,
                         *why ? why : "the connection ended before everything was there");
        f->over = true;
}

static void send_wants(struct fetching *f) {
        static uint8_t piece[STREAM_PIECE_MAX];

        while (f->fetch && !f->input_over && !f->over && stream_has_room(f->stream)) {
                ssize_t n = pread(fileno(f->wants), piece, sizeof(piece), f->sent);
                int r = n < 0 ? -errno : stream_write(f->stream, piece, (size_t)n, n == 0);

                if (r < 0) {
                        on_ended(f->stream, STREAM_BROKEN, strerror(-r), f);
                        return;
                }
                f->sent += n;
                f->input_over = n == 0;
        }
}

static void on_room(struct stream *stream, void *userdata) {
        send_wants(userdata);
}

static void on_opened(struct stream *stream, void *userdata) {
        send_wants(userdata);
}

static void run(struct fetching *f) {
        static const struct stream_handlers handlers = {
                .opened = on_opened, .data = on_data, .room = on_room, .ended = on_ended
        };
        char list[] = "list", fetch[] = "fetch";
        char *arguments[] = { f->fetch ? fetch : list, NULL };
        const struct stream_target target = { .job = f->get->job, .node = f->node };
        const struct stream_options options = { .arguments = arguments };
        int r = stream_new(f->get->cli, &target, &options, &handlers, f, &f->stream);

        while (r >= 0 && !f->over && !f->get->interrupted) {
                const uint64_t before = now_boot();

                r = sd_event_run(f->get->event, TICK_USEC);
                f->silent_usec += MIN(now_boot() - before, TICK_USEC); /* no more: we may have been stopped */
                if (r >= 0 && !f->over && f->silent_usec >= SILENT_USEC) {
                        f->over = true;
                        complain(f->get, "artifacts", f->node,
                                 "nothing came for a minute; the rest is left out");
                }
        }
        stream_free(f->stream);
        place_abandon(&f->get->place);
        if (f->get->progress && f->fetch)
                fputs("\r\033[K", stderr);
        if (r < 0)
                complain(f->get, "artifacts", f->node, strerror(-r));
}

static void run_one(struct get *g, const char *node, FILE *wants, bool fetch) {
        struct fetching *f = calloc(1, sizeof(*f));

        if (!f) {
                complain(g, "artifacts", node, "out of memory");
                return;
        }
        f->get = g;
        f->node = node;
        f->wants = wants;
        f->fetch = fetch;
        run(f);
        free(f);
}

void get_host_list(struct get *g, const char *node, FILE *wants) {
        run_one(g, node, wants, false);
        if (wants && fflush(wants) != 0)
                complain(g, "artifacts", node, "the list of files cannot be kept: is there room in /tmp?");
}

void get_host_fetch(struct get *g, const char *node, FILE *wants) {
        run_one(g, node, wants, true);
}
