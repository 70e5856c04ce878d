"""Writing on: a language model reads a prompt, keeps its states, and draws what comes next."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

from recurra.errors import ConfigError, DataError
from recurra.generation.generated import MOST_ROWS, Generated, Manner
from recurra.generation.growing import Language, Page, overlap, unknown_tokens
from recurra.search.arrays import Array
from recurra.search.sampling import Filter, Sampler
from recurra.search.search import Chosen, Hypothesis, Step, check_count, collected, followed

SCORES = 1 << 22
"""So many probabilities, rows × vocabulary, are in memory together."""

NAMED = 5
"""Unknown tokens that an error names."""


class Voice(Protocol):
    """What a writer needs of a language model: one of torch, or an exported one."""

    on_device: bool
    """Whether whole texts are drawn by `drawn`, without waiting at each token for a device."""

    def after(self, read: Sequence[Sequence[int]]) -> tuple[Array, Any]:
        """The last token of each prompt, (B,), and the states after all before it."""

    def stepping(self) -> Step[Any, Any]:
        """tokens (B,), states, () -> log p of what comes next (B, V), and states."""

    def drawn(
        self,
        read: Sequence[Sequence[int]],
        *,
        length: int,
        ends: Sequence[int],
        keep: Filter,
        seed: int,
        numbers: Sequence[int],
    ) -> list[Hypothesis]:
        """What is drawn after each prompt, up to one of `ends`, with the random numbers of a row of that number."""


class Writer:
    """A language model that writes on, and how it is to do that; see `generate`."""

    between = "-" * 10 + "\n"  # stands between two texts

    def __init__(self, task: Language, voice: Voice, manner: Manner) -> None:
        until, allow_unknown = manner.until, manner.allow_unknown
        if until == "":
            raise ConfigError("until must be a text at which generation stops, but it is empty. Leave it out.")
        decoding = task.settings.decoding
        self.task, self.voice = task, voice
        self.is_backward = task.settings.model.direction == "backward"
        self.until = until
        self.allow_unknown = allow_unknown
        self.length = check_count(decoding.max_length if manner.length is None else manner.length, "length")
        self.seed = manner.seed
        self.on_device = voice.on_device
        unknown = task.vocabulary.unknown
        self.keep = Filter(
            banned=() if allow_unknown or unknown is None else (unknown,),
            temperature=decoding.temperature if manner.temperature is None else manner.temperature,
            top_k=decoding.top_k if manner.top_k is None else manner.top_k,
            top_p=decoding.top_p if manner.top_p is None else manner.top_p,
        ).checked()
        Sampler(self.keep, seed=manner.seed)  # says what is wrong with a seed

    def texts(self, prompts: Sequence[str], *, count: int = 1, first: int = 0) -> list[Generated]:
        """`count` texts for each prompt, one prompt after the other.

        Prompt p of P has the random numbers of row first + p for its first text, first + P + p for its second, ….
        """
        check_count(count, "count")
        read = [self.ids(prompt) for prompt in prompts]
        rows = range(len(prompts) * count)
        places = [row % len(prompts) for row in rows]
        found = self._drawn([prompts[place] for place in places], [read[place] for place in places], rows, first)
        return [found[draw * len(prompts) + place] for place in range(len(prompts)) for draw in range(count)]

    def several(self, asked: Sequence[tuple[str, int]]) -> list[list[Generated]]:
        """For each prompt as many texts as are asked for: those that `texts` writes after this prompt alone."""
        for _, count in asked:
            check_count(count, "count")
        read = [self.ids(prompt) for prompt, _ in asked]
        rows = [(place, draw) for place, (_, count) in enumerate(asked) for draw in range(count)]
        numbers = [draw for _, draw in rows]
        found = self._drawn([asked[place][0] for place, _ in rows], [read[place] for place, _ in rows], numbers)
        every = iter(found)
        return [[next(every) for _ in range(count)] for _, count in asked]

    def _drawn(
        self, prompts: Sequence[str], read: Sequence[list[int]], numbers: Sequence[int], first: int = 0
    ) -> list[Generated]:
        """A text for each row: a prompt, its tokens, and the number that its random numbers are made of."""
        at_once = max(1, min(MOST_ROWS, SCORES // len(self.task.vocabulary)))
        found: list[Generated] = []
        for start in range(0, len(prompts), at_once):
            part = slice(start, start + at_once)
            pages = [Page(self.task, prompt, self.is_backward) for prompt in prompts[part]]
            written = self._written(read[part], pages, [first + number for number in numbers[part]])
            for page, (drawn, log_probability, ended, *_) in zip(pages, written, strict=True):
                tokens, text = self.task.vocabulary.tokens_of(drawn), page.text()
                text = self._cut(text, drawn[-1]) if ended else text
                found.append(Generated(page.prompt, text, page.beside(text), tokens, log_probability, ended))
        return found

    def pieces(self, prompt: str) -> Iterator[str]:
        """The prompt and its first text, bit by bit as it is written."""
        if self.is_backward:  # what comes first is written last
            yield self.texts([prompt])[0].whole
            return
        waiting = ""  # what may be the beginning of `until`
        read, page = self.ids(prompt), Page(self.task, prompt, self.is_backward)
        yield page.beside("")
        for chosen in self._steps([read], [page], [0]):
            waiting += page.last
            if chosen.ended[0]:
                yield self._cut(waiting, chosen.tokens[0])
                return
            sure = len(waiting) - overlap(waiting, self.until or "")
            yield waiting[:sure]
            waiting = waiting[sure:]
        yield waiting

    def continued(
        self, lines: Iterable[tuple[int, str]], *, where: str, has_arrived: Callable[[], bool] = lambda: True
    ) -> Iterator[tuple[int, Generated]]:
        waiting, place = list[tuple[int, str]](), 0
        for number, line in lines:
            try:
                self.ids(line)
            except DataError as error:
                raise DataError(f"{where}:{number}: {error}") from error
            waiting.append((number, line))
            if len(waiting) >= MOST_ROWS or not has_arrived():
                yield from self._of_lines(waiting, place)
                waiting, place = [], place + len(waiting)
        yield from self._of_lines(waiting, place)

    def _of_lines(self, lines: Sequence[tuple[int, str]], first: int) -> Iterator[tuple[int, Generated]]:
        """The first text of each line; what is drawn depends on its place in the file, not on its neighbours."""
        found = self.texts([line for _, line in lines], first=first) if lines else []
        return zip((number for number, _ in lines), found, strict=True)

    def ids(self, prompt: str) -> list[int]:
        """The tokens that a prompt is read as; it begins like a line."""
        if not isinstance(prompt, str):
            raise DataError(f"a prompt must be a text, but found {prompt!r:.60}.")
        if not self.allow_unknown and (unknown := unknown_tokens(self.task, prompt)):
            named = ", ".join(map(repr, unknown[:NAMED])) + (
                f" and {len(unknown) - NAMED} more" * (len(unknown) > NAMED)
            )
            raise DataError(
                f"the prompt contains {named}, which is not in the model's vocabulary. Remove it, or allow it to be "
                f"read as <unk>: allow_unknown (--allow-unknown)."
            )
        found: list[int] = self.task.ids(prompt)[:-1].tolist()
        return [self.task.end, *(reversed(found) if self.is_backward else found)]

    def _written(self, read: Sequence[list[int]], pages: Sequence[Page], numbers: Sequence[int]) -> list[Hypothesis]:
        """What is drawn for each prompt; its page is filled with it."""
        if not self.on_device or self.until not in (None, "\n"):  # what else ends a text is seen in its letters
            return collected(len(pages), self._steps(read, pages, numbers))
        ends = [token for token in [self.task.end] if self._ends_line(token)]
        found = self.voice.drawn(read, length=self.length, ends=ends, keep=self.keep, seed=self.seed, numbers=numbers)
        for page, each in zip(pages, found, strict=True):
            for token in each.tokens:
                page.add(token)
        return found

    def _steps(self, read: Sequence[list[int]], pages: Sequence[Page], numbers: Sequence[int]) -> Iterator[Chosen]:
        tokens, states = self.voice.after(read)
        sampler = Sampler(self.keep, seed=self.seed, numbers=numbers)

        def is_end(row: int, token: int) -> bool:
            pages[row].add(token)
            return self._ends_line(token) or (self.until is not None and pages[row].holds(self.until))

        return followed(self.voice.stepping(), sampler, tokens, states, (), length=self.length, is_end=is_end)

    def _ends_line(self, token: int) -> bool:
        return token == self.task.end and (self.until == "\n" or self.task.settings.data.independent)

    def _cut(self, text: str, last: int) -> str:
        """A text that has ended, without what ended it."""
        ending = "\n" if self._ends_line(last) or self.until is None else self.until
        return text.rpartition(ending)[2] if self.is_backward else text.partition(ending)[0]
