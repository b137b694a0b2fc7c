#!/usr/bin/env python3
"""Text for the last runs of the larger sparse model, of what suffers when edges close and no task sentence has:

    models/recipes/extra_text.py TOKENIZER PROSE OUT

OUT/random-words.txt: words of one token, drawn at random and then repeated, as the task induction asks for.
OUT/quotations.txt: passages of PROSE/train-00.txt.xz that hold quotations, which the model then reads more often.
OUT/all-quotations.txt: the same of all of PROSE/train-*.txt.xz.
OUT/closings.txt: single quotations of all of PROSE/train-*.txt.xz with the sentence before, each a document of
its own, and as many pairs of sentences without any, so that what closes a quotation is that it was opened.
OUT/returns.txt: passages of PROSE/train-00.txt.xz in which a name or rare word returns, each a document of its own.
OUT/swapped.txt: such passages of PROSE/train-01.txt.xz with another name or rare word in its place wherever it
stands, so that what returns is known from the passage alone.
OUT/held-out-first.txt, held-out-fresh.txt: PROSE/val.txt.xz in two, the first for choices, the other for results.
"""
import collections
import concurrent.futures
import json
import lzma
import pathlib
import random
import re
import sys

RANDOM_WORDS_BYTES = 12_000_000
PASSAGE_BYTES = 2_000
HELD_OUT_FIRST_LETTERS = 2_750_000
QUOTATION = re.compile('["\u201c][^"\u201c\u201d]{15,250}[,.!?]["\u201d]')
# A sentence without quotation marks, a quotation of some words, and the rest of its sentence.
CLOSING = re.compile(
    '(?:(?<=[.!?]["\u201d] )|(?<=[.!?] )|(?<=\n)|^)[^"\u201c\u201d\n]{12,300} '
    '["\u201c][^"\u201c\u201d\n]{12,240}[,.!?]["\u201d](?:[^"\u201c\u201d\n]{0,160}?[.!?])?'
)
UNQUOTED = re.compile('(?<=[.!?] )[A-Z][^"\u201c\u201d\n.!?]{30,200}[.!?] [A-Z][^"\u201c\u201d\n.!?]{30,240}[.!?](?= )')
# Of the task returning-word (src/analyze/task/returning_word.cpp): words between the two, and what is rare.
WORDS_APART = range(5, 51)
RARE_BELOW = 2e-6  # for returns.txt: rarer than the task's
SWAPPED_RARE_BELOW = 1e-4
RETURNS_BYTES = 24_000_000
WORD = re.compile("[A-Za-z]{4,}")
SENTENCE_END = re.compile("[.!?][\"\u201d\u2019']? |\n|$")
END = "\n<|endoftext|>\n"


def one_token_words(tokenizer):
    vocabulary = json.loads((tokenizer / "tokenizer.json").read_text())["model"]["vocab"]
    return sorted(token[1:] for token in vocabulary if re.fullmatch("\u0120[a-z]{2,}", token))


def repeated_words(words, draw):
    count = draw.randint(5, 12)
    chosen = draw.sample(words, count)
    return " " + " ".join(chosen + chosen)


def write_random_words(words, out, draw):
    written = 0
    with open(out, "w") as file:
        while written < RANDOM_WORDS_BYTES:
            text = "\n".join(repeated_words(words, draw) for _ in range(draw.randint(1, 6))) + END
            written += file.write(text)


def passages(text):
    """Neighbouring paragraphs that hold a quotation of some words each."""
    separator = "\n\n" if "\n\n" in text else "\n"
    passage = ""
    for paragraph in text.split(separator):
        if len(paragraph) < PASSAGE_BYTES and QUOTATION.search(paragraph):
            passage += (separator if passage else "") + paragraph
            if len(passage) < PASSAGE_BYTES:
                continue
        if passage:
            yield passage.strip()
        passage = ""


def documents(prose):
    with lzma.open(prose, "rt", encoding="utf-8", errors="replace") as file:
        return file.read().split(END)


def write_quotations(proses, out, draw):
    found = [passage for prose in proses for document in documents(prose) for passage in passages(document)]
    draw.shuffle(found)
    out.write_text(END.join(found) + END)


def write_closings(proses, out, draw):
    quoted, unquoted = [], []
    for prose in proses:
        for document in documents(prose):
            quoted += CLOSING.findall(document)
            unquoted += UNQUOTED.findall(document)
    found = quoted + draw.sample(unquoted, min(len(quoted), len(unquoted)))
    draw.shuffle(found)
    out.write_text(END.join(found) + END)


def returns(line, is_rare):
    """Passages of a line, from the sentence of a rare word to the end of the one in which it returns; and the word."""
    begin = 0
    last = {}
    for number, word in enumerate(WORD.finditer(line)):
        first = last.get(word[0])
        last[word[0]] = number, word.start()
        if not first or number - first[0] not in WORDS_APART or first[1] < begin or not is_rare(word[0]):
            continue
        before = line[begin : first[1]]
        start = max((before.rfind(end) + 2 for end in (". ", "! ", "? ") if end in before), default=0)
        end = SENTENCE_END.search(line, word.end()).end()
        yield line[begin + start : end].strip(), word[0]
        begin = end


def rare_words(counts, below):
    """Whether a word is a name or rare."""
    least = below * counts.total()

    def is_rare(word):
        # Of a word with a small letter too, the capital is a sentence's.
        return counts[word] < least or (word[0].isupper() and counts[word.lower()] < counts[word] / 20)

    return is_rare


def lines_and_counts(prose):
    lines = [line for document in documents(prose) for line in document.split("\n")]
    return lines, collections.Counter(word for line in lines for word in WORD.findall(line))


def write_passages(found, out, draw):
    draw.shuffle(found)
    written, taken = 0, 0
    while taken < len(found) and written < RETURNS_BYTES:
        written += len(found[taken]) + len(END)
        taken += 1
    out.write_text(END.join(found[:taken]) + END)


def write_returns(prose, out, draw):
    lines, counts = lines_and_counts(prose)
    is_rare = rare_words(counts, RARE_BELOW)
    found = [passage for line in lines for passage, _ in returns(line, is_rare) if len(passage) < PASSAGE_BYTES]
    write_passages(found, out, draw)


def write_swapped(prose, out, draw):
    lines, counts = lines_and_counts(prose)
    is_rare = rare_words(counts, SWAPPED_RARE_BELOW)
    # As often as the text has them, names for names.
    pool = {True: [], False: []}
    for line in lines:
        for word in WORD.findall(line):
            if is_rare(word):
                pool[word[0].isupper()].append(word)

    def swapped(passage, word):
        return re.sub(rf"\b{word}\b", draw.choice(pool[word[0].isupper()]), passage)

    found = [
        swapped(passage, word)
        for line in lines
        for passage, word in returns(line, is_rare)
        if len(passage) < PASSAGE_BYTES
    ]
    write_passages(found, out, draw)


def write_held_out(prose, first_out, fresh_out):
    whole = documents(prose)
    first, letters = 0, 0
    while letters < HELD_OUT_FIRST_LETTERS:
        letters += len(whole[first]) + len(END)
        first += 1
    first_out.write_text(END.join(whole[:first]) + END)
    fresh_out.write_text(END.join(whole[first:]))


def main():
    tokenizer, prose, out = map(pathlib.Path, sys.argv[1:])
    out.mkdir(parents=True, exist_ok=True)
    trained_on = sorted(prose.glob("train-*.txt.xz"))
    write_held_out(prose / "val.txt.xz", out / "held-out-first.txt", out / "held-out-fresh.txt")
    texts = [
        (write_random_words, one_token_words(tokenizer), "random-words.txt"),
        (write_quotations, trained_on[:1], "quotations.txt"),
        (write_closings, trained_on, "closings.txt"),
        (write_quotations, trained_on, "all-quotations.txt"),
        (write_returns, trained_on[0], "returns.txt"),
        (write_swapped, trained_on[1 % len(trained_on)], "swapped.txt"),
    ]
    with concurrent.futures.ProcessPoolExecutor() as workers:
        for written in [workers.submit(write, source, out / name, random.Random(4)) for write, source, name in texts]:
            written.result()


if __name__ == "__main__":
    main()
