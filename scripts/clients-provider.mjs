// A provider on loopback for agents: it speaks chat completions, Responses, Messages and Gemini, whole and
// as a stream. Each prompt gets two calls of a shell and then a sentence; the second generation fails
// with 500 and the fifth with 429. What it says carries marks, which tell what a transcript holds:
// `ANS-n` in a text, `CALL-n` in a call, `OUT-n` in the result of that call alone.
import { createServer } from "node:http";
import { gunzipSync } from "node:zlib";

const failures = { 2: 500, 5: 429 };
const steps = 2;
const finish = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT";
const shells = /shell|bash|command|exec|terminal/i;

/** What the n-th generation costs. */
const usage = (n) => ({ input: 1000 + 100 * n, cached: 600, output: 20 + n, reasoning: 5 });

/** The tools of a request: their names and the schemas of what they take. */
function toolsOf(request) {
  return (request.tools ?? []).flatMap((tool) => {
    if (tool.functionDeclarations) return tool.functionDeclarations.map((of) => [of.name, of.parametersJsonSchema ?? of.parameters]);
    if (tool.function) return [[tool.function.name, tool.function.parameters]];
    return tool.name ? [[tool.name, tool.parameters ?? tool.input_schema]] : [];
  });
}

/** How many results a request holds since the last prompt of the user. */
function results(request) {
  const isResult = (message) => {
    const parts = [message.content, message.parts].flat().filter((part) => part && typeof part === "object");
    return message.role === "tool" || /_output$/.test(message.type ?? "") || parts.some((part) => part.type === "tool_result" || part.functionResponse);
  };
  const messages = [request.messages, request.input, request.contents].find(Array.isArray) ?? [];
  return messages.reduce((count, message) => (isResult(message) ? count + 1 : message.role === "user" ? 0 : count), 0);
}

/** The arguments of a call that runs a command. */
function argumentsOf(schema, command) {
  const required = schema?.required ?? [];
  const value = (name, of) => {
    const type = [of?.type].flat()[0];
    if (/^(command|cmd|script)$/.test(name)) return type === "array" ? ["bash", "-lc", command] : command;
    if (name === "commands") return [command];
    if (of?.enum) return of.enum[0];
    return { boolean: false, integer: 30, number: 30, array: [], object: {} }[type] ?? "looks";
  };
  const asked = Object.entries(schema?.properties ?? {}).filter(([name]) => required.includes(name) || /^(command|commands|cmd|script)$/.test(name));
  return Object.fromEntries(asked.map(([name, of]) => [name, value(name, of)]));
}

/** What the n-th generation says: a text, and a call where one is due. One without a shell is beside the
 * conversation: a title, say, which an agent may neither keep nor count. */
function plan(request, n, isFinishing) {
  const tools = toolsOf(request);
  const shell = tools.find(([name]) => shells.test(name));
  const done = results(request);
  if (!shell) return { text: `ANS-${n}: the file a.txt holds hello.`, isBeside: true };
  if (done >= steps && !isFinishing) return { text: `ANS-${n}: Done. One file, “a.txt”.`, thought: `THK-${n}: enough` };
  const command = done >= steps ? finish : `: CALL-${n}; cat a.txt; printf 'OUT-%s\\n' ${n}`;
  return { text: `ANS-${n}: I look — step ${done + 1}.`, thought: `THK-${n}: weigh the steps 🙂`, call: { name: shell[0], args: argumentsOf(shell[1], command) } };
}

const json = (value) => ["application/json", JSON.stringify(value)];
const stream = (list, end = "") => ["text/event-stream", list.map((data) => `${data.type ? `event: ${data.type}\n` : ""}data: ${JSON.stringify(data)}\n\n`).join("") + end];

function chat(request, n, { text, thought, call }) {
  const of = usage(n);
  const spent = { prompt_tokens: of.input, completion_tokens: of.output, total_tokens: of.input + of.output, prompt_tokens_details: { cached_tokens: of.cached }, completion_tokens_details: { reasoning_tokens: thought ? of.reasoning : 0 } };
  const calls = call && [{ index: 0, id: `call_${n}`, type: "function", function: { name: call.name, arguments: JSON.stringify(call.args) } }];
  const message = { role: "assistant", content: text, ...(thought && { reasoning_content: thought }), ...(calls && { tool_calls: calls }) };
  const [reason, base] = [calls ? "tool_calls" : "stop", { id: `chatcmpl-${n}`, created: 1_700_000_000, model: request.model ?? "m" }];
  if (!request.stream) return json({ ...base, object: "chat.completion", choices: [{ index: 0, message, finish_reason: reason }], usage: spent });
  const chunk = (choices, more) => ({ ...base, object: "chat.completion.chunk", choices, ...more });
  return stream([chunk([{ index: 0, delta: message, finish_reason: null }]), chunk([{ index: 0, delta: {}, finish_reason: reason }]), chunk([], { usage: spent })], "data: [DONE]\n\n");
}

function responses(request, n, { text, thought, call }) {
  const of = usage(n);
  const output = [
    thought && { type: "reasoning", id: `rs_${n}`, summary: [{ type: "summary_text", text: thought }], encrypted_content: `ENC${n}==` },
    { type: "message", role: "assistant", id: `msg_${n}`, status: "completed", content: [{ type: "output_text", text, annotations: [] }] },
    call && { type: "function_call", id: `fc_${n}`, call_id: `call_${n}`, name: call.name, arguments: JSON.stringify(call.args), status: "completed" },
  ].filter(Boolean);
  const spent = { input_tokens: of.input, input_tokens_details: { cached_tokens: of.cached }, output_tokens: of.output, output_tokens_details: { reasoning_tokens: of.reasoning }, total_tokens: of.input + of.output };
  const response = { id: `resp_${n}`, object: "response", created_at: 1_700_000_000, status: "completed", model: request.model, output, usage: spent };
  if (!request.stream) return json(response);
  const items = output.map((item, output_index) => ({ type: "response.output_item.done", output_index, item }));
  return stream([{ type: "response.created", response: { ...response, output: [] } }, ...items, { type: "response.completed", response }]);
}

function messages(request, n, { text, call }) {
  const of = usage(n);
  const spent = { input_tokens: of.input - of.cached, cache_creation_input_tokens: 0, cache_read_input_tokens: of.cached, output_tokens: of.output };
  const content = [{ type: "text", text }, call && { type: "tool_use", id: `toolu_${n}`, name: call.name, input: call.args }].filter(Boolean);
  const stop = { stop_reason: call ? "tool_use" : "end_turn", stop_sequence: null };
  const message = { id: `msg_${n}`, type: "message", role: "assistant", model: request.model, content, ...stop, usage: spent };
  if (!request.stream) return json(message);
  const blocks = content.flatMap((block, index) => [
    { type: "content_block_start", index, content_block: block.type === "text" ? { type: "text", text: "" } : { ...block, input: {} } },
    { type: "content_block_delta", index, delta: block.type === "text" ? { type: "text_delta", text } : { type: "input_json_delta", partial_json: JSON.stringify(block.input) } },
    { type: "content_block_stop", index },
  ]);
  return stream([{ type: "message_start", message: { ...message, content: [], stop_reason: null } }, ...blocks, { type: "message_delta", delta: stop, usage: spent }, { type: "message_stop" }]);
}

function gemini(request, n, { text, thought, call }, isStream) {
  const of = usage(n);
  const parts = [thought && { text: thought, thought: true }, { text }, call && { functionCall: { name: call.name, args: call.args, id: `fc${n}` }, thoughtSignature: "U0lH" }].filter(Boolean);
  const spent = { promptTokenCount: of.input, candidatesTokenCount: of.output - of.reasoning, totalTokenCount: of.input + of.output, cachedContentTokenCount: of.cached, thoughtsTokenCount: of.reasoning };
  const config = request.generationConfig ?? {};
  const choice = JSON.stringify({ reasoning: `ANS-${n}`, next_speaker: "user", model_choice: "pro", complexity_score: 80, complexity_reasoning: "x" });
  const said = config.responseMimeType === "application/json" || config.responseJsonSchema ? [{ text: choice }] : parts;
  const answer = { candidates: [{ content: { role: "model", parts: said }, finishReason: "STOP", index: 0 }], usageMetadata: spent, modelVersion: "gemini-2.5-pro", responseId: `gemini-${n}` };
  return isStream ? stream([answer]) : json(answer);
}

/** The function that answers in the API of a path, or none. */
function api(path) {
  if (path.endsWith("/chat/completions")) return chat;
  if (path.endsWith("/responses")) return responses;
  if (path.endsWith("/messages")) return messages;
  if (/:(stream)?[gG]enerateContent$/.test(path)) return (...args) => gemini(...args, path.includes(":stream"));
  return undefined;
}

/**
 * A provider. `begin(isFinishing)` forgets what it received and counts from one again; an agent that ends
 * by a call gets that call where it is finishing. `received` are the POSTs, each with its `n`, its
 * status and what it says where it is a generation.
 */
export function scriptedProvider() {
  const state = { received: [], n: 0, isFinishing: false };
  const begin = (isFinishing = false) => Object.assign(state, { received: [], n: 0, isFinishing });
  const server = createServer((request, response) => {
    const chunks = [];
    request.on("data", (chunk) => chunks.push(chunk));
    request.on("end", () => {
      const body = Buffer.concat(chunks);
      const path = new URL(request.url, "http://p").pathname;
      const say = (status, [type, text]) => {
        response.writeHead(status, { "content-type": type, ...(status >= 400 && { "retry-after": "0" }) });
        response.end(text);
      };
      if (request.headers.upgrade) return say(426, ["text/plain", "no"]);
      if (request.method !== "POST") return say(200, json({ object: "list", data: [{ id: "m", object: "model" }], models: [] }));
      let parsed = {};
      try { parsed = JSON.parse(request.headers["content-encoding"] === "gzip" ? gunzipSync(body) : body); } catch { /* a body that is none */ }
      const write = api(path);
      const one = { url: request.url, body, parsed };
      state.received.push(one);
      if (!write) return say(200, json(path.includes("ount") ? { totalTokens: 123, input_tokens: 123 } : {}));
      const n = (state.n += 1);
      const status = failures[n] ?? 200;
      Object.assign(one, { n, status, usage: usage(n) });
      if (status !== 200) return say(status, json({ type: "error", error: { message: `ERR-${n}`, type: status === 429 ? "rate_limit_error" : "server_error", code: status } }));
      one.plan = plan(parsed, n, state.isFinishing);
      return say(200, write(parsed, n, one.plan));
    });
  });
  return { server, begin, received: () => state.received };
}
