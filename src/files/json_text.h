/* SPDX-License-Identifier: Apache-2.0 */
/**
 * JSON of files that are not trusted (RFC 8259), read into an array of values.
 *
 *     struct json_text *json;
 *     const struct json_value *member;
 *     if (json_text_parse("safetensors index", text, length, &json, err) != PTXGEN_OK)
 *         …
 *     json_each (member, json_text_root(json))
 *         … member->key …
 *     json_text_free(json);
 */
#ifndef PTXGEN_FILES_JSON_TEXT_H
#define PTXGEN_FILES_JSON_TEXT_H

#include <ptxgen/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum json_kind { JSON_LITERAL, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

struct json_value {
    const char *key;  /**< of an object's member, else NULL */
    const char *text; /**< of a string, NUL-terminated; of a number, as it stands in the file */
    enum json_kind kind;
    uint32_t length;       /**< of `text` */
    uint32_t child, next;  /**< how far behind this value they stand in the array; 0: none */
    uint32_t parent, last; /**< for the parser: places of the container, and of the last child */
};

struct json_text;

/**
 * Parses the whole text, which must be UTF-8 and shorter than 2^32 bytes, as one value with white
 * space around it at most. Strings hold no NUL, which would cut them short. Failures begin with
 * `subject`. The text must outlive *json, which is the caller's, for json_text_free.
 */
ptxgen_status json_text_parse(const char *subject, const char *text, size_t length,
                              struct json_text **json, ptxgen_error *err);
void json_text_free(struct json_text *json);

const struct json_value *json_text_root(const struct json_text *json);

/** The first member or element, and the one after another; NULL when there is none. */
static inline const struct json_value *json_child(const struct json_value *value)
{
    return value->child ? value + value->child : NULL;
}
static inline const struct json_value *json_next(const struct json_value *value)
{
    return value->next ? value + value->next : NULL;
}

#define json_each(item, container)                                                                 \
    for ((item) = json_child(container); (item) != NULL; (item) = json_next(item))

#endif
