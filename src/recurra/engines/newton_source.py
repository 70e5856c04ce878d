"""The steps of a cell whose units see only themselves, printed as Triton kernels for Newton's method between chunks.

T is cut into chunks, and a program computes one chunk for a block of units of one row, step by step in registers, as
the loop would. What is not known is the state s before each chunk. From a guess g a chunk finds, all chunks at once,

    F = its last state,      P = ∂F/∂g, the product of its slopes

and the next guesses are those that fit each other, as far as chunks are linear:

    s' = F + P ∘ (s - g)                                                                from one chunk to the next

    newton_ends     the next guesses from P, F and g of all chunks before, then P and F from them
    newton_steps    the same guesses, then every step from them; and how far they are from the guesses before

Steps inside a chunk are exact for its guess, so only what a state leaves behind over a whole chunk has to be found: in
chunks of 128 steps 2 to 5 times do where Newton's method over single steps takes 5 to 30. After n times the first n
chunks are exact, whatever the step is. The kernels of the way back are those of a linear scan (scan_source.py), since
the derivative of the step is taken at the states that were found.

Memory: P, F and g lie one after the other, each (chunks, B, H) in float32; gates are never written.
"""

from __future__ import annotations

from recurra.engines.plan import Plan
from recurra.engines.scan_source import PRELUDE as CARRIED
from recurra.engines.scan_source import ScanKernels, ScanWriter

PRELUDE = '''

@triton.jit
def guessed(s, before, plane, at, apart, count, k):
    """The guess for a chunk from those of so many chunks before it: s' = F + P (s - g), from one to the next."""
    for n in range(0, count, 8):
        for i in tl.static_range(8):
            inside = k & (n + i < count)
            place = before + (n + i) * apart + at
            product = tl.load(place, mask=inside, other=0.0)
            end = tl.load(place + plane, mask=inside, other=0.0)
            guess = tl.load(place + 2 * plane, mask=inside, other=0.0)
            more = product * (s - guess)
            # Far from the solution P may be anything: then the chunk's own end is the better guess.
            s = tl.where(inside, end + tl.where(tl.abs(more) < 3e38, more, 0.0), s)
    return s


@triton.jit
def distance(s, guess):
    """How far a guess is from the one before, beside its size; infinite where it is no number."""
    change = tl.abs(s - guess) / (1.0 + tl.abs(s))
    return tl.max(tl.where(change < 3e38, change, float("inf")), 0)
'''


def newton_kernels(plan: Plan) -> ScanKernels:
    """Print a plan; NoPlan says why it cannot be run so."""
    writer = NewtonWriter(plan)
    sources = [writer.newton_ends(), writer.newton_steps(), writer.backward_ends(), writer.backward_steps()]
    return ScanKernels(
        "\n\n".join([CARRIED, PRELUDE, *sources]),
        writer.units,
        tuple(writer.vectors),
        tuple(writer.rows),
        sum(buffer.width for _, buffer in plan.sums),
    )


class NewtonWriter(ScanWriter):
    """Writes the four kernels of a plan: two of its own forward, those of a scan backward."""

    begin = (
        "anything = tl.load(start + at, mask=k, other=0.0).to(tl.float32)",
        "h = anything",
        "plane = tl.num_programs(1).to(tl.int64) * apart",
        "if GIVEN:",
        "    h = guessed(h, before, plane, at, apart, tl.program_id(1), k)",
        "    guess = tl.load(before + 2 * plane + c * apart + at, mask=k, other=0.0)",
        "    tl.store(changes + tl.program_id(0) * tl.num_programs(1) + tl.program_id(1), distance(h, guess))",
        "    h = tl.where(tl.abs(h) < 3e38, h, anything)",
    )
    """The guess that a chunk starts from: without any before, the state before the first step."""

    def newton_ends(self) -> str:
        return self.printed(
            "newton_ends",
            "before, after, changes, start",
            [
                *self.begin,
                "tl.store(after + 2 * plane + c * apart + at, h, mask=k)",
                "p = h * 0.0 + 1.0",
                "t = c * size",
            ],
            self.state_before,
            self.to_its_end,
            [
                "tl.store(after + c * apart + at, p, mask=k)",
                "tl.store(after + plane + c * apart + at, h, mask=k)",
            ],
            after=1,
        )

    def newton_steps(self) -> str:
        return self.printed(
            "newton_steps",
            "before, changes, start, final, out, out_row, out_step",
            [*self.begin, "t = c * size"],
            self.state_before,
            self.to_its_state,
            ["if tl.program_id(1) == tl.num_programs(1) - 1:", "    tl.store(final + at, h, mask=k)"],
            after=1,
        )
