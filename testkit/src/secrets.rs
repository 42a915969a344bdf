//! Secrets that no person has, in texts where they stand.

/// A generator of letters that a test can repeat.
pub struct Letters(pub u64);

impl Letters {
    pub fn of(&mut self, alphabet: &str, count: usize) -> String {
        let letters: Vec<char> = alphabet.chars().collect();
        let mut next = || {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            letters[(self.0 >> 33) as usize % letters.len()]
        };
        (0..count).map(|_| next()).collect()
    }
}

pub const ALNUM: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const HEX: &str = "0123456789abcdef";
const UPPER: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// Twenty kinds of secrets, each with a text around it, `{}` being its place.
pub fn planted(count: usize) -> Vec<(String, String)> {
    let mut letters = Letters(7);
    let mut all = Vec::new();
    while all.len() < count {
        let digit = letters.of("23456789", 1);
        let mut of = |alphabet: &str, count: usize| letters.of(alphabet, count);
        let kinds: [(String, &str); 20] = [
            (format!("sk-ant-api03-{}", of(ALNUM, 93)), "export KEY={}"),
            (format!("sk-proj-{}", of(ALNUM, 100)), "the key is {}."),
            (format!("AKIA{}", of(UPPER, 16)), "aws_access_key_id = {}"),
            (of(ALNUM, 38) + "+/", "aws_secret_access_key = {}"),
            (format!("ghp_{}", of(ALNUM, 36)), "git clone https://{}@github.com/a/b"),
            (format!("github_pat_{}", of(ALNUM, 60)), "token: {}"),
            (format!("glpat-{}", of(ALNUM, 20)), "PRIVATE-TOKEN: {}"),
            (format!("AIza{}", of(ALNUM, 35)), "https://maps.example/x?key={}&z=1"),
            (format!("xoxb-{}-{}", of("0123456789", 11), of(ALNUM, 24)), "SLACK={}"),
            (format!("sk_live_{}", of(ALNUM, 24)), "stripe.api_key = \"{}\""),
            (format!("npm_{}", of(ALNUM, 36)), "//registry/:_authToken={}"),
            (format!("hf_{}", of(ALNUM, 34)), "login({})"),
            (
                format!("eyJ{}.eyJ{}.{}", of(ALNUM, 20), of(ALNUM, 40), of(ALNUM, 43)),
                "Cookie: s={}",
            ),
            (
                format!(
                    "-----BEGIN RSA PRIVATE KEY-----\n{}\n{}\n-----END RSA PRIVATE KEY-----",
                    of(ALNUM, 64),
                    of(ALNUM, 64)
                ),
                "cat id_rsa\n{}\n",
            ),
            (of(ALNUM, 40), "Authorization: Bearer {}"),
            (format!("tide{digit}{}", of(ALNUM, 8)), "postgres://ada:{}@db.example:5432/tides"),
            (format!("calm-{digit}{}", of(ALNUM, 6)), "PGPASSWORD={} psql"),
            (format!("Wave {digit}{}", of(HEX, 6)).to_lowercase(), "password: \"{}\""),
            (format!("{}@harbour{digit}.example", of(HEX, 8)), "mail {} now"),
            (format!("ada{digit}{}", of(HEX, 5)), "cd /home/{}/tides && ls"),
        ];
        all.extend(
            kinds.into_iter().map(|(secret, around)| (secret, around.replace("{}", "\u{1}"))),
        );
    }
    all.truncate(count);
    all
}

/// The text of a planted secret.
pub fn text(planted: &(String, String)) -> String {
    planted.1.replace('\u{1}', &planted.0)
}

/// A key of each form that an issuer gives its own.
pub fn issued(letters: &mut Letters) -> Vec<String> {
    let url = format!("{ALNUM}_-");
    let lower = "abcdefghijklmnopqrstuvwxyz0123456789";
    // What a form holds: fixed text, and how many letters of which alphabet.
    let forms = [
        "sk-ant-api03- u92 =A",
        "sk-proj- u120 =A",
        "sk- a48",
        "sk-or-v1- h64",
        "AKIA B16",
        "ABSK a124 ===",
        "ghp_ a36",
        "github_pat_ a22 =_ a59",
        "glpat- a20",
        "AIza u34 =a",
        "AQ.Ab8RN6 u44 =a",
        "ya29. u60 =a",
        "GOCSPX- u27 =a",
        "1//0 u60 =a",
        "xoxb- d12 =- d13 =- a24",
        "xapp-1-A B10 =- d13 =- h64",
        "sk_live_ a24",
        "whsec_ a32",
        "npm_ a36",
        "pypi-AgEIcHlwaS5vcmc u100 =a",
        "hf_ a34",
        "SG. a22 =. a43",
        "dop_v1_ h64",
        "77 d8 =:AA u32 =a",
        "gsk_ a52",
        "xai- a80",
        "pplx- a48",
        "tvly- a32",
        "r8_ a37",
        "fw_ a24",
        "nvapi- u63 =a",
        "csk- l48",
        "lsv2_pt_ h32 =_ h10",
        "pcsk_ a6 =_ a63",
        "sk_ h48",
        "hvs. a24",
        "lin_api_ a40",
        "ntn_ a46",
        "shpat_ h32",
        "PMAK- h24 =- h34",
        "figd_ u40 =a",
        "ATATT3 u180 ==1A2B3C4D",
        "dckr_pat_ u26 =a",
        "sbp_ h40",
        "sb_secret_ u31 =a",
        "glsa_ a32 =_ h8",
        "tskey-auth- a12 =CNTRL- a32",
        "dapi h32",
        "HRKU-AA u57 =a",
        "nfp_ a36",
        "NRAK- a27",
        "sntryu_ h64",
        "CCIPAT_ a22 =_ h40",
        "pat a14 =. h64",
        "SK h32",
        "rubygems_ h48",
        "LTAI5t a18",
        "ATBB a32",
        "napi_ a64",
        "apify_api_ a36",
        "sl.u. u139 =a",
        "ATTA h72",
        "y0_AgAAAA u49 =a",
        "pa- u42 =a",
        "t-g1 a38",
        "access_token$production$ h16 =$ h32",
        "a14 =.atlasv1. u66 =a",
        "a3 =8Q~ a34",
        "h32 =-us14",
        "MTk4NjIyNDgzNDcxOTI1MjQ4.Cl2FMQ. u26 =Z7a",
        "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJ a60 =. u42 =a",
    ];
    let key = |form: &str| {
        let mut parts = form.split(' ').enumerate().map(|(at, part)| {
            let (alphabet, count) = part.split_at(1);
            match (alphabet, count.parse()) {
                ("a", Ok(count)) => letters.of(ALNUM, count),
                ("u", Ok(count)) => letters.of(&url, count),
                ("h", Ok(count)) => letters.of(HEX, count),
                ("l", Ok(count)) => letters.of(lower, count),
                ("d", Ok(count)) => letters.of("0123456789", count),
                ("B", Ok(count)) => letters.of(UPPER, count),
                ("=", _) => count.to_owned(),
                _ if at == 0 => part.to_owned(),
                _ => panic!("{form}"),
            }
        });
        let all: Vec<String> = parts.by_ref().collect();
        all.concat()
    };
    forms.map(key).into()
}

/// What a key stands in, `{}` being its place.
pub const SURROUNDINGS: [&str; 43] = [
    "{}",
    "\u{1b}[01;31m\u{1b}[K{}\u{1b}[m\u{1b}[K",
    "a:\u{1b}[31m{}\u{1b}[0m b",
    "\\x1b[32m{}\\x1b[0m",
    "\\u001b[32m{}\\u001b[39m",
    "\\033[1;32m{}\\033[0m",
    "\\e[32m{}\\e[0m",
    "one\\n{}\\ntwo",
    "a\\t{}\\tb",
    "x\\r\\n{}\\r\\n",
    "say \\u0022{}\\u0022",
    "\\x22{}\\x22",
    "a%20{}%20b",
    "t%3D{}%26x%3D1",
    "t%253D{}%2526x",
    "TOKEN_{}",
    "call({})",
    "{}(x)",
    "\"{}\"",
    "\\\\\\\"{}\\\\\\\"",
    "`{}`",
    "'{}',",
    "a={};b=2",
    "+{}",
    "     2→{}",
    "keys.txt:2:{}",
    "> {}",
    "<b>{}</b>",
    "&quot;{}&quot;",
    "${T:-{}}",
    "https://a.example/?k={}&z=1",
    "https://a.example/{}/y",
    "\u{200b}{}\u{200b}",
    "\u{feff}{}",
    "\u{a0}{}\u{a0}",
    "k：{}。",
    "“{}”",
    "|{}|",
    "**{}**",
    "\u{7}{}\0",
    "[31m{}[0m",
    "...{}...",
    "use {}...",
];

/// What may stand inside of a key: what nobody sees, what joins literals, and where lines are wrapped.
pub const HIDDEN: [&str; 20] = [
    "\u{200b}",
    "\u{feff}",
    "\u{2060}",
    "\u{ad}",
    "\u{1b}[m\u{1b}[K",
    "\u{1b}[1;31m",
    "\u{1b}",
    "\u{8}",
    "\\x1b[31m",
    "\\u200b",
    "\" + \"",
    "\"\n     \"",
    "' +\n  '",
    "' . '",
    "`\n  + `",
    "\n     2→",
    "     │\n│ ",
    "\n-",
    "-\n",
    "   \n",
];

/// How lines of a private key stand in what agents see: what is before each, behind each, and
/// between them; `#` is the number of the line.
pub const KEY_LINES: [(&str, &str, &str); 16] = [
    ("", "", "\n"),
    ("", "", "\r\n"),
    ("     #→", "", "\n"),
    ("     #\t", "", "\n"),
    ("id_rsa:#:", "", "\n"),
    ("/etc/keys/id_rsa-#-", "", "\n"),
    ("> ", "", "\n"),
    ("+", "", "\n"),
    ("# ", "", "\n"),
    ("    \"", "\\n\"", "\n"),
    ("\"", "\\n\"", " +\n"),
    ("'", "'", ", "),
    ("app-1  | ", "", "\n"),
    ("", "", "\\n"),
    ("", "", "\\\\n"),
    ("\u{1b}[32m#\u{1b}[m\u{1b}[36m:\u{1b}[m", "", "\n"),
];
