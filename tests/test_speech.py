"""The synthetic voice of the examples: its pitch and formants are where they should be, and so are its frames."""

from __future__ import annotations

import importlib.util
import wave
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from recurra.config import Seq2SeqData
from recurra.reading.pairs import pairs, with_columns

FILE = Path(__file__).parent.parent / "examples" / "data" / "speech.py"


def loaded() -> ModuleType:
    found = importlib.util.spec_from_file_location("speech", FILE)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


speech: Any = loaded()


def plain(scale: float = 1.0, pitch: float = 100.0) -> Any:
    """A voice without an accent or breath."""
    return speech.Speaker(scale, pitch, 0.4, 0.0, 0.9, {name: np.ones(3) for name in speech.SOUNDS})


def middle(digit: str, who: Any) -> Any:
    """A piece out of the middle of a long digit, which begins and ends with silence."""
    samples = speech.spoken(digit, who, np.random.default_rng(3))
    is_loud = np.flatnonzero(np.abs(samples) > 0.1)
    return samples[is_loud[0] : is_loud[-1]]


def power(samples: Any) -> Any:
    return np.abs(np.fft.rfft(samples * np.hanning(len(samples)), 8192)) ** 2


@pytest.mark.parametrize("pitch", [80.0, 120.0, 200.0])
def test_a_voice_has_its_pitch(pitch: float) -> None:
    found = middle("8", plain(pitch=pitch))
    again = np.correlate(found, found, "full")[len(found) - 1 :]
    lags = np.arange(speech.RATE // 320, speech.RATE // 60)
    assert speech.RATE / lags[again[lags].argmax()] == pytest.approx(pitch, rel=0.2)  # it falls, glides and trembles


@pytest.mark.parametrize("scale", [0.9, 1.0, 1.15])
def test_a_vowel_is_loudest_at_its_formants(scale: float) -> None:
    # UW, of two: F1 at 310 and F2 at 950 Hz for a tract of the usual length, with little between and above them.
    samples = middle("2", plain(scale, 90.0))[-1600:-400]
    hertz = np.fft.rfftfreq(8192, 1 / speech.RATE)
    spectrum = power(samples)

    def around(f: float) -> float:
        return float(spectrum[np.abs(hertz - f) < 100].mean())

    first, second = 310 * scale, 950 * scale
    assert around(first) > around((first + second) / 2) * 2
    assert around(second) > around((first + second) / 2)
    assert around(second) > 5 * around(second + 600)


def test_what_hisses_has_no_pitch_and_high_notes() -> None:
    hertz = np.fft.rfftfreq(8192, 1 / speech.RATE)
    samples = speech.spoken("6", plain(), np.random.default_rng(3))
    began = np.flatnonzero(np.abs(samples) > 0.02)[0]
    spectrum = power(samples[began + 200 : began + 1000])
    assert spectrum[hertz > 3000].sum() > 5 * spectrum[hertz < 2000].sum()


def test_noise_is_as_loud_as_it_is_said_to_be() -> None:
    tone = np.sin(2 * np.pi * 440 * np.arange(16000) / speech.RATE)
    for decibels in (5.0, 20.0):
        noise = speech.with_noise(tone, decibels, np.random.default_rng(1)) - tone
        assert 10 * np.log10(np.mean(tone**2) / np.mean(noise**2)) == pytest.approx(decibels, abs=0.2)


@pytest.mark.parametrize("hertz", [200, 700, 1500, 3000])
def test_a_tone_is_in_the_band_of_its_frequency(hertz: int) -> None:
    frames = speech.log_mel(np.sin(2 * np.pi * hertz * np.arange(8000) / speech.RATE))
    assert frames.shape == (98, speech.BANDS)
    lowest, highest = (2595 * np.log10(1 + f / 700) for f in (60, 4000))
    mel = np.linspace(lowest, highest, speech.BANDS + 2)[1:-1]
    nearest = np.abs(mel - 2595 * np.log10(1 + hertz / 700)).argmin()
    assert abs(int(frames[50].argmax()) - nearest) <= 1


def test_every_note_between_the_lowest_and_highest_middle_counts_once() -> None:
    np.testing.assert_allclose(speech.mel_filters(24).sum(0)[5:118], 1.0, atol=1e-9)


def test_a_filter_that_stays_is_a_convolution() -> None:
    chance = np.random.default_rng(0)
    source = chance.normal(size=40 * speech.HOP)
    f = np.fft.rfftfreq(speech.FFT, 1 / speech.RATE)
    response = speech._resonator(f, np.full(40, 900.0), np.full(40, 300.0))
    r, angle = np.exp(-np.pi * 300 / speech.RATE), 2 * np.pi * 900 / speech.RATE
    expected = np.zeros(len(source) + 2)  # y_t = a x_t + 2 r cos θ y_{t-1} − r² y_{t-2}
    for t, x in enumerate(source):
        gain = 1 - 2 * r * np.cos(angle) + r**2
        expected[t] = gain * x + 2 * r * np.cos(angle) * expected[t - 1] - r**2 * expected[t - 2]
    # Before the second window begins there is only half of one.
    np.testing.assert_allclose(speech._filtered(source, response)[160:-160], expected[:-2][160:-160], atol=1e-6)


def test_the_same_seed_says_the_same_and_another_has_other_speakers() -> None:
    one, again, other = (speech.recordings(3, seed=seed, speakers=2) for seed in (1, 1, 2))
    assert [each.digits for each in one] == [each.digits for each in again]
    assert all(np.array_equal(a.samples, b.samples) for a, b in zip(one, again, strict=True))
    assert all(3 <= len(each.digits) <= 7 for each in (*one, *other))
    scales = [{speech.speaker(1000 * seed + n).scale for n in range(60)} for seed in range(6)]
    assert len(set.union(*scales)) == 360


def test_what_is_written_is_what_recurra_reads(tmp_path: Path) -> None:
    made = speech.recordings(3, seed=1, speakers=2)
    speech.write(tmp_path / "a.npz", made)
    file = str(tmp_path / "a.npz")
    found = list(pairs([file], with_columns(Seq2SeqData(train=file))))
    assert [pair.target for pair in found] == [" ".join(speech.DIGITS[d] for d in each.digits) for each in made]
    for pair, each in zip(found, made, strict=True):
        assert pair.frames is not None
        np.testing.assert_array_equal(pair.frames, speech.log_mel(each.samples))
    speech.write_wav(tmp_path / "a.wav", made[0].samples)
    with wave.open(str(tmp_path / "a.wav")) as file:
        assert file.getnframes() == len(made[0].samples)
