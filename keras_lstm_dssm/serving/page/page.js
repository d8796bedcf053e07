// The search page. Texts of the server are only ever set as textContent.

const RESULTS = 10;
const DEBOUNCE_MS = 120;
const FIRST_RETRY_MS = 500;
const LAST_RETRY_MS = 5000;
const SETTLED_MS = 1000;
const query = document.getElementById("query");
const status = document.getElementById("status");
const main = document.getElementById("columns");
const about = document.getElementById("about");
const card = document.getElementById("card");
const greeting = document.getElementById("greeting");
const examples = document.getElementById("examples");
const tagChoices = document.getElementById("tags");

let writesClicks = false;
let active = -1;
let retryMs = FIRST_RETRY_MS;
let retryTimer = 0;
let searchTimer = 0;
let settledTimer = 0;
let settled = true;
let started = false;
let models = [];

function element(name, className, text) {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

class ServerError extends Error {}

async function ask(path, options) {
  const reply = await fetch(path, options);
  const body = await reply.json().catch(() => ({}));
  if (!reply.ok) {
    const error = new ServerError(body.error || `status ${reply.status}`);
    error.temporary = reply.status === 429 || reply.status >= 500;
    throw error;
  }
  return body;
}

function post(path, value, signal) {
  return ask(path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(value),
    signal,
  });
}

class Column {
  constructor(select, optional) {
    this.select = select;
    this.optional = optional;
    this.number = 0;
    this.reply = null;
    this.section = element("section", "column");
    this.heading = element("h2");
    this.words = element("ul", "words");
    this.results = element("ol", "results");
    this.results.setAttribute("role", "listbox");
    this.results.setAttribute("aria-label", "Results");
    this.section.hidden = true;
    this.section.append(this.heading, this.words, this.results);
    select.addEventListener("change", () => {
      offerTags();
      searchNow();
    });
  }

  // What is chosen, "NAME" for the newest version or "NAME:VERSION".
  get model() {
    return this.select.value.replace(/:$/, "");
  }

  set model(name) {
    const value = !name || name.includes(":") ? name : `${name}:`;
    const options = [...this.select.options];
    if (options.some((option) => option.value === value)) {
      this.select.value = value;
    }
  }

  // Fills the list of models; keeps what was chosen if it still exists.
  offer(models) {
    const chosen = this.model;
    const options = this.optional ? [new Option("nothing", "")] : [];
    for (const model of models) {
      options.push(new Option(`${model.name}, newest`, `${model.name}:`));
      for (const version of model.versions) {
        options.push(
          new Option(`${model.name} ${version}`, `${model.name}:${version}`)
        );
      }
    }
    this.select.replaceChildren(...options);
    this.model = chosen;
  }

  // Replies to earlier queries are dropped, whenever they arrive.
  async search(text) {
    this.number += 1;
    const number = this.number;
    this.cancel?.abort();
    this.cancel = new AbortController();
    const [model, version] = this.select.value.split(":");
    if (!model || !text.trim()) {
      this.reply = null;
      return;
    }
    const request = { model, text, k: RESULTS };
    if (version) request.version = Number(version);
    const tags = chosenTags();
    if (tags.length && hasTags(model)) request.tags = tags;
    try {
      const reply = await post("/page/search", request, this.cancel.signal);
      if (number === this.number) this.reply = reply;
    } catch (error) {
      if (number === this.number) throw error;
    }
  }

  show(other) {
    const reply = this.reply;
    this.section.hidden = !reply;
    this.heading.hidden = !other;
    this.words.replaceChildren();
    this.results.replaceChildren();
    this.heading.textContent = reply
      ? `${reply.model} version ${reply.version}`
      : "";
    if (!reply) return;
    this.words.append(...reply.words.map((word) => wordLine(word, reply)));
    const scores = reply.hits.map((hit) => hit.score);
    const low = Math.min(0, ...scores);
    const high = Math.max(1, ...scores);
    const ranks = new Map(other?.hits.map((hit, rank) => [hit.id, rank]));
    reply.hits.forEach((hit, rank) => {
      const share = (hit.score - low) / (high - low);
      this.results.append(resultLine(hit, rank, share, other && ranks));
    });
  }
}

// Tags by name, of a model that can be restricted to them.
function tagsOf(name) {
  return models.find((model) => model.name === name)?.tags || {};
}

function hasTags(name) {
  return Object.keys(tagsOf(name)).length > 0;
}

function chosenTags() {
  const selects = [...tagChoices.querySelectorAll("select")];
  return selects.map((select) => select.value).filter(Boolean);
}

// Offers a choice for each name of tags; what is chosen stays if it exists.
function offerTags(chosen = chosenTags()) {
  const facets = Object.entries(tagsOf(left.model.split(":")[0]));
  tagChoices.replaceChildren(
    ...facets.map(([name, tags]) => {
      const label = element("label", "", `${name} `);
      const select = element("select");
      select.append(
        new Option("any", ""),
        ...tags.map((tag) => new Option(tag.slice(name.length + 1), tag))
      );
      select.value = tags.find((tag) => chosen.includes(tag)) || "";
      select.addEventListener("change", () => searchNow());
      label.append(select);
      return label;
    })
  );
}

// A word that no title has shows the letter trigrams that lead to others.
function wordLine(word, reply) {
  const line = element("li");
  line.append(element("b", "", word.word));
  line.append(reply.similarity === "encoder" ? " is near" : " matches");
  for (const near of word.nearest) {
    const chip = element("span", "near", near.word);
    const shared = near.shared.join(" ");
    const shown = word.exact || !shared ? "" : ` ${shared}`;
    chip.append(
      element("small", "", ` ${near.similarity.toFixed(2)}${shown}`)
    );
    if (shared) chip.title = `shared letter trigrams: ${shared}`;
    line.append(chip);
  }
  return line;
}

let lines = 0;

function resultLine(hit, rank, share, otherRanks) {
  const line = element("li");
  lines += 1;
  line.id = `result${lines}`;
  line.setAttribute("role", "option");
  const title = element("span", "title");
  for (const part of hit.title) {
    if (part.strength) {
      const level = part.strength < 0.45 ? 1 : part.strength < 0.65 ? 2 : 3;
      title.append(element("mark", `near${level}`, part.text));
    } else {
      title.append(part.text);
    }
  }
  const text = title.textContent;
  if (text !== hit.id) title.append(element("span", "id", hit.id));
  if (otherRanks) title.append(element("span", "note", moved(hit, rank)));
  if (hit.why) title.append(element("span", "why", hit.why));
  const score = element("span", "score", hit.score.toFixed(3));
  const bar = element("span", "bar");
  const filled = element("span");
  filled.style.width = `${Math.round(100 * share)}%`;
  bar.append(filled);
  score.append(bar);
  line.append(element("span", "rank", String(rank + 1)), title, score);
  line.addEventListener("click", () => follow(line, hit, text));
  line.follow = () => follow(line, hit, text);
  return line;

  function moved(hit, rank) {
    if (!otherRanks.has(hit.id)) return "only here";
    const steps = otherRanks.get(hit.id) - rank;
    if (!steps) return "";
    return steps > 0 ? `▲${steps}` : `▼${-steps}`;
  }
}

async function follow(line, hit, text) {
  settled = true;
  line.setAttribute("aria-selected", "true");
  if (!writesClicks) {
    say(`Chosen: ${text}`);
    return;
  }
  try {
    const reply = await post("/page/click", { click: hit.click });
    say(reply.written ? `Saved as a click: ${text}` : `Saved before: ${text}`);
  } catch (error) {
    say(`The click was not saved: ${error.message}`, true);
  }
}

function say(text, bad = false) {
  status.textContent = text;
  status.classList.toggle("bad", bad);
}

const left = new Column(document.getElementById("left"), false);
const right = new Column(document.getElementById("right"), true);
const columns = [left, right];
main.append(left.section, right.section);

function clearTimers() {
  clearTimeout(searchTimer);
  clearTimeout(retryTimer);
}

function searchSoon() {
  clearTimers();
  searchTimer = setTimeout(() => searchNow(), DEBOUNCE_MS);
}

// A query that has stayed for a second has an entry of its own in the
// history; while one is typed, the entry changes with it.
function remember(text) {
  const wanted = new URLSearchParams();
  if (text.trim()) wanted.set("q", text);
  if (left.model && (text.trim() || left.model !== models[0].name)) {
    wanted.set("model", left.model);
  }
  if (right.model) wanted.set("with", right.model);
  for (const tag of chosenTags()) wanted.append("tag", tag);
  const url = `${location.pathname}${wanted.size ? "?" : ""}${wanted}`;
  clearTimeout(settledTimer);
  settledTimer = setTimeout(() => (settled = true), SETTLED_MS);
  if (url === location.pathname + location.search) return;
  if (settled) history.pushState(null, "", url);
  else history.replaceState(null, "", url);
  settled = false;
}

function readAddress() {
  const wanted = new URLSearchParams(location.search);
  query.value = wanted.get("q") || "";
  left.model = wanted.get("model") || models[0]?.name || "";
  right.model = wanted.get("with") || "";
  offerTags(wanted.getAll("tag"));
}

function greet(visible) {
  const model = models.find(({ name }) => name === left.model.split(":")[0]);
  const { card: facts = {}, examples: queries = [] } = model || {};
  const number = facts.documents?.toLocaleString("en");
  about.textContent = number ? `Search ${number} titles` : "Search";
  const version = model && left.model.split(":")[1];
  const newest = model && (!version || Number(version) === model.versions[0]);
  card.textContent = model
    ? [
        `${model.name}, version ${version || model.versions[0]}`,
        ...(newest && facts.date ? [`exported on ${facts.date}`] : []),
        ...(newest && facts.run ? [`from the run “${facts.run}”`] : []),
      ].join(", ")
    : "";
  greeting.hidden = !visible || !queries.length;
  examples.replaceChildren(
    ...queries.map((text) => {
      const line = element("li");
      const link = element("a", "", text);
      const wanted = new URLSearchParams({ q: text, model: left.model });
      link.href = `?${wanted}`;
      link.addEventListener("click", (event) => {
        if (event.ctrlKey || event.metaKey || event.shiftKey) return;
        event.preventDefault();
        settled = true;
        query.value = text;
        query.focus();
        searchNow();
      });
      line.append(link);
      return line;
    })
  );
}

async function searchNow(linked = false) {
  clearTimers();
  const start = performance.now();
  let text = query.value;
  try {
    if (!left.select.options.length) await loadModels();
    if (!started) {
      started = linked = true;
      if (!query.value) readAddress();
    } else if (linked) {
      readAddress();
    }
    text = query.value;
    await Promise.all(columns.map((column) => column.search(text)));
  } catch (error) {
    if (error.name !== "AbortError") failed(error);
    return;
  }
  if (text !== query.value) return;
  retryMs = FIRST_RETRY_MS;
  document.body.classList.remove("offline");
  if (!linked) remember(text);
  choose(-1);
  greet(!left.reply);
  left.show(right.reply);
  right.show(left.reply);
  query.setAttribute("aria-expanded", String(Boolean(left.reply)));
  if (!left.reply) {
    say(left.select.options.length ? "" : "This server has no retriever.");
    return;
  }
  const took = Math.round(performance.now() - start);
  say(left.reply.hits.length ? `${took} ms` : "Nothing was found.");
}

function failed(error) {
  if (error instanceof ServerError && !error.temporary) {
    left.select.replaceChildren(); // a model may be gone: ask again
    say(error.message, true);
    return;
  }
  document.body.classList.add("offline");
  say("The server does not answer; trying again.", true);
  retryTimer = setTimeout(() => searchNow(), retryMs);
  retryMs = Math.min(2 * retryMs, LAST_RETRY_MS);
}

async function loadModels() {
  const reply = await ask("/page/models");
  writesClicks = reply.clicks;
  models = reply.models;
  for (const column of columns) column.offer(models);
  offerTags();
}

function choose(number) {
  const options = [...main.querySelectorAll(".results li")];
  options[active]?.classList.remove("active");
  active = Math.max(-1, Math.min(number, options.length - 1));
  const line = options[active];
  if (line) {
    line.classList.add("active");
    line.scrollIntoView({ block: "nearest" });
    query.setAttribute("aria-activedescendant", line.id);
  } else {
    query.removeAttribute("aria-activedescendant");
  }
}

query.addEventListener("input", searchSoon);
window.addEventListener("popstate", () => {
  settled = true;
  searchNow(true);
});

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.isComposing) return;
  if (event.key === "/" && document.activeElement !== query) {
    query.focus();
    query.select();
  } else if (document.activeElement?.matches("select, a")) {
    return;
  } else if (event.key === "ArrowDown") {
    choose(active + 1);
  } else if (event.key === "ArrowUp") {
    choose(active - 1);
  } else if (event.key === "Enter") {
    const line = main.querySelectorAll(".results li")[active];
    settled = true;
    if (line) line.follow();
    else searchNow();
  } else if (event.key === "Escape") {
    query.value = "";
    query.focus();
    searchNow();
  } else {
    return;
  }
  event.preventDefault();
});

searchNow();
