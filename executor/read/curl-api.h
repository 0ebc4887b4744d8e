/* SPDX-License-Identifier: Apache-2.0 */
/* libcurl, loaded when the first URL is opened: it costs 6 ms at the start of a process, and most executors
 * read plain files. */
#pragma once

#include <curl/curl.h>

#include "executor/read/reader.h"

#define CURL_API_FUNCTIONS(X)                                                                                \
        X(global_init, CURLcode, (long))                                                                     \
        X(easy_init, CURL *, (void))                                                                         \
        X(easy_cleanup, void, (CURL *))                                                                      \
        X(easy_setopt, CURLcode, (CURL *, CURLoption, ...))                                                  \
        X(easy_pause, CURLcode, (CURL *, int))                                                               \
        X(easy_strerror, const char *, (CURLcode))                                                           \
        X(getdate, time_t, (const char *, const time_t *))                                                   \
        X(multi_init, CURLM *, (void))                                                                       \
        X(multi_cleanup, CURLMcode, (CURLM *))                                                               \
        X(multi_add_handle, CURLMcode, (CURLM *, CURL *))                                                    \
        X(multi_remove_handle, CURLMcode, (CURLM *, CURL *))                                                 \
        X(multi_perform, CURLMcode, (CURLM *, int *))                                                        \
        X(multi_poll, CURLMcode, (CURLM *, struct curl_waitfd *, unsigned, int, int *))                      \
        X(multi_info_read, CURLMsg *, (CURLM *, int *))                                                      \
        X(slist_append, struct curl_slist *, (struct curl_slist *, const char *))                            \
        X(slist_free_all, void, (struct curl_slist *))

struct curl_api {
#define X(name, type, arguments) type(*name) arguments;
        CURL_API_FUNCTIONS(X)
#undef X
};

/* Loads it once. 0, or -ENOENT with a line in error that says what to install. Callable from any thread. */
int curl_api_load(const struct curl_api **ret, char error[static READ_ERROR_MAX]);
