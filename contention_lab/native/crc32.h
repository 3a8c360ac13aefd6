/* CRC-32 as zlib computes it (reflected 0xEDB88320), eight bytes at a time. */
#ifndef CL_CRC32_H
#define CL_CRC32_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static uint32_t cl_crc_table[8][256];

static void
cl_crc32_init(void)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t value = byte;
        for (int bit = 0; bit < 8; bit++) {
            value = (value >> 1) ^ (0xEDB88320u & (0u - (value & 1u)));
        }
        cl_crc_table[0][byte] = value;
    }
    for (uint32_t byte = 0; byte < 256; byte++) {
        for (int slice = 1; slice < 8; slice++) {
            uint32_t value = cl_crc_table[slice - 1][byte];
            cl_crc_table[slice][byte] = (value >> 8) ^ cl_crc_table[0][value & 0xFFu];
        }
    }
}

/* Continues `crc` (0 to begin) over `size` bytes. */
static uint32_t
cl_crc32(uint32_t crc, const void *data, size_t size)
{
    const uint8_t *at = data;
    uint32_t value = ~crc;
    for (; size >= 8; size -= 8, at += 8) {
        uint32_t low = value ^ ((uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16
                                | (uint32_t)at[3] << 24);
        value = cl_crc_table[7][low & 0xFFu] ^ cl_crc_table[6][(low >> 8) & 0xFFu]
                ^ cl_crc_table[5][(low >> 16) & 0xFFu] ^ cl_crc_table[4][low >> 24]
                ^ cl_crc_table[3][at[4]] ^ cl_crc_table[2][at[5]] ^ cl_crc_table[1][at[6]]
                ^ cl_crc_table[0][at[7]];
    }
    for (; size > 0; size--, at++) {
        value = (value >> 8) ^ cl_crc_table[0][(value ^ *at) & 0xFFu];
    }
    return ~value;
}

#endif
