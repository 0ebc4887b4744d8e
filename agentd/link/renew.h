/* SPDX-License-Identifier: Apache-2.0 */
/* The identity of this host, and its renewal. */
#pragma once

struct manager;
struct tls_credentials;

/* Looks after the certificate while the link is up. */
int renewal_start(struct manager *m);
/* From the start on: warns while the certificate is to be renewed and there is no link, and when it has
 * expired. */
int renewal_watch(struct manager *m);
/* Loads the identity, finishing a renewal that a crash interrupted. */
int identity_load(struct tls_credentials **ret, char **ret_name);
