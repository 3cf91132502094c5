/* SPDX-License-Identifier: Apache-2.0 */
#include "kept.h"

#include "operands.h"

#include <stdlib.h>
#include <string.h>

/* Prime to the number of special values, all of which are among the first operands. */
enum { KEPT_EACH = 3, WORDS = FORM_LINE / 8, WORDS_A_LINE = 10 };

uint64_t kept_digest(const struct form *f, const struct plan *plan, uint32_t operands,
                     const uint64_t *out, const uint64_t *memory)
{
    unsigned bytes = operand_width(plan->memory.type) / 8;
    bool stored = plan->space && plan->space != 'p', bounded = judge_is_bounded(f);
    uint64_t digest = 0;
    for (uint32_t t = 0; t < operands; t++) {
        for (unsigned i = 0; i < plan->result_count && !bounded; i++)
            digest = truth_fold(digest, judge_canonical(f, plan->results[i], out[t * WORDS + i]));
        for (unsigned i = 0; stored && i < FORM_LINE / bytes; i++) {
            uint64_t bits = 0;
            memcpy(&bits, (const char *)&memory[t * WORDS] + i * bytes, bytes);
            digest = truth_fold(digest, judge_canonical(f, plan->memory.type, bits));
        }
    }
    return digest;
}

size_t kept_words(uint32_t operands)
{
    return (operands + KEPT_EACH - 1) / KEPT_EACH;
}

void kept_take(uint64_t *words, uint32_t operands, const uint64_t *out)
{
    for (size_t i = 0; i < kept_words(operands); i++)
        words[i] = out[i * KEPT_EACH * WORDS];
}

static enum verdict verdict_of(const struct form *f, const struct plan *plan, uint32_t tuple,
                               uint64_t card, uint64_t other)
{
    uint64_t operands[2] = {0};
    for (unsigned i = 0; i < 2 && i < plan->source_count; i++)
        operands[i] = operand_bits(plan->sources[i], i, tuple);
    return judge(f, plan->results[0], operands, card, other);
}

size_t kept_write(FILE *file, const struct form *f, uint32_t operands, const uint64_t *words)
{
    const size_t count = kept_words(operands);
    size_t marked = 0;
    struct plan plan;
    plan_make(f, &plan);
    for (size_t i = 0; i < count; i++) {
        uint32_t tuple = (uint32_t)i * KEPT_EACH;
        bool beyond = verdict_of(f, &plan, tuple, words[i], words[i]) == DIFFERENT;
        marked += beyond;
        truth_write_word(file, words[i], beyond,
                         i + 1 == count || i % WORDS_A_LINE == WORDS_A_LINE - 1);
    }
    return marked;
}

/* A card's result that is marked leaves only the bound to be kept to. */
static void compare_word(const struct form *f, const struct plan *plan, uint32_t tuple,
                         uint64_t card, bool marked, uint64_t other, struct outcome *o)
{
    enum verdict v = verdict_of(f, plan, tuple, marked ? other : card, other);
    o->results++;
    o->counts[v]++;
    if (v == DIFFERENT && !o->example[0])
        snprintf(o->example, sizeof o->example,
                 "tuple %u, operand %llx: %llx on the card, %llx here", tuple,
                 (unsigned long long)operand_bits(plan->sources[0], 0, tuple),
                 (unsigned long long)card, (unsigned long long)other);
}

void kept_compare(const struct form *f, const struct plan *plan, uint32_t operands,
                  const char *words, const uint64_t *out, struct outcome *outcome)
{
    size_t count = 0;
    for (char *end; count < kept_words(operands); count++, words = end) {
        words += strspn(words, " ");
        bool marked = *words == '!';
        uint64_t card = strtoull(words + marked, &end, 16);
        uint32_t tuple = (uint32_t)count * KEPT_EACH;
        if (end == words + marked)
            break;
        compare_word(f, plan, tuple, card, marked, out[tuple * WORDS], outcome);
    }
    if (count < kept_words(operands)) {
        outcome->counts[DIFFERENT]++;
        snprintf(outcome->example, sizeof outcome->example, "%zu words are kept, not %zu", count,
                 kept_words(operands));
    }
}
