#!/usr/bin/env node
// Runs Codex in ways that `clients` does not, and holds what afterimage reads of its requests to the bytes
// that a provider on loopback received: over a WebSocket, with a trace bundle, in an HTTP archive, with a
// provider that the command line alone names:
//
//   node scripts/codex-wire.mjs PROGRAM
//
// PROGRAM is the built `afterimage`. Codex is installed from npm into `target/clients`.
import { spawnSync, spawn } from "node:child_process";
import { createServer } from "node:http";
import { mkdtempSync, mkdirSync, writeFileSync, readFileSync, readdirSync, rmSync, existsSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import assert from "node:assert/strict";

const program = resolve(process.argv[2] ?? "target/debug/afterimage");
const tools = resolve("target/clients");
const packages = ["@openai/codex@0.169.0", "ws@8.23.0"];

/** Codex, installed once. Exits with 0 where the registry cannot be reached. */
function install() {
  const codex = join(tools, "node_modules/.bin/codex");
  if ([codex, join(tools, "node_modules/ws")].every((path) => existsSync(path))) return codex;
  mkdirSync(tools, { recursive: true });
  writeFileSync(join(tools, "package.json"), '{"private":true}');
  const args = ["install", "--no-audit", "--no-fund", "--loglevel=error", ...packages];
  if (spawnSync("npm", args, { cwd: tools, stdio: "inherit" }).status !== 0) {
    console.log("skipped: Codex could not be installed from npm");
    process.exit(0);
  }
  return codex;
}

const events = (list) => list.map((data) => `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`).join("");

/** The events that answer a request to the Responses API. */
function answerEvents(request, called, number) {
  const tool = (request.tools ?? []).map((tool) => tool.name).find((name) => ["exec_command", "shell"].includes(name));
  const args = tool === "shell" ? { command: ["ls"] } : { cmd: "ls" };
  const item = called || !tool
    ? { type: "message", role: "assistant", id: `msg_${number}`, content: [{ type: "output_text", text: "There is one file.", annotations: [] }] }
    : { type: "function_call", id: `fc_${number}`, call_id: `call_${number}`, name: tool, arguments: JSON.stringify(args) };
  const output = request.generate === false ? [] : [item];
  const usage = { input_tokens: 100 * number, input_tokens_details: { cached_tokens: 64 }, output_tokens: 7, output_tokens_details: { reasoning_tokens: 0 }, total_tokens: 100 * number + 7 };
  const response = { id: `resp_${number}`, object: "response", status: "completed", model: request.model, output, usage };
  return [
    { type: "response.created", response: { id: response.id } },
    ...output.map((item) => ({ type: "response.output_item.done", output_index: 0, item })),
    { type: "response.completed", response },
  ];
}

/** What the provider answers: a call of a shell at first, then a sentence. */
function answer(body, number) {
  const request = JSON.parse(body);
  const called = request.input.some((item) => item.type === "function_call_output");
  return events(answerEvents(request, called, number));
}

const received = [];
const server = createServer((request, response) => {
  const parts = [];
  request.on("data", (part) => parts.push(part));
  request.on("end", () => {
    const body = Buffer.concat(parts);
    if (request.method !== "POST") {
      response.writeHead(200, { "content-type": "application/json" });
      return response.end('{"object":"list","data":[{"id":"m","object":"model"}],"models":[]}');
    }
    const text = answer(body.toString(), received.length + 1);
    received.push({ url: request.url, body, answer: text, started: new Date().toISOString() });
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.end(text);
  });
});

/** Answers each `response.create` of a WebSocket, packed where the client wants it. */
function acceptWebSockets() {
  const { WebSocketServer } = createRequire(join(tools, "package.json"))("ws");
  const perMessageDeflate = { threshold: 0 };
  const sockets = new WebSocketServer({ server, perMessageDeflate });
  sockets.on("connection", (socket, request) => socket.on("message", (body) => {
    const message = JSON.parse(body.toString());
    if (message.type !== "response.create") return;
    const called = message.input.some((item) => item.type === "function_call_output");
    const list = answerEvents(message, called, received.length + 1);
    received.push({ url: request.url, body, isPacked: Boolean(socket.extensions) });
    list.forEach((event) => socket.send(JSON.stringify(event)));
  }));
}

/** Runs an agent with an environment of its own. */
function agent(command, args, cwd, env) {
  return new Promise((done) => {
    const child = spawn(command, args, { cwd, env: { PATH: process.env.PATH, ...env }, stdio: ["ignore", "pipe", "pipe"] });
    let said = "";
    child.stdout.on("data", (data) => (said += data));
    child.stderr.on("data", (data) => (said += data));
    const timer = setTimeout(() => child.kill(), 120_000);
    let answered = "";
    child.stdout.on("data", (data) => (answered += data));
    child.on("close", (code) => {
      clearTimeout(timer);
      assert.equal(code, 0, `${command} failed:\n${said}`);
      done(answered);
    });
  });
}

/** Standard output of afterimage. */
function afterimage(...args) {
  const run = spawnSync(program, args, { maxBuffer: 1 << 28 });
  assert.equal(run.status, 0, `afterimage ${args.join(" ")}: ${run.stderr}`);
  return { out: run.stdout, err: run.stderr.toString() };
}

/** The requests of `afterimage requests --json`, which ends with the sums of their usage. */
const listed = (path) => {
  const lines = afterimage("requests", "--json", path).out.toString().trim().split("\n");
  return lines.map((line) => JSON.parse(line)).filter((line) => "request" in line);
};

const under = (folder) => readdirSync(folder, { recursive: true }).map((name) => join(folder, name));

/** As a proxy would write it down. */
function archive(exchanges) {
  const entry = ({ url, body, answer, started }) => ({
    startedDateTime: started,
    time: 1,
    request: { method: "POST", url: `http://127.0.0.1${url}`, postData: { mimeType: "application/json", text: body.toString() } },
    response: { status: 200, content: { mimeType: "text/event-stream", text: answer } },
  });
  return JSON.stringify({ log: { version: "1.2", entries: exchanges.map(entry) } });
}

function checkWire(name, exchanges, folder) {
  const path = join(folder, `${name}.har`);
  writeFileSync(path, archive(exchanges));
  const lines = listed(path);
  assert.equal(lines.length, exchanges.length);
  exchanges.forEach(({ body }, index) => {
    const printed = afterimage("render", "--request", String(index + 1), path).out;
    assert.ok(printed.equals(body), `${name}: request ${index + 1} is not what the provider received`);
    assert.equal(lines[index].provenance, "sent");
    assert.ok(lines[index].tokens.tools > 0);
  });
  console.log(`${name}: ${exchanges.length} requests of the wire, byte for byte`);
}

function checkTranscript(name, path, lacks, count) {
  const lines = listed(path);
  assert.equal(lines.length, count, `${name}: requests of the transcript`);
  for (const line of lines) {
    assert.equal(line.provenance, "reconstructed");
    lacks.forEach((lack) => assert.ok(line.lacks.includes(lack), `${name} lacks ${lack}`));
  }
  assert.match(afterimage("render", "--request", "1", path).err, /reconstructed from a transcript, without the tools/);
  console.log(`${name}: its transcript is marked as reconstructed, without ${lacks.join(", ")}`);
}

/** Runs an agent through `afterimage record`, and holds the recording to what the provider received. */
async function checkRecorded(name, command, args, cwd, env, folder, configured) {
  const before = configured.map((path) => readFileSync(path));
  const recording = join(folder, `${name}.recording`);
  const answered = await agent(program, ["record", "-o", recording, "--", command, ...args], cwd, env);
  const exchanges = received.splice(0);
  assert.ok(exchanges.length >= 2, `${name}: ${exchanges.length} requests through the recorder`);
  const lines = listed(recording);
  assert.equal(lines.length, exchanges.length);
  exchanges.forEach(({ body }, index) => {
    const printed = afterimage("render", "--request", String(index + 1), "--as-sent", recording).out;
    assert.ok(printed.equals(body), `${name}: request ${index + 1} of the recording is not what the provider received`);
    const { previous_response_id: previous } = JSON.parse(body.toString());
    assert.equal(lines[index].provenance, previous ? "resolved" : "sent");
    assert.equal(lines[index].outcome, "answered");
  });
  configured.forEach((path, index) => assert.ok(readFileSync(path).equals(before[index]), `${path} was changed`));
  console.log(`${name}: ${lines.length} requests through the recorder, byte for byte`);
  return { exchanges, lines, answered, recording };
}

/** A request without what differs from run to run: ids, dates, and the order of Codex's metadata. */
const settled = ({ body }) => body.toString()
  .replace(/"client_metadata":(\{.*?\})(?=[,}])/, (_, metadata) => metadata.split(",").map((pair) => pair.replace(/[{}]/g, "")).sort().join(","))
  .replace(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, "ID")
  .replace(/\b(call|chat|msg|fc|resp)_\d+/g, "$1_N")
  .replace(/\d{10,}/g, "TIME")
  .replace(/\d{4}-\d\d-\d\d(T[\d:.]+Z)?/g, "DATE")
  .replace(/\d+(\.\d+)? (milli)?seconds/g, "TIME")
  .replace(/(Chunk ID: |"chunk_id":\s*")[0-9a-f]+/g, "$1ID");

/** Holds the requests of two runs to each other, and shows where they first differ; and so what the agents print. */
function checkSame(name, first, second, answered, answeredAgain) {
  assert.equal(first.length, second.length, `${name}: requests of two runs`);
  first.map(settled).forEach((text, index) => {
    const other = settled(second[index]);
    const at = [...text].findIndex((char, at) => char !== other[at]);
    const shown = (whole) => JSON.stringify(whole.slice(Math.max(0, at - 60), at + 60));
    assert.ok(text === other, `${name}: request ${index + 1} differs at ${at}: ${shown(text)} and ${shown(other)}`);
  });
  assert.ok(answered.includes("There is one file."), `${name}: answers ${JSON.stringify(answered)}`);
  assert.equal(answeredAgain, answered, `${name}: what it answers`);
  console.log(`${name}: sends and answers the same through the recorder`);
}

/** Each request of a chain holds all of the one before it, and a warm-up is marked. */
function checkResolved({ exchanges, lines, recording }) {
  let before = [];
  exchanges.forEach(({ body }, index) => {
    const sent = JSON.parse(body.toString());
    assert.equal(Boolean(lines[index].warmUp), sent.generate === false);
    const { input } = JSON.parse(afterimage("render", "--request", String(index + 1), recording).out.toString());
    if (sent.previous_response_id) {
      assert.deepEqual(lines[index].resolved.missing, null);
      assert.deepEqual(input.slice(0, before.length), before, `request ${index + 1} holds what it goes on from`);
      assert.deepEqual(input.slice(input.length - sent.input.length), sent.input);
    }
    before = input;
  });
  const marked = lines.filter((line) => line.warmUp).length;
  const joined = lines.filter((line) => line.resolved).length;
  console.log(`codex over a WebSocket: ${marked} warm-ups, ${joined} requests joined with what they go on from`);
}

const codex = install();
const folder = mkdtempSync(join(tmpdir(), "clients-"));
await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
const base = `http://127.0.0.1:${server.address().port}/v1`;
try {
  const work = join(folder, "work");
  mkdirSync(work);
  writeFileSync(join(work, "a.txt"), "hello\n");

  const home = join(folder, "codex");
  mkdirSync(home);
  writeFileSync(join(home, "config.toml"), `model = "m"\nmodel_provider = "local"\n[model_providers.local]\nname = "local"\nbase_url = "${base}"\nenv_key = "DUMMY"\nwire_api = "responses"\n`);
  const traces = join(folder, "traces");
  const asked = ["exec", "--skip-git-repo-check", "List the files."];
  const answeredByCodex = await agent(codex, asked, work, { DUMMY: "x", HOME: folder, CODEX_HOME: home, CODEX_ROLLOUT_TRACE_ROOT: traces });
  const ofCodex = received.splice(0);
  assert.ok(ofCodex.length >= 2);
  checkWire("codex", ofCodex, folder);
  const bundle = join(traces, readdirSync(traces)[0]);
  const lines = listed(bundle);
  assert.equal(lines.length, ofCodex.length);
  ofCodex.forEach(({ body }, index) => {
    const printed = afterimage("render", "--request", String(index + 1), bundle).out.toString();
    // Written again by one writer, equal texts are equal values in one order.
    assert.equal(JSON.stringify(JSON.parse(printed)), JSON.stringify(JSON.parse(body.toString())));
    assert.equal(lines[index].provenance, "logged");
    assert.equal(lines[index].usage.cacheRead, 64);
  });
  console.log(`codex: ${lines.length} requests of its trace bundle, the same JSON in the same order`);
  const rollout = under(join(home, "sessions")).find((path) => path.endsWith(".jsonl"));
  checkTranscript("codex", rollout, ["tools", "parameters"], ofCodex.length);
  const codexAgain = await checkRecorded("codex", codex, asked, work, { DUMMY: "x", HOME: folder, CODEX_HOME: home }, folder, [join(home, "config.toml")]);
  checkSame("codex", ofCodex, codexAgain.exchanges, answeredByCodex, codexAgain.answered);

  // A provider with a dot in its name, and one that the command line alone names.
  const dotted = join(folder, "codex-dotted");
  mkdirSync(dotted);
  writeFileSync(join(dotted, "config.toml"), readFileSync(join(home, "config.toml"), "utf8").replace('= "local"', '= "my.local"').replace(".local]", '."my.local"]'));
  const inline = `model_providers.inline={name="inline",base_url="${base}",env_key="DUMMY",wire_api="responses"}`;
  const asTable = [...asked, "-c", inline, "-c", 'model_provider="inline"'];
  for (const [name, args] of [["codex-dotted", asked], ["codex-inline", asTable]]) {
    const again = await checkRecorded(name, codex, args, work, { DUMMY: "x", HOME: folder, CODEX_HOME: dotted }, folder, [join(dotted, "config.toml")]);
    assert.equal(again.answered, answeredByCodex, `${name}: what it answers`);
  }

  const other = join(folder, "codex-websocket");
  mkdirSync(other);
  writeFileSync(join(other, "config.toml"), readFileSync(join(home, "config.toml"), "utf8") + "supports_websockets = true\n");
  acceptWebSockets();
  const env = { DUMMY: "x", HOME: folder, CODEX_HOME: other };
  const answered = await agent(codex, asked, work, env);
  const ofSocket = received.splice(0);
  assert.ok(ofSocket.length >= 2 && ofSocket.every(({ isPacked }) => isPacked), "codex does not speak through a packed WebSocket");
  const recorded = await checkRecorded("codex-websocket", codex, asked, work, env, folder, [join(other, "config.toml")]);
  checkSame("codex over a WebSocket", ofSocket, recorded.exchanges, answered, recorded.answered);
  checkResolved(recorded);
} finally {
  server.close();
  server.closeAllConnections();
  rmSync(folder, { recursive: true, force: true });
}
