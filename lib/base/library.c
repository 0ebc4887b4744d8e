/* SPDX-License-Identifier: Apache-2.0 */
/* dlopen() and dlsym(). Invariant: what is not loaded whole is closed again. */
#include "lib/base/library.h"

#include <dlfcn.h>
#include <string.h>

static void *open_first(const struct library *l) {
        void *handle = NULL;

        for (size_t i = 0; !handle && i < ELEMENTSOF(l->sonames) && l->sonames[i]; i++)
                handle = dlopen(l->sonames[i], RTLD_NOW | RTLD_LOCAL);
        return handle;
}

int library_load(const struct library *l, void *api, void **ret_handle,
                 char error[static LIBRARY_ERROR_MAX]) {
        _cleanup_(library_unload_p) void *handle = open_first(l);

        if (!handle) {
                snprintf(error, LIBRARY_ERROR_MAX, "this host has no %s; %s (%s)", l->purpose, l->remedy,
                         dlerror() ?: "it cannot be loaded");
                return -ENOENT;
        }
        for (size_t i = 0; i < l->n_symbols; i++) {
                void *address = dlsym(handle, l->symbols[i].name);

                if (!address && !l->symbols[i].optional) {
                        snprintf(error, LIBRARY_ERROR_MAX, "this host has no %s; %s (what it has lacks %s)",
                                 l->purpose, l->remedy, l->symbols[i].name);
                        return -ENOSYS;
                }
                memcpy((char *)api + l->symbols[i].offset, &address, sizeof(address));
        }
        if (ret_handle)
                *ret_handle = handle;
        handle = NULL;
        return 0;
}

void library_unload(void *handle) {
        if (handle)
                (void)dlclose(handle);
}
