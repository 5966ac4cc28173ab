"""Train a small causal transformer on packed rows, in plain PyTorch, beside the same model on unpacked rows.

Both see the same sequences in every step: the one in few full rows that brimful packs, the other padded, one sequence a
row. The losses agree at every step, so packed training is the same training; it only has fewer slots to work on.

    python examples/pure_pytorch_loop.py
"""

from __future__ import annotations

import copy

import torch
import torch.nn.functional as F  # noqa: N812 - its usual name
from torch import Tensor, nn

from brimful.torch import PackedCollator

MAX_LENGTH, VOCABULARY, WIDTH, HEADS, STEPS, SEQUENCES = 64, 32, 32, 4, 40, 32


class Block(nn.Module):
    """Attention and a feed-forward layer; the mask says which token sees which."""

    def __init__(self) -> None:
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)])
        self.to_heads, self.from_heads = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.feed_forward = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, hidden: Tensor, mask: Tensor) -> Tensor:
        heads = self.to_heads(self.norms[0](hidden)).unflatten(-1, (3, HEADS, -1))
        queries, keys, values = heads.permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(queries, keys, values, attn_mask=mask)
        hidden = hidden + self.from_heads(mixed.transpose(1, 2).flatten(2))
        output: Tensor = hidden + self.feed_forward(self.norms[1](hidden))
        return output


class Transformer(nn.Module):
    """Learned positions: with position_ids that restart, each sequence starts at the first of them."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(MAX_LENGTH, WIDTH)
        self.blocks = nn.ModuleList([Block(), Block()])
        self.to_logits = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, input_ids: Tensor, position_ids: Tensor, attention_mask: Tensor) -> Tensor:
        hidden = self.tokens(input_ids) + self.positions(position_ids)
        for block in self.blocks:
            hidden = block(hidden, attention_mask)
        logits: Tensor = self.to_logits(hidden)
        return logits


def next_token_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """The mean over all tokens that have one before them; labels are not shifted, and -100 where there is none."""
    return F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())


def counting(generator: torch.Generator) -> list[int]:
    """A sequence to learn: it counts up in steps of its own; most are short, as in most data."""
    start, step, length = (int(torch.randint(1, most, (), generator=generator)) for most in (VOCABULARY, 5, MAX_LENGTH))
    return [(start + step * place) % VOCABULARY for place in range(max(2, length // 2))]


def unpacked(sequences: list[list[int]]) -> tuple[dict[str, Tensor], Tensor]:
    """One sequence a row, padded to the longest, in PyTorch alone."""
    input_ids = nn.utils.rnn.pad_sequence([torch.tensor(each) for each in sequences], batch_first=True)
    length = input_ids.shape[1]
    real = torch.arange(length) < torch.tensor([[len(each)] for each in sequences])
    before = torch.ones(length, length, dtype=torch.bool).tril()[None, None]
    position_ids = torch.arange(length).expand(input_ids.shape)
    inputs = {"input_ids": input_ids, "position_ids": position_ids, "attention_mask": before}
    return inputs, input_ids.masked_fill(~real, -100)


def main() -> None:
    """Train both, print both losses, and check that they agree."""
    torch.set_num_threads(1)  # on work this small, more threads only wait for one another
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(0)
    collator = PackedCollator(MAX_LENGTH, pad_token_id=0, attention="sdpa", causal=True)
    packed_model = Transformer().double()
    plain_model = copy.deepcopy(packed_model)
    optimizers = [torch.optim.AdamW(model.parameters(), lr=3e-3) for model in (packed_model, plain_model)]
    for step in range(STEPS):
        sequences = [counting(generator) for _ in range(SEQUENCES)]

        batch = collator.from_sequences([{"input_ids": each} for each in sequences])
        logits = packed_model(batch["input_ids"], batch["position_ids"], batch["attention_mask"])
        packed_loss = next_token_loss(logits, batch["labels"])

        inputs, labels = unpacked(sequences)
        plain_loss = next_token_loss(plain_model(**inputs), labels)

        for optimizer, loss in zip(optimizers, (packed_loss, plain_loss), strict=True):
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        torch.testing.assert_close(packed_loss, plain_loss, atol=1e-8, rtol=0)
        if step % 10 == 0 or step == STEPS - 1:
            print(
                f"step {step:2}   packed loss {packed_loss.item():.6f} on {batch['input_ids'].numel():4} slots   "
                f"unpacked loss {plain_loss.item():.6f} on {inputs['input_ids'].numel():4} slots"
            )


if __name__ == "__main__":
    main()
