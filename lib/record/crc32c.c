/* SPDX-License-Identifier: Apache-2.0 */
/* CRC-32C (Castagnoli). Processors have an instruction for it; where this one has not, tables do eight bytes
 * at a time. Which, is found out once. */
#include <string.h>

#include "lib/record/record.h"

#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#define POLYNOMIAL 0x82f63b78u /* reversed */

static uint32_t tables[8][256];

static uint32_t crc_tables(uint32_t crc, const uint8_t *p, size_t size) {
        for (; size >= 8; p += 8, size -= 8) {
                uint32_t a = crc ^ ((uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
                                    (uint32_t)p[3] << 24);

                crc = tables[7][a & 0xff] ^ tables[6][a >> 8 & 0xff] ^ tables[5][a >> 16 & 0xff] ^
                      tables[4][a >> 24] ^ tables[3][p[4]] ^ tables[2][p[5]] ^ tables[1][p[6]] ^
                      tables[0][p[7]];
        }
        while (size-- > 0)
                crc = crc >> 8 ^ tables[0][(crc ^ *p++) & 0xff];
        return crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static uint32_t crc_hardware(uint32_t crc, const uint8_t *p, size_t size) {
        uint64_t c = crc;

        for (; size >= 8; p += 8, size -= 8) {
                uint64_t v;

                memcpy(&v, p, 8);
                c = __builtin_ia32_crc32di(c, v);
        }
        crc = (uint32_t)c;
        while (size-- > 0)
                crc = __builtin_ia32_crc32qi(crc, *p++);
        return crc;
}

static bool hardware(void) {
        return __builtin_cpu_supports("sse4.2");
}
#elif defined(__aarch64__)
/* By name rather than by intrinsic: those want the whole file compiled for such a processor. */
static uint32_t crc_hardware(uint32_t crc, const uint8_t *p, size_t size) {
        for (; size >= 8; p += 8, size -= 8) {
                uint64_t v;

                memcpy(&v, p, 8);
                __asm__(".arch_extension crc\n\tcrc32cx %w0, %w0, %x1" : "+r"(crc) : "r"(v));
        }
        while (size-- > 0)
                __asm__(".arch_extension crc\n\tcrc32cb %w0, %w0, %w1" : "+r"(crc) : "r"((uint32_t)*p++));
        return crc;
}

static bool hardware(void) {
        return getauxval(AT_HWCAP) & HWCAP_CRC32;
}
#else
#define crc_hardware crc_tables
static bool hardware(void) {
        return false;
}
#endif

static uint32_t (*crc_best)(uint32_t crc, const uint8_t *p, size_t size) = crc_tables;

/* Before any thread is there. */
__attribute__((constructor)) static void crc_choose(void) {
        __typeof__(crc_best) best = crc_tables;

#if defined(__x86_64__)
        __builtin_cpu_init();
#endif
        for (uint32_t i = 0; i < 256; i++) {
                uint32_t crc = i;

                for (int bit = 0; bit < 8; bit++)
                        crc = crc & 1 ? crc >> 1 ^ POLYNOMIAL : crc >> 1;
                tables[0][i] = crc;
        }
        for (uint32_t i = 0; i < 256; i++)
                for (int t = 1; t < 8; t++)
                        tables[t][i] = tables[t - 1][i] >> 8 ^ tables[0][tables[t - 1][i] & 0xff];
        if (hardware())
                best = crc_hardware;
        crc_best = best;
}

uint32_t crc32c(uint32_t crc, const void *data, size_t size) {
        return ~crc_best(~crc, data, size);
}

uint32_t crc32c_tables(uint32_t crc, const void *data, size_t size) {
        return ~crc_tables(~crc, data, size);
}
