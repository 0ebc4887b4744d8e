/* SPDX-License-Identifier: Apache-2.0 */
/* Loading librdkafka. */
#include "executor/read/kafka-api.h"

#include <pthread.h>
#include <stdio.h>

#include "lib/base/library.h"

static const struct library_symbol symbols[] = {
#define X(name, type, arguments) { "rd_kafka_" #name, offsetof(struct kafka_api, name), false },
        KAFKA_API_FUNCTIONS(X)
#undef X
};
static const struct library library = {
        .sonames = { "librdkafka.so.1" },
        .purpose = "librdkafka (1.6 or newer), which reads topics",
        .remedy = "install librdkafka1",
        .symbols = symbols,
        .n_symbols = ELEMENTSOF(symbols),
};

static struct kafka_api api;
static int loaded = -EAGAIN; /* 0, or what came of it */
static char problem[LIBRARY_ERROR_MAX];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

int kafka_api_load(const struct kafka_api **ret, char error[static READ_ERROR_MAX]) {
        int r;

        (void)pthread_mutex_lock(&mutex);
        if (loaded == -EAGAIN)
                loaded = library_load(&library, &api, NULL, problem) < 0 ? -ENOENT : 0;
        r = loaded;
        (void)pthread_mutex_unlock(&mutex);
        if (r < 0) {
                snprintf(error, READ_ERROR_MAX, "%s", problem);
                return r;
        }
        *ret = &api;
        return 0;
}
