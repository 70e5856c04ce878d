// The page of `recurra serve`: one run, or two side by side. What is shown is in the address.

import { ask } from "./api.js";
import { element } from "./dom.js";
import { pane } from "./pane.js";
import { copied } from "./program.js";
import { address, fresh, isTold, read, sharesInput } from "./state.js";

/** Browsers slow down pages that write their address too often. */
const PAUSE = 250;

const place = document.getElementById("panes");
const notice = document.getElementById("notice");
const compare = document.getElementById("compare");
const copy = document.getElementById("copy");

let runs = [];
let states = [];
let panes = [];
let pause = null;
let written = null; // the address of what is shown

function runOf(state) {
  return runs.find((run) => run.name === state.run);
}

/** The address says what is shown: of a new step of the history at once, otherwise in a while. */
function remember(push) {
  written = address(states, runs);
  if (push && written !== location.search) history.pushState(null, "", written);
  else {
    clearTimeout(pause);
    pause = setTimeout(settleAddress, PAUSE);
  }
}

function settleAddress() {
  clearTimeout(pause);
  if (written !== null && written !== location.search) history.replaceState(null, "", written);
}

/** Part of the state of one pane is now another; an input goes to the other pane where that takes it too. */
function change(number, patch, { push = false } = {}) {
  if (push) settleAddress();
  const patched = ({ ...state }) => {
    for (const [name, value] of Object.entries(patch)) state[name] = typeof value === "function" ? value(state[name]) : value;
    return state;
  };
  states = states.map((state, other) => {
    if (other === number) return patched(state);
    const takes = "value" in patch && sharesInput(runOf(states[number]), runOf(state));
    return takes ? { ...state, value: patch.value, best: 1 } : state;
  });
  remember(push);
  show();
}

/** Panes for the states there are; one of the same run stays. */
function show() {
  const shown = states.length;
  while (panes.length > shown) close(panes.pop());
  states.forEach((state, number) => {
    if (panes[number]?.run.name === state.run && panes[number].alone === (shown === 1)) return;
    const old = panes[number];
    const hadFocus = old?.node.querySelector(".chooser") === document.activeElement && old !== undefined;
    panes[number] = opened(number, shown === 1);
    if (old) {
      old.stop();
      old.node.replaceWith(panes[number].node);
    } else place.append(panes[number].node);
    if (hadFocus) panes[number].node.querySelector(".chooser")?.focus();
  });
  place.classList.toggle("two", shown === 2);
  compare.hidden = shown === 2 || runs.length < 2;
  document.title = `${states.map((state) => state.run).join(" and ")} · recurra`;
  panes.forEach((each, number) => each.show(states[number]));
}

function close(old) {
  old.stop();
  old.node.remove();
}

function opened(number, alone) {
  const made = pane(runOf(states[number]), {
    runs,
    change: (patch, options) => change(number, patch, options),
    choose: (name) => choose(number, name),
    remove: alone ? null : () => remove(number),
  });
  return { ...made, alone };
}

/** Another run in a pane, asked the same where it takes the same. */
function choose(number, name) {
  const run = runs.find((each) => each.name === name);
  const old = states[number];
  const value = sharesInput(runOf(old), run) ? old.value : null;
  const tab = run.views.includes(old.tab) ? old.tab : fresh(run).tab;
  settleAddress();
  states = states.map((state, other) => (other === number ? { ...fresh(run), value, tab } : state));
  agree();
  remember(true);
  show();
}

/** Panes that can share an input do. */
function agree() {
  const [first, second] = states;
  if (second && sharesInput(runOf(first), runOf(second))) {
    const value = first.value ?? second.value;
    states = [{ ...first, value }, { ...second, value }];
  }
}

function remove(number) {
  settleAddress();
  states = states.filter((_, other) => other !== number);
  // The pane that stays is the first now, and is made anew as such.
  while (panes.length) close(panes.pop());
  remember(true);
  show();
  compare.focus();
}

function add() {
  const [first] = states;
  const here = runOf(first);
  const others = runs.filter((run) => run !== here);
  const kin = others.find((run) => run.task === here.task && sharesInput(run, here));
  const run = kin ?? others.find((each) => sharesInput(each, here)) ?? others[0];
  settleAddress();
  states = [first, { ...fresh(run), tab: run.views.includes(first.tab) ? first.tab : fresh(run).tab }];
  agree();
  remember(true);
  show();
  panes[1].node.querySelector(".chooser")?.focus();
}

function say(sentence) {
  notice.textContent = sentence;
  notice.hidden = sentence === "";
}

function follow() {
  clearTimeout(pause);
  const found = read(location.search, runs);
  states = found.panes;
  written = address(states, runs);
  say(found.absent.map((name) => `There is no run “${name}” here: another is shown in its place.`).join(" "));
  show();
}

function slash(event) {
  const inText = event.target.closest?.("input:not([type=checkbox]), textarea, select, [contenteditable]");
  if (event.key !== "/" || inText || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  panes[0]?.focus();
}

async function start() {
  try {
    const found = await ask("/api/runs");
    runs = found.runs;
    document.getElementById("version").textContent = found.version;
  } catch (problem) {
    say(problem.message);
    place.replaceChildren(element("p", { class: "hint" }, "Start `recurra serve RUN` and load this page again."));
    return;
  } finally {
    place.setAttribute("aria-busy", "false");
  }
  follow();
  remember(false);
  addEventListener("popstate", follow);
  addEventListener("keydown", slash);
  compare.addEventListener("click", add);
  copy.addEventListener("click", () => {
    panes.forEach((each) => each.settle());
    settleAddress();
    copied(copy, location.href, states.every((state) => isTold(state, runOf(state))) ? "Copied" : "Copied, without the long input");
  });
  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault();
    panes[0]?.focus();
  });
}

start();
