// The console's script: live updates, search as you type, keys. Every page reads without it.
(() => {
  "use strict";
  const body = document.body;
  const topics = (body.dataset.topics || "").split(" ").filter(Boolean);
  const banner = document.getElementById("connection");
  const page = document.getElementById("page");
  const pause = () => document.getElementById("pause");
  let paused = false, pending = false, loading = null, daemon = null, lost = false, again = false;

  const say = (text, good) => {
    banner.textContent = text;
    banner.classList.toggle("good", Boolean(good));
    banner.hidden = !text;
  };

  // Whether a person is entering something that a new page would take away.
  const isEditing = () => {
    const active = document.activeElement;
    if (active && page.contains(active) && active.matches("input:not([type=search]), textarea, select")) return true;
    return [...page.querySelectorAll("form[method=post] input:not([type=hidden]), form[method=post] textarea")]
      .some((field) => field.value !== field.defaultValue);
  };

  // Reads the page again and replaces what changed. Open folds, focus and the scroll position stay.
  const refresh = async (url = location.href, replaceSearch = false) => {
    if (loading && !replaceSearch) { again = true; return; }
    if (!replaceSearch && (paused || document.hidden || isEditing())) { pending = true; return; }
    pending = false;
    if (loading) loading.abort();
    const own = loading = new AbortController();
    try {
      const response = await fetch(url, { headers: { accept: "text/html", "x-tenon-live": "1" }, signal: own.signal });
      if (response.status === 401) return say("You are signed out. Run `tenon console` for a new link.");
      if (!response.ok) return;
      const next = new DOMParser().parseFromString(await response.text(), "text/html");
      const fresh = next.getElementById("page");
      if (!fresh) return;
      if (replaceSearch) return swap(page.querySelector("#results"), fresh.querySelector("#results"));
      merge(page, fresh);
      document.title = next.title;
      merge(document.querySelector(".page-head"), next.querySelector(".page-head"));
      merge(document.querySelector(".sidebar"), next.querySelector(".sidebar"));
      reveal();
    } catch (error) {
      if (error.name !== "AbortError") pending = true;
    } finally {
      if (loading === own) loading = null;
      if (again) { again = false; refresh(); }
    }
  };

  const swap = (old, fresh) => { if (old && fresh && !old.isEqualNode(fresh)) old.replaceWith(document.adoptNode(fresh)); };

  // Walks two trees side by side and changes only what differs.
  const merge = (old, fresh) => {
    if (!old || !fresh || old.isEqualNode(fresh)) return;
    const olds = [...old.childNodes], news = [...fresh.childNodes];
    news.forEach((next, at) => {
      const own = olds[at];
      if (!own) return old.append(document.importNode(next, true));
      if (own.nodeType === Node.ELEMENT_NODE && own.nodeName === next.nodeName && own.nodeName !== "svg") {
        for (const { name } of [...own.attributes]) if (!next.hasAttribute(name) && name !== "open" && name !== "hidden") own.removeAttribute(name);
        for (const { name, value } of [...next.attributes]) if (own.getAttribute(name) !== value && name !== "open") own.setAttribute(name, value);
        if (own.matches("input, select, textarea") && own === document.activeElement) return;
        return merge(own, next);
      }
      if (!own.isEqualNode(next)) own.replaceWith(document.importNode(next, true));
    });
    olds.slice(news.length).forEach((own) => own.remove());
  };

  const follow = () => {
    const events = new EventSource("/console/-/events");
    events.addEventListener("hello", (event) => {
      if (lost && daemon !== event.data) { say("The daemon restarted. This page is connected again.", true); setTimeout(() => say(""), 8000); refresh(); }
      else { say(""); refresh(); } // Something may have changed before this page followed.
      daemon = event.data;
      lost = false;
    });
    events.addEventListener("change", (event) => {
      if (event.data.split(" ").some((topic) => topics.includes(topic))) refresh();
    });
    events.onerror = async () => {
      events.close();
      lost = true;
      say("The connection to the daemon is lost. Trying again…");
      try {
        const answer = await fetch("/console/-/icon.svg");
        if (answer.status === 401) return say("The daemon restarted and you are signed out. Run `tenon console` for a new link.");
      } catch { /* not there yet */ }
      setTimeout(follow, 700);
    };
    addEventListener("pagehide", () => events.close(), { once: true });
  };

  // Shows what needs this script.
  const reveal = () => {
    document.querySelectorAll("#pause, .copy, #keys-button").forEach((element) => { element.hidden = false; });
    const button = pause();
    if (button) { button.textContent = paused ? "Continue" : "Pause"; button.setAttribute("aria-pressed", String(paused)); }
  };

  const toggle = () => { paused = !paused; reveal(); if (!paused) refresh(); };

  document.addEventListener("click", async (event) => {
    const target = event.target.closest("button");
    if (!target) return;
    if (target.id === "pause") toggle();
    if (target.id === "keys-button") document.getElementById("keys").showModal();
    if (target.dataset.copy) {
      await navigator.clipboard.writeText(target.dataset.copy);
      target.firstChild.textContent = "Copied";
    }
  });
  document.addEventListener("submit", async (event) => {
    const form = event.target, asked = event.submitter && event.submitter.dataset.confirm;
    if (asked && !confirm(asked)) return event.preventDefault();
    // The daemon cannot serve the next page, so this one stays.
    if (form.dataset.stay) {
      event.preventDefault();
      const body = new URLSearchParams(new FormData(form));
      await fetch(form.action, { method: "POST", body }).catch(() => {});
      say(form.dataset.stay);
    }
  });

  let timer = 0;
  document.addEventListener("input", (event) => {
    const field = event.target;
    if (!field.matches("[data-as-you-type]")) return;
    clearTimeout(timer);
    timer = setTimeout(() => {
      const url = new URL(field.form.action);
      for (const [name, value] of new FormData(field.form)) if (value) url.searchParams.set(name, value);
      history.replaceState(null, "", url);
      refresh(url.href, true);
    }, 120);
  });
  document.addEventListener("focusout", () => { if (pending) setTimeout(() => pending && refresh(), 200); });
  document.addEventListener("visibilitychange", () => { if (!document.hidden && pending) refresh(); });

  const GO = { o: "/console/", p: "/console/problems", c: "/console/code", t: "/console/tasks", m: "/console/memory", x: "/console/context", a: "/console/activity", w: "/console/workspace", n: "/console/connect" };
  let goes = false;
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select, dialog")) return;
    const key = event.key;
    if (goes) { goes = false; if (GO[key]) location.href = GO[key]; return; }
    if (key === "g") { goes = true; setTimeout(() => { goes = false; }, 1200); }
    else if (key === "/") { const field = document.querySelector("[data-search]"); if (field) { event.preventDefault(); field.focus(); if (field.select) field.select(); } }
    else if (key === ".") toggle();
    else if (key === "?") document.getElementById("keys").showModal();
  });

  reveal();
  // A narrow window has the pages in one line, which scrolls.
  document.querySelector(".sidebar [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
  if (topics.length) follow();
})();
