#!/usr/bin/env python3
"""Makes the tokenizers in tokenizers/ and what the real libraries do with texts.

    python3 -m venv venv && venv/bin/pip install tokenizers==0.23.3 sentencepiece==0.2.3
    venv/bin/python tests/golden/make_tokenizers.py             # rewrites tests/golden/tokenizers
    venv/bin/python tests/golden/make_tokenizers.py t5 gpt2     # only what is expected of these

One small tokenizer per family, trained on the pages of docs/ and a few lines in other scripts, with
the steps of GPT-2, Llama 2 and 3, Mistral, Qwen2, T5 and others. Besides texts whose tokens are
written out there are blocks of random texts, of which only a hash is kept: tokenizers/README.md
says how they are drawn.
"""
import hashlib
import json
import pathlib
import shutil
import sys
import tempfile
import unicodedata

import sentencepiece
from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers,
                        pre_tokenizers, processors, trainers)

HERE = pathlib.Path(__file__).resolve().parent
OUT = HERE / "tokenizers"
BLOCKS, TEXTS = 20, 500

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"
          r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
TEKKEN = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|"
          r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|"
          r"\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
LINES = """
Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich. Äpfel, Öl und Übermut!
Portez ce vieux whisky au juge blond qui fume ; l'été, où êtes-vous ? Ça va, naïve Zoë.
El pingüino Wenceslao hizo kilómetros bajo exhaustiva lluvia. ¿Dónde está el niño? ¡Aquí!
Съешь же ещё этих мягких французских булок, да выпей чаю. Всё хорошо, ёлки-палки.
Ξεσκεπάζω την ψυχοφθόρα βδελυγμία. Καλημέρα, τι κάνεις; Όλα καλά.
דג סקרן שט בים מאוכזב ולפתע מצא חברה. שלום עולם.
نص حكيم له سر قاطع وذو شأن عظيم مكتوب على ثوب أخضر. السلام عليكم
ऋषियों को सताने वाले दुष्ट राक्षसों के राजा रावण का सर्वनाश करने वाले। नमस्ते दुनिया
เป็นมนุษย์สุดประเสริฐเลิศคุณค่า กว่าบรรดาฝูงสัตว์เดรัจฉาน
いろはにほへと ちりぬるを わかよたれそ つねならむ。カタカナとひらがなと漢字の文章です。東京大学
天地玄黃，宇宙洪荒。日月盈昃，辰宿列張。你好，世界！中文没有空格。人工智能
키스의 고유조건은 입술끼리 만나야 하고 특별한 기술은 필요치 않다. 안녕하세요 세계
Đây là một câu tiếng Việt có nhiều dấu. Nguyễn Văn Ước. Żółć, gęśla jaźń. Příliš žluťoučký kůň.
if (x == 0) { return y->z[i] * 2 + 0x1F; }  // a comment; for (int i = 0; i < 10; ++i) sum += i;
👍🏽 👨‍👩‍👧‍👦 🇩🇪🇫🇷 ❤️ 😀😃😄 🏳️‍🌈 ½ ﬁ ① Ⅷ ² ㎏ ｆｕｌｌ ｗｉｄｔｈ
"""


def corpus():
    pages = "\n".join(path.read_text() for path in sorted((HERE.parent.parent / "docs").glob("*.md")))
    return (pages[:150000] + "\n" + LINES * 20).splitlines(keepends=True)


# ---- the tokenizers ----------------------------------------------------------------------------

def byte_level_bpe(vocabulary, specials, normalizer=None, regex=None, merges_ignored=False,
                   prefix_space=False):
    tokenizer = Tokenizer(models.BPE(ignore_merges=merges_ignored))
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    level = pre_tokenizers.ByteLevel(add_prefix_space=prefix_space, use_regex=regex is None)
    tokenizer.pre_tokenizer = level if regex is None else pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(regex), behavior="isolated", invert=False), level])
    trainer = trainers.BpeTrainer(vocab_size=vocabulary, special_tokens=specials, show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(corpus(), trainer)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def gpt2():
    tokenizer = byte_level_bpe(1000, ["<|endoftext|>"])
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    return tokenizer


def llama3():
    tokenizer = byte_level_bpe(1200, [], regex=LLAMA3, merges_ignored=True)
    # Words that no merges lead to, as real files have them.
    document = json.loads(tokenizer.to_str())
    for word in ("Ġwonderful", "Ġtokenizer", "xyzzy"):
        document["model"]["vocab"].setdefault(word, len(document["model"]["vocab"]))
    tokenizer = Tokenizer.from_str(json.dumps(document))
    tokenizer.add_special_tokens(["<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>"])
    begin = tokenizer.token_to_id("<|begin_of_text|>")
    tokenizer.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=False),
        processors.TemplateProcessing(single="<|begin_of_text|> $A", pair="<|begin_of_text|> $A $B",
                                      special_tokens=[("<|begin_of_text|>", begin)])])
    return tokenizer


def qwen2():
    tokenizer = byte_level_bpe(1000, [], normalizer=normalizers.NFC(), regex=QWEN2)
    tokenizer.add_special_tokens(["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    tokenizer.add_tokens([AddedToken("<think>", normalized=False), AddedToken("Ångström"),
                          AddedToken("word", single_word=True),
                          AddedToken("<left>", lstrip=True, normalized=False),
                          AddedToken("<both>", lstrip=True, rstrip=True, special=True),
                          AddedToken("  ", normalized=False)])
    return tokenizer


def tekken():
    return byte_level_bpe(900, ["<unk>", "<s>", "</s>"], regex=TEKKEN)


def roberta():
    """A space before each word that ByteLevel is given, and tokens around."""
    tokenizer = byte_level_bpe(700, ["<s>", "</s>"], normalizer=normalizers.NFKC(), prefix_space=True)
    tokenizer.add_special_tokens([AddedToken("<mask>", lstrip=True)])
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 1), ("<s>", 0))
    return tokenizer


BYTES = [f"<0x{byte:02X}>" for byte in range(256)]


def sentencepiece_bpe(vocabulary, fuse_unk=True):
    """Words with ▁, all merges within a word, tokens of bytes: what a Llama-2 file holds."""
    trained = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=fuse_unk, byte_fallback=True))
    trained.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.BpeTrainer(vocab_size=vocabulary, special_tokens=["<unk>", "<s>", "</s>"] + BYTES,
                                  show_progress=False, limit_alphabet=200)
    trained.train_from_iterator(corpus(), trainer)
    document = json.loads(trained.to_str())
    document["added_tokens"] = document["added_tokens"][:3]
    document["pre_tokenizer"] = None
    return document


def around(tokenizer):
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", 1)])
    return tokenizer


def llama2():
    tokenizer = Tokenizer.from_str(json.dumps(sentencepiece_bpe(1200)))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(),
                                           decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    return around(tokenizer)


def mistral():
    tokenizer = Tokenizer.from_str(json.dumps(sentencepiece_bpe(1200)))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(),
                                           decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    tokenizer.add_special_tokens(["[INST]", "[/INST]"])
    return around(tokenizer)


def unknowns(fuse):
    """No bytes to fall back to but a few: unknown characters stay unknown."""
    document = sentencepiece_bpe(800, fuse)
    for byte in BYTES[:0x90]:
        document["model"]["vocab"].pop(byte)
    vocabulary = document["model"]["vocab"]
    document["model"]["vocab"] = {token: i for i, token in enumerate(sorted(vocabulary, key=vocabulary.get))}
    tokenizer = Tokenizer.from_str(json.dumps(document))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents(),
                                                 normalizers.Lowercase()])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Digits(individual_digits=True),
         pre_tokenizers.Punctuation(), pre_tokenizers.Metaspace()])
    tokenizer.decoder = decoders.Metaspace()
    return tokenizer


def splits():
    """Merges across anything, and cuts of every kind that show where there is one."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    trainer = trainers.BpeTrainer(vocab_size=700, special_tokens=["<unk>"], show_progress=False,
                                  limit_alphabet=150)
    tokenizer.train_from_iterator([line[:60] for line in corpus()[::4]], trainer)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(r"\d"), "merged_with_previous"),
         pre_tokenizers.Split(" t", "merged_with_next"),
         pre_tokenizers.Split(Regex("[aeiou]"), "contiguous"),
         pre_tokenizers.Split(Regex(r"[\w.]+|^$"), "isolated", invert=True),
         pre_tokenizers.Split("th", "removed"), pre_tokenizers.Whitespace(),
         pre_tokenizers.Digits(individual_digits=False)])
    return tokenizer


def charsmap():
    """SentencePiece's nmt_nfkc table, from a model that it trains."""
    with tempfile.TemporaryDirectory() as folder:
        train_sentencepiece(folder + "/x", "unigram")
        model = pathlib.Path(folder, "x.model").read_bytes()
    at = 0
    while at < len(model):  # a protocol buffer: field 3 is the normalizer, its field 2 the table
        field, size, at = header(model, at)
        if field == 3:
            end = at + size
            while at < end:
                inner, inner_size, at = header(model, at)
                if inner == 2:
                    return model[at:at + inner_size]
                at += inner_size
        at += size
    raise ValueError("no charsmap")


def header(data, at):
    """Number, size and start of the protocol buffer field at `at`."""
    def number(at):
        value = shift = 0
        while True:
            value |= (data[at] & 0x7F) << shift
            shift += 7
            at += 1
            if data[at - 1] < 0x80:
                return value, at
    tag, at = number(at)
    if tag & 7 == 2:
        size, at = number(at)
        return tag >> 3, size, at
    return tag >> 3, {0: number(at)[1] - at, 5: 4, 1: 8}[tag & 7], at


def unigram(vocabulary, prefix):
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Precompiled(charsmap())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=prefix)
    trainer = trainers.UnigramTrainer(vocab_size=vocabulary, unk_token="<unk>", show_progress=False,
                                      special_tokens=["<pad>", "</s>", "<unk>"])
    tokenizer.train_from_iterator(corpus(), trainer)
    tokenizer.decoder = decoders.Metaspace(prepend_scheme=prefix)
    return tokenizer


def t5():
    tokenizer = unigram(900, "always")
    tokenizer.add_special_tokens(["<extra_id_0>", "<extra_id_1>"])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 1)])
    return tokenizer


def albert():
    """Unigram with tokens of bytes, and the older steps around it."""
    document = json.loads(unigram(600, "first").to_str())
    document["model"]["vocab"] += [[byte, -20.0] for byte in BYTES]
    document["model"]["byte_fallback"] = True
    tokenizer = Tokenizer.from_str(json.dumps(document))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Nmt(), normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " "),
         normalizers.Strip(left=False, right=True)])
    tokenizer.decoder = decoders.Sequence([decoders.ByteFallback(),
                                           decoders.Metaspace(prepend_scheme="first")])
    return tokenizer


def train_sentencepiece(prefix, kind):
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as text:
        text.writelines(corpus())
        text.flush()
        sentencepiece.SentencePieceTrainer.train(
            input=text.name, model_prefix=prefix, model_type=kind, vocab_size=800,
            byte_fallback=kind == "bpe", character_coverage=0.98, minloglevel=2, num_threads=1,
            normalization_rule_name="identity" if kind == "bpe" else "nmt_nfkc")


FAMILIES = [gpt2, llama3, qwen2, tekken, roberta, llama2, mistral, splits, t5, albert]


def make_tokenizers():
    shutil.rmtree(OUT, ignore_errors=True)
    made = {family.__name__: family for family in FAMILIES}
    made |= {"unknowns_fused": lambda: unknowns(True), "unknowns": lambda: unknowns(False)}
    for name, family in made.items():
        folder = OUT / name
        folder.mkdir(parents=True)
        text = family().to_str()
        if name == "llama2":  # the older spelling of merges
            document = json.loads(text)
            document["model"]["merges"] = [" ".join(merge) for merge in document["model"]["merges"]]
            text = json.dumps(document, ensure_ascii=False)
        (folder / "tokenizer.json").write_text(text + "\n")
    specials = {"llama2": ("<s>", "</s>"), "gpt2": ("<|endoftext|>", "<|endoftext|>")}
    for name, (bos, eos) in specials.items():
        (OUT / name / "tokenizer_config.json").write_text(
            json.dumps({"bos_token": {"content": bos}, "eos_token": eos}) + "\n")
    folder = OUT / "gpt2_files"
    folder.mkdir()
    Tokenizer.from_file(str(OUT / "gpt2" / "tokenizer.json")).model.save(str(folder))
    with open(folder / "vocab.json", "a") as file:
        file.write("\n")
    for kind in ("bpe", "unigram"):
        folder = OUT / f"sentencepiece_{kind}"
        folder.mkdir()
        train_sentencepiece(str(folder / "tokenizer"), kind)
        (folder / "tokenizer.vocab").unlink()


# ---- what is expected ---------------------------------------------------------------------------

class SentencePiece:
    """The calls of `tokenizers`, as far as they are used below."""

    def __init__(self, path):
        self.model = sentencepiece.SentencePieceProcessor(model_file=path)

    def encode(self, text, special=False):
        return self.model.encode(text)

    encode_fast = encode

    def decode(self, ids, skip):
        return self.model.decode(ids)


class HuggingFace:
    def __init__(self, tokenizer):
        self.tokenizer = tokenizer

    def encode(self, text, special=False):
        return self.tokenizer.encode(text, add_special_tokens=special).ids

    def encode_fast(self, text):
        return self.tokenizer.encode_batch_fast([text], add_special_tokens=False)[0].ids

    def decode(self, ids, skip):
        return self.tokenizer.decode(ids, skip_special_tokens=skip)


def open_tokenizer(folder):
    if (folder / "tokenizer.json").exists():
        return HuggingFace(Tokenizer.from_file(str(folder / "tokenizer.json")))
    if (folder / "tokenizer.model").exists():
        return SentencePiece(str(folder / "tokenizer.model"))
    tokenizer = Tokenizer(models.BPE.from_file(str(folder / "vocab.json"), str(folder / "merges.txt")))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["<|endoftext|>"])
    return HuggingFace(tokenizer)


# Unicode 9's assigned characters: what every library's tables have.
SCRIPTS = [(0x20, 0x7F), (0xA0, 0x180), (0x180, 0x250), (0x250, 0x2B0), (0x300, 0x370), (0x370, 0x400),
           (0x400, 0x530), (0x531, 0x590), (0x591, 0x5F5), (0x600, 0x700), (0x700, 0x750),
           (0x780, 0x7B2), (0x900, 0x980), (0x980, 0xA00), (0xA00, 0xA80), (0xA80, 0xB00),
           (0xB00, 0xB80), (0xB80, 0xC00), (0xC00, 0xC80), (0xC80, 0xD00), (0xD00, 0xD80),
           (0xD80, 0xE00), (0xE00, 0xE80), (0xE80, 0xF00), (0xF00, 0x1000), (0x1000, 0x10A0),
           (0x10A0, 0x1100), (0x1100, 0x1200), (0x1200, 0x1380), (0x13A0, 0x1400), (0x1400, 0x1480),
           (0x1680, 0x1700), (0x1780, 0x1800), (0x1800, 0x18B0), (0x1D00, 0x1D80), (0x1E00, 0x1F00),
           (0x1F00, 0x2000), (0x2000, 0x2070), (0x2070, 0x20D0), (0x20D0, 0x2100), (0x2100, 0x2160),
           (0x2190, 0x2200), (0x2200, 0x2280), (0x2300, 0x2380), (0x2460, 0x2500), (0x2500, 0x2580),
           (0x2580, 0x2600), (0x2600, 0x2700), (0x2700, 0x27C0), (0x2800, 0x2840), (0x2E80, 0x2F00),
           (0x2F00, 0x2F40), (0x3000, 0x3040), (0x3040, 0x3100), (0x3105, 0x3130), (0x3131, 0x3190),
           (0x3200, 0x3300), (0x3300, 0x3400), (0x4E00, 0x4E80), (0xA000, 0xA040), (0xA640, 0xA6A0),
           (0xAC00, 0xAC80), (0xE000, 0xE008), (0xF900, 0xF980), (0xFB00, 0xFB50), (0xFB50, 0xFC00),
           (0xFE00, 0xFE30), (0xFE30, 0xFE70), (0xFF00, 0xFFF0), (0x10000, 0x10040),
           (0x10400, 0x10440), (0x1D100, 0x1D140), (0x1D400, 0x1D440), (0x1F1E6, 0x1F200),
           (0x1F300, 0x1F380), (0x1F600, 0x1F650), (0x20000, 0x20040), (0x2F800, 0x2F840),
           (0xE0020, 0xE0080)]


def assigned(first, end):
    return [chr(code) for code in range(first, end)
            if unicodedata.ucd_3_2_0.category(chr(code)) != "Cn" or code >= 0x1F000]


def alphabets(specials):
    """Lists of short texts: a random text is drawn from them."""
    marks = [chr(code) for code in range(0x300, 0x370) if code not in (0x34F,)]
    words = ["the", "The", " the", "ing", "tokenizer", " wonderful", "'s", "'LL", "'ſ", "don't", "word",
             "xyzzy", "Ångström", "A\u030angstro\u0308m", "e\u0301", "한국어", "각", "ﬁ", "½"]
    blanks = [" ", "  ", "   ", "\n", "\r\n", "\n\n", "\t", " \n", "\r", "\u00a0", "\u2003", "\u3000",
              "\u2028", "\u0085", "\u200b", "\ufeff", "\u180e", "\u1680"]
    emoji = ["👍🏽", "👨‍👩‍👧‍👦", "🇩🇪", "🇫🇷🇩", "❤️", "🏳️‍🌈", "1️⃣", "\u200d", "\ufe0f", "🏽", "☝🏿"]
    controls = [chr(code) for code in range(1, 32)] + ["\x7f", "\x80", "\x9f", "\0"]
    letters = list("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    rest = sorted({char for first, end in SCRIPTS for char in assigned(first, end)})
    return [letters, letters, words, blanks, blanks, list("0123456789"),
            list("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"), marks, emoji, controls,
            specials + ["▁", "▁▁", "<0x41>", "<s", "Ġ"], rest]


# Bytes that make up no character which younger versions of Unicode have added.
BYTES_DRAWN = [*range(0xCD), 0xE5, 0xE8, 0xED, 0xF0, 0xF4, 0xFF]


class Draw:
    """splitmix64 (Steele et al., OOPSLA'14)."""

    def __init__(self, seed):
        self.state = seed

    def below(self, bound):
        mask = 2**64 - 1
        self.state = (self.state + 0x9E3779B97F4A7C15) & mask
        mixed = self.state
        mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & mask
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & mask
        return (mixed ^ (mixed >> 31)) % bound


def random_text(number, lists):
    """Every eighth one is bytes, mostly no UTF-8."""
    draw = Draw(number)
    size = 1 + draw.below(40)
    if number % 8 == 7:
        return bytes(BYTES_DRAWN[draw.below(len(BYTES_DRAWN))] for _ in range(size))
    pieces = []
    for _ in range(size):
        entries = lists[draw.below(len(lists))]
        pieces.append(entries[draw.below(len(entries))])
    return "".join(pieces).encode()


def text_of(data):
    return data.decode(errors="replace")


def block_hash(tokenizer, block, lists):
    """SHA-256 of, per text: the number of tokens, the tokens, the two decoded texts and their sizes."""
    digest = hashlib.sha256()
    for number in range(block * TEXTS, (block + 1) * TEXTS):
        ids = tokenizer.encode(text_of(random_text(number, lists)))
        digest.update(len(ids).to_bytes(4, "little"))
        digest.update(b"".join(each.to_bytes(4, "little") for each in ids))
        for skip in (False, True):
            decoded = tokenizer.decode(ids, skip).encode()
            digest.update(len(decoded).to_bytes(4, "little") + decoded)
    return digest.hexdigest()


def written_texts(specials):
    texts = ["", " ", "  ", "\n", "a", " a", "a ", "Hello, world!", "  leading and trailing  ",
             "It's we'll THEY'RE I'D 'tis 'S", "1 12 123 1234 12345 3.14 ½ ² Ⅷ ١٢٣", "tab\there\r\nCRLF\r\r\n\n",
             "a" * 300, "ab" * 200, "the" * 150, " " * 100, "\n" * 50 + "x", "中文没有空格" * 10,
             "e\u0301 é \u0301e a\u0323\u0307 a\u0307\u0323 q\u0307\u0323", "각 각", "İstanbul ẞ ŒUVRE ΣΊΣΥΦΟΣ",
             "ﬁ ﬂ ㎏ ｆｕｌｌ ① ™ …", "👍🏽👨‍👩‍👧‍👦🇩🇪🇫🇷🇩", "zero\u200bwidth\u200djoin\ufeff", "\x00\x01\x1f\x7f\x80\x9f",
             "ab▁cd▁▁ef ▁", "<0x41><0xE2><0x96>", "\ufffd\uffff\U0010ffff", "\u0378\U000e1000",
             "'ſ 'ſt ſs K'K", "wonderful wonderful  wonderful\nxyzzy"]
    for special in specials:
        texts += [special, f"a{special}b", f" {special} {special}  x", f"{special}{special}", special[:-1],
                  f"the {special}the end {special}"]
    texts += [line for line in LINES.splitlines() if line]
    broken = [b"\xff", b"a\xe2\x96b", b"\xe2\x96", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xc0\xaf", b"\xf0\x9f\x91",
              b"\xe2\x82\xac\xe2\x82 \x80\x80", b"\xf8\x88\x80\x80\x80"]
    return [text.encode() for text in texts] + broken


def specials_of(tokenizer):
    if isinstance(tokenizer, SentencePiece):
        return ["<s>", "</s>", "<unk>"]
    added = tokenizer.tokenizer.get_added_tokens_decoder()
    return [token.content for _, token in sorted(added.items())][:12]


def make_cases(names):
    for folder in sorted(OUT / name for name in names):
        tokenizer = open_tokenizer(folder)
        specials = specials_of(tokenizer)
        lists = alphabets(specials)
        cases = []
        for data in written_texts(specials):
            text = text_of(data)
            ids = tokenizer.encode(text)
            case = {"hex": data.hex()} if text.encode() != data else {"text": text}
            case |= {"ids": ids, "decoded": tokenizer.decode(ids, False)}
            if tokenizer.decode(ids, True) != case["decoded"]:
                case["skipped"] = tokenizer.decode(ids, True)
            if tokenizer.encode(text, True) != ids:
                case["special"] = tokenizer.encode(text, True)
            cases.append(json.dumps(case, ensure_ascii=False))
        blocks = [block_hash(tokenizer, block, lists) for block in range(BLOCKS)]
        (folder / "expected.json").write_text(
            "{\n\"specials\": " + json.dumps(specials, ensure_ascii=False) + ",\n\"blocks\": "
            + json.dumps(blocks, indent=0) + ",\n\"cases\": [\n" + ",\n".join(cases) + "\n]}\n")
        print(folder.name, len(cases), "texts written out")
    (OUT / "alphabets.json").write_text(json.dumps(alphabets([]), ensure_ascii=False) + "\n")


if __name__ == "__main__":
    if not sys.argv[1:]:
        make_tokenizers()
    make_cases(sys.argv[1:] or [path.name for path in OUT.iterdir() if path.is_dir()])
