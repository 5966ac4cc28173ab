"""What is made of corpora: nothing held out is trained on, labels are true, and nothing but reading gives them away."""

import doctest
import hashlib
import importlib
import re
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers

from brimful.errors import DataError, LengthError, SettingError
from experiments.corpora import (
    Document,
    Labelled,
    SpanQuestion,
    frequent_labels,
    labelled,
    questions,
    sentence_pairs,
    sentences,
    span_f1,
    split,
)
from experiments.corpora.__main__ import corpora_table, tasks_table
from experiments.corpora.baselines import bag_of_words_accuracy, majority_accuracy, span_baselines
from experiments.corpora.readers import docstrings
from experiments.corpora.span_questions import ENTRIES, opening
from experiments.corpora.tokens import wordpiece

# Divisions


def entry(title, text="A thing.", label=""):
    return Document(title, text, label, title.casefold(), "by hand")


@given(st.lists(st.text("abAB", min_size=1, max_size=3), max_size=40), st.floats(0, 1), st.integers(0, 9))
def test_split_divides_all_documents_and_no_key(titles, held_out, seed):
    found = [entry(title, f"Number {number}.") for number, title in enumerate(titles)]
    train, test = split(found, held_out, seed)
    assert sorted(document.text for document in train + test) == sorted(document.text for document in found)
    assert not {document.key for document in train} & {document.key for document in test}


@given(st.sets(st.text(min_size=1, max_size=5), min_size=2, max_size=40), st.data())
def test_side_depends_on_nothing_but_the_key(titles, data):
    found = [entry(title) for title in sorted(titles)]
    some = data.draw(st.lists(st.sampled_from(found), unique=True))
    train, test = split(found, 0.5)
    some_train, some_test = split(some, 0.5)
    assert set(some_train) <= set(train)
    assert set(some_test) <= set(test)


def test_split_holds_out_the_share_that_was_asked_for():
    found = [entry(f"word {number}") for number in range(10_000)]
    train, test = split(found, 0.1)
    assert len(test) == pytest.approx(1000, abs=120)  # four standard deviations
    assert split(found, 0.1) == (train, test)
    assert split(found[::-1], 0.1) == (train, test)
    assert set(split(found, 0.1, seed=1)[1]) != set(test)
    # Beginnings are fair samples: both halves of the alphabet are there.
    assert sum(document.title < "word 5" for document in train[:400]) == pytest.approx(178, abs=45)
    assert [split(found, share)[0] for share in (0, 1)] == [sorted_by_draw(found), []]
    with pytest.raises(SettingError, match=r"a share from 0 to 1, not 1\.5"):
        split(found, 1.5)


def sorted_by_draw(found):
    return sorted(found, key=lambda document: hashlib.sha256(f"0:{document.key}".encode()).digest())


def test_sentences():
    text = 'It burns. "Does it?" Yes! E.g. 3.5 tons, i. e. much.\nA line. (So.) 7 more'
    assert sentences(entry("Coal", text)) == [
        "Coal",
        "It burns.",
        '"Does it?"',
        "Yes!",
        "E.g.",
        "3.5 tons, i. e. much.",
        "A line.",
        "(So.)",
        "7 more",
    ]
    assert sentences(entry("", "One.")) == ["One."]


# Pairs


def words_tokenizer(words):
    """One token a word, none beside them."""
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    made = Tokenizer(models.WordLevel({word: at for at, word in enumerate([*special, *words])}, "[UNK]"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return made


def planted(n_documents, seed=0, most_sentences=12, most_words=9):
    """Documents in which every word is of one place only, "d3.7" the eighth of the fourth document."""
    rng = np.random.default_rng(seed)
    found, names = [], []
    for number in range(n_documents):
        lines, at = [], 0
        for _ in range(rng.integers(1, most_sentences + 1)):
            size = rng.integers(1, most_words + 1)
            lines.append(" ".join(f"d{number}.{place}" for place in range(at, at + size)))
            names += lines[-1].split()
            at += size
        found.append(Document("", "\n".join(lines), "", str(number), "by hand"))
    return found, words_tokenizer(names)


def halves(pair, tokenizer):
    """The two segments as lists of (document, place)."""
    tokens = [tokenizer.id_to_token(number) for number in pair.input_ids]
    first_end = tokens.index("[SEP]")
    assert (tokens[0], tokens[-1], tokens.count("[CLS]"), tokens.count("[SEP]")) == ("[CLS]", "[SEP]", 1, 2)
    assert pair.token_type_ids.tolist() == [0] * (first_end + 1) + [1] * (len(tokens) - first_end - 1)
    places = [
        [tuple(map(int, word[1:].split("."))) for word in part]
        for part in (tokens[1:first_end], tokens[first_end + 1 : -1])
    ]
    for part in places:
        assert part
        assert part == sorted(part)
        assert len({document for document, _ in part}) == 1
    return places


@given(st.integers(2, 30), st.integers(8, 80), st.integers(0, 2**32))
def test_pairs_are_runs_that_follow_or_are_of_two_documents(n_documents, max_length, seed):
    found, by = planted(n_documents, seed)
    try:
        pairs = sentence_pairs(found, by, max_length, seed)
    except DataError:
        assert sum("\n" in document.text for document in found) < 2
        return
    seen = []
    for pair in pairs:
        first, second = halves(pair, by)
        assert len(pair.input_ids) <= max_length
        if pair.next_sentence_label == 0:
            assert first[0][0] == second[0][0]
            assert first[-1][1] < second[0][1]
            if max_length >= 2 * 9 + 4:  # no sentence was cut
                assert second[0][1] == first[-1][1] + 1
        else:
            assert first[0][0] != second[0][0]
        if max_length >= 2 * 9 + 4:
            assert all(after[1] == before[1] + 1 for part in (first, second) for before, after in pairwise(part))
        seen += first + second
    assert len(seen) == len(set(seen))  # every token is used once at most


def test_half_of_the_pairs_are_random_and_in_no_order():
    found, by = planted(400, most_sentences=40)
    pairs = sentence_pairs(found, by, max_length=64)
    labels = np.array([pair.next_sentence_label for pair in pairs])
    assert len(pairs) > 800
    assert abs(labels.sum() - len(pairs) / 2) <= 1
    assert labels[: len(labels) // 2].mean() == pytest.approx(0.5, abs=0.08)


def test_length_does_not_tell_what_is_random():
    """Short documents and long ones: a second segment of the other kind would stand out."""
    rng = np.random.default_rng(0)
    found, names = [], []
    for number in range(800):
        lines = [
            " ".join(f"d{number}.{line * 40 + word}" for word in range(rng.integers(2, 5) if number % 2 else 30))
            for line in range(2)
        ]
        names += " ".join(lines).split()
        found.append(Document("", "\n".join(lines), "", str(number), "by hand"))
    pairs = sentence_pairs(found, words_tokenizer(names), max_length=64)
    lengths = [[len(pair.input_ids) for pair in pairs if pair.next_sentence_label == label] for label in (0, 1)]
    for length in range(0, 64, 3):
        shares = [np.mean(np.array(each) < length) for each in lengths]
        assert shares[0] == pytest.approx(shares[1], abs=0.1)


def test_lengths_of_pairs_are_those_of_documents_up_to_an_edge():
    found, by = planted(400, most_sentences=40)
    lengths = [len(pair.input_ids) for pair in sentence_pairs(found, by, max_length=64)]
    assert np.quantile(lengths, 0.1) < 40
    assert np.quantile(lengths, 0.5) > 55
    assert max(lengths) == 64


def test_pairs_follow_from_the_seed():
    found, by = planted(20)
    ids = [[pair.input_ids.tolist() for pair in sentence_pairs(found, by, 32, seed)] for seed in (0, 0, 1)]
    assert ids[0] == ids[1] != ids[2]


def test_pairs_of_train_documents_hold_nothing_of_those_held_out():
    found, by = planted(60)
    train, held_out = split(found, 0.3)
    train_words = {place for pair in sentence_pairs(train, by, 48) for half in halves(pair, by) for place in half}
    test_words = {place for pair in sentence_pairs(held_out, by, 48) for half in halves(pair, by) for place in half}
    assert {document for document, _ in train_words} <= {int(document.key) for document in train}
    assert not train_words & test_words


def test_titles_are_sentences_of_pairs():
    found = [entry("Coal", "A mineral."), entry("Kelp", "A seaweed.")]
    by = words_tokenizer(["Coal", "Kelp", "A", "mineral.", "seaweed."])
    texts = {" ".join(by.id_to_token(number) for number in pair.input_ids) for pair in sentence_pairs(found, by)}
    # One of two may not swap with itself: half of two is one, which has no partner.
    assert texts == {"[CLS] Coal [SEP] A mineral. [SEP]", "[CLS] Kelp [SEP] A seaweed. [SEP]"}


def test_pairs_that_cannot_be_are_errors():
    found, by = planted(4)
    with pytest.raises(LengthError, match="at least 8 tokens, not 7"):
        sentence_pairs(found, by, 7)
    with pytest.raises(DataError, match="two documents of two sentences or more; there is no such two in 1"):
        sentence_pairs(found[:1], by)
    with pytest.raises(DataError, match=r"the tokenizer has no \[CLS\]; use a WordPiece tokenizer"):
        sentence_pairs([entry("A", "B."), entry("C", "D.")], Tokenizer(models.WordLevel({"[UNK]": 0}, "[UNK]")))


# Questions


@pytest.fixture(scope="module")
def fallback():
    """The docstrings of the standard library, which every machine has."""
    return docstrings()


@pytest.mark.parametrize(
    ("definition", "answer"),
    [
        ("A black mineral, used for fuel.", "A black mineral"),
        ("The pollock; -- called also coalsey.", "The pollock"),
        ("A device which bridges.", "A device"),
        ("One who hews coal.", "One who hews coal"),
        ("One's followers: all of them.", "One's followers"),
        ("A large (very large) fish.", "A large"),
        ("To stab.", "To stab"),
        ("Coal.", ""),
        ("See Ditto.", ""),
        ("Same as Coal.", ""),
        ("Seeing is believing.", "Seeing is believing"),
        ("a b c d e f g h i j k l.", "a b c d e f g h i j k l"),
        ("a b c d e f g h i j k l m.", ""),
        ("No end", ""),
    ],
)
def test_opening(definition, answer):
    assert opening(definition) == answer


@pytest.fixture(scope="module")
def asked(fallback):
    by = wordpiece((document.text for document in fallback), 4000)
    train, held_out = split(fallback)
    return by, train, questions(train, by, max_length=160, most=600), held_out


def test_spans_decode_to_the_answers(asked):
    by, _, found, _ = asked
    assert len(found) == 600
    for question in found:
        span = question.input_ids[question.start_position : question.end_position + 1].tolist()
        assert span == by.encode(question.answer, add_special_tokens=False).ids
        assert question.token_type_ids[question.start_position] == 1
        assert re.search(rf"(?:^|\. |\W){re.escape(question.question)}: {re.escape(question.answer)}", question.passage)


def test_tokens_are_those_of_question_and_passage(asked):
    by, _, found, _ = asked
    for question in found:
        encoded = by.encode(question.question, question.passage)
        assert question.input_ids.tolist() == encoded.ids
        assert question.token_type_ids.tolist() == encoded.type_ids
        assert len(encoded.ids) <= 160


def test_place_of_the_headword_tells_nothing(asked):
    _, train, found, _ = asked
    titles = {document.title for document in train}
    places = []
    for question in found:
        heads = [head for head in re.findall(r"(?:^| )([^ ]+):(?= )", question.passage) if head in titles]
        assert ENTRIES[0] <= len(heads)
        places.append(heads.index(question.question) / (len(heads) - 1))
    firsts, lasts = np.mean(np.array(places) == 0), np.mean(np.array(places) == 1)
    assert np.mean(places) == pytest.approx(0.5, abs=0.06)
    assert firsts == pytest.approx(lasts, abs=0.07)


def test_headword_stands_once_in_its_passage():
    """Of twelve words, each is in the definition of the next: these two never share a passage of the former."""
    words = [f"word{letter}" for letter in "abcdefghijkl"]
    found = [
        entry(word, f"To {before.upper()} things, or not.") for before, word in zip(["x", *words], words, strict=False)
    ]
    found.append(entry("loop", "To loop things."))  # says itself what it is
    asked = questions(found, wordpiece(document.text + document.title for document in found), seed=3)
    assert {question.question for question in asked} == set(words)
    for question in asked:
        assert len(re.findall(rf"\b{question.question}\b", question.passage, re.IGNORECASE)) == 1


def test_passages_of_documents_held_out_are_of_them_alone(asked):
    by, _, _, held_out = asked
    test = questions(held_out, by, max_length=160)
    assert {question.question for question in test} <= {document.title for document in held_out}
    sentences_of = {first for document in held_out for first in sentences(document)[1:2]}
    for question in test[:50]:
        assert sum(f": {sentence}" in question.passage for sentence in sentences_of) >= ENTRIES[0]
    assert len(test) < len(held_out)


def test_questions_follow_from_the_seed(asked):
    by, train, _, _ = asked
    again = [[q.input_ids.tolist() for q in questions(train[:900], by, 160, 50, seed)] for seed in (0, 0, 1)]
    assert again[0] == again[1] != again[2]


def test_questions_need_a_dictionary(asked):
    by, *_ = asked
    with pytest.raises(DataError, match=r"only 1 of 3 documents can be asked about, and a passage needs 2; use more"):
        questions([entry("A", "To go."), entry("C", "See A."), entry("", "To sit.")], by)


@given(st.integers(0, 12), st.integers(1, 9), st.integers(0, 20), st.integers(0, 20))
def test_span_f1_is_that_of_the_sets_of_positions(start, size, guess_start, guess_end):
    ids = np.zeros(21, np.int32)
    question = SpanQuestion(ids, ids, start, start + size - 1, "", "", "")
    right, guessed = set(range(start, start + size)), set(range(guess_start, guess_end + 1))
    common = len(right & guessed)
    precision, recall = common / max(len(guessed), 1), common / len(right)
    f1 = 2 * precision * recall / (precision + recall) if common else 0
    assert span_f1(guess_start, guess_end, question) == pytest.approx(f1)


# Classification


def test_labels_are_the_most_frequent_and_never_empty():
    found = [entry("a", label=label) for label in ["B"] * 3 + ["C"] * 2 + ["A"] * 2 + [""] * 9 + ["D"]]
    assert frequent_labels(found, 3) == ["B", "A", "C"]
    with pytest.raises(DataError, match=r"two labels or more; 1 documents have \['B'\]"):
        frequent_labels(found[:1])


def test_records_hold_the_beginning_of_their_document_and_its_class(fallback):
    by = wordpiece((document.text for document in fallback[:500]), 1000)
    labels = frequent_labels(fallback, 4)
    records = labelled(fallback, by, labels, max_length=20)
    chosen = [document for document in fallback if document.label in labels]
    assert [labels[record.label] for record in records] == [document.label for document in chosen]
    for record, document in zip(records[:300], chosen, strict=False):
        whole = by.encode(f"{document.title} {document.text}").ids
        assert len(record.input_ids) == min(len(whole), 20)
        assert record.input_ids[:-1].tolist() == whole[: len(record.input_ids) - 1]
        assert by.id_to_token(record.input_ids[-1]) == "[SEP]"


# Baselines, tables, examples


def record(label, *ids):
    return Labelled(np.array(ids, np.int32), label)


def test_baselines_of_classification():
    train = [record(0, 5, 6), record(0, 6, 7), record(1, 8, 8), record(0, 5, 5)]
    test = [record(0, 5, 7), record(1, 8, 6, 8), record(1, 8, 8), record(1, 7)]
    assert majority_accuracy(train, test) == 0.25
    assert bag_of_words_accuracy(train, test, 10) == 0.75


def test_baselines_of_questions_fall_short_where_they_do_not_read(asked):
    by, _, found, _ = asked
    scores = span_baselines(found, by)
    first, whole = scores["first opening"], scores["whole sentence"]
    expected = np.mean([1 / n for n in range(ENTRIES[0], ENTRIES[1] + 1)])
    assert first[0] == pytest.approx(expected, abs=0.06)
    assert whole[0] < 0.02 < 0.3 < whole[1] < 0.8


def test_tables_have_a_row_for_every_corpus_and_baseline(fallback):
    by = wordpiece((document.text for document in fallback[:500]), 1000)
    table = list(corpora_table({"one": fallback[:50], "two": fallback[50:60]}, by))
    n_tokens = sum(len(by.encode(f"{d.title}\n{d.text}", add_special_tokens=False).ids) for d in fallback[:50])
    assert table[2].startswith(f"| one | {fallback[0].source} | 50 | {n_tokens:,} | ")
    assert len(table) == 4
    assert [line.count("|") for line in tasks_table("one", fallback[:2000], by)] == [5] * 6


@pytest.mark.parametrize("name", ["dictionaries", "document", "span_questions", "subjects", "tokens"])
def test_examples_of_docstrings(name):
    outcome = doctest.testmod(importlib.import_module(f"experiments.corpora.{name}"))
    assert outcome.attempted
    assert not outcome.failed
