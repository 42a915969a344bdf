#!/usr/bin/env node
// Runs the newest versions of real agents by themselves and through `afterimage record`; see `clients`.
import { spawn, spawnSync } from "node:child_process";
import { createServer } from "node:http";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { scriptedProvider } from "./clients-provider.mjs";

const options = process.argv.slice(3).filter((word) => word.startsWith("--"));
const asked = process.argv.slice(3).filter((word) => !word.startsWith("--"));
const program = resolve(process.argv[2]);
const root = resolve(process.env.CLIENTS ?? join(process.env.CARGO_TARGET_DIR ?? "target", "agents"));
const keep = options.find((word) => word.startsWith("--keep="))?.slice("--keep=".length);
const baselinePath = join(import.meta.dirname, "clients.json");
const prompts = ["List the files and show a.txt — say “ja”.", "Second prompt: look again 🙂."];

/** Writes a file of a user. */
function put(path, text) {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, typeof text === "string" ? text : JSON.stringify(text));
}
const npm = (name, bin) => join(root, name, "node_modules/.bin", bin);
const pip = (name, bin) => join(root, name, "bin", bin);
const [first, second] = prompts;

const quiet = ["--no-show-model-warnings", "--no-check-update", "--analytics-disable", "--no-git", "--yes-always", "--no-show-release-notes"];
const aider = (...more) => [pip("aider", "aider"), "--model", "openai/m", ...quiet, ...more];
const aiders = [aider("--message", first), aider("--restore-chat-history", "--message", second)];
const mini = (work) => [[pip("mini", "mini"), "-y", "--exit-immediately", "-m", "openai/m", "-t", first, "-l", "0", "-o", join(work, "trajectory.json")]];
const litellm = { OPENAI_API_KEY: "x", LITELLM_LOCAL_MODEL_COST_MAP: "True", MSWEA_CONFIGURED: "true", MSWEA_COST_TRACKING: "ignore_errors", MSWEA_SILENT_STARTUP: "1" };
const llm = (...more) => [pip("llm", "llm"), ...more, "--key", "x"];
const shellOfLlm = 'def shell(command: str) -> str:\n    "Runs a command"\n    import subprocess\n    return subprocess.run(command, shell=True, capture_output=True, text=True).stdout\n';
const qwen = [[npm("qwen", "qwen"), "-y", "-p", first], [npm("qwen", "qwen"), "-y", "-c", "-p", second]];
const qwenSettings = (home) => put(join(home, ".qwen/settings.json"), { security: { auth: { selectedType: "openai" } }, telemetry: { enabled: false }, privacy: { usageStatisticsEnabled: false } });
const claudes = [[], ["-c"]].map((more, at) => [npm("claude", "claude"), ...more, "-p", prompts[at], "--model", "claude-sonnet-4-5", "--allowedTools", "Bash"]);
const anthropic = { ANTHROPIC_API_KEY: "sk-ant-dummy", DISABLE_TELEMETRY: "1", DISABLE_AUTOUPDATER: "1", CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1" };
const codexes = [["exec"], ["exec", "resume", "--last"]].map((more, at) => [npm("codex", "codex"), ...more, "--skip-git-repo-check", prompts[at]]);
const codexSettings = (home, text) => put(join(home, ".codex/config.toml"), text);
const codexProvider = (name, base) => `name = "local"\nbase_url = "${base}/v1"\nenv_key = "DUMMY"\nwire_api = "responses"\n`;
const opencodes = [["run", first], ["run", "-c", second]].map((words) => [npm("opencode", "opencode"), ...words]);
const opencodeSettings = (home, more) => put(join(home, ".config/opencode/opencode.json"), { autoupdate: false, share: "disabled", model: "local/m", small_model: "local/m", provider: { local: { npm: "@ai-sdk/openai-compatible", options: { apiKey: "x", ...more }, models: { m: { tool_call: true, reasoning: true, limit: { context: 128000, output: 4096 } } } } } });
const opencodeEnv = { OPENCODE_DISABLE_MODELS_FETCH: "1", OPENCODE_DISABLE_AUTOUPDATE: "1", OPENCODE_DISABLE_LSP_DOWNLOAD: "1" };
const free = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };

// Each agent: its package, where its transcript lies, by what words that is refused where no reader knows it,
// which members of its logged requests that lacks, and ways to lead it, of which the first is the one of the
// table. A way gives the commands that are run one after the other, their environment, options of the recorder,
// whether the recorder leads it, and whether it reaches loopback beside a proxy.
const clients = {
  claude: { npm: "@anthropic-ai/claude-code", transcript: ".claude/projects/*/*.jsonl", ways: {
    variable: (base) => ({ commands: claudes, env: { ...anthropic, ANTHROPIC_BASE_URL: base } }),
    settings: (base, home) => (put(join(home, ".claude/settings.json"), { env: { ANTHROPIC_BASE_URL: base } }), { commands: claudes, env: anthropic }),
  } },
  codex: { npm: "@openai/codex", transcript: ".codex/sessions/*/*/*/*.jsonl", ways: {
    configuration: (base, home) => (codexSettings(home, `model = "gpt-5"\nmodel_provider = "local"\n[model_providers.local]\n${codexProvider("local", base)}`), { commands: codexes, env: { DUMMY: "x" } }),
    "a name with a dot": (base, home) => (codexSettings(home, `model = "gpt-5"\nmodel_provider = "my.local"\n[model_providers."my.local"]\n${codexProvider("local", base)}`), { commands: codexes, env: { DUMMY: "x" } }),
  } },
  pi: { npm: "@earendil-works/pi-coding-agent", transcript: ".pi/agent/sessions/*/*.jsonl", unlogged: ["store", "max_completion_tokens"], ways: {
    configuration: (base, home) => (put(join(home, ".pi/agent/models.json"), { providers: { local: { baseUrl: `${base}/v1`, api: "openai-completions", apiKey: "x", models: [{ id: "m", name: "m", reasoning: true, input: ["text"], cost: free, contextWindow: 128000, maxTokens: 4096 }] } } }), { commands: [[], ["-c"]].map((more, at) => [npm("pi", "pi"), "--provider", "local", "--model", "m", ...more, "-p", prompts[at]]), env: { PI_TELEMETRY: "0", PI_OFFLINE: "1" } }),
  } },
  gemini: { npm: "@google/gemini-cli", transcript: ".gemini/tmp/*/chats/*.json*", ways: {
    variable: (base, home) => (put(join(home, ".gemini/settings.json"), { security: { auth: { selectedType: "gemini-api-key" } }, telemetry: { enabled: false }, privacy: { usageStatisticsEnabled: false } }), { commands: [[], ["-r", "latest"]].map((more, at) => [npm("gemini", "gemini"), "-y", "-m", "gemini-2.5-pro", ...more, "-p", prompts[at]]), env: { GEMINI_API_KEY: "x", GOOGLE_GEMINI_BASE_URL: base, GEMINI_CLI_TRUST_WORKSPACE: "true" } }),
  } },
  opencode: { npm: "opencode-ai", transcript: ".local/share/opencode/opencode.db", ways: {
    configuration: (base, home) => (opencodeSettings(home, { baseURL: `${base}/v1` }), { commands: opencodes, env: opencodeEnv }),
    "of the folder": (base, home, work) => (opencodeSettings(home, {}), put(join(work, "opencode.jsonc"), `{ // mine\n "provider": {"local": {"api": "${base}/v1"},} }`), { commands: opencodes, env: opencodeEnv }),
    "{env:NAME}": (base, home) => (opencodeSettings(home, { baseURL: "{env:LOCAL_BASE}" }), { commands: opencodes, env: { ...opencodeEnv, LOCAL_BASE: `${base}/v1` }, options: ["--env", `LOCAL_BASE=${base}/v1`] }),
  } },
  copilot: { npm: "@github/copilot", transcript: ".copilot/session-state/*/events.jsonl", ways: {
    variable: (base) => ({ commands: [[], ["--continue"]].map((more, at) => [npm("copilot", "copilot"), ...more, "--allow-all-tools", "-p", prompts[at]]), env: { COPILOT_PROVIDER_BASE_URL: `${base}/v1`, COPILOT_OFFLINE: "true", COPILOT_MODEL: "m", COPILOT_PROVIDER_API_KEY: "x", COPILOT_AUTO_UPDATE: "false" } }),
  } },
  cline: { npm: "cline", transcript: ".cline/data/sessions/*/*.messages.json", ways: {
    configuration: (base) => ({ before: [npm("cline", "cline"), "auth", "-p", "openai", "-k", "x", "-m", "m", "-b", `${base}/v1`], commands: [[npm("cline", "cline"), "-P", "openai", "-m", "m", "--auto-approve", "true", first]], env: {}, isLed: false }),
  } },
  qwen: { npm: "@qwen-code/qwen-code", transcript: ".qwen/projects/*/chats/*.jsonl", ways: {
    variable: (base, home) => (qwenSettings(home), { commands: qwen, env: { OPENAI_API_KEY: "x", OPENAI_MODEL: "m", OPENAI_BASE_URL: `${base}/v1` }, isProxied: false }),
    "~/.qwen/.env": (base, home) => (qwenSettings(home), put(join(home, ".qwen/.env"), `OPENAI_API_KEY=x\nOPENAI_BASE_URL="${base}/v1"\nOPENAI_MODEL=m\n`), { commands: qwen, env: {}, isProxied: false }),
  } },
  kimi: { npm: "@moonshot-ai/kimi-code", transcript: ".kimi-code/sessions/*/*/agents/main/wire.jsonl", unlogged: ["max_tokens"], ways: {
    configuration: (base, home) => (put(join(home, ".kimi-code/config.toml"), `default_model = "m"\n[providers.local]\ntype = "openai"\nbase_url = "${base}/v1"\napi_key = "x"\n[models.m]\nprovider = "local"\nmodel = "m"\nmax_context_size = 128000\n`), { commands: [[], ["-c"]].map((more, at) => [npm("kimi", "kimi"), ...more, "-p", prompts[at]]), env: { KIMI_DISABLE_TELEMETRY: "1" } }),
  } },
  continue: { npm: "@continuedev/cli", bin: "cn", transcript: ".continue/sessions/*-*.json", ways: {
    configuration: (base, home) => (put(join(home, ".continue/config.yaml"), `name: local\nversion: 0.0.1\nschema: v1\nmodels:\n  - name: m\n    provider: openai\n    model: m\n    apiBase: ${base}/v1\n    apiKey: x\n    roles: [chat]\n    capabilities: [tool_use]\n`), { commands: [[], ["--resume"]].map((more, at) => [npm("continue", "cn"), "--config", join(home, ".continue/config.yaml"), "--auto", ...more, "-p", prompts[at]]), env: { CONTINUE_TELEMETRY_ENABLED: "0" } }),
  } },
  aider: { pip: "aider-chat", transcript: "work/.aider.chat.history.md", isRefused: /a chat history of aider/, ways: {
    variable: (base) => ({ commands: aiders, env: { ...litellm, OPENAI_API_BASE: `${base}/v1` } }),
    "preferred variable": (base) => ({ commands: aiders, env: { ...litellm, OPENAI_API_BASE: "http://127.0.0.1:9/v1", OPENAI_BASE_URL: `${base}/v1` } }),
    ".env": (base, home, work) => (put(join(work, ".env"), `OPENAI_API_BASE=${base}/v1\n`), { commands: aiders, env: litellm }),
    ".env of the user": (base, home) => (put(join(home, ".env"), `export OPENAI_API_BASE='${base}/v1'\r\n`), { commands: aiders, env: litellm }),
    ".aider.conf.yml": (base, home, work) => (put(join(work, ".aider.conf.yml"), `openai-api-base: ${base}/v1\n`), { commands: aiders, env: litellm }),
    "--env": (base) => ({ commands: aiders, env: { ...litellm, OPENAI_API_BASE: `${base}/v1` }, options: ["--env", `OPENAI_API_BASE=${base}/v1`] }),
    "sh -c": (base) => ({ commands: [["sh", "-c", 'exec "$0" "$@"', ...aiders[0]]], env: { ...litellm, OPENAI_API_BASE: `${base}/v1` } }),
  } },
  mini: { pip: "mini-swe-agent", transcript: "work/trajectory.json", isFinishing: true, ways: {
    variable: (base, home, work) => ({ commands: mini(work), env: { ...litellm, OPENAI_API_BASE: `${base}/v1` } }),
    "its own .env": (base, home, work) => (put(join(home, ".config/mini-swe-agent/.env"), `OPENAI_API_BASE='${base}/v1'\n`), { commands: mini(work), env: litellm }),
  } },
  llm: { pip: "llm", transcript: ".config/io.datasette.llm/logs.db", isRefused: /the database of llm/, ways: {
    configuration: (base, home) => {
      const folder = join(home, ".config/io.datasette.llm");
      put(join(folder, "extra-openai-models.yaml"), `- model_id: local\n  model_name: m\n  api_base: ${base}/v1\n  api_key_name: x\n  supports_tools: true\n`);
      put(join(folder, "shell.py"), shellOfLlm);
      return { commands: [llm("-m", "local", "--functions", join(folder, "shell.py"), first), llm("-c", second)], env: {} };
    },
    variable: (base) => ({ commands: [llm("-m", "gpt-4o-mini", first)], env: { OPENAI_BASE_URL: `${base}/v1` } }),
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

/** Installs an agent at a version, or the newest one. Gives the version that is there then, or none. */
function install(name, { npm: ofNpm, pip: ofPip }, version) {
  const folder = join(root, name);
  mkdirSync(folder, { recursive: true });
  const run = (command, ...args) => spawnSync(command, args, { cwd: folder, stdio: "ignore", timeout: 400_000 }).status === 0;
  const isKept = options.includes("--installed");
  if (ofPip) {
    const wanted = version ? `${ofPip}==${version}` : ofPip;
    const isThere = existsSync(pip(name, "pip")) || run("python3", "-m", "venv", ".");
    if (!isKept && isThere) run(pip(name, "pip"), "install", "-q", "-U", wanted);
    return spawnSync(pip(name, "pip"), ["show", ofPip], { encoding: "utf8" }).stdout?.match(/^Version: (.*)$/m)?.[1];
  }
  if (!existsSync(join(folder, "package.json"))) put(join(folder, "package.json"), '{"private":true}');
  if (!isKept) run("npm", "install", "--no-audit", "--no-fund", `${ofNpm}@${version ?? "latest"}`);
  const path = join(folder, "node_modules", ofNpm, "package.json");
  return existsSync(path) ? JSON.parse(readFileSync(path, "utf8")).version : undefined;
}

const provider = scriptedProvider();
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
    child.on("exit", (code) => (clearTimeout(timer), setTimeout(() => done({ code, said }), 100)));
  });
}

/** Standard output and standard error of afterimage. */
function afterimage(...args) {
  const { stdout, stderr, status } = spawnSync(program, args, { maxBuffer: 1 << 28 });
  return { out: stdout, err: stderr.toString(), status };
}

/** The rows of `afterimage requests --json`, and the sums behind them. */
function requestsOf(path) {
  const { out, err, status } = afterimage("requests", "--json", path);
  const lines = out.toString().split("\n").filter(Boolean).map((line) => JSON.parse(line));
  return { rows: lines.filter((line) => "request" in line), sums: lines.find((line) => line.usage?.total)?.usage.total, err, status };
}

/** A body without what differs from run to run. */
const settled = ({ body }) => body.toString()
  .replace(/"client_metadata":(\{.*?\})(?=[,}])/, (_, metadata) => metadata.split(",").map((pair) => pair.replace(/[{}]/g, "")).sort().join(","))
  .replace(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\b[0-9a-f]{16,64}\b/g, "ID")
  .replace(/(PGID: )\d+/g, "$1ID")
  .replace(/(Chunk ID: |"chunk_id":\s*")[0-9a-f]+/g, "$1ID")
  .replace(/\b(direct|record)(ed)?\b/g, "RUN")
  .replace(/\d+(\.\d+)? ?(milliseconds|seconds|ms)\b/g, "TIME")
  .replace(/\d{4}-\d\d-\d\d(T[\d:.]+Z?)?|\d\d?:\d\d:\d\d( [AP]M)?|\d{10,}/g, "TIME")
  .replace(/\b(cch|cc_version|ses|msg|prt|user)[=_][A-Za-z0-9.]+/g, "$1");

/** Runs the commands of a way one after the other, with or without the recorder. */
async function runOnce(scratch, base, client, way, isRecorded, isWhole) {
  const folder = join(scratch, isRecorded ? "record" : "direct");
  const [home, work] = [folder, join(folder, "work")];
  [home, work].forEach((path) => mkdirSync(path, { recursive: true }));
  put(join(work, "a.txt"), "hello\n");
  provider.begin(client.isFinishing), (hosts = new Set());
  const { before, commands, env, options: more = [], isLed = true, isProxied = true } = way(base, home, work);
  const proxy = `http://127.0.0.1:${trap.address().port}`;
  const away = isProxied && Object.fromEntries(["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"].flatMap((name) => [[name, proxy], [name.toLowerCase(), proxy]]));
  const all = { PATH: process.env.PATH, HOME: home, LANG: "C.UTF-8", TERM: "dumb", TMPDIR: folder, ...away, NO_PROXY: "127.0.0.1,localhost", no_proxy: "127.0.0.1,localhost", ...env };
  if (before) await run(before, work, all);
  const recording = join(folder, "recording");
  const ran = [];
  for (const command of isWhole ? commands : commands.slice(0, 1)) {
    ran.push(await run(isRecorded ? [program, "record", "-o", recording, ...more, "--", ...command] : command, work, all));
  }
  put(join(folder, "received.json"), JSON.stringify(provider.received().map(({ body, parsed: _, ...of }) => ({ ...of, body: body.toString() })), null, 1));
  const result = { home, codes: ran.map(({ code }) => code), said: ran.map(({ said }) => said).join("\n"), received: provider.received(), hosts, isLed };
  result.recorded = !existsSync(recording) ? [] : requestsOf(recording).rows.map(({ request }) => afterimage("render", "--request", String(request), "--as-sent", recording).out);
  return result;
}

/** Those of some texts that are not among others, each as often as it comes more. */
function without(texts, others) {
  const left = [...others];
  return texts.filter((text) => left.indexOf(text) < 0 || !left.splice(left.indexOf(text), 1));
}

/** The paths of a pattern, whose parts are names in which `*` stands for anything. */
function glob(folder, pattern) {
  const [part, ...rest] = pattern.split("/");
  if (!existsSync(folder) || !statSync(folder).isDirectory()) return [];
  const is = new RegExp(`^${part.split("*").map((text) => text.replace(/\W/g, "\\$&")).join(".*")}$`);
  const found = readdirSync(folder).filter((name) => is.test(name)).map((name) => join(folder, name));
  return rest.length === 0 ? found : found.flatMap((path) => glob(path, rest.join("/")));
}

/** Compares how an agent is led with how it goes alone. A share of 1 is right. */
function compare(direct, recorded) {
  const [alone, led] = [direct, recorded].map(({ received }) => received.map(settled));
  const [missing, added] = [without(alone, led), without(led, alone)];
  if (missing.length > 0 && added.length > 0 && options.includes("--verbose")) {
    const at = [...added[0]].findIndex((char, at) => char !== missing[0][at]);
    console.log([added[0], missing[0]].map((of) => JSON.stringify(of.slice(Math.max(0, at - 80), at + 80))).join("\n"));
  }
  const generations = recorded.received.filter(({ n }) => n !== undefined).map(({ body }) => body.toString("latin1"));
  const lost = without(generations, recorded.recorded.map((body) => body.toString("latin1"))).length;
  const hosts = [...recorded.hosts].filter((host) => !direct.hosts.has(host));
  const share = (wrong, all) => (all === 0 ? 0 : (all - wrong) / all);
  return {
    led: recorded.isLed ? (recorded.recorded.length > 0 ? 1 : 0) : recorded.said.includes("nothing came through the recorder") ? "sentence" : 0,
    recorded: recorded.isLed ? share(lost, generations.length) : "–",
    same: Math.min(share(missing.length, alone.length), share(added.length, led.length)),
    hosts: hosts.length === 0 ? 1 : 0,
    ends: String(direct.codes) === String(recorded.codes) ? 1 : 0,
    others: hosts,
  };
}

/** A body as JSON without what is sent and written nowhere else, also by this client, in one order. */
function essence(body, unlogged) {
  const dropped = new Set(["cache_control", "metadata", "stream", "stream_options", "prompt_cache_key", "client_metadata", ...unlogged]);
  const sorted = (value) => {
    if (Array.isArray(value)) return value.filter((of) => !/^x-anthropic-billing-header/.test(of?.text ?? "")).map(sorted);
    if (value === null || typeof value !== "object") return value;
    return Object.fromEntries(Object.keys(value).filter((key) => !dropped.has(key)).sort().map((key) => [key, sorted(value[key])]));
  };
  try { return JSON.stringify(sorted(JSON.parse(body))); } catch { return ""; }
}

/** Compares what a transcript holds with what the provider received and said. */
function compareTranscript(path, received, { isRefused = /$^/, unlogged = [] }) {
  const whole = afterimage("render", "--whole", path);
  const [transcript, usage] = isRefused.test(whole.err) ? ["sentence", "–"] : [0, 0];
  if (whole.status !== 0) return { transcript, requests: "–", usage, why: whole.err.split("\n")[0] };
  const text = whole.out.toString();
  const answered = received.filter(({ plan }) => plan);
  const said = answered.filter(({ plan }) => !plan.isBeside);
  const calls = said.filter(({ plan }) => /CALL-/.test(JSON.stringify(plan.call ?? "")));
  const marks = [...said.map(({ n }) => `ANS-${n}`), ...calls.map(({ n }) => `CALL-${n}`), ...calls.map(({ n }) => `OUT-${n}`)];
  const prompted = prompts.filter((prompt) => received.some(({ parsed }) => JSON.stringify(parsed).includes(prompt)));
  const lost = [...marks.filter((mark) => !new RegExp(`${mark}(?!\\d)`).test(text)), ...prompted.filter((prompt) => !text.includes(prompt))];
  const { rows, sums } = requestsOf(path);
  const logged = rows.filter(({ provenance }) => provenance === "logged" || provenance === "sent");
  const bodies = logged.map(({ request }) => essence(afterimage("render", "--request", String(request), path).out.toString(), unlogged));
  const different = without(bodies, received.map(({ body }) => essence(body.toString(), unlogged))).length;
  const sum = (of, name) => of.reduce((total, { usage }) => total + usage[name], 0);
  const isSum = (of) => sums && sums.input === sum(of, "input") && sums.output === sum(of, "output") && (sums.cacheRead ?? 0) === sum(of, "cached");
  const isEqual = isSum(answered) || isSum(said);
  return {
    transcript: 1 - lost.length / (marks.length + prompted.length),
    requests: logged.length === 0 ? "–" : (logged.length - different) / Math.max(logged.length, said.length),
    usage: isEqual ? 1 : 0,
    why: [lost.length > 0 && `not in the transcript: ${lost.join(" ")}`, !isEqual && `usage ${sums?.input}, ${sums?.cacheRead}, ${sums?.output} in place of ${sum(said, "input")}, ${sum(said, "cached")}, ${sum(said, "output")}`, isEqual && !isSum(answered) && `${answered.length - said.length} beside the conversation are not counted`].filter(Boolean).join("; "),
  };
}

const wanted = Object.fromEntries(asked.map((word) => word.split("@")));
const chosen = Object.entries(clients).filter(([name]) => asked.length === 0 || name in wanted);
if (!process.env.CLIENTS_ALONE) {
  installNode();
  const versions = Object.fromEntries(chosen.map(([name, client]) => [name, install(name, client, wanted[name])]));
  const env = { ...process.env, CLIENTS: root, CLIENTS_ALONE: JSON.stringify(versions) };
  const again = [process.execPath, ...process.argv.slice(1)];
  // Daemons that agents leave behind end with the namespace of their processes.
  const alone = ["-rnpf", "--mount-proc", "--kill-child", "sh", "-c"];
  const canBeAlone = spawnSync("unshare", [...alone, "ip link set lo up"], { stdio: "ignore" }).status === 0;
  if (!canBeAlone) console.log("the system gives no network of its own: what passes by the proxy is not seen");
  const command = canBeAlone ? ["unshare", ...alone, 'ip link set lo up && exec "$0" "$@"', ...again] : again;
  process.exit(spawnSync(command[0], command.slice(1), { env, stdio: "inherit" }).status ?? 1);
}

const columns = ["led", "recorded", "same", "hosts", "ends", "transcript", "requests", "usage"];
const versions = JSON.parse(process.env.CLIENTS_ALONE);
const baseline = existsSync(baselinePath) ? JSON.parse(readFileSync(baselinePath, "utf8")) : {};
const base = await listen(provider.server);
await listen(trap);
const worse = [];
const isWorse = (was, is) => was !== undefined && was !== "–" && is !== was && !(is > was) && is !== 1;
const shown = (value) => (value === 1 ? "yes" : value === 0 ? "no" : typeof value === "number" ? `${Math.round(100 * value)} %` : value ?? "");
console.log(["client".padEnd(10), "version".padEnd(9), "way".padEnd(18), ...columns.map((name) => name.padEnd(10)), "notes"].join("  "));
for (const [name, client] of chosen) {
  if (!versions[name]) {
    console.log(`${name.padEnd(10)}  skipped: it could not be installed`);
    if (baseline[name]) worse.push(`${name}: it could not be installed`);
    continue;
  }
  for (const [way, of] of Object.entries(client.ways)) {
    const isMain = of === Object.values(client.ways)[0];
    if (!isMain && options.includes("--main")) continue;
    const scratch = keep ? resolve(keep, name, way.replace(/[^\w.-]+/g, "-")) : mkdtempSync(join(tmpdir(), "clients-"));
    const known = baseline[name]?.[way] ?? {};
    let direct, recorded, found, losses;
    // On a busy machine some agents lose the output of a command by themselves.
    for (let tries = 0; tries < 2 && losses?.length !== 0; tries += 1) {
      rmSync(scratch, { recursive: true, force: true });
      direct = await runOnce(scratch, base, client, of, false, isMain);
      recorded = await runOnce(scratch, base, client, of, true, isMain);
      found = compare(direct, recorded);
      // What an agent asks beside its model comes at some time, or not before its end.
      for (let more = 0; more < 3 && found.hosts === 0; more += 1) {
        rmSync(join(scratch, "direct"), { recursive: true, force: true });
        (await runOnce(scratch, base, client, of, false, isMain)).hosts.forEach((host) => direct.hosts.add(host));
        found.hosts = found.others.every((host) => direct.hosts.has(host)) ? 1 : 0;
      }
      if (isMain) {
        const path = glob(recorded.home, client.transcript)[0];
        Object.assign(found, path ? compareTranscript(path, recorded.received, client) : { transcript: 0, requests: "–", usage: 0, why: `there is no ${client.transcript}` });
      }
      losses = columns.filter((column) => isWorse(known[column], found[column]));
    }
    losses.forEach((column) => worse.push(`${name}, ${way}: ${column} was ${shown(known[column])}, and is ${shown(found[column])}`));
    const kept = Object.fromEntries(columns.filter((column) => found[column] !== undefined).map((column) => [column, found[column]]));
    baseline[name] = { ...baseline[name], [way]: kept };
    const counts = `${direct.received.length}/${recorded.received.length} requests`;
    console.log([name.padEnd(10), versions[name].padEnd(9), way.padEnd(18), ...columns.map((column) => shown(found[column]).padEnd(10)), [counts, found.hosts === 0 && `goes to ${found.others}`, found.why].filter(Boolean).join("; ")].join("  "));
    if (options.includes("--verbose")) console.log(direct.said, recorded.said);
    if (!keep) rmSync(scratch, { recursive: true, force: true });
  }
}
provider.server.close(), provider.server.closeAllConnections(), trap.close(), trap.closeAllConnections();
if (options.includes("--bless")) writeFileSync(baselinePath, `${JSON.stringify(baseline, null, 1)}\n`);
else worse.forEach((text) => console.log(`worse: ${text}`));
process.exit(worse.length > 0 && !options.includes("--bless") ? 1 : 0);
