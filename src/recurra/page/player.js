// A player that walks over steps: by buttons, a slider and keys, and by itself.

import { element } from "./dom.js";

/**
 * Buttons and a slider over the steps from `first` to `last`. `onshow(step, isPlaying)` is told each step; `press`
 * takes the keys ← → Home End and the space bar.
 */
export function player({ first = 0, last, at, label, wait = 900, onshow }) {
  let [step, timer] = [at, null];
  const slider = element("input", { type: "range", min: first, max: last, step: 1, "aria-label": label });
  const play = element("button", { type: "button", class: "play" });
  const button = (sign, name, key) =>
    element("button", { type: "button", "aria-label": name, title: `${name} (${key})` }, sign);
  const [back, on] = [button("◂", "One step back", "←"), button("▸", "One step on", "→")];
  const count = element("span", { class: "count", "aria-hidden": "true" });
  const node = element("div", { class: "player", role: "group", "aria-label": label }, back, play, on, slider, count);

  function show(to) {
    step = Math.min(last, Math.max(first, to));
    slider.value = step;
    count.textContent = `${step} / ${last}`;
    back.disabled = step === first;
    on.disabled = step === last;
    onshow(step, timer !== null);
  }

  function name() {
    play.textContent = timer === null ? "▶ Play" : "❚❚ Pause";
  }

  function stop() {
    clearInterval(timer);
    timer = null;
    name();
  }

  function start() {
    timer = setInterval(next, wait);
    name();
    show(step === last ? first : step + 1);
  }

  /** The next step; a figure that is no longer on the page plays no more. */
  function next() {
    if (!node.isConnected) return stop();
    show(step + 1);
    return step === last && stop();
  }

  const toggle = () => (timer === null ? start() : stop());
  const go = (to) => {
    stop();
    show(to);
  };
  play.addEventListener("click", toggle);
  back.addEventListener("click", () => go(step - 1));
  on.addEventListener("click", () => go(step + 1));
  slider.addEventListener("input", () => go(Number(slider.value)));

  function press(event) {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const to = { ArrowLeft: step - 1, ArrowRight: step + 1, Home: first, End: last }[event.key];
    if (to === undefined && event.key !== " ") return;
    event.preventDefault();
    if (to === undefined) toggle();
    else go(to);
  }

  name();
  show(at);
  return { node, press, go, stop };
}
