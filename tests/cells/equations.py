"""SPEC's equations in numpy float64, one row and one step at a time: the oracle of the cells.

Written from the specification, not from the code: each function takes the weights by the letters of the equations
and returns every named value of a step. `see` is what U sees of h, `drop` what is left of a candidate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Values = dict[str, Array]
Change = Callable[[Array], Array]


def sigma(a: Array) -> Array:
    return 1 / (1 + np.exp(-a))


PHI: dict[str, Change] = {
    "tanh": np.tanh,
    "sigmoid": sigma,
    "relu": lambda a: np.maximum(a, 0),
    "identity": lambda a: a,
}


def blocks(p: Mapping[str, Array], letters: str) -> tuple[Values, Values, Values]:
    """W, U and b of each gate, the gates stacked in the order of the letters."""
    count = len(letters)
    W = np.split(p["from_input.weight"], count)
    U = np.split(p["from_state"], count) if "from_state" in p else [np.zeros(0)] * count
    b = np.split(p.get("from_input.bias", np.zeros(len(W[0]) * count)), count)
    return dict(zip(letters, W, strict=True)), dict(zip(letters, U, strict=True)), dict(zip(letters, b, strict=True))


def elman(p: Mapping[str, Array], o: Mapping[str, Any], x: Array, s: Values, see: Change, drop: Change) -> Values:
    W, U, b = blocks(p, "h")
    return {"h": PHI[o.get("activation", "tanh")](W["h"] @ x + U["h"] @ see(s["h"]) + b["h"])}


def lstm(p: Mapping[str, Array], o: Mapping[str, Any], x: Array, s: Values, see: Change, drop: Change) -> Values:
    W, U, b = blocks(p, "ifco")
    h = see(s["h"])
    f = sigma(W["f"] @ x + U["f"] @ h + b["f"])
    i = sigma(W["i"] @ x + U["i"] @ h + b["i"])
    out = sigma(W["o"] @ x + U["o"] @ h + b["o"])
    candidate = drop(PHI[o.get("candidate", "tanh")](W["c"] @ x + U["c"] @ h + b["c"]))
    c = f * s["c"] + i * candidate
    return {"f": f, "i": i, "o": out, "candidate": candidate, "c": c, "h": out * np.tanh(c)}


def peephole_lstm(
    p: Mapping[str, Array], o: Mapping[str, Any], x: Array, s: Values, see: Change, drop: Change
) -> Values:
    W, U, b = blocks(p, "ifco")
    H = len(s["h"])
    P = {gate: p.get(f"from_cell.{gate}", np.zeros(H)) for gate in "ifo"}
    P = {gate: weight if weight.ndim == 2 else np.diag(weight) for gate, weight in P.items()}
    h = see(s["h"])
    f = sigma(P["f"] @ s["c"] + W["f"] @ x + U["f"] @ h + b["f"])
    i = sigma(P["i"] @ s["c"] + W["i"] @ x + U["i"] @ h + b["i"])
    candidate = drop(PHI[o.get("candidate", "tanh")](W["c"] @ x + U["c"] @ h + b["c"]))
    c = f * s["c"] + i * candidate
    seen = s["c"] if o.get("output_sees") == "previous" else c
    out = sigma(P["o"] @ seen + W["o"] @ x + U["o"] @ h + b["o"])
    return {"f": f, "i": i, "o": out, "candidate": candidate, "c": c, "h": out * np.tanh(c)}


def coupled_lstm(
    p: Mapping[str, Array], o: Mapping[str, Any], x: Array, s: Values, see: Change, drop: Change
) -> Values:
    W, U, b = blocks(p, "fco")
    h = see(s["h"])
    f = sigma(W["f"] @ x + U["f"] @ h + b["f"])
    out = sigma(W["o"] @ x + U["o"] @ h + b["o"])
    candidate = drop(PHI[o.get("candidate", "tanh")](W["c"] @ x + U["c"] @ h + b["c"]))
    c = f * s["c"] + (1 - f) * candidate
    return {"f": f, "i": 1 - f, "o": out, "candidate": candidate, "c": c, "h": out * np.tanh(c)}


def gru(p: Mapping[str, Array], o: Mapping[str, Any], x: Array, s: Values, see: Change, drop: Change) -> Values:
    W, U, b = blocks(p, "rzh")
    h = s["h"]
    r = sigma(W["r"] @ x + U["r"] @ see(h) + b["r"])
    z = sigma(W["z"] @ x + U["z"] @ see(h) + b["z"])
    phi = PHI[o.get("candidate", "tanh")]
    if o.get("reset") == "after":
        b_after = p.get("after_bias", np.zeros(len(h)))
        candidate = drop(phi(W["h"] @ x + b["h"] + r * (U["h"] @ see(h) + b_after)))
    else:
        candidate = drop(phi(W["h"] @ x + U["h"] @ see(r * h) + b["h"]))
    if o.get("update") == "keep":
        new = z * h + (1 - z) * candidate
    else:
        new = (1 - z) * h + z * candidate
    return {"r": r, "z": z, "candidate": candidate, "h": new}


def gru_d(p: Mapping[str, Array], o: Mapping[str, Any], x: Array, s: Values, see: Change, drop: Change) -> Values:
    d = o.get("variables", 0)
    if d == 0:
        return gru(p, {}, x, s, see, drop)
    values, m, elapsed, u = x[:d], x[d : 2 * d], x[2 * d], x[2 * d + 1 :]
    since = s["waited"] + elapsed
    gamma_x = np.array([np.exp(-max(0.0, p["decay_x"][j] * since[j] + p["decay_x_bias"][j])) for j in range(d)])
    gamma_h = np.exp(-np.maximum(0, p["decay_h"] @ since + p["decay_h_bias"]))
    imputed = m * values + (1 - m) * (gamma_x * s["last"] + (1 - gamma_x) * p["mean"])
    W, U, b = blocks(p, "rzh")
    V = dict(zip("rzh", np.split(p["from_mask"], 3), strict=True))
    h, read = gamma_h * s["h"], np.concatenate([imputed, u])
    r = sigma(W["r"] @ read + V["r"] @ m + U["r"] @ see(h) + b["r"])
    z = sigma(W["z"] @ read + V["z"] @ m + U["z"] @ see(h) + b["z"])
    candidate = drop(np.tanh(W["h"] @ read + V["h"] @ m + U["h"] @ see(r * h) + b["h"]))
    return {
        "r": r, "z": z, "candidate": candidate, "h": (1 - z) * h + z * candidate,
        "decay_x": gamma_x, "decay_h": gamma_h, "imputed": imputed,
        "last": m * values + (1 - m) * s["last"], "waited": (1 - m) * since,
    }  # fmt: skip


def norm(a: Array, gain: Array, bias: Array | float = 0.0) -> Array:
    deviation = a - a.mean()
    return np.asarray(gain * deviation / np.sqrt((deviation**2).mean() + 1e-5) + bias)


def layer_norm_lstm(
    p: Mapping[str, Array], o: Mapping[str, Any], x: Array, s: Values, see: Change, drop: Change
) -> Values:
    H = len(s["h"])

    def normal(a: Array, gain: Array) -> Array:
        groups = zip(np.split(a, 4), np.split(gain, 4), strict=True)
        return np.concatenate([norm(*group) for group in groups]) if o.get("per_gate") else norm(a, gain)

    a = normal(p["from_input.weight"] @ x, p["input_gain"]) + normal(p["from_state"] @ see(s["h"]), p["state_gain"])
    a_i, a_f, a_c, a_o = np.split(a + p.get("bias", np.zeros(4 * H)), 4)
    f, i, out = sigma(a_f), sigma(a_i), sigma(a_o)
    candidate = drop(PHI[o.get("candidate", "tanh")](a_c))
    c = f * s["c"] + i * candidate
    h = out * np.tanh(norm(c, p["cell_gain"], p.get("cell_bias", np.zeros(H))))
    return {"f": f, "i": i, "o": out, "candidate": candidate, "c": c, "h": h}


def minimal_candidate(a: Array, o: Mapping[str, Any]) -> Array:
    return np.array([v + 0.5 if v >= 0 else sigma(v) for v in a]) if o.get("candidate") == "positive" else a


def min_gru(p: Mapping[str, Array], o: Mapping[str, Any], x: Array, s: Values, see: Change, drop: Change) -> Values:
    W, _, b = blocks(p, "zh")
    z = sigma(W["z"] @ x + b["z"])
    candidate = drop(minimal_candidate(W["h"] @ x + b["h"], o))
    return {"z": z, "candidate": candidate, "h": (1 - z) * s["h"] + z * candidate}


def min_lstm(p: Mapping[str, Array], o: Mapping[str, Any], x: Array, s: Values, see: Change, drop: Change) -> Values:
    W, _, b = blocks(p, "fih")
    f, i = sigma(W["f"] @ x + b["f"]), sigma(W["i"] @ x + b["i"])
    candidate = drop(minimal_candidate(W["h"] @ x + b["h"], o))
    return {"f": f, "i": i, "candidate": candidate, "h": (f * s["h"] + i * candidate) / (f + i)}


def ind_rnn(p: Mapping[str, Array], o: Mapping[str, Any], x: Array, s: Values, see: Change, drop: Change) -> Values:
    H = len(s["h"])
    u = p["from_state"]
    assert np.abs(u).max() <= 2 ** (1 / o.get("horizon", 1000))
    a = p["from_input.weight"] @ x + u * see(s["h"]) + p.get("from_input.bias", np.zeros(H))
    return {"h": PHI[o.get("activation", "relu")](a)}


def slstm(p: Mapping[str, Array], o: Mapping[str, Any], x: Array, s: Values, see: Change, drop: Change) -> Values:
    heads = o.get("heads", 1)
    size = len(s["h"]) // heads
    W, _, b = blocks({key: value for key, value in p.items() if key != "from_state"}, "ifzo")
    h = see(s["h"])

    def a(gate: str) -> Array:
        R = p["from_state"]["ifzo".index(gate)]
        recurrent = [R[head] @ h[head * size : (head + 1) * size] for head in range(heads)]
        return np.asarray(W[gate] @ x + np.concatenate(recurrent) + b[gate])

    z, out = drop(np.tanh(a("z"))), sigma(a("o"))
    log_f = a("f") if o.get("forget") == "exponential" else np.log(sigma(a("f")))
    m = np.maximum(log_f + s["m"], a("i"))
    i, f = np.exp(a("i") - m), np.exp(log_f + s["m"] - m)
    c, n = f * s["c"] + i * z, f * s["n"] + i
    return {"i": i, "f": f, "candidate": z, "o": out, "m": m, "c": c, "n": n, "h": out * c / n}


def exponential(skew: Array) -> Array:
    """exp of a skew-symmetric matrix by the eigenvalues of the Hermitian iA."""
    values, vectors = np.linalg.eigh(1j * skew)
    return np.asarray((vectors * np.exp(-1j * values)) @ vectors.conj().T).real


def rotation(p: Mapping[str, Array], side: str) -> Array:
    left, _, right = np.linalg.svd(p[f"{side}.base"])
    turn = p[f"{side}.turn"]
    if turn.ndim == 2:
        skew = turn - turn.T
    else:
        real, imaginary = turn[0] - turn[0].T, turn[1] + turn[1].T
        skew = np.block([[real, -imaginary], [imaginary, real]])
    return np.asarray(left @ right @ exponential(skew))


def orthogonal_elman(
    p: Mapping[str, Array], o: Mapping[str, Any], x: Array, s: Values, see: Change, drop: Change
) -> Values:
    H, margin = len(s["h"]), o.get("margin", 0)
    U = rotation(p, "left")
    if margin:
        stretch = 1 + margin * (2 * sigma(p["stretch"]) - 1)
        stretch = np.concatenate([stretch, stretch]) if o.get("unitary") else stretch
        U = U @ np.diag(stretch) @ rotation(p, "right").T
    a = p["from_input.weight"] @ x + U @ see(s["h"]) + p.get("from_input.bias", np.zeros(H))
    if o.get("activation", "modrelu") != "modrelu":
        return {"h": PHI[o["activation"]](a)}
    if not o.get("unitary"):
        return {"h": np.sign(a) * np.maximum(np.abs(a) + p.get("threshold", np.zeros(H)), 0)}
    pairs = a[: H // 2] + 1j * a[H // 2 :]
    pairs = pairs / np.abs(pairs) * np.maximum(np.abs(pairs) + p.get("threshold", np.zeros(H // 2)), 0)
    return {"h": np.concatenate([pairs.real, pairs.imag])}


def controlled(p: Mapping[str, Array], o: Mapping[str, Any], x: Array, s: Values, see: Change, drop: Change) -> Values:
    """A step of the controller of a cell with a memory, which also sees what was read before; its state by name."""
    spec = o.get("controller", "lstm")
    weights = {name.removeprefix("controller."): value for name, value in p.items() if name.startswith("controller.")}
    own = {name.removeprefix("controller_"): value for name, value in s.items() if name.startswith("controller_")}
    step = {"lstm": lstm, "elman": elman, "gru": gru}[spec]
    found = step(weights, {}, np.concatenate([x, s["reads"]]), own, see, drop)
    return {name: found[name] for name in own}


def softplus(a: Array) -> Array:
    return np.log1p(np.exp(a))


def softmax(a: Array) -> Array:
    return np.exp(a - a.max()) / np.exp(a - a.max()).sum()


def by_content(M: Array, k: Array, beta: Array) -> Array:
    cosines = [k @ row / (np.sqrt(k @ k) * np.sqrt(row @ row) + 1e-8) for row in M]
    return softmax(beta * np.array(cosines))


def ntm(p: Mapping[str, Array], o: Mapping[str, Any], x: Array, s: Values, see: Change, drop: Change) -> Values:
    N, W = o["rows"], o["width"]
    reads, writes, n = o.get("reads", 1), o.get("writes", 1), o.get("shifts", 1)
    heads = reads + writes
    c = controlled(p, o, x, s, see, drop)
    given = p["to_heads.weight"] @ c["h"] + p["to_heads.bias"]
    sizes = [heads * W, heads, heads, heads * (2 * n + 1), heads, writes * W, writes * W]
    k, beta, g, shift, gamma, e, a = np.split(given, np.cumsum(sizes)[:-1])
    beta, g, gamma, e = softplus(beta), sigma(g), 1 + softplus(gamma), sigma(e)
    M, before = s["memory"].reshape(N, W), s["weights"].reshape(heads, N)
    w, moves = np.zeros((heads, N)), []
    for head in range(heads):
        w_c = by_content(M, k[head * W : (head + 1) * W], beta[head])
        w_g = g[head] * w_c + (1 - g[head]) * before[head]
        move = softmax(shift[head * (2 * n + 1) : (head + 1) * (2 * n + 1)])
        moves.append(move)
        turned = np.zeros(N)
        for i in range(N):
            for j in range(-n, n + 1):
                turned[i] += w_g[(i - j) % N] * move[j + n]
        w[head] = turned ** gamma[head] / (turned ** gamma[head]).sum()
    new = M.copy()
    for head in range(writes):
        for i in range(N):
            new[i] = new[i] * (1 - w[reads + head, i] * e[head * W : (head + 1) * W])
    for head in range(writes):
        for i in range(N):
            new[i] = new[i] + w[reads + head, i] * a[head * W : (head + 1) * W]
    r = np.concatenate([w[head] @ new for head in range(reads)])
    return {
        **{f"controller_{name}": value for name, value in c.items()},
        "memory": new.ravel(), "reads": r, "weights": w.ravel(), "strength": beta, "gate": g, "key": k,
        "shift": np.concatenate(moves), "sharpness": gamma, "erase": e, "add": a,
        "h": c["h"] + p["from_reads.weight"] @ r + p["from_reads.bias"],
    }  # fmt: skip


def dnc(p: Mapping[str, Array], o: Mapping[str, Any], x: Array, s: Values, see: Change, drop: Change) -> Values:
    N, W, R = o["rows"], o["width"], o.get("reads", 1)
    c = controlled(p, o, x, s, see, drop)
    given = p["to_heads.weight"] @ c["h"] + p["to_heads.bias"]
    sizes = [R * W, R, R, 3 * R, W, 1, W, W, 1, 1]
    k_r, beta_r, f, modes, k_w, beta_w, e, v, g_a, g_w = np.split(given, np.cumsum(sizes)[:-1])
    beta_r, beta_w = 1 + softplus(beta_r), 1 + softplus(beta_w)
    f, e, g_a, g_w = sigma(f), sigma(e), sigma(g_a), sigma(g_w)
    M, L, w_r = s["memory"].reshape(N, W), s["link"].reshape(N, N), s["read_weights"].reshape(R, N)
    psi = np.ones(N)
    for head in range(R):
        psi = psi * (1 - f[head] * w_r[head])
    u = (s["usage"] + s["write_weights"] - s["usage"] * s["write_weights"]) * psi
    a, left = np.zeros(N), 1.0
    for row in np.argsort(u, kind="stable"):
        a[row] = (1 - u[row]) * left
        left *= u[row]
    w_w = g_w * (g_a * a + (1 - g_a) * by_content(M, k_w, beta_w[0]))
    link = np.zeros((N, N))
    for i in range(N):
        for j in range(N):
            if i != j:
                link[i, j] = (1 - w_w[i] - w_w[j]) * L[i, j] + w_w[i] * s["precedence"][j]
    precedence = (1 - w_w.sum()) * s["precedence"] + w_w
    new = M * (1 - np.outer(w_w, e)) + np.outer(w_w, v)
    reading, mixed = np.zeros((R, N)), []
    for head in range(R):
        pi = softmax(modes[3 * head : 3 * head + 3])
        mixed.append(pi)
        c_r = by_content(new, k_r[head * W : (head + 1) * W], beta_r[head])
        reading[head] = pi[0] * link.T @ w_r[head] + pi[1] * c_r + pi[2] * link @ w_r[head]
    r = np.concatenate([weights @ new for weights in reading])
    return {
        **{f"controller_{name}": value for name, value in c.items()},
        "memory": new.ravel(), "reads": r, "read_weights": reading.ravel(), "write_weights": w_w, "usage": u,
        "precedence": precedence, "link": link.ravel(), "allocation": a, "free": f, "allocation_gate": g_a,
        "write_gate": g_w, "modes": np.concatenate(mixed), "erase": e, "written": v,
        "h": c["h"] + p["from_reads.weight"] @ r + p["from_reads.bias"],
    }  # fmt: skip
