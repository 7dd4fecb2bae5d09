/* Values of the types that the fakes know, by their cudaDataType: 0 fp32, 2 fp16, 14 bf16. Of fp16 only zero and
   normal numbers, and what has no fp16 is cut. */
#include <stdint.h>
#include <string.h>

static int known_type(int type) { return type == 0 || type == 2 || type == 14; }

static float load(const void *values, int type, int64_t at) {
    uint32_t bits;
    float value;
    if (type == 0) return ((const float *)values)[at];
    bits = ((const uint16_t *)values)[at];
    if (type == 14)
        bits <<= 16;
    else
        bits = (bits & 0x8000) << 16 | (bits & 0x7fff ? ((bits & 0x7fff) << 13) + (112u << 23) : 0);
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void store(void *values, int type, int64_t at, float value) {
    uint32_t bits;
    if (type == 0) {
        ((float *)values)[at] = value;
        return;
    }
    memcpy(&bits, &value, sizeof bits);
    if (type == 14)
        bits >>= 16;
    else
        bits = bits >> 16 & 0x8000 | (bits & 0x7fffffff ? ((bits & 0x7fffffff) - (112u << 23)) >> 13 : 0);
    ((uint16_t *)values)[at] = (uint16_t)bits;
}
