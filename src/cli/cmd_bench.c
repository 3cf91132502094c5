/* SPDX-License-Identifier: Apache-2.0 */
/* ptxgen bench: times on cold weights, against the read ceiling and a peer of the same run. */
#include "bench_peer.h"
#include "bench_peer_codes.h"
#include "bench_plot.h"
#include "bench_report.h"
#include "bench_rounds.h"
#include "command.h"
#include "exit_code.h"
#include "options.h"
#include "output_file.h"
#include "../harness/progress.h"
#include "tuning_table.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    KEY_DEVICE = OPTION_COMMAND_KEYS,
    KEY_SHAPE,
    KEY_REPLAYS,
    KEY_LAUNCHES,
    KEY_ROUNDS,
    KEY_JSON,
    KEY_PEER,
    KEY_NO_PEER,
    KEY_NO_TUNING,
    KEY_PLOT,
    KEY_FORCE,
    MAX_SHAPES = 64,
    MAX_MS = 1024
};

struct bench_options {
    const char *device;
    struct shape shapes[MAX_SHAPES];
    unsigned shape_count; /* 0: the family options' own */
    uint32_t ms[MAX_MS];
    unsigned m_count;
    unsigned replays, launches, rounds;
    bool json, no_peer, no_tuning, force;
    const char *peer_path, *plot_path;
};

static const struct argp_option options_table[] = {
    {.name = "device",
     .key = KEY_DEVICE,
     .arg = "NAME",
     .doc = "gpu (default) or gpu:1; on cpu the times mean nothing"},
    {.name = "shape",
     .key = KEY_SHAPE,
     .arg = "KxN[,KxN...]",
     .doc = "Shapes to time, K by output features, instead of the kernel's options"},
    {.name = "m",
     .key = OPTION_ROWS,
     .arg = "M[,M...]",
     .doc = "Tokens of a launch (1); 1:512 for each from 1 to 512"},
    {.name = "replays",
     .key = KEY_REPLAYS,
     .arg = "COUNT",
     .doc = "Measured replays of a graph (20)"},
    {.name = "launches",
     .key = KEY_LAUNCHES,
     .arg = "COUNT",
     .doc = "Launches in a graph, at least (as many as take 30 ms, at most 200)"},
    {.name = "rounds",
     .key = KEY_ROUNDS,
     .arg = "COUNT",
     .doc =
         "Time all M so often, there and back, and take medians (1): a sweep in one go times its "
         "larger M on a clock that falls"},
    {.name = "json", .key = KEY_JSON, .doc = "Print JSON"},
    {.name = "cublas",
     .key = KEY_PEER,
     .arg = "FILE",
     .doc = "The peer's library (libcublas.so.13 or .12; of w8a8 libcublasLt.so)"},
    {.name = "no-peer", .key = KEY_NO_PEER, .doc = "Do not time the peer"},
    {.name = "plot",
     .key = KEY_PLOT,
     .arg = "FILE.svg",
     .doc = "Draw time against M, of one shape, with gnuplot"},
    {.name = OUTPUT_FORCE_NAME, .key = KEY_FORCE, .doc = OUTPUT_FORCE_DOC},
    {.name = "no-tuning",
     .key = KEY_NO_TUNING,
     .doc = "Time what the plan chooses, whatever ptxgen tune has found on this device"},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct bench_options *o = state->input;
    switch (key) {
    case KEY_DEVICE: o->device = arg; return 0;
    case KEY_SHAPE: o->shape_count = parse_shapes(state, arg, o->shapes, MAX_SHAPES); return 0;
    case OPTION_ROWS: o->m_count = parse_rows(state, arg, 1, o->ms, MAX_MS); return 0;
    case KEY_REPLAYS:
        o->replays = (unsigned)parse_number(state, "--replays", arg, 1, 100000);
        return 0;
    case KEY_LAUNCHES:
        o->launches = (unsigned)parse_number(state, "--launches", arg, 1, 100000);
        return 0;
    case KEY_ROUNDS:
        o->rounds = (unsigned)parse_number(state, "--rounds", arg, 1, BENCH_MOST_ROUNDS);
        return 0;
    case KEY_JSON: o->json = true; return 0;
    case KEY_PEER: o->peer_path = arg; return 0;
    case KEY_NO_PEER: o->no_peer = true; return 0;
    case KEY_PLOT: o->plot_path = arg; return 0;
    case ARGP_KEY_END:
        if (o->plot_path && o->shape_count > 1)
            argp_error(state, "--plot draws one shape, and --shape has %u", o->shape_count);
        if (o->plot_path && output_file_is_stdout(o->plot_path))
            argp_error(state, "--plot %s: the times go to the standard output", o->plot_path);
        return 0;
    case KEY_FORCE: o->force = true; return 0;
    case KEY_NO_TUNING: o->no_tuning = true; return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

/* ---- one shape and one M ---- */

/* One of them, or none. */
struct peers {
    struct peer *general;
    struct codes_peer *codes;
};

static struct peers open_peers(const struct family *family, const struct bench_options *o,
                               struct device *device, struct bench_report *report)
{
    struct peers peers = {NULL, NULL};
    char why[sizeof report->peer];
    if (o->no_peer)
        return peers;
    if (!option_with(family, OPTION_IS_N)) {
        snprintf(report->peer, sizeof report->peer, "none, as this is no product");
        return peers;
    }
    if (family->codes_peer)
        peers.codes = codes_peer_open(device, o->peer_path, why, sizeof why);
    else
        peers.general = peer_open(device, o->peer_path, why, sizeof why);
    if (peers.codes)
        snprintf(report->peer, sizeof report->peer, "cuBLASLt, the product of codes alone (%s)",
                 codes_peer_name(peers.codes));
    else if (peers.general)
        snprintf(report->peer, sizeof report->peer, "cuBLAS, f16 or bf16 weights (%s)",
                 peer_name(peers.general));
    else
        snprintf(report->peer, sizeof report->peer, "%s", why);
    return peers;
}

static void close_peers(const struct peers *peers)
{
    peer_close(peers->general);
    codes_peer_close(peers->codes);
}

static void time_peer(struct bench_row *row, const struct bench_options *o,
                      const struct peers *peers, unsigned launches)
{
    const struct bench_subject *s = &row->subject;
    ptxgen_status status = PTXGEN_OK;
    ptxgen_error err;
    row->peer_missing[0] = 0;
    if (peers->codes)
        status = codes_peer_time(peers->codes, s->e4m3, s->m, s->k, s->n, launches, o->replays,
                                 &row->peer, &err);
    else if (peers->general)
        status = peer_time(peers->general, s->type, s->m, s->k, s->n, launches, o->replays,
                           &row->peer, &err);
    if (status == PTXGEN_OK)
        return;
    row->peer.replays = 0;
    snprintf(row->peer_missing, sizeof row->peer_missing, "%.255s", err.message);
    fprintf(stderr, "ptxgen: the peer was not timed: %s\n", err.message);
}

/* At least as many launches as asked for, and every copy equally often. */
static unsigned whole_rounds(unsigned launches, uint32_t copies)
{
    return (launches + copies - 1) / copies * copies;
}

/* Those asked for, or as many as take `enough` seconds: more would heat the device. */
static ptxgen_status count_launches(const struct bench_subject *s, const struct bench_options *o,
                                    struct device *device, unsigned *launches, ptxgen_error *err)
{
    enum { FEWEST = 4, MOST = 200 };
    const double enough = 0.03;
    double seconds = 0;
    ptxgen_status status = PTXGEN_OK;
    if (!o->launches)
        status = time_launches(device, s->launch, s->state, 2, &seconds, err);
    double count = seconds * MOST > enough ? enough / seconds : MOST;
    *launches = o->launches ? o->launches : count > FEWEST ? (unsigned)count : FEWEST;
    return status;
}

static ptxgen_status time_row(struct bench_row *row, const struct bench_options *o,
                              struct device *device, const struct peers *peers, ptxgen_error *err)
{
    struct bench_subject *s = &row->subject;
    unsigned asked = 0, launches = 0;
    ptxgen_status status = count_launches(s, o, device, &asked, err);
    launches = whole_rounds(asked, s->copies);
    if (status == PTXGEN_OK)
        status = bench_time(device, s->launch, s->state, s->copies, launches, o->replays,
                            &row->plain, err);
    if (status == PTXGEN_OK && s->overlap) {
        *s->overlap = 1;
        status = bench_time(device, s->launch, s->state, s->copies, launches, o->replays,
                            &row->overlapped, err);
        *s->overlap = 0;
    }
    if (status == PTXGEN_OK)
        time_peer(row, o, peers, asked);
    return status;
}

/* Turns the subject to m tokens, or makes it anew. */
static ptxgen_status prepare(const struct family_options *family_options, uint32_t m,
                             struct device *device, struct bench_subject *subject,
                             ptxgen_error *err)
{
    if (subject->state && subject->set_m)
        return subject->set_m(subject, m, err);
    if (subject->state)
        subject->destroy(subject->state);
    ptxgen_status status = family_bench(family_options, m, device, subject, err);
    if (status != PTXGEN_OK)
        subject->state = NULL;
    return status;
}

/* ---- all of them ---- */

static ptxgen_status measure_tensor(struct bench_report *report, struct device *device,
                                    unsigned replays, ptxgen_error *err)
{
    struct tensor_ceiling tensor = {.rate = 0};
    ptxgen_status status = bench_tensor_ceiling(device, replays, &tensor, err);
    if (status == PTXGEN_OK)
        report_tensor_ceiling(report, &tensor);
    return status;
}

/* What the times of a list of M are of. */
struct sweep {
    const struct family *family;
    struct family_options *family_options;
    const struct bench_options *o;
    struct device *device;
    const struct peers *peers;
    struct bench_report *report;
};

/* One M of a round; the last round's goes into the report. */
static ptxgen_status bench_m(const struct sweep *s, uint32_t m, struct bench_row *row,
                             struct bench_rounds *rounds, ptxgen_error *err)
{
    ptxgen_status status = prepare(s->family_options, m, s->device, &row->subject, err);
    if (status == PTXGEN_OK && row->subject.tensor_f16 && s->report->tensor.rate <= 0)
        status = measure_tensor(s->report, s->device, s->o->replays, err);
    if (status == PTXGEN_OK)
        status = time_row(row, s->o, s->device, s->peers, err);
    if (status != PTXGEN_OK)
        return status;
    bench_rounds_add(rounds, row);
    if (rounds->count == s->o->rounds) {
        bench_rounds_medians(rounds, row);
        report_row(s->report, row);
    }
    return PTXGEN_OK;
}

/* Every other round is backwards, the last one forwards. */
static unsigned place_in_round(const struct bench_options *o, unsigned round, unsigned i)
{
    return (o->rounds - round) % 2 ? i : o->m_count - 1 - i;
}

static ptxgen_status bench_shape(const struct sweep *s, struct progress *progress, size_t done,
                                 ptxgen_error *err)
{
    const struct bench_options *o = s->o;
    struct bench_row row = {0};
    struct bench_rounds *rounds = bench_rounds_start(o->m_count, o->rounds);
    ptxgen_status status = PTXGEN_OK;
    if (!rounds)
        status = ptxgen_fail(err, PTXGEN_ERROR_OUT_OF_MEMORY, "no memory for %u rounds", o->rounds);
    for (unsigned i = 0; status == PTXGEN_OK && i < o->rounds * o->m_count; i++) {
        unsigned at = place_in_round(o, i / o->m_count, i % o->m_count);
        status = bench_m(s, o->ms[at], &row, &rounds[at], err);
        progress_update(progress, done + i + 1);
    }
    if (row.subject.state)
        row.subject.destroy(row.subject.state);
    free(rounds);
    return status;
}

static ptxgen_status bench_rows(const struct sweep *s, ptxgen_error *err)
{
    const struct bench_options *o = s->o;
    ptxgen_status status = PTXGEN_OK;
    unsigned shapes = o->shape_count ? o->shape_count : 1;
    size_t each = (size_t)o->rounds * o->m_count;
    struct progress progress = progress_start("shapes", shapes * each);
    for (unsigned i = 0; status == PTXGEN_OK && i < shapes; i++) {
        if (o->shape_count)
            family_set_shape(s->family_options, o->shapes[i].k, o->shapes[i].n);
        status = bench_shape(s, &progress, i * each, err);
    }
    progress_end(&progress);
    return status;
}

static ptxgen_status bench_device(const struct family *family,
                                  struct family_options *family_options,
                                  const struct bench_options *o, struct device *device,
                                  ptxgen_error *err)
{
    struct bench_report report = {.family = family->name, .peer = "not asked for"};
    ptxgen_status status = PTXGEN_OK;
    if (o->plot_path)
        status = output_file_check(o->plot_path, o->force, err);
    if (status == PTXGEN_OK && o->plot_path)
        status = bench_plot_check(err);
    if (status == PTXGEN_OK)
        status = bench_ceiling(device, o->replays, &report.ceiling, err);
    if (status != PTXGEN_OK)
        return status;
    struct peers peers = open_peers(family, o, device, &report);
    const struct sweep sweep = {family, family_options, o, device, &peers, &report};
    report_start(&report, device, o->json);
    status = bench_rows(&sweep, err);
    ptxgen_error ending;
    if (report_print_end(&report, &ending) != PTXGEN_OK && status == PTXGEN_OK)
        status = ptxgen_fail(err, ending.status, "%s", ending.message);
    if (status == PTXGEN_OK && o->plot_path)
        status = bench_plot(report.json.root, o->plot_path, o->force, err);
    report_end(&report);
    close_peers(&peers);
    return status;
}

static int bench(int argc, char **argv)
{
    static const struct argp argp = {.options = options_table, .parser = parse};
    struct bench_options o = {.device = "gpu", .ms = {1}, .m_count = 1, .replays = 20, .rounds = 1};
    struct given_options given;
    const struct family_arguments arguments = {.command = &argp, .input = &o, .given = &given};
    struct family_options *family_options;
    const struct family *family = parse_family(argc, argv, &arguments, &family_options);
    refuse_two_shapes(o.shape_count && given.shape);
    struct device device;
    ptxgen_error err = {0};
    setenv("CUDA_CACHE_DISABLE", "1", 1); /* before the driver starts, or JIT times are a cache's */
    enum exit_code code = EXIT_OK;
    ptxgen_tuning *tuning = NULL;
    ptxgen_status status = device_open(o.device, &device, &err);
    if (status == PTXGEN_OK && !o.no_tuning)
        tuning = tuning_for(family, family_options, &device);
    if (status == PTXGEN_OK)
        status = bench_device(family, family_options, &o, &device, &err);
    if (status != PTXGEN_OK)
        code = report_undone(family->name, "timed", &err);
    ptxgen_tuning_free(tuning);
    device_close(&device);
    free(family_options);
    return code;
}

const struct command bench_command = {
    "bench", "FAMILY [OPTION...]", "time a kernel on cold weights, beside the ceiling and a peer",
    bench};
