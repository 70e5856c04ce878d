// Light or dark as the machine prefers, or as a reader chose here. It runs before anything is painted, so that a dark
// page never flashes white.
(() => {
  const preferred = matchMedia("(prefers-color-scheme: dark)");
  const root = document.documentElement;

  /** What the reader chose, where the browser lets pages remember anything. */
  function chosen() {
    try {
      return localStorage.getItem("recurra.theme");
    } catch {
      return null;
    }
  }

  function remember(theme) {
    try {
      // A choice that is the machine's own is none: the page then goes with the machine again.
      if (theme === (preferred.matches ? "dark" : "light")) localStorage.removeItem("recurra.theme");
      else localStorage.setItem("recurra.theme", theme);
    } catch {
      // The choice lasts as long as the page.
    }
  }

  function apply(theme) {
    root.dataset.theme = theme;
    const button = document.getElementById("theme");
    if (!button) return;
    button.setAttribute("aria-pressed", String(theme === "dark"));
  }

  const now = () => chosen() ?? (preferred.matches ? "dark" : "light");
  apply(now());
  preferred.addEventListener("change", () => apply(now()));
  document.addEventListener("DOMContentLoaded", () => {
    apply(now());
    document.getElementById("theme").addEventListener("click", () => {
      const theme = root.dataset.theme === "dark" ? "light" : "dark";
      remember(theme);
      apply(theme);
    });
  });
})();
