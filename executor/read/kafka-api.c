/* SPDX-License-Identifier: Apache-2.0 */
/* Loading librdkafka. */
#include "executor/read/kafka-api.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>

static struct kafka_api api;
static int loaded = -EAGAIN; /* 0, or what came of it */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static int load(void) {
        void *library = dlopen("librdkafka.so.1", RTLD_NOW | RTLD_LOCAL);

        if (!library)
                return -ENOENT;
#define X(name, type, arguments)                                                                             \
        api.name = (type(*) arguments)dlsym(library, "rd_kafka_" #name);                                     \
        if (!api.name)                                                                                       \
                return -ENOENT;
        KAFKA_API_FUNCTIONS(X)
#undef X
        return 0;
}

int kafka_api_load(const struct kafka_api **ret, char error[static READ_ERROR_MAX]) {
        int r;

        (void)pthread_mutex_lock(&mutex);
        if (loaded == -EAGAIN)
                loaded = load();
        r = loaded;
        (void)pthread_mutex_unlock(&mutex);
        if (r < 0) {
                snprintf(error, READ_ERROR_MAX,
                         "this host has no librdkafka (1.6 or newer), which reads topics; install "
                         "librdkafka1");
                return r;
        }
        *ret = &api;
        return 0;
}
