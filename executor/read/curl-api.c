/* SPDX-License-Identifier: Apache-2.0 */
/* Loading libcurl. Debian has it built with either TLS library; both have the same functions. */
#include "executor/read/curl-api.h"

#include <pthread.h>
#include <stdio.h>

#include "lib/base/library.h"

static const struct library_symbol symbols[] = {
#define X(name, type, arguments) { "curl_" #name, offsetof(struct curl_api, name), false },
        CURL_API_FUNCTIONS(X)
#undef X
};
static const struct library library = {
        .sonames = { "libcurl.so.4", "libcurl-gnutls.so.4" },
        .purpose = "libcurl (7.85 or newer), which reads http and s3",
        .remedy = "install libcurl4",
        .symbols = symbols,
        .n_symbols = ELEMENTSOF(symbols),
};

static struct curl_api api;
static int loaded = -EAGAIN; /* 0, or what came of it */
static char problem[LIBRARY_ERROR_MAX];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static int load(void) {
        if (library_load(&library, &api, NULL, problem) < 0)
                return -ENOENT;
        if (api.global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK)
                return 0;
        snprintf(problem, sizeof(problem), "this host's libcurl, which reads http and s3, does not start");
        return -EIO;
}

int curl_api_load(const struct curl_api **ret, char error[static READ_ERROR_MAX]) {
        int r;

        (void)pthread_mutex_lock(&mutex);
        if (loaded == -EAGAIN)
                loaded = load();
        r = loaded;
        (void)pthread_mutex_unlock(&mutex);
        if (r < 0) {
                snprintf(error, READ_ERROR_MAX, "%s", problem);
                return r;
        }
        *ret = &api;
        return 0;
}
