"""Whatever is wrong with the input, the command says so in one line and exits with 2."""

import os
import signal
import subprocess
import sys
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import brimful
import brimful.cli
from brimful.cli import main


@pytest.mark.parametrize("command", ["analyze", "plan", "pack"])
@pytest.mark.parametrize(
    ("words", "error"),
    [
        ((), "Missing option '--max-length'"),
        (("--max-length", "0"), "max_length is a whole number from 1 to 2147483647, not 0"),
        (("--max-length", "-1"), "max_length is a whole number from 1 to 2147483647, not -1"),
        (("--max-length", "abc"), "max_length is a whole number from 1 to 2147483647, not 'abc'"),
        (("--max-length", "1.5"), "max_length is a whole number from 1 to 2147483647, not '1.5'"),
        (("--max-length", "²"), "max_length is a whole number from 1 to 2147483647, not '²'"),
        (("--max-length", "9" * 5000), "max_length is a whole number from 1 to 2147483647"),
        (("--max-length", "64", "--max-sequences", "0"), "max_sequences is a whole number"),
        (("--max-length", "64", "--shiny"), "No such option"),
        (("--max-length", "64", "--overflow", "explode"), "overflow is one of error, drop, truncate, split"),
        (("--max-length", "64", "--min-fragment", "3"), "min_fragment only matters with overflow 'split'"),
        (("--max-length", "64", "--token-column", "nope"), "columns are: 'input_ids', 'labels', 'name'"),
        (("--max-length", "64", "--token-column", "name"), "column 'name' holds string, not lists of token ids"),
        (("--max-length", "64", "--text-column", "name"), "--tokenizer"),
        (("--max-length", "64", "--tokenizer", "bytes"), "--text-column"),
    ],
)
def test_wrong_options(run, parquet, tmp_path, command, words, error):
    output = ("-o", tmp_path / "out") if command == "pack" else ()
    assert error in run(command, parquet, *output, *words).error
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["analyze", "plan", "pack"])
def test_wrong_inputs(run, files, tmp_path, command):
    out = tmp_path / "out"

    def error(*inputs, words=("--max-length", "64")):
        message = run(
            command, *inputs, *words, *(("-o", out, "--drop-columns", "name") if command == "pack" else ())
        ).error
        assert not out.exists()
        return message

    assert "there is no such file or folder" in error(tmp_path / "nowhere.parquet")
    assert "200 rows are too long; raise max_length, or choose an overflow policy" in error(
        files["parquet"], words=("--max-length", "8")
    )

    truncated = tmp_path / "truncated.parquet"
    truncated.write_bytes(files["parquet"].read_bytes()[:-20])
    assert str(truncated) in error(truncated)

    broken = tmp_path / "broken.jsonl"
    broken.write_text('{"input_ids": [1], "name": ""}\n{"input_ids": [1\n')
    assert f"{broken}:2: each line must be one JSON object" in error(broken)

    null = tmp_path / "null.parquet"
    pq.write_table(pa.table({"input_ids": [[1], None], "name": ["", ""]}), null)
    assert "row 1 is null" in error(null)

    packed = tmp_path / "packed.parquet"
    pq.write_table(pa.table({"input_ids": [[1]], "seq_lengths": [[1]], "name": [""]}), packed)
    assert "packed already" in error(packed)

    text = tmp_path / "text.parquet"
    pq.write_table(pa.table({"text": ["a"], "name": [""]}), text)
    assert "its columns are: 'text', 'name'; name the token ids with --token-column NAME, or tokenize" in error(text)


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ("len,n\n1,2\n", ":1: a histogram starts with the header length,count, not 'len,n'"),
        ("length,count\n1,x\n", ":2: a row is two whole numbers"),
        ("length,count\n99,1\n", "1 of 1 sequences are longer than max_length 64"),
    ],
)
@pytest.mark.parametrize("command", ["analyze", "plan"])
def test_wrong_histograms(run, tmp_path, command, content, error):
    path = tmp_path / "h.csv"
    path.write_text(content)
    assert error in run(command, "--histogram", path, "--max-length", 64).error
    assert f"{tmp_path}: not a regular file" in run(command, "--histogram", tmp_path, "--max-length", 64).error
    assert "No such file" in run(command, "--histogram", tmp_path / "no.csv", "--max-length", 64).error


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("--drop-columns", "nope"), "there is no column 'nope'"),
        (("--keep-columns", "input_ids"), "can only be one of"),
        ((), "not a list, so it cannot be packed: name (string)"),
        (("--drop-columns", "name", "--format", "csv"), "format is one of parquet, arrow, not 'csv'"),
        (("--drop-columns", "name", "--algorithm", "magic"), "there is no algorithm 'magic'"),
        (("--drop-columns", "name", "--seed", "-1"), "seed is a whole number from 0 to 2^63 − 1, not -1"),
        (("--drop-columns", "name", "--window-tokens", "0"), "window_tokens is a whole number"),
    ],
)
def test_pack_refuses(run, parquet, tmp_path, words, error):
    assert error in run("pack", parquet, "-o", tmp_path / "out", "--max-length", 64, *words).error
    assert list(tmp_path.iterdir()) == []


def test_output_that_exists_stays_as_it_is(run, parquet, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").write_text("mine")
    words = ("--max-length", 64, "--drop-columns", "name")
    assert "exists already" in run("pack", parquet, "-o", tmp_path / "out", *words).error
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["mine"]


@pytest.mark.parametrize("command", ["plan", "pack", "demo"])
def test_output_that_cannot_be_written(run, parquet, tmp_path, command):
    (tmp_path / "file").write_text("mine")
    words = {"pack": (parquet, "--drop-columns", "name"), "plan": (parquet,), "demo": ()}[command]
    said = run(command, *words, "--max-length", 64, "-o", tmp_path / "file" / "below")
    assert str(tmp_path / "file" / "below") in said.error
    assert (tmp_path / "file").read_text() == "mine"


def test_no_command_prints_help_and_a_wrong_one_is_an_error(run):
    said = run()
    assert said.status == 0
    assert all(command in said.out for command in ("analyze", "plan", "pack", "check", "demo"))
    assert run("--help").out == said.out
    assert "No such command 'zork'; see brimful --help" in run("zork").error
    assert run("--version").out == f"brimful {brimful.__version__}\n"


@pytest.mark.parametrize("command", ["analyze", "plan", "pack", "check", "demo"])
def test_every_command_explains_itself(run, command):
    said = run(command, "--help")
    assert said.status == 0
    assert "--json" in said.out
    assert "list[" not in said.out, "types of Python are none of a user's business"
    assert max(len(line) for line in said.out.splitlines()) <= 80


def test_a_fault_of_the_program_is_not_hidden(monkeypatch):
    monkeypatch.setattr("brimful.cli.inputs.measure", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        main(["plan", "x.parquet", "--max-length", "8"])


COMMAND = [sys.executable, "-m", "brimful"]


@pytest.mark.parametrize(
    "words", [["--help"], ["pack", "--help"], ["analyze"], ["pack", "x.parquet", "--max-length", "0"]]
)
def test_help_and_usage_errors_do_not_wait_for_pyarrow(words):
    timed = [sys.executable, "-X", "importtime", "-m", "brimful", *words]
    ended = subprocess.run(timed, capture_output=True, check=False, text=True)  # noqa: S603
    assert "brimful.cli.pack" in ended.stderr
    assert "pyarrow" not in ended.stderr


def test_reader_that_goes_away_is_met_in_silence(parquet):
    words = [*COMMAND, "analyze", str(parquet), "--max-length", "64"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:  # noqa: S603
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.wait(timeout=60) == 141
        assert process.stderr.read() == b""


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")  # noqa: PTH110
def test_full_disk_is_one_line(parquet):
    words = [*COMMAND, "analyze", str(parquet), "--max-length", "64", "--json"]
    with open("/dev/full", "w") as full:  # noqa: PTH123
        ended = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, check=False)  # noqa: S603
    assert ended.returncode == 2
    assert ended.stderr == b"error: No space left on device\n"


@pytest.mark.parametrize(
    ("number", "said"),
    [(signal.SIGINT, b"interrupted"), (signal.SIGTERM, b"told to end"), (signal.SIGHUP, b"told to end")],
)
def test_an_end_from_outside_is_one_line_and_leaves_nothing_behind(tmp_path, number, said):
    words = [*COMMAND, "demo", "-o", str(tmp_path / "demo")]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:  # noqa: S603
        while process.poll() is None and not list(tmp_path.iterdir()):  # until it writes
            time.sleep(0.001)
        process.send_signal(number)
        _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (128 + number, b"error: " + said + b"\n")
    assert list(tmp_path.iterdir()) == []


def test_terminal_that_shows_only_ascii(parquet):
    """Signs that cannot be shown are replaced; a picture uses others instead."""
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    words = [*COMMAND, "analyze", str(parquet), "--max-length", "64"]
    ended = subprocess.run(words, capture_output=True, check=True, env=environment)  # noqa: S603
    assert b"####" in ended.stdout
    assert b"?" not in ended.stdout
