/* SplitMix64 (Steele, Lea and Flood 2014): one state for the engine's choices, one for each thread, so
 * that what a thread draws does not depend on what others do. */
#ifndef CLS_RANDOM_H
#define CLS_RANDOM_H

#include <stdint.h>

/* A number in [0, 1). */
static inline double
random_next(uint64_t *state)
{
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    z ^= z >> 31;
    return (double)(z >> 11) * 0x1.0p-53;
}

#endif
