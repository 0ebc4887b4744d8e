/* SPDX-License-Identifier: Apache-2.0 */
/* Gives every file of the folders named to a fuzz target, without libFuzzer: what has once been found stays
 * tested, with any compiler. A fault ends the program; the file's name is said before. */
#include <dirent.h>
#include <stdint.h>
#include <string.h>

#include "lib/base/cleanup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Exactly as long as the file, so that the sanitizer sees a read behind its end. */
static int replay_file(const char *path) {
        _cleanup_fclose_ FILE *f = fopen(path, "re");
        _cleanup_free_ uint8_t *data = NULL, *exact = NULL;
        size_t size = 0, allocated = 0, n;

        if (!f)
                return -errno;
        do {
                if (size == allocated) {
                        allocated = allocated ? 2 * allocated : 4096;
                        uint8_t *bigger = realloc(data, allocated);
                        if (!bigger)
                                return -ENOMEM;
                        data = bigger;
                }
                n = fread(data + size, 1, allocated - size, f);
                size += n;
        } while (n > 0);
        if (ferror(f))
                return -EIO;
        exact = malloc(size ? size : 1);
        if (!exact)
                return -ENOMEM;
        memcpy(exact, data, size);
        (void)LLVMFuzzerTestOneInput(exact, size);
        return 0;
}

static int visible(const struct dirent *entry) {
        return entry->d_name[0] != '.';
}

/* Returns how many there were. */
static int replay_folder(const char *folder) {
        struct dirent **list;
        int n = scandir(folder, &list, visible, alphasort), r = n < 0 ? -errno : 0;

        for (int i = 0; i < n; i++) {
                _cleanup_free_ char *path = NULL;
                if (r >= 0 && asprintf(&path, "%s/%s", folder, list[i]->d_name) < 0)
                        r = -ENOMEM;
                if (r >= 0) {
                        (void)printf("%s\n", path);
                        (void)fflush(stdout);
                        r = replay_file(path);
                }
                free(list[i]);
        }
        if (n >= 0)
                free(list);
        return r < 0 ? r : n;
}

int main(int argc, char *argv[]) {
        int n = 0;

        for (int i = 1; i < argc; i++) {
                int r = replay_folder(argv[i]);
                if (r < 0) {
                        (void)fprintf(stderr, "replay: %s: %s\n", argv[i], strerrordesc_np(-r));
                        return 1;
                }
                n += r;
        }
        if (n == 0) {
                (void)fprintf(stderr, "replay: there is no input in the folders named\n");
                return 1;
        }
        return 0;
}
