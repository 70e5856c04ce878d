// Views of how an answer came about, each behind a tab; only the open one is asked for.

import { AWAY, latest, sentence } from "./api.js";
import { searchOf, sent } from "./controls.js";
import { element, redrawn, same } from "./dom.js";
import { drawView } from "./drawers.js";
import { tabs } from "./tabs.js";

/** The tabs of a run; `change` is told what a reader changed of the pane's state. */
export function views(run, ask, { change }) {
  const explain = latest(ask.explain);
  const titles = Object.fromEntries(run.views.map((name) => [name, run.view_titles[name]]));
  const { list, panel, show: select, rename } = tabs(titles, {
    label: "Views of the answer",
    onchoose: (tab) => change({ tab }, { push: true }),
  });
  const node = element("section", { class: "views", "aria-label": "How it came about" }, list, panel);
  let found = new Map(); // of the answer that is shown: what was explained, by question
  let explained = null; // what that answer was to
  let shown = null; // the question whose view is in the panel
  let settings = {}; // of that view

  function show(state, answered) {
    node.hidden = run.views.length === 0 || answered === null || answered.failed;
    if (node.hidden) return forget();
    select(state.tab);
    if (answered.answer === null) return undefined; // it comes soon, and asks again
    if (!same(explained, answered.question)) {
      found = new Map();
      explained = answered.question;
    }
    return explainTo(state);
  }

  function forget() {
    explain.stop();
    explained = shown = null;
    panel.replaceChildren();
  }

  async function explainTo(state) {
    const { tab } = state;
    const { layer, direction } = state.views[tab] ?? {};
    const best = state.best > 1 ? state.best : undefined;
    const raw = state.raw || undefined;
    const body = { input: state.value, decoding: sent(run, state.decoding), show: [tab], layer, direction, best, raw };
    const question = JSON.stringify(body);
    if (question === shown && same(settings, state.views[tab] ?? {})) return;
    settings = { ...state.views[tab] };
    shown = question;
    if (!found.has(question)) {
      expect(tab);
      const answered = await explain(body).catch((problem) => problem);
      if (answered === undefined || shown !== question) return;
      if (answered instanceof Error) {
        failed(tab, answered);
        return;
      }
      found.set(question, answered);
    }
    draw(state, found.get(question));
  }

  function failed(tab, problem) {
    if (problem.cause === AWAY) shown = null; // the next look at it asks again
    begin(tab);
    say(problem.message);
  }

  /** An old picture of the same view stays, paler, until the new one is there; one of another view goes. */
  function expect(tab) {
    panel.setAttribute("aria-busy", "true");
    if (panel.dataset.view === tab) return;
    panel.style.minHeight = `${panel.offsetHeight}px`;
    panel.replaceChildren();
  }

  function begin(tab) {
    panel.setAttribute("aria-busy", "false");
    panel.dataset.view = tab;
    panel.style.minHeight = "";
  }

  function draw(state, { views: numbers, missing }) {
    const { tab } = state;
    begin(tab);
    if (!(tab in numbers)) return say(unsearched(state) ?? missing[tab] ?? "There is nothing to see here.");
    if (numbers[tab].title) rename(tab, numbers[tab].title);
    return redrawn(panel, (place) =>
      drawView(place, numbers[tab], { state: { ...settings }, change: (patch) => store(tab, patch) }),
    );
  }

  /** Settings that a view says of itself; what is null is as if nothing were said. */
  function store(tab, patch) {
    const patched = (before) => {
      const every = Object.entries({ ...before, ...patch });
      return Object.fromEntries(every.filter(([, value]) => value !== null && value !== undefined));
    };
    // What a view says is on its screen already: it is drawn again only where it asks for other numbers.
    if (!("layer" in patch || "direction" in patch)) settings = patched(settings);
    change({ views: (views) => ({ ...views, [tab]: patched(views[tab]) }) });
  }

  /** Why there is no tree, in words of this page: the server's are those of the command line. */
  function unsearched({ tab, decoding }) {
    const search = searchOf(run, decoding);
    if (tab !== "tree" || search === "beam") return null;
    return `This search is ${search}: only a beam has steps to show. Choose beam above.`;
  }

  function say(why) {
    panel.replaceChildren(element("p", { class: "why-not" }, sentence(why)));
  }

  return { node, show, stop: () => explain.stop() };
}
