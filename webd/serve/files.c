/* SPDX-License-Identifier: Apache-2.0 */
/* The files of the page. Invariant: what is opened lies in the page's directory, and is a file. */
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "webd/serve/serve-parts.h"

#define NAME_MAX_LENGTH 80u

static const struct {
        const char *ending, *type;
} types[] = {
        { ".html", "text/html; charset=utf-8" }, { ".js", "text/javascript; charset=utf-8" },
        { ".css", "text/css; charset=utf-8" },   { ".svg", "image/svg+xml" },
        { ".json", "application/json" },         { ".txt", "text/plain; charset=utf-8" },
};

static const char *type_of(const char *name) {
        const char *ending = strrchr(name, '.');

        for (size_t i = 0; ending && i < ELEMENTSOF(types); i++)
                if (strcmp(ending, types[i].ending) == 0)
                        return types[i].type;
        return NULL;
}

/* Letters, digits, '-', '_' and '.', which no part begins with; so no "..", and nothing is hidden. */
static bool name_good(const char *name) {
        bool begins = true;

        if (!*name || strlen(name) > NAME_MAX_LENGTH)
                return false;
        for (; *name; name++) {
                bool plain = (*name >= 'a' && *name <= 'z') || (*name >= 'A' && *name <= 'Z') ||
                             (*name >= '0' && *name <= '9');
                if (!plain && (begins || !strchr("-_./", *name)))
                        return false;
                begins = *name == '/';
        }
        return !begins;
}

static int open_file(struct serve *s, const char *name, struct stat *st) {
        _cleanup_close_ int fd = openat(s->page_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

        if (fd < 0 || fstat(fd, st) < 0)
                return -errno;
        return S_ISREG(st->st_mode) ? TAKE_FD(fd) : -ENOENT;
}

static struct MHD_Response *empty(void) {
        struct MHD_Response *response = MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);

        if (response)
                answer_headers(response);
        return response;
}

enum MHD_Result files_answer(struct serve *s, struct MHD_Connection *connection, const char *url) {
        const char *name = strcmp(url, "/") == 0 ? "index.html" : url + 1, *type = type_of(name), *known;
        struct MHD_Response *response;
        _cleanup_close_ int fd = -EBADF;
        struct stat st;
        char tag[64];

        if (type && name_good(name))
                fd = open_file(s, name, &st);
        if (fd < 0)
                return answer_queue(connection, 404,
                                    answer_problem(404, "There is no such file of the page"));
        snprintf(tag, sizeof(tag), "\"%" PRIx64 "-%" PRIx64 "\"",
                 (uint64_t)st.st_mtim.tv_sec * 1000000000 + (uint64_t)st.st_mtim.tv_nsec,
                 (uint64_t)st.st_size);
        known = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_IF_NONE_MATCH);
        if (known && strcmp(known, tag) == 0)
                return answer_queue(connection, 304, empty());
        response = MHD_create_response_from_fd((size_t)st.st_size, fd);
        if (!response)
                return MHD_NO;
        (void)TAKE_FD(fd);
        answer_headers(response);
        (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
        (void)MHD_add_response_header(response, MHD_HTTP_HEADER_ETAG, tag);
        (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-cache");
        return answer_queue(connection, 200, response);
}
