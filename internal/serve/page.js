"use strict";
// Follows one run live. Every text is put in as text, never as markup.
const el = id => document.getElementById(id);
const log = el("log"), main = document.querySelector("main");
let source = null, run = "", live = false, said = null, open = {};

function add(tag, cls, text) {
  const e = document.createElement(tag);
  e.className = cls;
  if (text) e.textContent = text;
  const low = main.scrollHeight - main.scrollTop - main.clientHeight < 60;
  log.append(e);
  if (low) main.scrollTop = main.scrollHeight;
  return e;
}
function say(cls, text) {
  if (!said || said.className !== cls) said = add("div", cls, "");
  const low = main.scrollHeight - main.scrollTop - main.clientHeight < 60;
  said.textContent += text;
  if (low) main.scrollTop = main.scrollHeight;
}
function diff(into, text) {
  const pre = document.createElement("pre");
  for (const line of text.replace(/\n$/, "").split("\n")) {
    if (line.startsWith("---") || line.startsWith("+++")) continue;
    const d = document.createElement("div");
    d.textContent = line;
    d.className = line[0] === "+" ? "add" : line[0] === "-" ? "del" : line[0] === "@" ? "dim" : "";
    pre.append(d);
  }
  into.append(pre);
}
function command(ev) {
  const c = ev.command, key = ev.turn + c.channel + c.id;
  let e = open[key];
  if (!e) { said = null; e = open[key] = add("details", "", ""); }
  e.textContent = "";
  const s = document.createElement("summary");
  const m = document.createElement("span");
  const good = c.status === "applied";
  m.className = !c.status ? "dim" : good ? "ok" : "bad";
  m.textContent = (!c.status ? (ev.type === "command.skipped" ? "–" : "…") : good ? "✓" : "✗") + " " + c.name.replace("tf-", "");
  s.append(m, " " + (c.path || c.cmd || "") + (c.dest ? " → " + c.dest : "") + (c.added ? " +" + c.added : "") + (c.removed ? " −" + c.removed : "") + (!good && c.status ? " " + c.status : ""));
  e.append(s);
  if (c.error) { const p = document.createElement("pre"); p.textContent = c.error; e.append(p); e.open = true; }
  if (c.diff) diff(e, c.diff);
  if (c.output) { const p = document.createElement("pre"); p.textContent = c.output; e.append(p); }
}
function ask(a) {
  const box = el("ask");
  box.textContent = ""; box.hidden = false;
  const p = document.createElement("p");
  p.textContent = "It wants to " + a.action + ": " + a.target + " (" + a.rule + ")";
  box.append(p);
  if (a.diff) diff(box, a.diff);
  for (const [d, name] of [["once", "Allow once"], ["session", "Allow for this session"], ["no", "No"]]) {
    const b = document.createElement("button");
    b.textContent = name;
    b.onclick = () => post("/runs/" + run + "/approve", { approvalId: a.id, decision: d }).then(() => { box.hidden = true; });
    box.append(b);
  }
}
function facts(ev) {
  const u = ev.usage;
  if (u) el("facts").textContent = (ev.turn ? "turn " + ev.turn + " · " : "") + u.requests + " API calls · " + u.input_tokens + " tokens in, " + u.output_tokens + " out" + (u.estimated ? " (partly estimated)" : "");
}
const handlers = {
  "run.started": ev => { el("task").textContent = ev.task; setLive(true); if (ev.reason) add("div", "dim", ev.reason); },
  "turn.started": ev => { said = null; add("div", "turn", "turn " + ev.turn); },
  "turn.restarted": ev => add("div", "dim", ev.reason),
  "text.delta": ev => say("say", ev.text),
  "reasoning.delta": ev => say("think", ev.text),
  "command.started": command, "command.completed": ev => { el("ask").hidden = true; command(ev); }, "command.skipped": command,
  "tool.started": ev => { said = null; open[ev.tool.call_id] = add("div", "line dim", "… " + ev.tool.name); },
  "tool.completed": ev => {
    el("ask").hidden = true;
    const e = open[ev.tool.call_id] || add("div", "line", "");
    e.className = "line " + (ev.tool.status === "ok" ? "ok" : "bad");
    e.textContent = (ev.tool.status === "ok" ? "✓ " : "✗ ") + ev.tool.name + " " + (ev.tool.error || ev.tool.summary || "");
  },
  "approval.requested": ev => ask(ev.approval),
  "run.suspended": ev => { add("div", "end", "waits: " + (ev.reason || "")); setLive(false); },
  "usage": facts, "compaction": ev => add("div", "dim", ev.reason),
};
for (const t of ["run.completed", "run.failed", "run.cancelled"]) handlers[t] = ev => {
  facts(ev);
  said = null; el("ask").hidden = true;
  add("div", "end " + (t === "run.completed" ? "ok" : "bad"), ev.result.state + (ev.reason ? ": " + ev.reason : ""));
  setLive(false); source.close(); el("link").textContent = "ended"; list();
};
function setLive(yes) {
  live = yes;
  el("cancel").disabled = !yes;
  el("send").textContent = yes ? "Tell it" : "Start";
}
function follow(id) {
  if (source) source.close();
  run = id; log.textContent = ""; el("task").textContent = ""; el("facts").textContent = ""; el("ask").hidden = true; said = null; open = {};
  setLive(false);
  source = new EventSource("/runs/" + encodeURIComponent(id) + "/events");
  source.onopen = () => { el("link").textContent = "live"; };
  source.onerror = () => { el("link").textContent = source.readyState === EventSource.CLOSED ? "ended" : "connecting again"; };
  for (const t of Object.keys(handlers)) source.addEventListener(t, e => handlers[t](JSON.parse(e.data)));
}
async function post(path, body) {
  const r = await fetch(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
  const got = r.status === 204 ? {} : await r.json();
  if (!r.ok) { add("div", "bad", got.error); throw new Error(got.error); }
  return got;
}
async function list() {
  const r = await fetch("/runs");
  if (!r.ok) { el("link").textContent = "not allowed: open the address that thinkflow serve prints"; return []; }
  const runs = (await r.json()).runs, box = el("runs");
  box.textContent = "";
  for (const x of runs) {
    const o = document.createElement("option");
    o.value = x.id; o.textContent = x.state + " · " + x.task.split("\n")[0].slice(0, 60);
    box.append(o);
  }
  if (run) box.value = run;
  return runs;
}
el("runs").onchange = () => follow(el("runs").value);
el("cancel").onclick = () => post("/runs/" + run + "/cancel", {});
el("new").onsubmit = async e => {
  e.preventDefault();
  const text = el("say").value.trim();
  if (!text) return;
  if (live) await post("/runs/" + run + "/steer", { text });
  else { const got = await post("/runs", { task: text }); follow(got.runId); list(); }
  el("say").value = "";
};
list().then(runs => {
  const want = new URLSearchParams(location.search).get("run") || (runs[0] && runs[0].id);
  if (want) follow(want); else el("link").textContent = "no run yet";
  list();
});
