/* SPDX-License-Identifier: Apache-2.0 */
/* Loading libcurl. Debian has it built with either TLS library; both have the same functions. */
#include "executor/read/curl-api.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

#include "lib/base/cleanup.h"

static const char *const sonames[] = { "libcurl.so.4", "libcurl-gnutls.so.4" };

static struct curl_api api;
static int loaded = -EAGAIN; /* 0, or what came of it */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static int load(void) {
        void *library = NULL;

        for (size_t i = 0; !library && i < ELEMENTSOF(sonames); i++)
                library = dlopen(sonames[i], RTLD_NOW | RTLD_LOCAL);
        if (!library)
                return -ENOENT;
#define X(name, type, arguments)                                                                             \
        api.name = (type(*) arguments)dlsym(library, "curl_" #name);                                         \
        if (!api.name)                                                                                       \
                return -ENOENT;
        CURL_API_FUNCTIONS(X)
#undef X
        return api.global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK ? 0 : -EIO;
}

int curl_api_load(const struct curl_api **ret, char error[static READ_ERROR_MAX]) {
        int r;

        (void)pthread_mutex_lock(&mutex);
        if (loaded == -EAGAIN)
                loaded = load();
        r = loaded;
        (void)pthread_mutex_unlock(&mutex);
        if (r < 0) {
                snprintf(error, READ_ERROR_MAX,
                         "this host has no libcurl (7.85 or newer), which reads http and s3; install "
                         "libcurl4");
                return r;
        }
        *ret = &api;
        return 0;
}
