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
#include "tests/kit/state-say.h"
#include "tools/state/entry.h"
#include "tools/state/hooks.h"

struct place {
        char directory[64], archive[96], target[96];
};

/* Not known unless a test says otherwise. */
static struct seal_key sealing, checking;
static enum seal seal;
static char seal_id[17];

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

        seal_key_done(&sealing);
        seal_key_done(&checking);

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
        assert_int_equal(archive_out_end(o, &m, &sealing), 0);
        archive_out_free(o);
        manifest_done(&m);
}

static int unpack(const struct place *p, struct manifest *ret) {
        _cleanup_close_ int fd = open(p->archive, O_RDONLY | O_CLOEXEC), dir = -EBADF;

        assert_int_equal(remove_tree(p->target), 0);
        assert_int_equal(mkdir(p->target, 0700), 0);
        dir = open(p->target, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return archive_unpack(fd, dir, &checking, ret, &seal, seal_id);
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
                { "other\033[2J\nrefused", AE_IFREG, NULL, false },
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
                assert_null(strpbrk(said, "\033\n"));
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

/* ---- who vouches for it */

static void use_key(const struct place *p, const char *name, struct seal_key *ret) {
        char path[160];

        snprintf(path, sizeof(path), "%s/%s", p->directory, name);
        assert_true(seal_key_make(path) >= 0);
        assert_int_equal(seal_key_read(path, ret), 0);
        assert_true(ret->known);
}

static enum seal unpacked(const struct place *p) {
        struct manifest m;

        assert_int_equal(unpack(p, &m), 0);
        manifest_done(&m);
        return seal;
}

static void replace(const struct place *p, const char *what, const char *by) {
        _cleanup_free_ char *text = NULL;
        size_t size;
        char *at;

        assert_int_equal(read_file(p->archive, 1 << 20, &text, &size), 0);
        at = memmem(text, size, what, strlen(what));
        assert_non_null(at);
        memcpy(at, by, strlen(by));
        assert_int_equal(write_file_atomic(p->archive, text, size, 0600, false), 0);
}

static void test_seal(void **state) {
        struct place *p = *state;
        struct seal_key own;

        use_key(p, "own.key", &own);
        write_good(p, true);
        assert_int_equal(unpacked(p), SEAL_NONE);
        assert_string_equal(seal_id, "");
        checking = own;
        assert_int_equal(unpacked(p), SEAL_NONE);
        for (int compress = 0; compress <= 1; compress++) {
                sealing = own;
                write_good(p, compress);
                assert_int_equal(unpacked(p), SEAL_GOOD);
                assert_string_equal(seal_id, own.id);
                seal_key_done(&checking);
                assert_int_equal(unpacked(p), SEAL_NO_KEY);
                assert_string_equal(seal_id, own.id);
                use_key(p, "other.key", &checking);
                assert_int_equal(unpacked(p), SEAL_OTHER_KEY);
                checking = own;
        }
        /* Whatever is changed: what is in it, and the manifest that says so. */
        write_good(p, false);
        replace(p, "/var/lib/primus", "/var/lib/primux");
        assert_int_equal(unpacked(p), SEAL_WRONG);
        write_good(p, false);
        replace(p, own.id, "0123456789abcdef");
        assert_int_equal(unpacked(p), SEAL_OTHER_KEY);
        write_good(p, false);
        replace(p, "primus-backup-mac 1", "primus-backup-mac 2");
        assert_int_equal(unpacked(p), SEAL_WRONG);
}

/* Behind the manifest is its seal alone. */
static void test_tail(void **state) {
        struct place *p = *state;
        struct manifest m;

        use_key(p, "own.key", &sealing);
        checking = sealing;
        write_good(p, false);
        replace(p, ENTRY_SEAL_NAME, "manifest.xyz");
        assert_int_equal(unpack(p, &m), -EBADMSG);
        write_good(p, false);
        replace(p, "settings/hooks/fence.d/10-x", ENTRY_SEAL_NAME "\0");
        assert_int_equal(unpack(p, &m), -EBADMSG);
}

/* Never replaced, and no key once others may have read it. */
static void test_key(void **state) {
        struct place *p = *state;
        struct seal_key a, b;
        char path[160];

        snprintf(path, sizeof(path), "%s/key", p->directory);
        assert_int_equal(seal_key_read(path, &a), -ENOENT);
        assert_int_equal(seal_key_make(path), 1);
        assert_int_equal(seal_key_read(path, &a), 0);
        assert_int_equal(seal_key_make(path), 0);
        assert_int_equal(seal_key_read(path, &b), 0);
        assert_memory_equal(&a, &b, sizeof(a));
        assert_int_equal(chmod(path, 0640), 0);
        assert_int_equal(seal_key_read(path, &a), -EPERM);
        assert_int_equal(write_file_atomic(path, "0123\n", 5, 0600, false), 0);
        assert_int_equal(seal_key_read(path, &a), -EINVAL);
        assert_int_equal(unlink(path), 0);
        assert_int_equal(symlink("/dev/null", path), 0);
        assert_true(seal_key_read(path, &a) < 0);
}

/* Of each what it really may do. */
static void test_hooks(void **state) {
        struct place *p = *state;
        struct manifest m;

        assert_true(hooks_are("settings/hooks/prolog"));
        assert_false(hooks_are("settings/masterd.conf"));
        for (size_t i = 0; i < 3; i++) {
                static const char *const names[] = { "prolog", "settings/hooks/epilog.d/10-x", "health" };
                assert_non_null(strstr(hooks_rights(names[i]), "root, confined by nothing"));
        }
        assert_non_null(strstr(hooks_rights("fence"), "root in primus-hook-fence@.service"));
        assert_non_null(strstr(hooks_rights("settings/hooks/notify"), "a user of its own"));
        assert_non_null(strstr(hooks_rights("prologue"), "nothing"));
        assert_non_null(strstr(hooks_rights(".d"), "nothing"));

        write_good(p, true);
        assert_int_equal(unpack(p, &m), 0);
        assert_int_equal(hooks_compare(&m, p->directory), 1);
        char path[160];
        snprintf(path, sizeof(path), "%s/hooks/fence.d", p->directory);
        assert_int_equal(make_directories(path, 0700), 0);
        snprintf(path, sizeof(path), "%s/hooks/fence.d/10-x", p->directory);
        assert_int_equal(write_file_atomic(path, "#!/bin/sh\n", 10, 0755, false), 0);
        assert_int_equal(hooks_compare(&m, p->directory), 0);
        assert_int_equal(chmod(path, 0644), 0);
        assert_int_equal(hooks_compare(&m, p->directory), 1);
        manifest_done(&m);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_round_trip, setup, teardown),
                cmocka_unit_test_setup_teardown(test_damage, setup, teardown),
                cmocka_unit_test_setup_teardown(test_hostile, setup, teardown),
                cmocka_unit_test_setup_teardown(test_sizes, setup, teardown),
                cmocka_unit_test(test_same_bytes),
                cmocka_unit_test_setup_teardown(test_seal, setup, teardown),
                cmocka_unit_test_setup_teardown(test_tail, setup, teardown),
                cmocka_unit_test_setup_teardown(test_key, setup, teardown),
                cmocka_unit_test_setup_teardown(test_hooks, setup, teardown),
                cmocka_unit_test_setup_teardown(test_foreign, setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
