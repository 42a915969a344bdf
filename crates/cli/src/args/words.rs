//! The words of tables, explained where `--help` ends.

pub(crate) const PROGRAM: &str = "\
Example: afterimage demo

Exit codes:
  0  the question was answered; a record that was not understood is a note
  1  the answer is no: `trace` has no hit, `checkpoint lint` finds an error, `checkpoint validate`
     a difference, `session verify` damage; `checkpoint due` or `observe fresh` says no; a request
     lost more than `guard --max-loss`
  2  the question was not answered: the command line is wrong, a file cannot be read or written,
     or what is asked for is not in it. The other files are still read; 2 outranks 1 and 3
  3  what must stay of a context does not fit its budget";

pub(crate) const FRAMES: &str = "\
Example: afterimage frames session.jsonl | afterimage stats -

Columns of the table:
  FRAME   the sequence of the frame
  SOURCE  who made it: user, agent, environment or system
  ROLE    the role of its message; – where it shows nothing
  CHUNKS  the pieces of its text, each with the facets that wrote it
  TOKENS  the sum of the chunks' tokens
  BEGINS  its first words; → names what it calls, ← is a result";

pub(crate) const TRACE: &str = "\
Example: afterimage trace session.jsonl --text 'connection refused'

Columns of the table:
  FRAME   the sequence of the frame; – after the last one
  MSG     the message of the session's context, counted from zero
  CHUNK   the piece of the frame's text in which the hit begins
  BYTES   where the hit begins and ends in the message
  ROLE    the role of the message
  TYPE    the type of the chunk; formatting is tags and separators
  TOKENS  what the whole chunk costs
  FACET   who wrote it; (formatting) where no facet did

The exit code is 0 if there is a hit, 1 if there is none, and 2 if a file or the session that was
named could not be searched.";

pub(crate) const EXPORT: &str = "\
Example: afterimage export --otlp session.jsonl > spans.json
         curl -H 'Content-Type: application/json' -d @spans.json http://localhost:4318/v1/traces

Spans:
  invoke_agent       the session; its trace holds the others
  chat MODEL         a request: messages, tools, parameters, the answer, usage, the error
  execute_tool NAME  a call of a tool, where the source has times of call and result

A span repeats the whole conversation so far, as each request does: a long session becomes a large
document. `docs/exports.md` lists the attributes.";

pub(crate) const STATS: &str = "\
Example: afterimage stats --json session.jsonl

Words of the page:
  tokens        the sum of the chunks' tokens, each chunk counted by itself
  estimate      the same text by the rule of four characters a token, and how far off it is
  repeated      the tokens of chunks whose whole text stood in an earlier chunk
  unattributed  the tokens that no facet wrote: turn markers and separators
  formatting    tags and separators, whoever caused them
  none          chunks without a role or a type
  FRAME         the frame in which the facet first appeared";

pub(crate) const ARCHIVE: &str = "\
Example: afterimage archive session.jsonl -o session.archive

Columns of the table:
  SESSIONS, FRAMES  how many the file holds
  CHUNKS            the pieces of text that the frames rendered to
  BYTES, TOKENS     the size of that text: the sum over its chunks

A run that is interrupted leaves a directory that is not finished; the next run with the same
--output makes it anew.";

pub(crate) const COMPRESS: &str = "\
Example: afterimage compress session.jsonl --budget 8k --as openai
Example: afterimage compress session.jsonl --budget 8k --receipt

Words of the page:
  block      a summary that stands in place of frames; `block, 2` is one of blocks
  shortened  a frame of which the middle was left out
  left out   frames of which nothing is in the context
  BEFORE     the tokens of the frames
  AFTER      the tokens of what stands in their place
  --block    the id with which `expand` gives the original back
  rule       a sentence of the user with never, must, only, don't and the like
  path       an identifier with a slash
  name       an identifier: an id, a word of a program, a file, an address
  number     four digits or more without a letter; a date, a time
  FRAME      the first frame that says it";

pub(crate) const REPLAY: &str = "\
Example: afterimage replay session.jsonl --budget 32k --policy none,sliding,blocks
Example: afterimage replay session.jsonl --budget 32k --as anthropic --emit requests/

Columns of the table:
  turns   the turns of the agent, each with one request
  sent    the tokens of all requests
  cached  the share of them that was an unchanged prefix of the request before
  billed  requests and summaries in tokens of plain input: by default one that is written to the
          cache costs 1.25, one that is read from it 0.1, one that a summary is written in 5
  asked   where summaries cost, the tokens that a model was asked and answered for them
  used    how much of the room requests used once the whole session no longer fitted
  blocks  how often older frames were compressed
  names   how many of the names that the turns needed were still in their requests: names
          (paths, ids) of frames that the request no longer held whole; – if there are none
  faults  requests over the budget, requests that could not be made, and calls or results that
          lost their other half; each kind has a line of its own
  cost    with --model, what all of it cost, with what the agent answered

Columns that --survival adds in a table of its own: what one in eight of the requests that hold less
than the whole session still says of it.
  first   the user's first message, and  later  what the user said after it, by runs of five words
  rules   sentences of the user with words such as never, must, only, don't
  error   the line of the last result that tells of an error
  todo    the open items of the last plan that a call wrote down
  files   the names of the files that calls changed

The figures are those of a simulation: requests are made of the frames, and the usage that a
provider reported is not read.";

pub(crate) const AUDIT: &str = "\
Example: afterimage audit without.jsonl with.jsonl

Rows of the first table, of all sessions of each file:
  requests     the requests that report usage
  input        their tokens, as reported; read, written: those of them that the cache served and took
  output       the tokens of the answers
  cost         by the table of prices; ≥ where some requests have no price
  caches lost  the requests that paid again for what the cache had held
  rewritten    the requests of the session that begin otherwise than the one before

Names that A used are ids, paths and numbers that somebody else had said before. Of B:
  kept        its last request has them
  lost        a request had them, the last one has not; LAST is the number of the last that had,
              FRAMES the first and the last frame in which A used them
  read again  a request had them again after one that had not
  never read  no request had them: the agent went another way, or not so far";

pub(crate) const DIFF: &str = "\
Example: afterimage diff before.json after.json --cache openai

Words of the page:
  parts at      the first byte that differs
  written by    the frame, chunk and facet of that byte in A
  now by        the same in B
  unchanged     the tokens of B before that byte
  cached        those of them that the cache takes, by the rules of --cache
  billed again  the tokens of B that are sent once more and not served by the cache";

pub(crate) const GUARD: &str = "\
Example: afterimage guard traffic.har --max-loss 0.50

Columns of the table:
  #         the number of the request, for `render --request` and `diff FILE@NUMBER`
  TIME      when the request went out
  READ      the tokens that the cache serves by the rules; – where these say nothing
  REPORTED  those that it served
  WRITE     the tokens that are billed as written
  REPORTED  those that were
  LOST      the tokens that the request before left in the cache and that are not served
  PRICE     what the input costs
  LOSS      what is paid because of what was lost
  WHY       the first thing that differs, what takes the cache, or that its time has passed;
            in brackets what the provider itself said

A terminal of less than 120 columns lacks TIME, LOST, PRICE, and what is written.

Tokens are the provider's, fitted to what it reported of the request before. Caches are best effort:
a forecast says what the published rules allow.

The exit code is 1 if a request lost more than `--max-loss`.";

pub(crate) const REQUESTS: &str = "\
Example: afterimage requests traffic.har

Columns of the table:
  #         the number of the request, for `render --request` and `diff FILE@NUMBER`
  FRAME     the first frame of the answer; – where there is none
  TIME      when the request went out; of a transcript, when the answer came
  TOOLS     the tokens of the tool definitions, where the source holds them
  SYSTEM    the tokens of the system prompt and of the operator's messages
  MESSAGES  the tokens of the other messages
  GROWTH    how many tokens more than the request before it in the session
  THEN      why it failed; else the first place that differs from the request before: everything
            after it is billed again. + is a request that only adds to the one before,
            or differs in parameters that no cache looks at

Tokens are those of each text as it is written, an estimate of what a provider makes of it.";

#[cfg(feature = "record")]
pub(crate) const RECORD: &str = "\
Example: afterimage record -o run -- codex exec 'fix the tests'
Example: afterimage record -o run -- claude -p 'fix the tests'
Example: afterimage record -o run --env MISTRAL_BASE_URL=https://api.mistral.ai/v1 -- python agent.py
Example: afterimage record -o run --listen 127.0.0.1:8787

How a command is told where to send its requests:
  any command  OPENAI_BASE_URL and ANTHROPIC_BASE_URL in its environment; --env for other variables
  codex        `-c openai_base_url=…`, and the base URLs of the providers in its configuration
  pi           a folder with its configuration and other base URLs (PI_CODING_AGENT_DIR)

A base URL that the variable or the configuration has already becomes the upstream. No file of the
command is changed. docs/record.md tells what a client does differently with another base URL.

The exit code is that of the command, 128 and the number of the signal that ended it, or 2 where
nothing was run.";
