/* SPDX-License-Identifier: Apache-2.0 */
/* BLAKE2b against RFC 7693 and against b2sum. */
#include "tests/runtime/check.h"

#include "src/runtime/blake2b.h"

#include <stdio.h>

/* RFC 7693, appendix A. */
static void abc_hashes_as_in_the_rfc(void **state)
{
    (void)state;
    static const unsigned char wanted[64] = {
        0xba, 0x80, 0xa5, 0x3f, 0x98, 0x1c, 0x4d, 0x0d, 0x6a, 0x27, 0x97, 0xb6, 0x9f,
        0x12, 0xf6, 0xe9, 0x4c, 0x21, 0x2f, 0x14, 0x68, 0x5a, 0xc4, 0xb7, 0x4b, 0x12,
        0xbb, 0x6f, 0xdb, 0xff, 0xa2, 0xd1, 0x7d, 0x87, 0xc5, 0x39, 0x2a, 0xab, 0x79,
        0x2d, 0xc2, 0x52, 0xd5, 0xde, 0x45, 0x33, 0xcc, 0x95, 0x18, 0xd3, 0x8a, 0xa8,
        0xdb, 0xf1, 0x92, 0x5a, 0xb9, 0x23, 0x86, 0xed, 0xd4, 0x00, 0x99, 0x23};
    unsigned char digest[64];
    struct blake2b hash;
    blake2b_begin(&hash, sizeof digest);
    blake2b_add(&hash, "abc", 3);
    blake2b_end(&hash, digest);
    assert_memory_equal(digest, wanted, sizeof wanted);
}

/* `b2sum -l 256` of an empty file and of "abc". */
static void digests_are_those_of_b2sum(void **state)
{
    (void)state;
    assert_string_equal(digest_of("", 0).hex,
                        "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8");
    assert_string_equal(digest_of("abc", 3).hex,
                        "bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319");
}

/* The hash of the hashes of byte i·7 + n for i < n, n = 0 … 512, by Python's hashlib. */
static void every_length_around_the_blocks_is_right_in_any_pieces(void **state)
{
    (void)state;
    static const unsigned char wanted[32] = {0x8f, 0x9e, 0x4a, 0xf1, 0x0f, 0xc6, 0x4b, 0x65,
                                             0xfc, 0xdf, 0xae, 0x69, 0x3d, 0x5c, 0x79, 0xd3,
                                             0x15, 0x6a, 0x20, 0xfb, 0x2d, 0x39, 0x51, 0x08,
                                             0x56, 0x10, 0x47, 0x74, 0xd5, 0x0b, 0xa6, 0xe3};
    unsigned char bytes[512], digest[32];
    struct blake2b all, one;
    for (size_t piece = 1; piece <= 512; piece = 3 * piece + 1) {
        blake2b_begin(&all, sizeof digest);
        for (size_t n = 0; n <= 512; n++) {
            for (size_t i = 0; i < n; i++)
                bytes[i] = (unsigned char)(i * 7 + n);
            blake2b_begin(&one, sizeof digest);
            for (size_t done = 0; done < n; done += piece)
                blake2b_add(&one, bytes + done, n - done < piece ? n - done : piece);
            blake2b_end(&one, digest);
            blake2b_add(&all, digest, sizeof digest);
        }
        blake2b_end(&all, digest);
        assert_memory_equal(digest, wanted, sizeof wanted);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(abc_hashes_as_in_the_rfc),
        cmocka_unit_test(digests_are_those_of_b2sum),
        cmocka_unit_test(every_length_around_the_blocks_is_right_in_any_pieces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
