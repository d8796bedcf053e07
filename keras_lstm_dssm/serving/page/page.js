// The search page. Texts from the server are set as textContent, never as HTML.
// All addresses are relative, because a proxy may add a path before the page.

const RESULTS = 10;
const DEBOUNCE_MS = 120;
const FIRST_RETRY_MS = 500;
const LAST_RETRY_MS = 5000;
const SETTLED_MS = 1000;
const query = document.getElementById("query");
const status = document.getElementById("status");
const main = document.querySelector("main");
const more = document.getElementById("more");
const card = document.getElementById("card");
const greeting = document.getElementById("greeting");
const examples = document.getElementById("examples");
const filters = document.getElementById("tags");

let writesClicks = false;
let wanted = RESULTS;
let retryMs = FIRST_RETRY_MS;
let retryTimer = 0;
let searchTimer = 0;
let settledTimer = 0;
let settled = true;
let started = false;
let stale = true; // whether the list of models must be asked for
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
    this.words = element("div");
    this.results = element("ol", "results");
    this.section.hidden = true;
    this.section.append(this.heading, this.words, this.results);
    select.addEventListener("change", () => {
      offerTags();
      searchAnew();
    });
  }

  // The chosen model: "NAME" for the newest version, or "NAME:VERSION".
  get model() {
    return this.select.value.replace(/:$/, "");
  }

  // Chooses a model; an unknown name is an error.
  set model(name) {
    if (!name && !this.optional) return; // this server has no models
    const value = !name || name.includes(":") ? name : `${name}:`;
    const options = [...this.select.options];
    if (!options.some((option) => option.value === value)) {
      throw new ServerError(`This server has no model “${name}”.`);
    }
    this.select.value = value;
  }

  // Fills the list of models; keeps the chosen model if it still exists.
  offer(models) {
    const chosen = this.select.value;
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
    if (options.some(({ value }) => value === chosen)) {
      this.select.value = chosen;
    }
  }

  // Sends a query. Late replies to earlier queries are ignored.
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
    const request = { model, text, k: wanted, letters: Boolean(right.model) };
    if (version) request.version = Number(version);
    const tags = chosenTags();
    if (tags.length) request.tags = tags;
    try {
      const reply = await post("page/search", request, this.cancel.signal);
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
    if (!reply) return;
    this.heading.textContent = `${reply.model} version ${reply.version}`;
    const ranks = other && new Map(other.hits.map(({ id }, rank) => [id, rank]));
    this.words.append(...Object.entries(reply.words).map(wordLine));
    this.results.append(
      ...reply.hits.map((hit, rank) => resultLine(hit, rank, ranks))
    );
  }
}

// Returns name -> tags with this name, {} for a model without tags.
function tagsOf(name) {
  return models.find((model) => model.name === name)?.tags || {};
}

function chosenTags() {
  const chosen = [...filters.querySelectorAll("select, button")];
  return chosen.map(({ value }) => value).filter(Boolean);
}

// Shows a menu for each name of tags. Chosen tags stay chosen. A chosen tag
// that is in no menu, such as a tag of the page's address, gets a button to
// remove it.
function offerTags(chosen = chosenTags()) {
  const facets = Object.entries(tagsOf(left.model.split(":")[0]));
  const others = new Set(chosen);
  const labels = facets.map(([name, tags]) => {
    const label = element("label", "", `${name.replaceAll("_", " ")} `);
    const select = element("select");
    select.append(
      new Option("any", ""),
      ...tags.map((tag) => new Option(tag.slice(name.length + 1), tag))
    );
    select.value = tags.find((tag) => others.delete(tag)) || "";
    select.addEventListener("change", searchAnew);
    label.append(select);
    return label;
  });
  const buttons = [...others].map((tag) => {
    const button = element("button", "", `${tag} ✕`);
    button.type = "button";
    button.value = tag;
    button.setAttribute("aria-label", `Search without ${tag}`);
    button.addEventListener("click", () => {
      button.remove();
      query.focus();
      searchAnew();
    });
    return button;
  });
  filters.replaceChildren(...labels, ...buttons);
}

// Returns a line about a query word that no title has.
function wordLine([word, nearest]) {
  const quoted = nearest.map((near) => `“${near}”`).join(", ");
  return element(
    "p",
    "",
    quoted
      ? `“${word}” is near ${quoted}.`
      : `“${word}” is in none of these titles.`
  );
}

function resultLine(hit, rank, otherRanks) {
  const item = element("li");
  const line = element("div", "line");
  const title = element("button", "title");
  title.type = "button";
  for (const part of hit.title) {
    if (part.strength) {
      const level = part.strength < 0.45 ? 1 : part.strength < 0.65 ? 2 : 3;
      title.append(element("mark", `near${level}`, part.text));
    } else {
      title.append(part.text);
    }
  }
  const text = title.textContent;
  title.addEventListener("click", () => follow(title, hit, text));
  const score = element("span", "score", hit.score.toFixed(2));
  score.title = "score";
  line.append(title, score);
  if (hit.weak) line.append(element("span", "note", "weak match"));
  if (otherRanks) line.append(element("span", "note", moved()));
  const below = element("div", "below");
  if (text !== hit.id) below.append(element("span", "id", hit.id));
  if (hit.why.length) {
    const details = element("details");
    const list = element("ul");
    list.append(...hit.why.map((reason) => element("li", "", reason)));
    details.append(element("summary", "", "Why?"), list);
    below.append(details);
  }
  item.append(line, below);
  return item;

  function moved() {
    if (!otherRanks.has(hit.id)) return "only here";
    const steps = otherRanks.get(hit.id) - rank;
    if (!steps) return "";
    return steps > 0 ? `▲${steps}` : `▼${-steps}`;
  }
}

async function follow(title, hit, text) {
  settled = true;
  title.setAttribute("aria-pressed", "true");
  if (!writesClicks) {
    say(`Chosen: ${text}`);
    return;
  }
  try {
    const reply = await post("page/click", { click: hit.click });
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
document.getElementById("columns").append(left.section, right.section);

function clearTimers() {
  clearTimeout(searchTimer);
  clearTimeout(retryTimer);
}

function searchSoon() {
  clearTimers();
  searchTimer = setTimeout(searchAnew, DEBOUNCE_MS);
}

// Searches after a change of query, model or tags: shows the first results.
function searchAnew() {
  wanted = RESULTS;
  searchNow();
}

// Stores the search in the address. A query that stays for a second keeps its
// entry in the browser's history; while a query is typed, the entry changes.
function remember(text) {
  const kept = new URLSearchParams();
  if (text.trim()) kept.set("q", text);
  if (left.model && (text.trim() || left.model !== models[0].name)) {
    kept.set("model", left.model);
  }
  if (right.model) kept.set("with", right.model);
  for (const tag of chosenTags()) kept.append("tag", tag);
  const url = `${location.pathname}${kept.size ? "?" : ""}${kept}`;
  clearTimeout(settledTimer);
  settledTimer = setTimeout(() => (settled = true), SETTLED_MS);
  if (url === location.pathname + location.search) return;
  if (settled) history.pushState(null, "", url);
  else history.replaceState(null, "", url);
  settled = false;
}

function readAddress() {
  const address = new URLSearchParams(location.search);
  wanted = RESULTS;
  query.value = address.get("q") || "";
  left.model = address.get("model") || models[0]?.name || "";
  right.model = address.get("with") || "";
  if (right.model) document.getElementById("models").open = true;
  offerTags(address.getAll("tag"));
}

function greet(visible) {
  const model = models.find(({ name }) => name === left.model.split(":")[0]);
  const { card: facts = {}, examples: queries = [] } = model || {};
  const number = facts.documents?.toLocaleString("en");
  query.placeholder = number ? `Search ${number} titles` : "Search";
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
    ...queries.map(({ text, misspelled }) => {
      const line = element("li");
      const link = element("a", "", text);
      link.href = `?${new URLSearchParams({ q: text, model: left.model })}`;
      link.addEventListener("click", (event) => {
        if (event.ctrlKey || event.metaKey || event.shiftKey) return;
        event.preventDefault();
        settled = true;
        query.value = text;
        query.focus();
        searchAnew();
      });
      line.append(link);
      if (misspelled) line.append(element("span", "note", "with a typo"));
      return line;
    })
  );
}

async function searchNow(linked = false) {
  clearTimers();
  const start = performance.now();
  let text = query.value;
  try {
    if (stale) await loadModels();
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
  if (!linked) remember(text);
  greet(!left.reply);
  show();
  if (!left.reply) {
    say(models.length ? "" : "This server has no retriever.");
    return;
  }
  const { length } = left.reply.hits;
  const took = Math.round(performance.now() - start);
  say(
    length
      ? `${length} ${length === 1 ? "result" : "results"} in ${took} ms`
      : "Nothing was found."
  );
}

function show() {
  left.show(right.reply);
  right.show(left.reply);
  more.hidden = !columns.some(({ reply }) => reply?.more);
}

// Shows an error and hides old results, which would be taken for the results of
// this query.
function failed(error) {
  for (const column of columns) column.reply = null;
  show();
  greeting.hidden = true;
  if (error instanceof ServerError && !error.temporary) {
    say(error.message, true);
    stale = true; // a model may be gone
    return;
  }
  say("The server does not answer; trying again.", true);
  retryTimer = setTimeout(() => searchNow(), retryMs);
  retryMs = Math.min(2 * retryMs, LAST_RETRY_MS);
}

async function loadModels() {
  const reply = await ask("page/models");
  writesClicks = reply.clicks;
  models = reply.models;
  stale = !models.length;
  for (const column of columns) column.offer(models);
  offerTags();
}

// Moves to the next or the previous title; above the first title is the query.
function move(step) {
  const titles = [...main.querySelectorAll(".title")];
  const item = document.activeElement.closest(".results > li");
  const next = titles.indexOf(item?.querySelector(".title")) + step;
  if (next < 0) query.focus();
  else titles[Math.min(next, titles.length - 1)]?.focus();
}

query.addEventListener("input", searchSoon);
more.addEventListener("click", () => {
  wanted += RESULTS;
  searchNow();
});
window.addEventListener("popstate", () => {
  settled = true;
  searchNow(true);
});

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.isComposing || document.activeElement?.matches("select")) return;
  if (event.key === "/" && document.activeElement !== query) {
    query.focus();
    query.select();
  } else if (event.key === "ArrowDown") {
    move(1);
  } else if (event.key === "ArrowUp") {
    move(-1);
  } else if (event.key === "Enter" && document.activeElement === query) {
    settled = true;
    searchAnew();
  } else if (event.key === "Escape") {
    query.value = "";
    query.focus();
    searchAnew();
  } else {
    return;
  }
  event.preventDefault();
});

searchNow();
