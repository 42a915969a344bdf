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
