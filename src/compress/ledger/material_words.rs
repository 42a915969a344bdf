//! The words and marks by which a user's message tells what it quotes or pastes. Lists of single words
//! have blanks between them.

/// The tags in which a client, or the user, puts what is asked.
pub(super) const OF_USERS: &str =
    "task instructions issue pr_description problem_statement goal requirements rules question";

/// Those in which clients put all that the user says: beside words of the user they hold material.
pub(super) const OF_CLIENTS: &str =
    "user_query user_message user_request user_prompt user_input request feedback answer";

/// The tags that only set words of a sentence off.
pub(super) const FORMATTING: &str = "b i u em strong kbd sub sup";

/// What stands before the user's words, behind what an editor shows.
pub(super) const REQUESTS: [&str; 1] = ["## My request for Codex:"];

/// What begins and ends several lines that are not the user's. Without an end all that follows is of
/// somebody else.
pub(super) const BLOCKS: [(&str, &str); 34] = [
    ("```", "```"),
    ("~~~", "~~~"),
    ("\"\"\"", "\"\"\""),
    ("'''", "'''"),
    (":::", ":::"),
    ("/*", "*/"),
    ("<!--", "-->"),
    ("{-", "-}"),
    ("[quote", "[/quote]"),
    ("\\begin{", "\\end{"),
    ("-----BEGIN", "-----END"),
    ("--- Content", "--- End"),
    ("<<<<<<<", ">>>>>>>"),
    ("-----Original", ""),
    ("---------- Forwarded", ""),
    ("Begin forwarded message", ""),
    ("Traceback (most recent", ""),
    ("diff --git", ""),
    ("HTTP/1", ""),
    ("BEGIN:", "END:"),
    ("< HTTP/", ""),
    ("<|", ""),
    ("[INST]", ""),
    ("[SYSTEM", ""),
    ("[Attachment", ""),
    ("-----8<", ""),
    ("thread '", ""),
    ("-- 8<", ">8"),
    ("#+BEGIN", "#+END"),
    ("BEGIN ", "END "),
    ("[TOOL", "[/TOOL"),
    ("[Pasted text", ""),
    (".. ", ""),
    ("Web search results", ""),
];

/// What the lines at the head of a mail begin with: two of them make one.
pub(super) const MAIL: &str = "from subject date sent to cc author received return-path reply-to \
    message-id von betreff datum an de para asunto fecha objet data oggetto envoyé enviado gesendet inviato à от кому тема дата 发件人 \
    收件人 主题 日期 差出人 宛先 件名 보낸사람 제목";

/// What each line of a quotation begins with; the lines up to a blank one go on with it.
pub(super) const QUOTES: &str = "&gt; > ＞ | ｜ │ ┃ ▌ ▎ » › ❯";

/// What a line begins with that is a comment, or one of a patch or of a terminal.
pub(super) const COMMENTS: &str = "// # -- ; % + @@ REM $ >>> ...";

/// The last words of labels by which programs and transcripts tell who speaks: `error: …`.
pub(super) const LABELS: &str = "error errors exception warning warn err err! info debug trace \
    fatal panic critical failure failed traceback stdout stderr output result results response log \
    hint usage readme human user assistant system agent ai bot customer q a fehler ausgabe";

/// The words in capitals that lines of a log hold.
pub(super) const LEVELS: &str =
    "ERR ERR! INFO WARN WARNING ERROR DEBUG FATAL TRACE CRITICAL NOTICE SEVERE PANIC";

/// Verbs behind which somebody else speaks.
pub(super) const SPEECH: &str = "says said wrote told replied claims claimed mentions mentioned \
    suggests recommends insists insisted announced sagt sagte schreibt schrieb meint meinte écrit \
    dijo escribió disse escreveu zegt schreef говорит написал steht escribió";

/// Verbs behind which somebody else speaks where a colon follows.
pub(super) const SHOWING: &str = "writes written reads read states stated tells answered answers \
    replies suggested recommended shows showed prints printed reports reported returns returned \
    responded responds outputs contains got get received sent posted commented found pasted follows \
    lists requires zeigt meldet steht lautet schreibt schrieb enthält sagt dit écrit indique affiche \
    dice indica muestra escribe contiene diz mostra escreve scrive contiene пишет написал написано \
    сказано говорит 写 写道 说 يكتب كتب يقول 씁니다 썼습니다";

/// Verbs behind which somebody else speaks where a noun with its article does: `the docs say`.
pub(super) const PLURALS: &str = "say state claim mention recommend suggest write insist";

/// The same where words are not parted by blanks.
pub(super) const UNSPACED: &str =
    "書き 書く 言う あります 말합니다 씁니다 썼다 说 写道 写着 說 寫道 書いて 言って";

/// What nouns and labels begin with.
pub(super) const ARTICLES: &str = "the this that these those my his her our their its a an from \
    der die das dem el la le les";

/// What a sentence begins with that tells what somebody else says.
pub(super) const ACCORDING: [&str; 6] =
    ["according to", "as per", "per the", "laut ", "selon ", "según "];

/// Who speaks for themselves, and what stands before a verb by which nobody speaks: `as said`.
pub(super) const SELVES: &str = "i i've i'd i'll we we've ich wir je j'ai yo eu io ik я";
pub(super) const PASSIVE: &str = "is are was were be been not as";

/// What a condition begins with: what stands in it is said by nobody yet.
pub(super) const CONDITIONS: &str = "if when whenever unless until once wenn falls si se als";

/// Where the user goes on behind what somebody else says.
pub(super) const OF_THE_USER: [&str; 7] =
    [", but please", ", please", "; please", ", but we ", ", but i ", ", but never", ", so please"];

/// What a line begins with that asks for something, or goes on with it.
pub(super) const ASKING: &str = "please do you make use add keep write fix can could would let's now \
    also then next first finally otherwise so and but here after before update change create \
    implement run set give tell i we bitte";

/// What a line begins with that shows something.
pub(super) const PRESENTING: [&str; 14] = [
    "i found",
    "i got",
    "i received",
    "here is",
    "here's",
    "here are",
    "this is from",
    "below is",
    "see below",
    "from the",
    "from my",
    "quote",
    "hier ist",
    "voici",
];

/// What a line points with, and what is to be done to the text that it points at.
pub(super) const POINTING: &str = "this these following below attached diese dies ceci";
pub(super) const HANDLING: &str = "translate summarise summarize explain proofread rewrite \
    rephrase analyse analyze read see saw gave gives whether mean means typo line lines sentence \
    text consider übersetze";

/// What a line that leads to the user's own words speaks of, and what it begins with.
pub(super) const WANTED: &str = "rule rules requirement requirements constraint constraints want \
    need like should must task tasks plan steps goal goals preferences regeln instructions \
    conventions follow sure remember note mind observe respect important issue problem regel bitte wichtig \
    aufgabe reglas regla favor importante tarea règles règle merci tâche regole regras правила правило \
    пожалуйста важно задача 规则 请 注意 任务 ルール お願い 규칙 قواعد";
pub(super) const SCOPES: &str = "in for to on when inside within bei";

/// What a line ends with, before its colon, that leads to something else than the user's words.
pub(super) const PASTED: &str = "text pasted file wiki content contents quote readme email e-mail mail message \
    comment reply response excerpt snippet transcript traceback diff patch log logs page article \
    document docs below review";

/// What an order begins with. Inside of a sentence it is a text that is named: `call it Never push`.
pub(super) const ORDERS: [&str; 9] =
    ["You", "Always", "Never", "Forget", "Ignore", "Don't", "Do", "Only", "From"];

/// Behind these a word in capitals is one that stands out.
pub(super) const JOINING: &str = "please and but so then or also must should";
