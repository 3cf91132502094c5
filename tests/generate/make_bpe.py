#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/golden/bpe.gguf: a small byte-level BPE, and the ids of texts by PyPI's tokenizers.

    python3 -m venv venv && venv/bin/pip install gguf==0.19.0 tokenizers==0.23.3
    venv/bin/python tests/generate/make_bpe.py LICENSE tests/golden/bpe.gguf

The vocabulary is trained on the text file and on words of many scripts, and splits text as Llama 3
does. The merges of a few tokens are left out, which are then words as a whole alone. Beside the keys
of a model's vocabulary the file has case.texts, the number of ids of each, and all ids.
"""
import json
import random
import sys

import gguf
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

PATTERN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
           r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
SIZE, LEFT_OUT = 640, 8
WORDS = ["Привет мир", "данные модели", "你好世界", "今日は", "안녕하세요", "مرحبا بالعالم", "हिन्दी में",
         "Größe über Straße", "naïve café", "Ελληνικά", "👍🏽 🎉", "—“quoted”—", "x² ≤ 10⁻³", "123 456 567 789 234",
         "ſo"]
CONTROL = ["<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>",
           "<|eot_id|>"]
OWN = ["<tool>", "<tool> call"]
TEXTS = [
    "Hello, world!", "We hold these truths", "I'll say it's DON'T we'Re they'D x'S 'twas it'ſo",
    "  two  spaces   three\t\ttabs", "line\nline\r\n\r\n  next \n\n\n end  ", "\n", "   ", " a", "",
    "1234567 89 0x1F 3.14159 ½⅓ ٣٤٥ Ⅷ", "a1b22c333d4444", "foo(bar)->baz[0]; // done!!!\n\n}",
    " ?!\n\n?!", "\u00a0nbsp \u2003em\u3000wide\u2028line", "e\u0301 combining a\u0300b",
    "zero\u200bwidth\u200dsplit \ufeff", "<|eot_id|>", "a<|eot_id|>b <|begin_of_text|> c",
    "<|eot_id|<|eot_id|>", "use <tool> call now, <tool>x", "<|start_header_id|>user<|end_header_id|>\n\n"
    "Hi!<|eot_id|>", "<|not_a_token|>", "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 \U0001F9D1\u200d\U0001F4BB \U0010FFFF",
] + WORDS


def drawn(rng):
    pool = list(" \t\n\r'\"sStTdDmMrReEvVlLaz09.,!-_") + list("éß日本мирन्दि가ا٣½²\u0301\u00a0\u2003ſ👍<|>")
    return "".join(rng.choice(pool) for _ in range(rng.randrange(1, 40)))


def make_tokenizer(text):
    tokenizer = Tokenizer(models.BPE())
    split = pre_tokenizers.Split(Regex(PATTERN), "isolated")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    trainer = trainers.BpeTrainer(vocab_size=SIZE, show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator([text] + WORDS * 20, trainer)
    state = json.loads(tokenizer.to_str())["model"]
    merges = [tuple(m) for m in state["merges"]]
    words = ["".join(merge) for merge in merges[-LEFT_OUT * 4:-LEFT_OUT * 3]]
    merges = merges[:-LEFT_OUT * 4] + merges[-LEFT_OUT * 3:]
    tokenizer.model = models.BPE(vocab=state["vocab"], merges=merges, ignore_merges=True)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(CONTROL)
    tokenizer.add_tokens([AddedToken(token, normalized=False) for token in OWN])
    return tokenizer, merges, [tokenizer.decode([state["vocab"][word]]) for word in words]


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        tokenizer, merges, words = make_tokenizer(file.read())
    rng = random.Random(1)
    texts = TEXTS + words + [drawn(rng) for _ in range(200)]
    ids = [tokenizer.encode(text, add_special_tokens=False).ids for text in texts]
    vocabulary = sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])
    kinds = [3 if token in CONTROL else 4 if token in OWN else 1 for token, _ in vocabulary]
    writer = gguf.GGUFWriter(sys.argv[2], "llama")
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("llama-bpe")
    writer.add_token_list([token for token, _ in vocabulary])
    writer.add_token_types(kinds)
    writer.add_token_merges(["%s %s" % merge for merge in merges])
    writer.add_bos_token_id(dict(vocabulary)[CONTROL[0]])
    writer.add_eos_token_id(dict(vocabulary)[CONTROL[4]])
    writer.add_array("case.texts", texts)
    writer.add_array("case.counts", [len(each) for each in ids])
    writer.add_array("case.ids", [number for each in ids for number in each])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


main()
