"""brimful pack: every format in, both formats out, nothing lost, and figures by the contract."""

import json
import shlex

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from brimful.tables.check import check_packed
from brimful.tables.same_sequences import same_sequences
from brimful.tables.sources import open_source
from brimful.tables.windows import WINDOW_BYTES
from tests.cli.conftest import FIGURES, FORMATS


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("written", ["parquet", "arrow"])
def test_packed_folder_holds_every_sequence_of_every_format(run, files, tmp_path, kind, written):
    folder = tmp_path / "packed"
    words = ("--max-length", 64, "--keep-columns", "name", "--format", written, "--window-tokens", 1000, "--json")
    value = run("pack", files[kind], "-o", folder, *words).json
    assert set(value) >= FIGURES | {"ledger", "windows", "output", "input"}
    assert value["windows"] > 1
    assert value["ledger"]["tokens_packed"] == value["tokens"]
    checks = [*check_packed(folder), same_sequences(open_source([files[kind]]), folder)]
    assert [check for check in checks if not check.passed] == []


def test_prints_figures_ledger_and_a_line_that_loads(run, parquet, tmp_path):
    import datasets

    folder = tmp_path / "packed"
    words = ("--max-length", 16, "--overflow", "truncate", "--drop-columns", "name,labels", "--format", "arrow")
    said = run("pack", parquet, "-o", folder, *words)
    assert said.status == 0
    assert said.err == ""
    assert "read =" in said.out
    assert "truncated" in said.out
    check = next(line for line in said.out.splitlines() if line.startswith("To check it: "))
    assert run(*shlex.split(check.removeprefix("To check it: "))[1:]).status == 0
    line = next(line for line in said.out.splitlines() if line.startswith("To load it: "))
    scope = {"datasets": datasets}
    exec(line.removeprefix("To load it: "), scope)  # noqa: S102  # what the command tells its user to type
    assert set(scope["rows"].column_names) == {"input_ids", "seq_lengths"}


def test_the_check_of_a_folder_with_the_name_of_an_option_works_as_typed(run, parquet, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "-in.parquet").write_bytes(parquet.read_bytes())
    words = ("--max-length", 64, "--keep-columns", "name", "-o", "--json")
    said = run("pack", "./-in.parquet", *words).out.splitlines()
    check = next(line for line in said if line.startswith("To check it: ")).removeprefix("To check it: ")
    assert run(*shlex.split(check)[1:], "--json").json["packed"] == "--json"


def test_help_says_what_a_window_weighs(run):
    assert f"{WINDOW_BYTES >> 20} MiB" in " ".join(run("pack", "--help").out.split())


def test_columns_may_be_listed_or_repeated_and_may_have_a_comma(run, tmp_path):
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"input_ids": [[1, 2]], "a": [1], "b": [2], "c,d": [3]}), path)
    words = ("--max-length", 4, "--drop-columns", "a, b", "--drop-columns", "c,d", "--json")
    assert run("pack", path, "-o", tmp_path / "out", *words).json["packs"] == 1
    keep = ("--keep-columns", "a", "--keep-columns", "b", "--keep-columns", "c,d")
    assert run("pack", path, "-o", tmp_path / "out 2", "--max-length", 4, *keep).status == 0
    manifest = json.loads((tmp_path / "out 2" / "brimful.json").read_text())
    assert manifest["settings"]["keep_columns"] == ["a", "b", "c,d"]


def test_text_is_packed(run, files, tmp_path):
    words = ("--max-length", 32, "--text-column", "text", "--tokenizer", "bytes", "--json")
    value = run("pack", files["text"], "-o", tmp_path / "packed", *words).json
    assert (value["sequences"], value["packs"]) == (2, 1)
    row = pq.read_table(tmp_path / "packed" / "data").to_pylist()[0]
    assert bytes(row["input_ids"]).decode() == "a longer line" + "héllo"


def test_seed_changes_the_order_only(run, parquet, tmp_path):
    def pack(seed, name):
        words = ("--max-length", 64, "--drop-columns", "name", "--seed", seed, "--json")
        packs = run("pack", parquet, "-o", tmp_path / name, *words).json["packs"]
        return packs, pq.read_table(tmp_path / name / "data")

    first, again, other = pack(1, "first"), pack(1, "again"), pack(2, "other")
    assert first == again
    assert first[0] == other[0]
    assert first[1] != other[1]


def test_groups_stay_whole_and_aligned(run, tmp_path):
    rows = pa.table({"input_ids": [[1] * (n % 7 + 1) for n in range(60)], "pair": [n // 2 for n in range(60)]})
    pq.write_table(rows, path := tmp_path / "rows.parquet")
    words = ("--max-length", 32, "--align", 4, "--group-column", "pair", "--time-limit", 5)
    value = run("pack", path, "-o", folder := tmp_path / "packed", *words, "--json").json
    assert (value["align"], value["sequences"]) == (4, 60)
    assert value["tokens"] < value["aligned_tokens"] <= 32 * value["packs"]
    assert run("check", folder, path).status == 0
    said = run("pack", path, "-o", tmp_path / "again", *words).out
    assert f"to 4 token slots: {value['aligned_tokens'] - value['tokens']} slots of padding" in said
    assert "not a multiple of align 5" in run("pack", path, "-o", "x", "--max-length", 32, "--align", 5).error
