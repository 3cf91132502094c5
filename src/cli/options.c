/* SPDX-License-Identifier: Apache-2.0 */
#include "options.h"

#include "chips.h"
#include "exit_code.h"
#include "option_once.h"

#include "../files/nearest.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void parse_arguments(const struct argp *argp, int argc, char **argv, unsigned flags, void *input)
{
    struct option_once once;
    option_once_make(&once, argp, input);
    bool whole = argp->children != NULL; /* its children are wrapped one by one */
    error_t failure =
        argp_parse(whole ? argp : &once.argp, argc, argv, flags, NULL, whole ? input : &once);
    if (!failure)
        return;
    fprintf(stderr, "ptxgen: the arguments cannot be read: %s\n", strerror(failure));
    exit(EXIT_INTERNAL);
}

/* ---- values ---- */

static bool read_number(const char *text, const char **end, uint64_t low, uint64_t high,
                        uint64_t *number)
{
    char *stop;
    errno = 0;
    if (*text < '0' || *text > '9')
        return false;
    *number = strtoull(text, &stop, 10);
    *end = stop;
    return !errno && *number >= low && *number <= high;
}

uint64_t parse_number(struct argp_state *state, const char *option, const char *text, uint64_t low,
                      uint64_t high)
{
    uint64_t number = 0;
    const char *end = text;
    if (!read_number(text, &end, low, high, &number) || *end)
        argp_error(state, "%s %s: expected a whole number from %" PRIu64 " to %" PRIu64, option,
                   text, low, high);
    return number;
}

uint64_t parse_bytes(struct argp_state *state, const char *option, const char *text)
{
    static const char suffixes[] = "KMGT";
    uint64_t number = 0;
    const char *end = text;
    bool read = read_number(text, &end, 1, UINT64_MAX, &number);
    const char *suffix = read && *end ? strchr(suffixes, *end) : NULL;
    unsigned shift = suffix ? 10 * (unsigned)(suffix - suffixes + 1) : 0;
    if (!read || (*end && (!suffix || end[1])) || number > UINT64_MAX >> shift)
        argp_error(state,
                   "%s %s: expected bytes, or a number with K, M, G or T behind it, of 2^10, "
                   "2^20, 2^30 or 2^40 bytes, below 2^64 in all",
                   option, text);
    return number << shift;
}

int32_t parse_group_size(struct argp_state *state, const char *text)
{
    uint64_t number = 0;
    const char *end = text;
    if (!strcmp(text, "-1"))
        return PTXGEN_W4_PER_CHANNEL;
    if (!read_number(text, &end, 1, INT32_MAX, &number) || *end)
        argp_error(state,
                   "--group-size %s: expected a whole number from 1 to %d, or -1 for one group of "
                   "all rows",
                   text, INT32_MAX);
    return (int32_t)number;
}

double parse_positive(struct argp_state *state, const char *option, const char *text)
{
    char *end;
    double value = strtod(text, &end); /* the command never leaves the C locale */
    if (end == text || *end || !(value > 0) || !isfinite(value))
        argp_error(state, "%s %s: expected a positive number", option, text);
    return value;
}

float parse_epsilon(struct argp_state *state, const char *option, const char *text)
{
    char *end;
    double value = strtod(text, &end); /* the command never leaves the C locale */
    if (end == text || *end || !(value >= 0) || !isfinite((float)value))
        argp_error(state, "%s %s: expected a number from 0 to 3.4e38", option, text);
    if (value > 0 && (float)value == 0)
        argp_error(state, "%s %s: f32 would make it 0", option, text);
    return (float)value;
}

unsigned parse_numbers(struct argp_state *state, const char *option, const char *text, uint64_t low,
                       uint64_t high, uint32_t *numbers, unsigned capacity)
{
    const char *at = text;
    for (unsigned count = 0;; at++) {
        uint64_t first = 0, last = 0;
        bool read = read_number(at, &at, low, high, &first);
        last = first;
        if (read && *at == ':')
            read = read_number(at + 1, &at, first, high, &last);
        if (!read || (*at && *at != ','))
            argp_error(state,
                       "%s %s: expected whole numbers from %" PRIu64 " to %" PRIu64
                       ", or FIRST:LAST, with commas between them",
                       option, text, low, high);
        if (last - first >= capacity - count)
            argp_error(state, "%s %s: at most %u numbers", option, text, capacity);
        for (; first <= last; first++)
            numbers[count++] = (uint32_t)first;
        if (!*at)
            return count;
    }
}

uint8_t parse_codes(struct argp_state *state, const char *text, int16_t *least, int16_t *most)
{
    uint32_t range[2];
    *least = *most = 0;
    if (strcmp(text, "e4m3") == 0)
        return PTXGEN_W8A8_E4M3;
    if (parse_numbers(state, "--codes", text, 0, 128, range, 2) != 2)
        argp_error(state, "--codes %s: expected e4m3, or two magnitudes, as 128,127", text);
    *least = (int16_t) - (int32_t)range[0];
    *most = (int16_t)range[1];
    return PTXGEN_W8A8_S8;
}

unsigned parse_shapes(struct argp_state *state, const char *text, struct shape *shapes,
                      unsigned capacity)
{
    const char *at = text;
    for (unsigned count = 0;; at++) {
        int used = 0;
        unsigned k = 0, n = 0;
        if (count == capacity)
            argp_error(state, "--shape %s: at most %u shapes", text, capacity);
        if (*at < '0' || *at > '9' || sscanf(at, "%9ux%9u%n", &k, &n, &used) != 2 || !used || !k ||
            !n || (at[used] && at[used] != ','))
            argp_error(state, "--shape %s: expected KxN, such as 4096x14336, with commas between",
                       text);
        shapes[count++] = (struct shape){k, n};
        at += used;
        if (!*at)
            return count;
    }
}

void refuse_two_shapes(bool both_given)
{
    if (!both_given)
        return;
    fputs("ptxgen: --shape and the kernel's own K and features are both given; one is enough\n",
          stderr);
    exit(EXIT_USAGE);
}

static void join(const char *const *names, char *list, size_t size)
{
    *list = 0;
    for (int i = 0; names[i]; i++) {
        size_t used = strlen(list);
        snprintf(list + used, size - used, "%s%s", i ? ", " : "", names[i]);
    }
}

int parse_choice(struct argp_state *state, const char *option, const char *text,
                 const char *const *choices)
{
    char list[256];
    for (int i = 0; choices[i]; i++)
        if (!strcmp(choices[i], text))
            return i;
    join(choices, list, sizeof list);
    argp_error(state, "%s %s: expected one of %s", option, text, list);
    return 0;
}

void take_file(struct argp_state *state, const char **input, const char **output, const char *path)
{
    if (!*input)
        *input = path;
    else if (!*output)
        *output = path;
    else
        argp_error(state, "%s: one input and one output are enough", path);
}

void parse_tile(struct argp_state *state, const char *text, char *const *names,
                uint32_t *const *members)
{
    char *copy = strdup(text), *rest = copy, *value, list[256];
    uint32_t seen = 0; /* a bit a name */
    if (!copy)
        argp_failure(state, EXIT_INTERNAL, errno, "--tile %s", text);
    join((const char *const *)names, list, sizeof list);
    while (rest && *rest) {
        int member = getsubopt(&rest, names, &value);
        if (member < 0 || !value)
            argp_error(state, "--tile %s: expected numbers of %s", text, list);
        uint32_t number = (uint32_t)parse_number(state, "--tile", value, member == 0, 1024);
        if (seen >> member & 1 && number != *members[member])
            argp_error(state, "--tile %s: %s is there twice", text, names[member]);
        seen |= UINT32_C(1) << member;
        *members[member] = number;
    }
    if (!*members[0])
        argp_error(state, "--tile %s: no %s in it", text, names[0]);
    free(copy);
}

/* ---- the target ---- */

enum { KEY_TARGET = OPTION_SHARED_KEYS, KEY_PTX_VERSION };

ptxgen_target default_target(void)
{
    ptxgen_target target = {0};
    ptxgen_target_parse("sm_80", &target, NULL);
    return target;
}

static int read_ptx_version(struct argp_state *state, const char *text)
{
    unsigned major, minor;
    int used = 0;
    if (sscanf(text, "%1u.%1u%n", &major, &minor, &used) != 2 || text[used])
        argp_error(state, "--ptx-version %s: expected a version such as 7.8", text);
    return (int)(10 * major + minor);
}

/* The target of the first GPU. */
static ptxgen_target native_target(struct argp_state *state)
{
    ptxgen_driver driver;
    ptxgen_device_facts facts;
    ptxgen_error err;
    ptxgen_status status = ptxgen_driver_open(&driver, NULL, &err);
    if (status == PTXGEN_OK) {
        status = ptxgen_device_read(&driver, 0, &facts, &err);
        ptxgen_driver_close(&driver);
    }
    if (status != PTXGEN_OK)
        argp_failure(state, (int)exit_code_of(status), 0, "--target native: %s", err.message);
    return ptxgen_device_target(&facts);
}

ptxgen_target parse_target_name(struct argp_state *state, const char *text)
{
    const struct chip *chip = chip_find(text);
    ptxgen_target target = {0};
    ptxgen_error err;
    char sm[16] = "";
    if (!strcmp(text, "native"))
        return native_target(state);
    if (chip) /* wgmma needs the exact target of sm_90 */
        snprintf(sm, sizeof sm, chip->sm == 90 ? "sm_%da" : "sm_%d", chip->sm);
    if (ptxgen_target_parse(chip ? sm : text, &target, &err) != PTXGEN_OK)
        argp_error(state, "--target %s: %s", text, err.message);
    if (chip)
        target.multiprocessors = chip->multiprocessors;
    return target;
}

static error_t parse_target(int key, char *arg, struct argp_state *state)
{
    ptxgen_target *target = state->input;
    ptxgen_error err;
    int cap = target->ptx.max_ptx;
    switch (key) {
    case KEY_TARGET:
        *target = parse_target_name(state, arg);
        if (cap)
            target->ptx.max_ptx = cap;
        return 0;
    case KEY_PTX_VERSION: target->ptx.max_ptx = read_ptx_version(state, arg); return 0;
    case ARGP_KEY_SUCCESS:
        if (ptx_target_check(&target->ptx, &err) != PTXGEN_OK)
            argp_failure(state, EXIT_USAGE, 0, "%s", err.message);
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_option target_options[] = {
    {.name = "target",
     .key = KEY_TARGET,
     .arg = "SM",
     .doc = "Write for this target: sm_80 (the default), sm_90a, sm_120f ...; for a product: "
            "H100-SXM, RTX-4090 ...; for this machine's first GPU: native"},
    {.name = "ptx-version",
     .key = KEY_PTX_VERSION,
     .arg = "X.Y",
     .doc = "Refuse whatever needs a PTX ISA newer than this"},
    {0},
};
const struct argp target_argp = {.options = target_options, .parser = parse_target};

/* ---- tokens of a launch ---- */

unsigned parse_rows(struct argp_state *state, const char *text, uint64_t low, uint32_t *rows,
                    unsigned capacity)
{
    if (capacity > 1)
        return parse_numbers(state, "--m", text, low, UINT32_MAX, rows, capacity);
    rows[0] = (uint32_t)parse_number(state, "--m", text, low, UINT32_MAX);
    return 1;
}

/* ---- families ---- */

enum { MAX_CHILDREN = 4 };

struct combined {
    void *inputs[MAX_CHILDREN];
    int count;
};

static error_t parse_combined(int key, char *arg, struct argp_state *state)
{
    struct combined *combined = state->input;
    (void)arg;
    if (key != ARGP_KEY_INIT)
        return ARGP_ERR_UNKNOWN;
    for (int i = 0; i < combined->count; i++)
        state->child_inputs[i] = combined->inputs[i];
    return 0;
}

static void refuse_family(const char *name)
{
    struct nearest nearest = {.wanted = name};
    for (size_t i = 0; family_at(i); i++)
        nearest_offer(&nearest, family_at(i)->name, strlen(family_at(i)->name));
    fprintf(stderr, "ptxgen: no family is named \"%s\"; `ptxgen list` prints them%s\n", name,
            nearest_text(&nearest).text);
    exit(EXIT_USAGE);
}

static const struct family *take_family(int *argc, char ***argv,
                                        const struct family_arguments *arguments)
{
    if (*argc < 2 || (*argv)[1][0] == '-') {
        const struct argp_child children[] = {
            {arguments->command, 0, NULL, 0}, {arguments->shared, 0, NULL, 0}, {0}};
        const struct argp argp = {
            .args_doc = "FAMILY",
            .doc = "FAMILY is one that `ptxgen list` prints. `--help` after it adds its options.",
            .children = children};
        bool asked = *argc > 1 && (!strcmp((*argv)[1], "--help") || !strcmp((*argv)[1], "-?"));
        argp_help(&argp, asked ? stdout : stderr, asked ? ARGP_HELP_STD_HELP : ARGP_HELP_STD_USAGE,
                  (*argv)[0]);
        exit(asked ? EXIT_OK : EXIT_USAGE);
    }
    const struct family *family = family_find((*argv)[1]);
    if (!family) {
        refuse_family((*argv)[1]);
    }
    ++*argv;
    --*argc;
    return family;
}

static struct given_options find_given(const struct argp *spec, const struct argp *data,
                                       const struct option_once *once, int count)
{
    struct given_options given = {false, false};
    for (int i = 0; i < count; i++) {
        if (once[i].inner != spec && (!data || once[i].inner != data))
            continue;
        given.any = given.any || once[i].count;
        if (once[i].inner == spec)
            given.shape = option_once_given(&once[i], "k") || option_once_given(&once[i], "n");
    }
    return given;
}

const struct family *parse_family(int argc, char **argv, const struct family_arguments *arguments,
                                  struct family_options **family_options)
{
    char *command = argv[0];
    const struct family *family = take_family(&argc, &argv, arguments);
    struct family_options *options = family_new_options(family);
    if (!options) {
        fputs("ptxgen: no memory for the options\n", stderr);
        exit(EXIT_INTERNAL);
    }

    struct combined combined = {0};
    struct option_once once[MAX_CHILDREN];
    struct argp_child children[MAX_CHILDREN + 1] = {0};
    struct made_argp made[2];
    const struct argp *spec = family_argp(family, false, &made[0]);
    const struct argp *data = arguments->with_data ? family_argp(family, true, &made[1]) : NULL;
    const struct {
        const struct argp *argp;
        void *input;
        const char *title;
    } parts[MAX_CHILDREN] = {
        {arguments->command, arguments->input, NULL},
        {arguments->shared, arguments->shared_input, NULL},
        {spec, options, "The kernel:"},
        {data, options, "The data:"},
    };
    int count = 0;
    for (int i = 0; i < MAX_CHILDREN; i++)
        if (parts[i].argp) {
            option_once_make(&once[count], parts[i].argp, parts[i].input);
            children[count] = (struct argp_child){&once[count].argp, 0, parts[i].title, i};
            combined.inputs[count] = &once[count];
            count++;
        }
    combined.count = count;
    const struct argp argp = {
        .parser = parse_combined, .children = children, .doc = family->summary};
    char name[128];
    snprintf(name, sizeof name, "%s %s", command, family->name);
    argv[0] = name;
    parse_arguments(&argp, argc, argv, 0, &combined);
    if (arguments->given)
        *arguments->given = find_given(spec, data, once, count);
    *family_options = options;
    return family;
}
