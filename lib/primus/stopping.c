/* SPDX-License-Identifier: Apache-2.0 */
/* Whether somebody wants this process to end. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>

#include "lib/primus/primus.h"

static volatile sig_atomic_t asked;
static struct sigaction before;

static void take_signal(int number, siginfo_t *info, void *context) {
        int saved = errno;

        asked = 1;
        if (before.sa_flags & SA_SIGINFO)
                before.sa_sigaction(number, info, context);
        else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)
                before.sa_handler(number);
        errno = saved;
}

int primus_should_stop(void) {
        static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
        static bool taken;
        int r = 0;

        /* Without SA_RESTART: who waits for something is to hear of it. */
        pthread_mutex_lock(&lock);
        if (!taken) {
                struct sigaction now = { .sa_sigaction = take_signal, .sa_flags = SA_SIGINFO };

                r = sigaction(SIGTERM, NULL, &before) < 0 || sigaction(SIGTERM, &now, NULL) < 0 ? -errno : 0;
                taken = r == 0;
        }
        pthread_mutex_unlock(&lock);
        return r < 0 ? r : asked;
}
