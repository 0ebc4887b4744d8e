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
#define HARDWARE __attribute__((target("sse4.2")))
HARDWARE static inline uint32_t step8(uint32_t crc, const uint8_t *p) {
        uint64_t v;

        memcpy(&v, p, 8);
        return (uint32_t)__builtin_ia32_crc32di(crc, v);
}

HARDWARE static inline uint32_t step1(uint32_t crc, uint8_t byte) {
        return __builtin_ia32_crc32qi(crc, byte);
}

static bool hardware(void) {
        return __builtin_cpu_supports("sse4.2");
}
#elif defined(__aarch64__)
/* By name rather than by intrinsic: those want the whole file compiled for such a processor. */
#define HARDWARE
static inline uint32_t step8(uint32_t crc, const uint8_t *p) {
        uint64_t v;

        memcpy(&v, p, 8);
        __asm__(".arch_extension crc\n\tcrc32cx %w0, %w0, %x1" : "+r"(crc) : "r"(v));
        return crc;
}

static inline uint32_t step1(uint32_t crc, uint8_t byte) {
        __asm__(".arch_extension crc\n\tcrc32cb %w0, %w0, %w1" : "+r"(crc) : "r"((uint32_t)byte));
        return crc;
}

static bool hardware(void) {
        return getauxval(AT_HWCAP) & HWCAP_CRC32;
}
#endif

#ifdef HARDWARE
/* The instruction begins every cycle and takes three: so three parts at once, each of STRIDE bytes, put
 * together by what STRIDE zeros behind it make of a CRC. */
#define STRIDE 1024u
static uint32_t shifts[4][256];

HARDWARE static uint32_t crc_serial(uint32_t crc, const uint8_t *p, size_t size) {
        for (; size >= 8; p += 8, size -= 8)
                crc = step8(crc, p);
        while (size-- > 0)
                crc = step1(crc, *p++);
        return crc;
}

static inline uint32_t shift(uint32_t crc) {
        return shifts[0][crc & 0xff] ^ shifts[1][crc >> 8 & 0xff] ^ shifts[2][crc >> 16 & 0xff] ^
               shifts[3][crc >> 24];
}

HARDWARE static uint32_t crc_hardware(uint32_t crc, const uint8_t *p, size_t size) {
        for (; size >= 3 * STRIDE; p += 3 * STRIDE, size -= 3 * STRIDE) {
                uint32_t second = 0, third = 0;

                for (size_t i = 0; i < STRIDE; i += 8) {
                        crc = step8(crc, p + i);
                        second = step8(second, p + STRIDE + i);
                        third = step8(third, p + 2 * STRIDE + i);
                }
                crc = shift(shift(crc) ^ second) ^ third;
        }
        return crc_serial(crc, p, size);
}

static void shifts_fill(void) {
        static const uint8_t zeros[STRIDE];

        for (unsigned part = 0; part < 4; part++)
                for (unsigned bit = 0; bit < 8; bit++) {
                        uint32_t one = crc_serial(UINT32_C(1) << (8 * part + bit), zeros, STRIDE);

                        /* A CRC of zeros is linear in what it begins with. */
                        for (unsigned i = 0; i < 256; i++)
                                if (i >> bit & 1)
                                        shifts[part][i] ^= one;
                }
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
#ifdef HARDWARE
        if (hardware()) {
                shifts_fill();
                best = crc_hardware;
        }
#endif
        crc_best = best;
}

uint32_t crc32c(uint32_t crc, const void *data, size_t size) {
        return ~crc_best(~crc, data, size);
}

uint32_t crc32c_tables(uint32_t crc, const void *data, size_t size) {
        return ~crc_tables(~crc, data, size);
}
