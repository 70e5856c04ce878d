"""Makes digits as a synthetic voice says them: python examples/data/speech.py FOLDER [--train 2000 …]

Three to seven digits a recording, with pauses and noise, 8,000 samples a second. Nothing is recorded: a voice is a
source and a filter (Fant 1960, Klatt 1980).

    source   pulses of the vocal folds, whose pitch falls, glides and trembles; noise for what hisses, and a burst of
             it after the silence of a stop
    filter   H(f) = Π_k R_k(f), resonators R_k at the formants F1 … F4, which move from sound to sound
    speaker  the length of the vocal tract, which scales all formants, pitch, pace, vowels, breath

A recording becomes frames: each 10 ms a Hann window of 25 ms, the power of its Fourier transform in 24 bands that are
equally wide on the mel scale, and the logarithm. FOLDER gets train.npz, valid.npz and test.npz with `frames`,
`frames_lengths`, `target` (the sounds) and `digits`; no speaker of one is in another. --wav keeps some to be heard.
"""

from __future__ import annotations

import argparse
import wave
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

RATE = 8000
HOP = 40  # samples between two settings of the voice: 5 ms
WINDOW = 160
FFT = 512
BANDS = 24

DIGITS = {
    "0": "Z IH R OW",
    "1": "W AH N",
    "2": "T UW",
    "3": "TH R IY",
    "4": "F AO R",
    "5": "F AY V",
    "6": "S IH K S",
    "7": "S EH V AH N",
    "8": "EY T",
    "9": "N AY N",
}


class Sound(NamedTuple):
    """What a sound is made of: where its formants begin and end, and how loud folds and noise are."""

    milliseconds: float
    begin: tuple[float, float, float]  # F1, F2, F3 in Hz of a tract of 17 cm
    end: tuple[float, float, float]
    voice: float
    noise: float = 0.0
    hiss: tuple[float, float] = (2500.0, 2000.0)  # centre and width of the noise, Hz
    is_stop: bool = False  # silence, then a burst


def vowel(milliseconds: float, *begin: float, to: tuple[float, float, float] | None = None) -> Sound:
    start = (begin[0], begin[1], begin[2])
    return Sound(milliseconds, start, to or start, 1.0)


SOUNDS = {
    "IY": vowel(130, 280, 2250, 2900),
    "IH": vowel(85, 400, 1950, 2550),
    "EH": vowel(100, 550, 1800, 2500),
    "AH": vowel(100, 640, 1200, 2400),
    "AO": vowel(120, 570, 850, 2400),
    "UW": vowel(140, 310, 950, 2250),
    "EY": vowel(150, 480, 1900, 2600, to=(320, 2200, 2800)),
    "AY": vowel(180, 730, 1150, 2450, to=(360, 2050, 2650)),
    "OW": vowel(160, 540, 1000, 2400, to=(360, 800, 2300)),
    "W": Sound(70, (300, 650, 2200), (300, 700, 2200), 0.7),
    "R": Sound(80, (340, 1150, 1550), (350, 1200, 1600), 0.7),
    "N": Sound(80, (250, 1250, 2300), (250, 1250, 2300), 0.4),
    "V": Sound(60, (260, 1000, 2300), (260, 1000, 2300), 0.35, 0.04, (2200, 3000)),
    "Z": Sound(80, (260, 1600, 2500), (260, 1600, 2500), 0.3, 0.15, (3600, 900)),
    "S": Sound(110, (300, 1650, 2550), (300, 1650, 2550), 0.0, 0.3, (3650, 800)),
    "F": Sound(100, (300, 1000, 2300), (300, 1000, 2300), 0.0, 0.08, (2200, 3500)),
    "TH": Sound(90, (300, 1300, 2500), (300, 1300, 2500), 0.0, 0.06, (3000, 2600)),
    "T": Sound(90, (320, 1750, 2600), (320, 1750, 2600), 0.0, 0.35, (3300, 1300), True),
    "K": Sound(85, (320, 2000, 2500), (320, 2000, 2500), 0.0, 0.35, (2000, 800), True),
}


class Speaker(NamedTuple):
    """One voice."""

    scale: float  # of all formants: 1.2 is a short vocal tract
    pitch: float  # Hz
    pace: float
    breath: float
    tilt: float  # how much weaker high notes of the folds are
    accent: dict[str, Array]  # what each sound's formants are multiplied by


def speaker(seed: int) -> Speaker:
    chance = np.random.default_rng([seed, 1])
    scale = chance.uniform(0.88, 1.18)
    accent = {name: chance.normal(1.0, 0.03, 3) for name in SOUNDS}
    pitch = 150 * (scale / 1.03) ** 2.5 * chance.uniform(0.8, 1.25)
    return Speaker(
        scale, pitch, chance.uniform(0.8, 1.3), chance.uniform(0.005, 0.03), chance.uniform(0.8, 0.95), accent
    )


def spoken(digits: str, who: Speaker, chance: np.random.Generator) -> Array:
    """Samples of a voice that says digits; its loudest is 1."""
    tracks = np.concatenate([*_tracks(digits, who, chance)])  # a row for each 5 ms
    formants, voiced, noisy, hiss = tracks[:, :3], tracks[:, 3], tracks[:, 4], tracks[:, 5:]
    formants = _smoothed(formants, 11)
    voiced, noisy = _smoothed(voiced, 5), _smoothed(noisy, 3)
    count = len(tracks)
    pulses = _pulses(who, count, chance)
    breath = chance.normal(0, 1, count * HOP)
    source = np.repeat(voiced, HOP) * (pulses + who.breath * breath)
    hissing = np.repeat(noisy, HOP) * breath
    f: Array = np.fft.rfftfreq(FFT, 1 / RATE).astype(np.float64)
    tract = np.ones((count, len(f)), np.complex128)
    highest = np.full((count, 1), 3500 * who.scale)
    for k, width in enumerate((60.0, 90.0, 150.0, 250.0)):
        centre = np.concatenate([formants, highest], 1)[:, k]
        if k < 3 or 3500 * who.scale < RATE / 2:
            tract *= _resonator(f, centre, np.full(count, width))
    tract *= 1 / (1 - who.tilt * np.exp(-2j * np.pi * f / RATE))  # pulses of the folds are not clicks
    samples = _filtered(source, tract) + 25 * _filtered(hissing, _resonator(f, hiss[:, 0], hiss[:, 1], band=True))
    return samples / max(1e-9, np.abs(samples).max())


def _tracks(digits: str, who: Speaker, chance: np.random.Generator) -> list[Array]:
    """For each sound and pause a row for each 5 ms: F1 … F3, folds, noise, centre and width of the noise."""
    rest = [500.0, 1500.0, 2500.0, 0.0, 0.0, 2500.0, 2000.0]

    def silence(low: float, high: float) -> Array:
        return np.tile(rest, (round(chance.uniform(low, high) * 200), 1))

    found = [silence(0.05, 0.25)]
    for digit in digits:
        loud = chance.uniform(0.7, 1.0)
        for name in DIGITS[digit].split():
            sound = SOUNDS[name]
            steps = max(6, round(sound.milliseconds / 5 * chance.uniform(0.8, 1.25) / who.pace))
            along = np.linspace(0, 1, steps)[:, None]
            formants = np.array(sound.begin) * (1 - along) + np.array(sound.end) * along
            formants = formants * who.accent[name] * who.scale * chance.normal(1, 0.015, 3)
            voice, noise = np.full(steps, sound.voice * loud), np.full(steps, sound.noise * loud)
            if sound.is_stop:
                noise[: -max(3, steps // 3)] = 0
                noise[-max(2, steps // 5) :] *= 0.4  # a burst, then a breath
            noise_at = np.tile([min(3900.0, sound.hiss[0] * who.scale**0.5), sound.hiss[1]], (steps, 1))
            found.append(np.column_stack([formants, voice, noise, noise_at]))
        found.append(silence(0.0, 0.25))
    return [*found, silence(0.05, 0.2)]


def _pulses(who: Speaker, count: int, chance: np.random.Generator) -> Array:
    """Clicks of the vocal folds, (count * HOP,): the pitch falls over a recording, glides and trembles."""
    at = np.linspace(0, 1, count)
    glide = _smoothed(chance.normal(0, 0.5, count), 41)
    pitch = who.pitch * (1.1 - 0.25 * at + glide) * (1 + 0.015 * chance.normal(0, 1, count))
    phase = np.cumsum(np.repeat(pitch.clip(50, 400), HOP)) / RATE
    is_click = np.diff(np.floor(phase), prepend=0.0) > 0
    return np.where(is_click, chance.normal(1, 0.05, len(phase)) * np.sqrt(RATE / who.pitch), 0.0)


def _resonator(f: Array, centre: Array, width: Array, *, band: bool = False) -> NDArray[np.complex128]:
    """(steps, frequencies): what a resonance at each step does to each frequency; `band`: 1 at its top, not at 0 Hz."""
    r = np.exp(-np.pi * width / RATE)[:, None]
    angle = 2 * np.pi * centre[:, None] / RATE
    z = np.exp(-2j * np.pi * f / RATE)
    found = 1 / (1 - 2 * r * np.cos(angle) * z + r**2 * z**2)
    top = np.abs(found).max(1, keepdims=True) if band else np.abs(1 / (1 - 2 * r * np.cos(angle) + r**2))
    return found / top


def _filtered(source: Array, response: NDArray[np.complex128]) -> Array:
    """A signal through a filter that changes each 5 ms: windows that add up to one, each by its own filter."""
    count = len(response)
    padded = np.pad(source, (WINDOW // 2, WINDOW))
    window = 0.5 * (1 - np.cos(2 * np.pi * np.arange(WINDOW) / WINDOW)) / (WINDOW / HOP / 2)
    pieces = np.lib.stride_tricks.sliding_window_view(padded, WINDOW)[::HOP][:count] * window
    parts = np.fft.irfft(np.fft.rfft(pieces, FFT) * response, FFT)
    out = np.zeros(count * HOP + FFT)
    for shift in range(0, FFT, HOP):  # the same part of every window at once
        part = parts[:, shift : shift + HOP]
        length = part.shape[1]
        rows = out[shift : shift + count * HOP].reshape(count, HOP)
        rows[:, :length] += part
    return out[WINDOW // 2 : WINDOW // 2 + count * HOP]


def _smoothed(tracks: Array, width: int) -> Array:
    """The mean over so many steps around each."""
    padded = np.pad(tracks, [(width // 2, width // 2)] + [(0, 0)] * (tracks.ndim - 1), mode="edge")
    return np.lib.stride_tricks.sliding_window_view(padded, width, 0).mean(-1)


def with_noise(samples: Array, decibels: float, chance: np.random.Generator) -> Array:
    """A voice in a room: so many decibels above noise, whose high notes are weaker."""
    noise = np.fft.rfft(chance.normal(0, 1, len(samples)))
    noise *= (1 + np.fft.rfftfreq(len(samples), 1 / RATE) / 500) ** -chance.uniform(0, 1)
    wave_ = np.fft.irfft(noise, len(samples))
    loud = samples[np.abs(samples) > 0.02]
    level = np.sqrt(np.mean(loud**2) / np.mean(wave_**2)) * 10 ** (-decibels / 20)
    return samples + level * wave_


def log_mel(samples: Array, *, bands: int = BANDS) -> NDArray[np.float32]:
    """Frames (T, bands), each 10 ms: the logarithm of the power in bands equally wide on the mel scale."""
    length, hop = RATE * 25 // 1000, RATE // 100
    window = 0.5 * (1 - np.cos(2 * np.pi * np.arange(length) / length))
    pieces = np.lib.stride_tricks.sliding_window_view(samples, length)[::hop] * window
    power = np.abs(np.fft.rfft(pieces, 256)) ** 2
    return np.log(power @ mel_filters(bands).T + 1e-4).astype(np.float32)


def mel_filters(bands: int) -> Array:
    """(bands, 129): triangles from 60 to 4,000 Hz, each from the middle of the one before to that of the next."""
    lowest, highest = (2595 * np.log10(1 + hertz / 700) for hertz in (60, RATE / 2))
    mel = np.linspace(lowest, highest, bands + 2)
    edges = 700 * (10 ** (mel / 2595) - 1)
    f = np.fft.rfftfreq(256, 1 / RATE)
    low, middle, high = (edges[start : start + bands, None] for start in range(3))
    return np.minimum((f - low) / (middle - low), (high - f) / (high - middle)).clip(0)


class Recording(NamedTuple):
    """What was said, and how it sounded."""

    digits: str
    samples: Array


def recordings(count: int, *, seed: int, speakers: int, digits: tuple[int, int] = (3, 7)) -> list[Recording]:
    """So many recordings, the same for the same seed; speakers of one seed are not those of another."""
    voices = [speaker(1000 * seed + number) for number in range(speakers)]
    found = []
    for number in range(count):
        chance = np.random.default_rng([seed, 2, number])
        said = "".join(chance.choice(list(DIGITS), chance.integers(digits[0], digits[1] + 1)))
        samples = spoken(said, voices[number % speakers], chance)
        found.append(Recording(said, with_noise(samples, chance.uniform(0, 30), chance)))
    return found


def write(path: Path, made: list[Recording]) -> None:
    """An archive that recurra reads."""
    frames = [log_mel(each.samples) for each in made]
    np.savez(
        path,
        frames=np.concatenate(frames),
        frames_lengths=np.array([len(each) for each in frames]),
        target=np.array([" ".join(DIGITS[digit] for digit in each.digits) for each in made]),
        digits=np.array([" ".join(each.digits) for each in made]),
    )


def write_wav(path: Path, samples: Array) -> None:
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, RATE, 0, "NONE", ""))
        file.writeframes((samples / np.abs(samples).max() * 30000).astype("<i2").tobytes())


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("--train", type=int, default=2000, help="recordings (2000), of 60 speakers")
    arguments.add_argument("--valid", type=int, default=100, help="(100), of 10 others")
    arguments.add_argument("--test", type=int, default=200, help="(200), of 20 others")
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--wav", type=int, default=0, help="keep so many of each as sound, too")
    options = arguments.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    for number, (part, speakers) in enumerate({"train": 60, "valid": 10, "test": 20}.items()):
        made = recordings(getattr(options, part), seed=3 * options.seed + number, speakers=speakers)
        write(options.folder / f"{part}.npz", made)
        for place, each in enumerate(made[: options.wav]):
            write_wav(options.folder / f"{part}-{place}-{each.digits}.wav", each.samples)


if __name__ == "__main__":
    main()
