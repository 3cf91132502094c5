/* SPDX-License-Identifier: Apache-2.0 */
/** JSON that is written: an addition for which there is no memory is not lost silently. */
#ifndef PTXGEN_CLI_JSON_DRAFT_H
#define PTXGEN_CLI_JSON_DRAFT_H

#include <cJSON.h>
#include <ptxgen/status.h>
#include <stdbool.h>

/** A document that is being made. A failed addition leaves a mark. */
struct json_draft {
    cJSON *root; /**< an object */
    bool is_incomplete;
};

void json_start(struct json_draft *draft);
void json_free(struct json_draft *draft);
/** What is added to NULL is dropped, so that an addition may follow one that has failed. */
cJSON *json_add_object(struct json_draft *draft, cJSON *to, const char *name);
cJSON *json_add_array(struct json_draft *draft, cJSON *to, const char *name);
/** A new object at the end of an array. */
cJSON *json_append_object(struct json_draft *draft, cJSON *array);
/** A number at the end of an array. */
void json_append_number(struct json_draft *draft, cJSON *array, double value);
void json_add_number(struct json_draft *draft, cJSON *to, const char *name, double value);
void json_add_string(struct json_draft *draft, cJSON *to, const char *name, const char *value);
void json_add_bool(struct json_draft *draft, cJSON *to, const char *name, bool value);
/** PTXGEN_ERROR_OUT_OF_MEMORY for a draft that lacks anything. */
ptxgen_status json_check(const struct json_draft *draft, ptxgen_error *err);
/** Prints the document to the standard output, all of it or nothing. */
ptxgen_status json_print(const struct json_draft *draft, ptxgen_error *err);

#endif
