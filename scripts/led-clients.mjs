#!/usr/bin/env node
// Runs the newest versions of real agents by themselves and through `afterimage record`, and shows that
// no call goes to a host that the agent does not use by itself:
//
//   node scripts/led-clients.mjs PROGRAM [CLIENT...]
//
// PROGRAM is the built `afterimage`. The agents are installed from npm and PyPI into the folder that
// LED_CLIENTS names, or into one of the temporary folder; what cannot be installed is named and skipped.
// The provider is scripted, and listens on loopback. Every other host leads to a proxy that writes its
// name down and lets nothing through; where the system gives a network of its own (`unshare`), that has
// the loopback alone. Takes some minutes: it is for the night.
import { spawn, spawnSync } from "node:child_process";
import { createServer } from "node:http";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";

const program = resolve(process.argv[2] ?? "target/debug/afterimage");
const root = process.env.LED_CLIENTS ?? join(tmpdir(), "afterimage-led-clients");
const prompt = "Say hello.";

/** Writes a file of a user. */
function put(path, text) {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, typeof text === "string" ? text : JSON.stringify(text));
}
const npm = (name, bin) => join(root, name, "node_modules/.bin", bin);
const pip = (name, bin) => join(root, name, "bin", bin);
const quiet = ["--no-show-model-warnings", "--no-check-update", "--analytics-disable", "--no-git", "--yes-always", "--no-show-release-notes"];
const aider = [pip("aider", "aider"), "--model", "openai/m", ...quiet, "--message", prompt];
const mini = [pip("mini", "mini"), "-y", "--exit-immediately", "-m", "openai/m", "-t", prompt, "-l", "0"];
const litellm = { OPENAI_API_KEY: "x", LITELLM_LOCAL_MODEL_COST_MAP: "True", MSWEA_CONFIGURED: "true", MSWEA_COST_TRACKING: "ignore_errors", MSWEA_SILENT_STARTUP: "1" };
const anthropic = { ANTHROPIC_API_KEY: "sk-ant-dummy", DISABLE_TELEMETRY: "1", DISABLE_AUTOUPDATER: "1", CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1" };
const qwen = (home) => put(join(home, ".qwen/settings.json"), { security: { auth: { selectedType: "openai" } }, telemetry: { enabled: false }, privacy: { usageStatisticsEnabled: false } });
const opencode = (home, options) => put(join(home, ".config/opencode/opencode.json"), { autoupdate: false, share: "disabled", model: "local/m", small_model: "local/m", provider: { local: { npm: "@ai-sdk/openai-compatible", options, models: { m: { limit: { context: 128000, output: 4096 } } } } } });

// Each agent: its package, and ways to lead it. A way says what it puts into the user's folder and into
// that of the work, its environment, the options of the recorder, whether the recorder can lead it, and
// whether it reaches loopback beside a proxy.
const clients = {
  aider: { pip: "aider-chat", ways: {
    variable: (base) => ({ command: aider, env: { ...litellm, OPENAI_API_BASE: `${base}/v1` } }),
    "preferred variable": (base) => ({ command: aider, env: { ...litellm, OPENAI_API_BASE: "http://127.0.0.1:9/v1", OPENAI_BASE_URL: `${base}/v1` } }),
    ".env": (base, home, work) => (put(join(work, ".env"), `OPENAI_API_BASE=${base}/v1\n`), { command: aider, env: litellm }),
    ".env of the user": (base, home) => (put(join(home, ".env"), `export OPENAI_API_BASE='${base}/v1'\r\n`), { command: aider, env: litellm }),
    ".aider.conf.yml": (base, home, work) => (put(join(work, ".aider.conf.yml"), `openai-api-base: ${base}/v1\n`), { command: aider, env: litellm }),
    "--env": (base) => ({ command: aider, env: { ...litellm, OPENAI_API_BASE: `${base}/v1` }, options: ["--env", `OPENAI_API_BASE=${base}/v1`] }),
    "sh -c": (base) => ({ command: ["sh", "-c", 'exec "$0" "$@"', ...aider], env: { ...litellm, OPENAI_API_BASE: `${base}/v1` } }),
  } },
  mini: { pip: "mini-swe-agent", ways: {
    variable: (base) => ({ command: mini, env: { ...litellm, OPENAI_API_BASE: `${base}/v1` } }),
    "its own .env": (base, home) => (put(join(home, ".config/mini-swe-agent/.env"), `OPENAI_API_BASE='${base}/v1'\n`), { command: mini, env: litellm }),
  } },
  llm: { pip: "llm", ways: {
    variable: (base) => ({ command: [pip("llm", "llm"), "-m", "gpt-4o-mini", prompt], env: { OPENAI_API_KEY: "x", OPENAI_BASE_URL: `${base}/v1` } }),
    configuration: (base, home) => (put(join(home, ".config/io.datasette.llm/extra-openai-models.yaml"), `- model_id: local\n  model_name: m\n  api_base: ${base}/v1\n  api_key_name: x\n`), { command: [pip("llm", "llm"), "-m", "local", "--key", "x", prompt], env: {}, isLed: false }),
  } },
  qwen: { npm: "@qwen-code/qwen-code", bin: "qwen", ways: {
    variable: (base, home) => (qwen(home), { command: [npm("qwen", "qwen"), "-y", "-p", prompt], env: { OPENAI_API_KEY: "x", OPENAI_MODEL: "m", OPENAI_BASE_URL: `${base}/v1` }, isProxied: false }),
    "~/.qwen/.env": (base, home) => (qwen(home), put(join(home, ".qwen/.env"), `OPENAI_API_KEY=x\nOPENAI_BASE_URL="${base}/v1"\nOPENAI_MODEL=m\n`), { command: [npm("qwen", "qwen"), "-y", "-p", prompt], env: {}, isProxied: false }),
  } },
  claude: { npm: "@anthropic-ai/claude-code", bin: "claude", ways: {
    variable: (base) => ({ command: [npm("claude", "claude"), "-p", prompt], env: { ...anthropic, ANTHROPIC_BASE_URL: base } }),
    settings: (base, home) => (put(join(home, ".claude/settings.json"), { env: { ANTHROPIC_BASE_URL: base } }), { command: [npm("claude", "claude"), "-p", prompt], env: anthropic }),
  } },
  codex: { npm: "@openai/codex", bin: "codex", ways: {
    configuration: (base, home) => (put(join(home, ".codex/config.toml"), `model = "m"\nmodel_provider = "local"\n[model_providers.local]\nname = "local"\nbase_url = "${base}/v1"\nenv_key = "DUMMY"\nwire_api = "responses"\n`), { command: [npm("codex", "codex"), "exec", "--skip-git-repo-check", prompt], env: { DUMMY: "x" } }),
  } },
  pi: { npm: "@earendil-works/pi-coding-agent", bin: "pi", ways: {
    configuration: (base, home) => (put(join(home, ".pi/agent/models.json"), { providers: { local: { baseUrl: `${base}/v1`, api: "openai-completions", apiKey: "x", models: [{ id: "m" }] } } }), { command: [npm("pi", "pi"), "--provider", "local", "--model", "m", "-p", prompt], env: { PI_TELEMETRY: "0", PI_OFFLINE: "1" } }),
  } },
  gemini: { npm: "@google/gemini-cli", bin: "gemini", ways: {
    variable: (base, home) => (put(join(home, ".gemini/settings.json"), { security: { auth: { selectedType: "gemini-api-key" } }, privacy: { usageStatisticsEnabled: false } }), { command: [npm("gemini", "gemini"), "-y", "-m", "gemini-2.5-pro", "-p", prompt], env: { GEMINI_API_KEY: "x", GOOGLE_GEMINI_BASE_URL: base, GEMINI_CLI_TRUST_WORKSPACE: "true" }, isListed: false }),
  } },
  opencode: { npm: "opencode-ai", bin: "opencode", ways: {
    configuration: (base, home) => (opencode(home, { baseURL: `${base}/v1`, apiKey: "x" }), { command: [npm("opencode", "opencode"), "run", prompt], env: { OPENCODE_DISABLE_MODELS_FETCH: "1" }, isLed: false }),
    "{env:NAME}": (base, home) => (opencode(home, { baseURL: "{env:LOCAL_BASE}", apiKey: "x" }), { command: [npm("opencode", "opencode"), "run", prompt], env: { OPENCODE_DISABLE_MODELS_FETCH: "1", LOCAL_BASE: `${base}/v1` }, options: ["--env", `LOCAL_BASE=${base}/v1`] }),
  } },
  kimi: { npm: "@moonshot-ai/kimi-code", bin: "kimi", ways: {
    configuration: (base, home) => (put(join(home, ".kimi-code/config.toml"), `default_model = "m"\n[providers.local]\ntype = "openai"\nbase_url = "${base}/v1"\napi_key = "x"\n[models.m]\nprovider = "local"\nmodel = "m"\nmax_context_size = 128000\n`), { command: [npm("kimi", "kimi"), "-p", prompt], env: { KIMI_DISABLE_TELEMETRY: "1" }, isLed: false }),
  } },
  cline: { npm: "cline", bin: "cline", ways: {
    configuration: (base) => ({ before: [npm("cline", "cline"), "auth", "-p", "openai", "-k", "x", "-m", "m", "-b", `${base}/v1`], command: [npm("cline", "cline"), "-P", "openai", "-m", "m", "--auto-approve", "true", prompt], env: {}, isLed: false }),
  } },
  copilot: { npm: "@github/copilot", bin: "copilot", ways: {
    variable: (base) => ({ command: [npm("copilot", "copilot"), "--allow-all-tools", "-p", prompt], env: { COPILOT_PROVIDER_BASE_URL: `${base}/v1`, COPILOT_OFFLINE: "true", COPILOT_MODEL: "m", COPILOT_PROVIDER_API_KEY: "x", COPILOT_AUTO_UPDATE: "false" } }),
  } },
  continue: { npm: "@continuedev/cli", bin: "cn", ways: {
    configuration: (base, home) => (put(join(home, ".continue/config.yaml"), `name: local\nversion: 0.0.1\nschema: v1\nmodels:\n  - name: m\n    provider: openai\n    model: m\n    apiBase: ${base}/v1\n    apiKey: x\n    roles: [chat]\n`), { command: [npm("continue", "cn"), "--config", join(home, ".continue/config.yaml"), "-p", prompt], env: { CONTINUE_TELEMETRY_ENABLED: "0" }, isLed: false }),
  } },
};

/** Puts a Node before all others that the newest agents run on, where this one is older. */
function installNode() {
  const bin = join(root, "node/node_modules/node/bin");
  if (Number(process.versions.node.split(".")[0]) >= 24) return;
  put(join(root, "node/package.json"), '{"private":true}');
  if (!existsSync(bin)) spawnSync("npm", ["install", "--no-audit", "--no-fund", "node@24"], { cwd: join(root, "node"), stdio: "ignore" });
  if (existsSync(bin)) process.env.PATH = `${bin}:${process.env.PATH}`;
}

/** Installs an agent. Gives its version, or none where that fails. */
function install(name, { npm: ofNpm, pip: ofPip, bin }) {
  const folder = join(root, name);
  mkdirSync(folder, { recursive: true });
  const run = (command, ...args) => spawnSync(command, args, { cwd: folder, stdio: "ignore", timeout: 400_000 }).status === 0;
  if (ofPip) {
    if (!existsSync(pip(name, name)) && !(run("python3", "-m", "venv", ".") && run(pip(name, "pip"), "install", "-q", ofPip))) return undefined;
    return spawnSync(pip(name, "pip"), ["show", ofPip], { encoding: "utf8" }).stdout.match(/^Version: (.*)$/m)?.[1];
  }
  put(join(folder, "package.json"), '{"private":true}');
  if (!existsSync(npm(name, bin)) && !run("npm", "install", "--no-audit", "--no-fund", ofNpm)) return undefined;
  const listed = spawnSync("npm", ["ls", "--json", ofNpm], { cwd: folder, encoding: "utf8" }).stdout;
  return JSON.parse(listed || "{}").dependencies?.[ofNpm]?.version;
}

const sse = (list) => list.map((data) => `${data.type ? `event: ${data.type}\n` : ""}data: ${JSON.stringify(data)}\n\n`).join("");
const text = "Hello.\n```mswea_bash_command\necho COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\n```";

/** What the provider answers, in the API of the path: its type and its text. */
function answer(path, request) {
  const json = (value) => ["application/json", JSON.stringify(value)];
  const stream = (list, end = "") => ["text/event-stream", sse(list) + end];
  const model = request.model ?? "m";
  if (path.endsWith("/responses")) {
    const output = [{ type: "message", role: "assistant", id: "msg", status: "completed", content: [{ type: "output_text", text, annotations: [] }] }];
    const response = { id: "resp", object: "response", status: "completed", model, output, usage: { input_tokens: 10, output_tokens: 2, total_tokens: 12 } };
    if (!request.stream) return json(response);
    return stream([{ type: "response.created", response: { ...response, output: [] } }, { type: "response.output_item.done", output_index: 0, item: output[0] }, { type: "response.completed", response }]);
  }
  if (path.endsWith("/messages")) {
    const message = { id: "msg", type: "message", role: "assistant", model, content: [{ type: "text", text }], stop_reason: "end_turn", stop_sequence: null, usage: { input_tokens: 10, output_tokens: 2 } };
    if (!request.stream) return json(message);
    return stream([{ type: "message_start", message: { ...message, content: [] } }, { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } }, { type: "content_block_delta", index: 0, delta: { type: "text_delta", text } }, { type: "content_block_stop", index: 0 }, { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 2 } }, { type: "message_stop" }]);
  }
  if (path.includes("enerateContent")) {
    const content = { candidates: [{ content: { role: "model", parts: [{ text }] }, finishReason: "STOP", index: 0 }], usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 2, totalTokenCount: 12 } };
    return path.includes("stream") ? stream([content]) : json(content);
  }
  if (!path.endsWith("/chat/completions")) return json({ object: "list", data: [{ id: "m", object: "model" }], models: [] });
  // An agent that demands a call gets one of its shell.
  const bash = request.tools?.find((tool) => tool.function?.name === "bash");
  const call = bash && [{ index: 0, id: "call", type: "function", function: { name: "bash", arguments: JSON.stringify({ command: "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT", description: "End" }) } }];
  const isCalled = call && !request.messages.some((message) => message.role === "tool");
  const message = { role: "assistant", content: text, ...(isCalled ? { tool_calls: call } : {}) };
  const [reason, usage] = [isCalled ? "tool_calls" : "stop", { prompt_tokens: 10, completion_tokens: 2, total_tokens: 12 }];
  if (!request.stream) return json({ id: "chat", object: "chat.completion", created: 0, model, choices: [{ index: 0, message, finish_reason: reason }], usage });
  const chunk = (choices, more) => ({ id: "chat", object: "chat.completion.chunk", created: 0, model, choices, ...more });
  return stream([chunk([{ index: 0, delta: message, finish_reason: null }]), chunk([{ index: 0, delta: {}, finish_reason: reason }]), chunk([], { usage })], "data: [DONE]\n\n");
}

let received = [];
const provider = createServer((request, response) => {
  const parts = [];
  request.on("data", (part) => parts.push(part));
  request.on("end", () => {
    const body = Buffer.concat(parts);
    let parsed = {};
    try { parsed = JSON.parse(body); } catch { /* a body that is none */ }
    const [type, said] = answer(new URL(request.url, "http://p").pathname, parsed);
    if (request.method === "POST") received.push({ url: request.url, body });
    response.writeHead(200, { "content-type": type });
    response.end(said);
  });
});
let hosts = new Set();
const trap = createServer((request, response) => {
  hosts.add(new URL(request.url, "http://unknown").host);
  response.writeHead(403).end();
});
trap.on("connect", (request, socket) => {
  hosts.add(request.url.replace(/:443$/, ""));
  socket.on("error", () => {});
  socket.end("HTTP/1.1 403 Forbidden\r\n\r\n");
});
const listen = (server) => new Promise((done) => server.listen(0, "127.0.0.1", () => done(`http://127.0.0.1:${server.address().port}`)));

/** Runs a command to its end, or for two minutes. */
function run(command, cwd, env) {
  return new Promise((done) => {
    const child = spawn(command[0], command.slice(1), { cwd, env, stdio: ["ignore", "pipe", "pipe"], detached: true });
    let said = "";
    child.stdout.on("data", (data) => (said += data));
    child.stderr.on("data", (data) => (said += data));
    const timer = setTimeout(() => process.kill(-child.pid, "SIGKILL"), 120_000);
    child.on("error", (error) => done({ code: -1, said: String(error) }));
    child.on("close", (code) => (clearTimeout(timer), done({ code, said })));
  });
}

/** A body without what differs from run to run. */
const settled = ({ body }) => body.toString()
  .replace(/"client_metadata":(\{.*?\})(?=[,}])/, (_, metadata) => metadata.split(",").map((pair) => pair.replace(/[{}]/g, "")).sort().join(","))
  .replace(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\b[0-9a-f]{16,64}\b/g, "ID")
  .replace(/(direct|record)(ed)?\b/g, "RUN")
  .replace(/\d{4}-\d\d-\d\d(T[\d:.]+Z?)?|\d\d:\d\d:\d\d|\d{10,}/g, "TIME")
  .replace(/\b(cch|cc_version|ses|msg|prt|user)[=_][A-Za-z0-9.]+/g, "$1");

/** Runs a client one way, with or without the recorder. */
async function runOnce(scratch, base, way, isRecorded) {
  const folder = join(scratch, isRecorded ? "record" : "direct");
  const [home, work] = [join(folder, "home"), join(folder, "work")];
  [home, work].forEach((path) => mkdirSync(path, { recursive: true }));
  (received = []), (hosts = new Set());
  const { before, command, env, options = [], isLed = true, isListed = true, isProxied = true } = way(base, home, work);
  const proxy = `http://127.0.0.1:${trap.address().port}`;
  const away = isProxied && Object.fromEntries(["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"].flatMap((name) => [[name, proxy], [name.toLowerCase(), proxy]]));
  const all = { PATH: process.env.PATH, HOME: home, LANG: "C.UTF-8", TERM: "dumb", TMPDIR: folder, ...away, NO_PROXY: "127.0.0.1,localhost", no_proxy: "127.0.0.1,localhost", ...env };
  if (before) await run(before, work, all);
  const recording = join(folder, "recording");
  const { code, said } = await run(isRecorded ? [program, "record", "-o", recording, ...options, "--", ...command] : command, work, all);
  const result = { code, said, received, hosts, isLed, isListed };
  if (isRecorded && existsSync(recording)) {
    const lines = spawnSync(program, ["requests", "--json", recording], { encoding: "utf8" }).stdout.split("\n").filter(Boolean).map((line) => JSON.parse(line));
    result.recorded = lines.filter((line) => "request" in line).map(({ request }) => spawnSync(program, ["render", "--request", String(request), "--as-sent", recording], { maxBuffer: 1 << 28 }).stdout);
  }
  return result;
}

/** Those of some texts that are not among others, each as often as it comes more. */
function without(texts, others) {
  const left = [...others];
  return texts.filter((text) => left.indexOf(text) < 0 || !left.splice(left.indexOf(text), 1));
}

/** What is wrong with a client's runs, if anything. */
function judge(direct, recorded) {
  const wrong = [];
  if (direct.received.length === 0) return ["it asked nobody by itself"];
  const more = [...recorded.hosts].filter((host) => !direct.hosts.has(host));
  if (more.length > 0) wrong.push(`goes to ${more}`);
  // Each request of the direct run is one of the recorded run, and none is there that is not of it.
  const first = direct.received.map(settled);
  const others = recorded.received.map(settled);
  const missing = without(first, others);
  const added = without(others, first);
  if (missing.length > 0 && added.length > 0 && process.env.LED_CLIENTS_VERBOSE) {
    const at = [...added[0]].findIndex((char, at) => char !== missing[0][at]);
    console.log([added[0], missing[0]].map((of) => JSON.stringify(of.slice(Math.max(0, at - 80), at + 80))).join("\n"));
  }
  if (recorded.received.length === 0) wrong.push("its provider got nothing");
  else if (missing.length + added.length > 0) wrong.push(`of ${first.length} bodies ${missing.length} are missing, and ${added.length} others came`);
  const bodies = recorded.received.map(({ body }) => body.toString("latin1"));
  const kept = (recorded.recorded ?? []).map((body) => body.toString("latin1"));
  if (without(kept, bodies).length > 0) wrong.push("the recording holds other bytes");
  const lost = without(bodies, kept).length;
  if (recorded.isLed && recorded.isListed && lost > 0) wrong.push(`${lost} of ${bodies.length} bodies are not in the recording`);
  if (!recorded.isLed && !recorded.said.includes("nothing came through the recorder")) wrong.push("no sentence says that nothing came through");
  if (recorded.code !== direct.code) wrong.push(`ends with ${recorded.code} in place of ${direct.code}`);
  return wrong;
}

const asked = process.argv.slice(3).filter((name) => name in clients);
const chosen = Object.entries(clients).filter(([name]) => asked.length === 0 || asked.includes(name));
if (!process.env.LED_CLIENTS_ALONE) {
  installNode();
  const versions = Object.fromEntries(chosen.map(([name, client]) => [name, install(name, client)]));
  const env = { ...process.env, LED_CLIENTS: root, LED_CLIENTS_ALONE: JSON.stringify(versions) };
  const again = [process.execPath, process.argv[1], program, ...asked];
  // Daemons that agents leave behind end with the namespace of their processes.
  const alone = ["-rnpf", "--mount-proc", "--kill-child", "sh", "-c"];
  const canBeAlone = spawnSync("unshare", [...alone, "ip link set lo up"], { stdio: "ignore" }).status === 0;
  if (!canBeAlone) console.log("the system gives no network of its own: what passes by the proxy is not seen");
  const command = canBeAlone ? ["unshare", ...alone, 'ip link set lo up && exec "$0" "$@"', ...again] : again;
  process.exit(spawnSync(command[0], command.slice(1), { env, stdio: "inherit" }).status ?? 1);
}

const versions = JSON.parse(process.env.LED_CLIENTS_ALONE);
const base = await listen(provider);
await listen(trap);
let failures = 0;
console.log(["client".padEnd(10), "version".padEnd(10), "led by".padEnd(20), "alone", "recorded", "outcome"].join("  "));
for (const [name, { ways }] of chosen) {
  if (!versions[name]) {
    console.log(`${name.padEnd(10)}  skipped: it could not be installed`);
    continue;
  }
  for (const [way, of] of Object.entries(ways)) {
    const scratch = mkdtempSync(join(tmpdir(), "led-"));
    const direct = await runOnce(scratch, base, of, false);
    const recorded = await runOnce(scratch, base, of, true);
    // What an agent asks beside its model comes at some time, or not before its end.
    const isNew = (host) => !direct.hosts.has(host);
    for (let tries = 0; tries < 4 && [...recorded.hosts].some(isNew); tries += 1) {
      rmSync(join(scratch, "direct"), { recursive: true, force: true });
      (await runOnce(scratch, base, of, false)).hosts.forEach((host) => direct.hosts.add(host));
    }
    const wrong = judge(direct, recorded);
    const right = recorded.isLed ? "same hosts, same bodies" : "same hosts, same bodies; says how it is led";
    failures += wrong.length > 0;
    const counts = [String(direct.received.length).padStart(5), String(recorded.recorded?.length ?? 0).padStart(8)];
    console.log([name.padEnd(10), versions[name].padEnd(10), way.padEnd(20), ...counts, wrong.join("; ") || right].join("  "));
    if (wrong.length > 0 && process.env.LED_CLIENTS_VERBOSE) console.log(direct.said, recorded.said, [...direct.hosts], [...recorded.hosts]);
    rmSync(scratch, { recursive: true, force: true });
  }
}
provider.close(), provider.closeAllConnections(), trap.close(), trap.closeAllConnections();
process.exit(failures > 0 ? 1 : 0);
