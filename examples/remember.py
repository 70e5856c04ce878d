"""Copy twice as many bits as in training, by a neural Turing machine. python examples/remember.py [UPDATES] [PICTURE]

What it wrote to its memory and read while it copied is printed, and drawn where a picture is named.
"""

from __future__ import annotations

import sys

import torch

from recurra.analysis.gates import gates_of
from recurra.analysis.memory import memory_view
from recurra.analysis.memory_problems import BitNetwork, CopyBits, learn_bits

LONGEST = 10


def main() -> None:
    updates = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    torch.manual_seed(1)
    problem = CopyBits(LONGEST)  # 1 to 10 vectors of 8 bits, a mark, and as many blanks during which they are due
    network = BitNetwork({"name": "ntm", "rows": 24, "width": 10}, problem, hidden=64)
    for look in learn_bits(network, problem, look_every=min(200, updates)):
        print(f"{look.updates} updates: {look.loss:.4f} nats a bit")
        if look.updates >= updates:
            break

    # No weight depends on the number of rows: the same ones work with a larger memory.
    larger = BitNetwork({"name": "ntm", "rows": 64, "width": 10}, problem, hidden=64)
    larger.load_state_dict(network.state_dict())
    for times in (1, 2, 5):
        share = larger.right(CopyBits(times * LONGEST, shortest=times * LONGEST), rows=100)
        print(f"{times * LONGEST} vectors: {share:.1%} of bits are right")

    x, _ = CopyBits(6, shortest=6).draw(1, torch.Generator().manual_seed(7))
    steps = [*(f"x{n}" for n in range(1, 7)), "=", *(f"y{n}" for n in range(1, 7))]
    stack = larger.recurrent
    view = memory_view(gates_of(stack, steps, lambda: larger(x)))
    print(view.text())
    if len(sys.argv) > 2:
        view.write(sys.argv[2])


if __name__ == "__main__":
    main()
