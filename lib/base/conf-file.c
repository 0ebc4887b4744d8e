/* SPDX-License-Identifier: Apache-2.0 */
/* Text of configuration files. Invariant: a file is looked at through its descriptor before a byte of it is
 * read, so what was checked is what is read. */
#include "lib/base/conf-file.h"

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "lib/base/cleanup.h"
#include "lib/base/file.h"

#define BLANKS " \t\r\f\v"

static int refuse_file(int error, const char *text, const char **ret_why) {
        *ret_why = text;
        return error;
}

static int check_owner(const struct stat *st, const char **ret_why) {
        if (st->st_uid != 0 && st->st_uid != geteuid())
                return refuse_file(-EPERM,
                                   "it belongs to another user than root, who could change it: chown root",
                                   ret_why);
        if (st->st_mode & S_IWOTH)
                return refuse_file(-EPERM, "everybody may write to it: chmod o-w", ret_why);
        return 0;
}

int conf_directory_check(int fd, const char **ret_why) {
        struct stat st;

        if (fstat(fd, &st) < 0)
                return refuse_file(-errno, strerror(errno), ret_why);
        return check_owner(&st, ret_why);
}

int conf_file_read(const char *path, char **ret, size_t *ret_size, const char **ret_why) {
        /* Neither a FIFO nor a terminal makes the caller wait. */
        _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        struct stat st;
        bool null;
        int r;

        if (fd < 0 && errno == ENOENT)
                return -ENOENT;
        if (fd < 0 || fstat(fd, &st) < 0)
                return refuse_file(-errno, strerror(errno), ret_why);
        null = S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3); /* masks a drop-in, as elsewhere */
        if (S_ISDIR(st.st_mode))
                return refuse_file(-EISDIR, "it is a directory", ret_why);
        if (!S_ISREG(st.st_mode) && !null)
                return refuse_file(-EINVAL, "it is no regular file", ret_why);
        r = null ? 0 : check_owner(&st, ret_why);
        if (r < 0)
                return r;
        r = read_fd(fd, CONF_FILE_MAX, ret, ret_size);
        if (r == -EFBIG)
                return refuse_file(r, "it is larger than 1 MiB", ret_why);
        return r < 0 ? refuse_file(r, strerror(-r), ret_why) : 0;
}

/* Without the blanks around it. */
static char *strip(char *s) {
        size_t n;

        s += strspn(s, BLANKS);
        for (n = strlen(s); n > 0 && strchr(BLANKS, s[n - 1]); n--)
                ;
        s[n] = 0;
        return s;
}

/* The lines that text begins with and that are one, by '\' at the end: joined in place. Returns where the
 * next begins, and counts them. */
static char *take_line(char *text, char *end, unsigned *number, size_t *ret_size) {
        char *to = text, *from = text;

        for (;;) {
                char *newline = memchr(from, '\n', (size_t)(end - from)) ?: end;
                size_t n = (size_t)(newline - from);
                bool comment = n > 0 && to == text && (*from == '#' || *from == ';');
                memmove(to, from, n);
                to += n;
                from = newline < end ? newline + 1 : end;
                (*number)++;
                if (n == 0 || to[-1] != '\\' || comment || from == end)
                        break;
                to[-1] = ' ';
        }
        /* Joined or not, what was read is at least one byte longer, or is the end of the text, which has a
         * NUL. */
        *to = 0;
        *ret_size = (size_t)(to - text);
        return from;
}

/* Its first word is left of it, for who wants to know which key was meant. */
static void bad_line(struct conf_line *l, char *line, const char *why) {
        line += strspn(line, BLANKS);
        line[strcspn(line, BLANKS "=")] = 0;
        *l = (struct conf_line){ CONF_LINE_BAD, l->number, l->section, line, why };
}

/* false: nothing is on it. */
static bool parse_line(char *line, size_t size, struct conf_line *l) {
        char *equals, *section;
        size_t n;

        if (strlen(line) != size) {
                bad_line(l, line, "there is a NUL byte on the line");
                return true;
        }
        if (size > CONF_LINE_MAX) {
                bad_line(l, line, "the line is longer than 64 KiB");
                return true;
        }
        line = strip(line);
        n = strlen(line);
        if (n == 0 || *line == '#' || *line == ';')
                return false;
        if (*line == '[' && line[n - 1] == ']') {
                line[n - 1] = 0;
                section = strip(line + 1);
                *l = (struct conf_line){ CONF_LINE_SECTION, l->number, section, NULL, NULL };
                return true;
        }
        equals = strchr(line, '=');
        if (*line == '[' || !equals || equals == line) {
                bad_line(l, line, "expected [Section], Key=Value or a comment");
                return true;
        }
        *equals = 0;
        *l = (struct conf_line){ CONF_LINE_VALUE, l->number, l->section, strip(line), strip(equals + 1) };
        return true;
}

int conf_text_parse(char *text, size_t size, int (*on_line)(void *userdata, const struct conf_line *line),
                    void *userdata) {
        static const char byte_order_mark[] = "\xef\xbb\xbf";
        const char *section = "";
        char *end = text + size;
        unsigned number = 0;
        int r = 0;

        if (size >= 3 && memcmp(text, byte_order_mark, 3) == 0)
                text += 3;
        while (text < end && r == 0) {
                struct conf_line l = { .number = number + 1, .section = section };
                size_t n;
                char *next = take_line(text, end, &number, &n);
                if (parse_line(text, n, &l))
                        r = on_line(userdata, &l);
                if (l.kind == CONF_LINE_SECTION)
                        section = l.section;
                text = next;
        }
        return r;
}
