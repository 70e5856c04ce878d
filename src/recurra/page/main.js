// The page of `recurra serve`: one run, or two side by side. What is shown is in the address.

import { ask } from "./api.js";
import { element } from "./dom.js";
import { pane } from "./pane.js";
import { copied } from "./program.js";
import { fresh, isTold, recall, remember, runOf, settle, sharesInput } from "./state.js";

const place = document.getElementById("panes");
const notice = document.getElementById("notice");
const compare = document.getElementById("compare");
const copy = document.getElementById("copy");

let runs = [];
let states = []; // of the panes, as the address has them
let panes = [];

/** Other states of the panes, remembered and shown. */
function become(next, { push = false } = {}) {
  states = next;
  remember(states, runs, { push });
  show();
}

/** Part of the state of one pane is now another; an input goes to the other pane where that takes it too. */
function change(number, patch, options) {
  const patched = Object.fromEntries(
    Object.entries(patch).map(([name, value]) => [name, typeof value === "function" ? value(states[number][name]) : value]),
  );
  const shares = (state) => "value" in patch && sharesInput(runOf(runs, states[number]), runOf(runs, state));
  const next = states.map((state, other) => {
    if (other === number) return { ...state, ...patched };
    return shares(state) ? { ...state, value: patch.value, best: 1 } : state;
  });
  become(next, options);
}

/** Panes for the states there are; one of the same run stays. */
function show() {
  while (panes.length > states.length) close(panes.pop());
  states.forEach((state, number) => {
    if (panes[number]?.run.name !== state.run) open(number);
  });
  place.classList.toggle("two", states.length === 2);
  compare.hidden = states.length === 2;
  const [sibling = "another"] = runOf(runs, states[0]).siblings;
  compare.querySelector(".beyond").textContent = ` with ${sibling}`;
  document.title = `${states.map((state) => state.run).join(" and ")} · recurra`;
  panes.forEach((each, number) => each.show(states[number]));
}

function open(number) {
  const old = panes[number];
  const made = pane(runOf(runs, states[number]), {
    runs,
    change: (patch, options) => change(panes.indexOf(made), patch, options),
    choose: (name) => choose(panes.indexOf(made), name),
    remove: () => remove(panes.indexOf(made)),
  });
  panes[number] = made;
  if (old === undefined) return place.append(made.node);
  const wasChosen = old.node.contains(document.activeElement);
  old.node.before(made.node);
  close(old);
  return wasChosen && made.node.querySelector(".chooser")?.focus();
}

function close(old) {
  old.stop();
  old.node.remove();
}

/** What is typed is taken before the panes become others. */
function take() {
  for (const each of panes) each.take();
}

function retry() {
  for (const each of panes) each.retry();
}

/** A run beside or instead of a state, looked at in the same way. */
function like(run, { tab }) {
  const own = fresh(run);
  return run.views.includes(tab) ? { ...own, tab } : own;
}

/** Panes that can share an input do. */
function agreed(panes) {
  const [first, second] = panes;
  if (second === undefined || !sharesInput(runOf(runs, first), runOf(runs, second))) return panes;
  const value = first.value ?? second.value;
  return panes.map((pane) => ({ ...pane, value }));
}

/** Another run in a pane, asked the same where it takes the same. */
function choose(number, name) {
  take();
  const run = runs.find((each) => each.name === name);
  const old = states[number];
  const value = sharesInput(runOf(runs, old), run) ? old.value : null;
  become(agreed(states.map((state, other) => (other === number ? { ...like(run, old), value } : state))), { push: true });
}

function remove(number) {
  take();
  close(panes[number]);
  panes.splice(number, 1);
  become(states.filter((_, other) => other !== number), { push: true });
  compare.focus();
}

/** A second pane, of the run that is most like the first; a run that is alone is compared with itself. */
function add() {
  take();
  const [first] = states;
  become(agreed([first, like(otherThan(runOf(runs, first)), first)]), { push: true });
  panes[1].node.querySelector(".chooser")?.focus();
}

/** The run to compare one with: a sibling, which has its task, vocabulary and folder, else the one most like it. */
function otherThan(here) {
  const others = runs.filter((run) => run !== here);
  const sharing = others.filter((run) => sharesInput(run, here));
  const sibling = others.find((run) => here.siblings.includes(run.name));
  return sibling ?? sharing.find((each) => each.task === here.task) ?? sharing[0] ?? others[0] ?? here;
}

function say(sentence) {
  notice.textContent = sentence;
  notice.hidden = sentence === "";
}

/** What the address says. */
function follow() {
  const found = recall(runs);
  states = found.panes;
  say(found.absent.map((name) => `There is no run “${name}” here: another is shown in its place.`).join(" "));
  show();
}

async function copyLink() {
  take();
  settle();
  const isWhole = states.every((state) => isTold(state, runOf(runs, state)));
  await copied(copy, location.href, isWhole ? "Copied" : "Copied, without the long input");
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
  remember(states, runs);
  addEventListener("popstate", follow);
  addEventListener("keydown", slash);
  addEventListener("focus", retry); // whoever comes back may have started the server again
  compare.addEventListener("click", add);
  copy.addEventListener("click", copyLink);
  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault();
    panes[0]?.focus();
  });
}

start();
