/* SPDX-License-Identifier: Apache-2.0 */
/* What is written is unpacked the same; what was cut, changed or made by somebody else is refused. */
#include "tools/state/tarball.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/file.h"
#include "tests/unit/state/said.h"

struct place {
        char directory[64], archive[96], target[96];
};

static int setup(void **state) {
        struct place *p = calloc(1, sizeof(*p));

        strcpy(p->directory, "/tmp/test-tarball.XXXXXX");
        assert_non_null(mkdtemp(p->directory));
        snprintf(p->archive, sizeof(p->archive), "%s/archive", p->directory);
        snprintf(p->target, sizeof(p->target), "%s/target", p->directory);
        *state = p;
        return 0;
}

static int teardown(void **state) {
        struct place *p = *state;

        assert_int_equal(remove_tree(p->directory), 0);
        free(p);
        return 0;
}

static void make_manifest(struct manifest *m) {
        *m = (struct manifest){ .program = strdup("0.1.0"),
                                .cluster = "00112233445566778899aabbccddeeff",
                                .host = strdup("n1"),
                                .created_real = UINT64_C(1767225600000000),
                                .state_directory = strdup("/var/lib/primus") };
}

static int file_with(const struct place *p, const char *text, mode_t mode) {
        char path[128];
        int fd;

        snprintf(path, sizeof(path), "%s/one", p->directory);
        assert_int_equal(write_file_atomic(path, text, strlen(text), mode, false), 0);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        assert_true(fd >= 0);
        return fd;
}

static void write_good(const struct place *p, bool compress) {
        _cleanup_close_ int fd = open(p->archive, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        struct archive_out *o;
        struct manifest m;
        int one;

        make_manifest(&m);
        assert_int_equal(archive_out_new(fd, compress, &o), 0);
        one = file_with(p, "the database", 0600);
        assert_int_equal(archive_out_file(o, &m, "primus.db", one), 0);
        close(one);
        one = file_with(p, "#!/bin/sh\n", 0755);
        assert_int_equal(archive_out_file(o, &m, "settings/hooks/fence.d/10-x", one), 0);
        close(one);
        assert_int_equal(archive_out_end(o, &m), 0);
        archive_out_free(o);
        manifest_done(&m);
}

static int unpack(const struct place *p, struct manifest *ret) {
        _cleanup_close_ int fd = open(p->archive, O_RDONLY | O_CLOEXEC), dir = -EBADF;

        assert_int_equal(remove_tree(p->target), 0);
        assert_int_equal(mkdir(p->target, 0700), 0);
        dir = open(p->target, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return archive_unpack(fd, dir, ret);
}

static void test_round_trip(void **state) {
        struct place *p = *state;

        for (int compress = 0; compress <= 1; compress++) {
                _cleanup_free_ char *text = NULL;
                struct manifest m;
                char path[160];
                struct stat st;

                write_good(p, compress);
                assert_int_equal(unpack(p, &m), 0);
                assert_int_equal(m.n_files, 2);
                assert_int_equal(m.files[1].mode, 0755);
                snprintf(path, sizeof(path), "%s/settings/hooks/fence.d/10-x", p->target);
                assert_int_equal(read_file(path, 100, &text, NULL), 0);
                assert_string_equal(text, "#!/bin/sh\n");
                assert_int_equal(stat(path, &st), 0);
                assert_int_equal(st.st_mode & 07777, 0600);
                manifest_done(&m);
        }
}

/* Cut anywhere, or with any byte changed, it is refused, or (in what tar pads with) it is the same. */
static void test_damage(void **state) {
        struct place *p = *state;

        for (int compress = 0; compress <= 1; compress++) {
                _cleanup_free_ char *text = NULL;
                struct manifest m;
                size_t size;

                write_good(p, compress);
                assert_int_equal(read_file(p->archive, 1 << 20, &text, &size), 0);
                for (size_t n = 0; n < size; n += compress ? 5 : 101) {
                        assert_int_equal(write_file_atomic(p->archive, text, n, 0600, false), 0);
                        if (unpack(p, &m) >= 0) { /* all members were there: only the end mark is missing */
                                assert_int_equal(m.n_files, 2);
                                manifest_done(&m);
                                assert_true(n + 2048 > size);
                        }
                }
                for (size_t i = 0; i < size; i += compress ? 5 : 41) {
                        text[i] ^= 0x20;
                        assert_int_equal(write_file_atomic(p->archive, text, size, 0600, false), 0);
                        if (unpack(p, &m) >= 0) {
                                assert_int_equal(m.n_files, 2);
                                assert_string_equal(m.files[0].name, "primus.db");
                                manifest_done(&m);
                        }
                        text[i] ^= 0x20;
                }
        }
}

static void add(struct archive *a, const char *name, mode_t type, const char *link, bool hard,
                const char *text) {
        struct archive_entry *e = archive_entry_new();

        archive_entry_set_pathname(e, name);
        archive_entry_set_perm(e, 0600);
        if (hard)
                archive_entry_set_hardlink(e, link);
        else {
                archive_entry_set_filetype(e, type);
                if (link)
                        archive_entry_set_symlink(e, link);
        }
        archive_entry_set_size(e, link ? 0 : (la_int64_t)strlen(text));
        assert_int_equal(archive_write_header(a, e), ARCHIVE_OK);
        if (!link)
                assert_int_equal(archive_write_data(a, text, strlen(text)), strlen(text));
        archive_entry_free(e);
}

static void test_hostile(void **state) {
        static const struct {
                const char *name;
                mode_t type;
                const char *link;
                bool hard;
        } members[] = {
                { "../escaped", AE_IFREG, NULL, false },
                { "/tmp/escaped", AE_IFREG, NULL, false },
                { "settings/hooks/../../../escaped", AE_IFREG, NULL, false },
                { "settings/hooks/fence", AE_IFLNK, "/etc/passwd", false },
                { "settings/hooks", AE_IFLNK, "/etc", false },
                { "settings/hooks/fence", 0, "primus.db", true },
                { "settings/hooks/fence", 0, "/etc/shadow", true },
                { "settings/hooks/fence", AE_IFIFO, NULL, false },
                { "settings/hooks/fence", AE_IFDIR, NULL, false },
                { "primus.db", AE_IFREG, NULL, false },
                { "other", AE_IFREG, NULL, false },
        };
        struct place *p = *state;
        char escaped[128];

        snprintf(escaped, sizeof(escaped), "%s/escaped", p->directory);
        for (size_t i = 0; i < ELEMENTSOF(members); i++) {
                struct archive *a = archive_write_new();
                struct manifest m;

                assert_int_equal(archive_write_set_format_pax_restricted(a), ARCHIVE_OK);
                assert_int_equal(archive_write_open_filename(a, p->archive), ARCHIVE_OK);
                add(a, "primus.db", AE_IFREG, NULL, false, "x");
                add(a, members[i].name, members[i].type, members[i].link, members[i].hard,
                    members[i].type == AE_IFREG ? "x" : "");
                assert_int_equal(archive_write_free(a), ARCHIVE_OK);
                assert_int_equal(unpack(p, &m), -EBADMSG);
                if (!strstr(said, "refused"))
                        fail_msg("%s: %s", members[i].name, said);
                assert_int_equal(access(escaped, F_OK), -1);
        }
}

/* Another size in the header of a member, which is the second and whose name is short: in base 256, as GNU
 * tar. */
static void say_size(const struct place *p, uint64_t size) {
        _cleanup_free_ char *text = NULL;
        size_t n;
        uint8_t *header;
        unsigned sum = 0;

        assert_int_equal(read_file(p->archive, 1 << 20, &text, &n), 0);
        header = (uint8_t *)text + 1024;
        assert_true(n > 2048 && memcmp(header + 257, "ustar", 5) == 0);
        memset(header + 124, 0, 12);
        header[124] = 0x80;
        for (size_t i = 0; i < 8; i++)
                header[135 - i] = (uint8_t)(size >> (8 * i));
        memset(header + 148, ' ', 8);
        for (size_t i = 0; i < 512; i++)
                sum += header[i];
        snprintf((char *)header + 148, 8, "%06o", sum);
        assert_int_equal(write_file_atomic(p->archive, text, n, 0600, false), 0);
}

/* What it says of sizes is looked at before it is written. */
static void test_sizes(void **state) {
        static const struct {
                const char *name, *said;
                uint64_t size;
        } members[] = {
                { "settings/hooks/fence", "refused", 17 << 20 },
                { "bundles/0/0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", "make room",
                  UINT64_C(1) << 61 },
        };
        struct place *p = *state;

        for (size_t i = 0; i < ELEMENTSOF(members); i++) {
                struct archive *a = archive_write_new();
                struct manifest m;
                char path[192];

                assert_int_equal(archive_write_set_format_pax_restricted(a), ARCHIVE_OK);
                assert_int_equal(archive_write_open_filename(a, p->archive), ARCHIVE_OK);
                add(a, "primus.db", AE_IFREG, NULL, false, "x");
                add(a, members[i].name, AE_IFREG, NULL, false, "x");
                assert_int_equal(archive_write_free(a), ARCHIVE_OK);
                say_size(p, members[i].size);
                assert_true(unpack(p, &m) < 0);
                if (!strstr(said, members[i].said))
                        fail_msg("%s: %s", members[i].name, said);
                snprintf(path, sizeof(path), "%s/%s", p->target, members[i].name);
                assert_int_equal(access(path, F_OK), -1);
        }
}

static void test_same_bytes(void **state) {
        static const struct manifest_file f = {
                .size = 3, .sha256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        };

        assert_true(archive_same_bytes(&f, "abc", 3));
        assert_false(archive_same_bytes(&f, "abd", 3));
        assert_false(archive_same_bytes(&f, "abcd", 4));
        assert_false(archive_same_bytes(&f, "", 0));
}

static void test_foreign(void **state) {
        static const char *const texts[] = { "", "hello", "\x28\xb5\x2f\xfd rubbish" };
        struct place *p = *state;
        struct manifest m;

        for (size_t i = 0; i < ELEMENTSOF(texts); i++) {
                assert_int_equal(write_file_atomic(p->archive, texts[i], strlen(texts[i]), 0600, false), 0);
                assert_int_equal(unpack(p, &m), -EBADMSG);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_round_trip, setup, teardown),
                cmocka_unit_test_setup_teardown(test_damage, setup, teardown),
                cmocka_unit_test_setup_teardown(test_hostile, setup, teardown),
                cmocka_unit_test_setup_teardown(test_sizes, setup, teardown),
                cmocka_unit_test(test_same_bytes),
                cmocka_unit_test_setup_teardown(test_foreign, setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
