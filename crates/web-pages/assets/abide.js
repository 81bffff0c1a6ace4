// Small comforts. Every page works without them.
(() => {
  "use strict";
  document.documentElement.classList.add("js");

  // Copy buttons.
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    const source = document.getElementById(button.dataset.copy);
    const text = source ? source.value ?? source.textContent : "";
    navigator.clipboard?.writeText(text.trim()).then(() => {
      const before = button.getAttribute("aria-label");
      button.setAttribute("aria-label", "Copied");
      button.title = "Copied";
      setTimeout(() => {
        button.setAttribute("aria-label", before);
        button.title = before;
      }, 2000);
    });
  });

  // Forms that a nostr key signs, in the extension that keeps it (NIP-07).
  for (const form of document.querySelectorAll("form[data-nostr]")) {
    const hint = form.querySelector("[data-nostr-hint]");
    form.hidden = false;
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      if (!window.nostr) {
        hint.textContent = "No nostr extension (NIP-07) found in this browser. Install one, add your key, and reload.";
        return;
      }
      const tags = [["u", form.dataset.nostr], ["method", "POST"], ["challenge", form.elements.challenge.value]];
      const draft = { kind: 27235, created_at: Math.floor(Date.now() / 1000), tags, content: "" };
      try {
        form.elements.event.value = JSON.stringify(await window.nostr.signEvent(draft));
      } catch {
        hint.textContent = "The extension did not sign the request. Nothing was sent.";
        return;
      }
      form.submit();
    });
  }

  // Open menus close when one clicks elsewhere or presses Escape.
  document.addEventListener("click", (event) => {
    for (const menu of document.querySelectorAll("details.menu[open]")) {
      if (!menu.contains(event.target)) menu.open = false;
    }
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    for (const menu of document.querySelectorAll("details.menu[open]")) {
      menu.open = false;
      menu.querySelector("summary")?.focus();
    }
  });

  // Line links: shift-click marks a range, and #L3-L9 shows one.
  const table = document.querySelector("table.code[data-lines]");
  const marked = () => /^#L(\d+)(?:-L(\d+))?$/.exec(location.hash);
  const light = () => {
    if (!table) return;
    for (const row of table.querySelectorAll("tr.lit")) row.classList.remove("lit");
    const found = marked();
    if (!found) return;
    const [from, to] = [Number(found[1]), Number(found[2] ?? found[1])].sort((a, b) => a - b);
    for (let line = from; line <= Math.min(to, from + 10000); line += 1) {
      document.getElementById(`L${line}`)?.classList.add("lit");
    }
    if (found[2]) document.getElementById(`L${from}`)?.scrollIntoView({ block: "center" });
  };
  table?.addEventListener("click", (event) => {
    const link = event.target.closest("td.n a");
    const found = marked();
    if (!link || !event.shiftKey || !found) return;
    event.preventDefault();
    const [a, b] = [Number(found[1]), Number(link.hash.slice(2))].sort((x, y) => x - y);
    history.replaceState(null, "", `#L${a}-L${b}`);
    light();
  });
  addEventListener("hashchange", light);
  light();
})();
