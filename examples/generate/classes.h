/* SPDX-License-Identifier: Apache-2.0 */
/* Characters of UTF-8, and what kind of character each is. */
#ifndef GENERATE_CLASSES_H
#define GENERATE_CLASSES_H

#include <stddef.h>

enum class {
    CLASS_END,
    CLASS_LETTER = 1,
    CLASS_NUMBER = 2,
    CLASS_NEWLINE = 4, /* carriage return and line feed */
    CLASS_SPACE = 8,   /* the other white space */
    CLASS_OTHER = 16
};

/*
 * The class of the character at the text's begin, and its bytes. A byte that is not part of valid
 * UTF-8 is a character of its own, of the class OTHER.
 */
enum class class_of(const char *text, size_t length, size_t *bytes);

#endif
