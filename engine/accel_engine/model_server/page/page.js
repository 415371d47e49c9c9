// Sends a file, a row or a text to the server, and shows its predictions. No other server is asked for anything.
"use strict";

const at = id => document.getElementById(id);
let model = null;

function headers(more) {
  const token = at("token").value;
  return token ? { ...more, Authorization: `Bearer ${token}` } : more;
}

function show(id, is_shown = true) {
  at(id).hidden = !is_shown;
}

function fail(message) {
  at("problem").textContent = message;
  show("problem", Boolean(message));
}

async function start() {
  const answer = await fetch("about", { headers: headers({}) });
  if (answer.status === 401) {
    show("token-row");
    at("about").textContent = "The server asks for its token.";
    return;
  }
  if (!answer.ok) {
    fail((await answer.json()).error);
    setTimeout(start, 1000);
    return;
  }
  fail("");
  model = await answer.json();
  document.title = model.name;
  at("name").textContent = model.name;
  const metrics = Object.entries(model.metrics).map(([name, value]) => `${name} ${number(value)}`).join(", ");
  at("about").textContent = `version ${model.version}, run ${model.run}, ${model.task}${metrics ? ", " + metrics : ""}`;
  const is_text = ["text", "language"].includes(model.takes);
  show("text", is_text);
  show("drop", model.takes !== "arrays" && model.takes !== "language");
  show("send", is_text || model.takes === "table");
  at("text").placeholder = model.takes === "language" ? "A text to continue" : "A text in each line";
  if (model.takes === "arrays") fail("This model takes arrays: send them to /v2/models or /v1/models.");
  if (model.takes === "table") {
    at("row").replaceChildren(...model.columns.map(column => {
      const label = document.createElement("label"), input = document.createElement("input");
      input.name = column.name;
      input.placeholder = column.kind;
      label.append(column.name, input);
      return label;
    }));
    show("row");
  }
}

function csv(cells) {
  return cells.map(cell => /[",\n\r]/.test(cell) || cell !== cell.trim() ? `"${cell.replaceAll('"', '""')}"` : cell).join(",");
}

async function predict(body, name, type) {
  fail("");
  const began = performance.now();
  try {
    const given = { "Content-Type": type || "application/octet-stream", "X-File-Name": encodeURIComponent(name) };
    const answer = await fetch("predict", { method: "POST", body, headers: headers(given) });
    const values = await answer.json();
    at("time").textContent = `${(performance.now() - began).toFixed(0)} ms`;
    if (!answer.ok) throw new Error(values.error);
    const notes = (values.notes ?? []).map(note => {
      const line = document.createElement("p");
      line.textContent = note;
      return line;
    });
    at("answer").replaceChildren(...notes, ...values.predictions.slice(0, 100).map(shown));
    show("answer");
  } catch (error) {
    show("answer", false);
    fail(error.message);
  }
}

function number(value) {
  return value === null ? "–" : typeof value === "number" ? String(Number(value.toPrecision(4))) : String(value);
}

function row(name, value, is_share) {
  const line = document.createElement("tr"), head = document.createElement("th"), cell = document.createElement("td");
  head.textContent = name;
  cell.className = "number";
  cell.textContent = is_share ? `${(100 * value).toFixed(1)}%` : number(value);
  line.append(head);
  if (is_share) {
    const bar = document.createElement("td"), meter = document.createElement("meter");
    meter.value = value;
    bar.append(meter);
    line.append(bar);
  }
  line.append(cell);
  return line;
}

function lines(values) {
  const shares = values.pixels || (!Array.isArray(values.probabilities) && values.probabilities);
  if (values.top) return values.top.map(each => row(each.label, each.probability, true));
  if (shares) return Object.entries(shares).slice(0, 20).map(([name, share]) => row(name, share, true));
  if (values.labels) return [row("labels", values.labels.join(" "))];
  if (values.forecast) return values.forecast.flatMap((step, place) =>
    Object.entries(step).map(([name, value]) => row(`${name}, step ${place + 1}`, value)));
  if (values.outputs) return Object.entries(values.outputs).flatMap(([name, part]) => [row(name, ""), ...lines(part)]);
  const found = values.values;
  if (found && typeof found === "object" && !Array.isArray(found))
    return Object.entries(found).map(([name, value]) => row(name, value));
  return [row("value", Array.isArray(found) ? found.flat(Infinity).slice(0, 20).map(number).join(" ") : found)];
}

function shown(values) {
  const table = document.createElement("table"), caption = document.createElement("caption");
  const best = values.label !== undefined && !values.outputs ? `: ${values.label}` : "";
  const name = model.takes === "table" ? `Row ${values.example}` : values.example.slice(0, 60);
  caption.textContent = values.problem || `${name}${best}`;
  table.append(caption);
  if (!values.problem) table.append(...lines(values));
  return table;
}

function send_file(file) {
  if (!file) return;
  const is_image = file.type.startsWith("image/");
  if (is_image) at("preview").src = URL.createObjectURL(file);
  show("preview", is_image);
  at("hint").textContent = file.name;
  predict(file, file.name, file.type);
}

at("file").addEventListener("change", event => send_file(event.target.files[0]));
for (const name of ["dragover", "drop"]) document.addEventListener(name, event => event.preventDefault());
at("drop").addEventListener("dragover", () => at("drop").classList.add("over"));
at("drop").addEventListener("dragleave", () => at("drop").classList.remove("over"));
at("drop").addEventListener("drop", event => {
  at("drop").classList.remove("over");
  send_file(event.dataTransfer.files[0]);
});
at("token").addEventListener("change", start);
at("form").addEventListener("submit", event => {
  event.preventDefault();
  if (!model) return start();
  if (model.takes !== "table") return predict(at("text").value, "typed.txt", "text/plain");
  const inputs = [...at("row").querySelectorAll("input")];
  predict(`${csv(inputs.map(each => each.name))}\n${csv(inputs.map(each => each.value))}\n`, "typed.csv", "text/csv");
});
start();
