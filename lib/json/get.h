/* SPDX-License-Identifier: Apache-2.0 */
/* Members of an object whose shape is known. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* "" where there is none. */
const char *json_get_text(const json_t *o, const char *name);
/* 0 where there is none, and of null. Numbers beyond what JSON's have are what they were in D-Bus. */
uint64_t json_get_number(const json_t *o, const char *name);
double json_get_real(const json_t *o, const char *name);
bool json_get_flag(const json_t *o, const char *name);

#define JSON_USER_MAX 64u
/* The name of a user here, or the number. */
const char *json_user_name(uint32_t uid, char buf[static JSON_USER_MAX]);
