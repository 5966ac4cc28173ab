"""Figures and ledger: every number is there, and lines fit."""

from brimful import plan
from brimful.overflow import Ledger
from brimful.report.figures import figures_table, ledger_table
from tests.report.drawing import draw


def test_figures():
    made = plan([512] * 1000 + [100] * 5000 + [28] * 3, 512, max_sequences=4)
    lines = draw(figures_table(made.figures(), made.bound.kind))
    text = " ".join(lines)
    assert all(word in text for word in ("6,003", "512", f"{made.packs:,}", f"{made.efficiency:.2%}", made.bound.kind))
    assert len(lines) == 9, "no line is wrapped"


def test_empty_plan():
    assert any("0 packs" in line for line in draw(figures_table(plan([], 8).figures())))


def test_ledger_adds_up_in_words():
    text = " ".join(
        draw(ledger_table(Ledger(rows_read=3, rows_truncated=1, tokens_read=10, tokens_packed=7, tokens_truncated=3)))
    )
    assert "10 read = 7 packed + 3 truncated" in text
    assert "1 rows truncated" in text
    assert "none lost" in " ".join(draw(ledger_table(Ledger(tokens_read=7, tokens_packed=7))))
