/* SPDX-License-Identifier: Apache-2.0 */
#include "json_draft.h"

#include <stdio.h>

static cJSON *mark(struct json_draft *draft, cJSON *item)
{
    draft->is_incomplete |= !item;
    return item;
}

void json_start(struct json_draft *draft)
{
    *draft = (struct json_draft){0};
    draft->root = mark(draft, cJSON_CreateObject());
}

void json_free(struct json_draft *draft)
{
    cJSON_Delete(draft->root);
    draft->root = NULL;
}

cJSON *json_add_object(struct json_draft *draft, cJSON *to, const char *name)
{
    return mark(draft, cJSON_AddObjectToObject(to, name));
}

cJSON *json_add_array(struct json_draft *draft, cJSON *to, const char *name)
{
    return mark(draft, cJSON_AddArrayToObject(to, name));
}

cJSON *json_append_object(struct json_draft *draft, cJSON *array)
{
    cJSON *object = mark(draft, cJSON_CreateObject());
    if (cJSON_AddItemToArray(array, object))
        return object;
    cJSON_Delete(object);
    return mark(draft, NULL);
}

void json_append_number(struct json_draft *draft, cJSON *array, double value)
{
    cJSON *number = mark(draft, cJSON_CreateNumber(value));
    if (!cJSON_AddItemToArray(array, number)) {
        cJSON_Delete(number);
        mark(draft, NULL);
    }
}

void json_add_number(struct json_draft *draft, cJSON *to, const char *name, double value)
{
    mark(draft, cJSON_AddNumberToObject(to, name, value));
}

void json_add_string(struct json_draft *draft, cJSON *to, const char *name, const char *value)
{
    mark(draft, cJSON_AddStringToObject(to, name, value));
}

void json_add_bool(struct json_draft *draft, cJSON *to, const char *name, bool value)
{
    mark(draft, cJSON_AddBoolToObject(to, name, value));
}

ptxgen_status json_check(const struct json_draft *draft, ptxgen_error *err)
{
    if (!draft->is_incomplete)
        return PTXGEN_OK;
    return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for the JSON");
}

ptxgen_status json_print(const struct json_draft *draft, ptxgen_error *err)
{
    char *text = draft->is_incomplete ? NULL : cJSON_Print(draft->root);
    if (!text)
        return ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for the JSON");
    puts(text);
    cJSON_free(text);
    return PTXGEN_OK;
}
