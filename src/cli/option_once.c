/* SPDX-License-Identifier: Apache-2.0 */
#include "option_once.h"

#include <string.h>

static const struct argp_option *find_option(const struct option_once *o, int key)
{
    for (const struct argp_option *option = o->inner->options;
         option && (option->name || option->doc); option++)
        if (option->key == key)
            return option;
    return NULL;
}

static void note(struct option_once *o, const struct argp_option *option, const char *value,
                 struct argp_state *state)
{
    for (int i = 0; i < o->count; i++) {
        if (o->given[i].key != option->key)
            continue;
        if (value && strcmp(o->given[i].value, value) != 0)
            argp_error(state, "--%s is given twice, as %s and %s", option->name, o->given[i].value,
                       value);
        return;
    }
    if (o->count < (int)(sizeof o->given / sizeof *o->given))
        o->given[o->count++] = (struct option_value){option->key, value};
}

/* The inner parser finds its own input in the state. */
static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct option_once *o = state->input;
    const struct argp_option *option = key < OPTION_REPEATED_KEYS ? find_option(o, key) : NULL;
    if (option)
        note(o, option, arg, state);
    state->input = o->input;
    error_t result = o->inner->parser ? o->inner->parser(key, arg, state) : ARGP_ERR_UNKNOWN;
    state->input = o;
    return result;
}

void option_once_make(struct option_once *o, const struct argp *inner, void *input)
{
    *o = (struct option_once){.argp = *inner, .inner = inner, .input = input};
    o->argp.parser = parse;
}

bool option_once_given(const struct option_once *o, const char *name)
{
    for (int i = 0; i < o->count; i++) {
        const struct argp_option *option = find_option(o, o->given[i].key);
        if (option && option->name && !strcmp(option->name, name))
            return true;
    }
    return false;
}
