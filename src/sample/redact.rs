//! Secrets in command lines. They stay as they are in a [`ProcSample`](super::ProcSample), which
//! never leaves the machine by itself, and are hidden in everything that does: reports and
//! recordings. Pure.

mod quoted;

/// What stands in place of a secret.
const HIDDEN: &str = "***";

/// Last words of a name whose value is a secret: `--api-key`, `HF_TOKEN`, `dbPassword`.
const SECRET_WORDS: [&str; 14] = [
    "key",
    "apikey",
    "token",
    "secret",
    "password",
    "passwd",
    "pwd",
    "passphrase",
    "pass",
    "credential",
    "credentials",
    "auth",
    "authorization",
    "bearer",
];

/// Names that end in such a word and hold none: sizes of caches, special tokens of a tokenizer.
const HARMLESS: [&str; 8] = [
    "pad-token",
    "eos-token",
    "bos-token",
    "unk-token",
    "mask-token",
    "sep-token",
    "cls-token",
    "sort-key",
];

/// Ends of names in one word whose value is a secret: `PGPASSWORD`, `authtoken`.
const SECRET_ENDS: [&str; 6] = ["password", "passwd", "secret", "token", "apikey", "passphrase"];

/// How well-known tokens begin, and how long they are at least.
const TOKENS: [(&str, usize); 30] = [
    ("hf_", 20),
    ("sk-", 20),
    ("sk_live_", 20),
    ("rk_live_", 20),
    ("ghp_", 20),
    ("gho_", 20),
    ("ghu_", 20),
    ("ghs_", 20),
    ("ghr_", 20),
    ("github_pat_", 30),
    ("glpat-", 20),
    ("nvapi-", 20),
    ("gsk_", 20),
    ("r8_", 20),
    ("npm_", 20),
    ("dop_v1_", 20),
    ("shpat_", 20),
    ("xoxa-", 20),
    ("xoxb-", 20),
    ("xoxp-", 20),
    ("xoxs-", 20),
    ("xapp-", 20),
    ("SG.", 30),
    ("AKIA", 20),
    ("ASIA", 20),
    ("AIza", 30),
    ("ya29.", 30),
    ("eyJ", 40),
    ("pypi-", 30),
    ("AGE-SECRET-KEY-", 40),
];

/// Addresses whose path is the secret.
const HOOKS: [&str; 4] = [
    "hooks.slack.com/services/",
    "discord.com/api/webhooks/",
    "discordapp.com/api/webhooks/",
    "api.telegram.org/bot",
];

/// What stands between the name of a header and its secret.
const SCHEMES: [&str; 5] = ["bearer", "basic", "token", "digest", "negotiate"];

/// Programs that take a password behind a short flag, and that flag.
const SHORT: [(&str, &str); 5] = [
    ("sshpass", "-p"),
    ("redis-cli", "-a"),
    ("ldapsearch", "-w"),
    ("mongosh", "-p"),
    ("mongo", "-p"),
];

/// Programs that take it in the same word: `-phunter2`.
const JOINED: [&str; 4] = ["mysql", "mysqldump", "mariadb", "sshpass"];

/// The arguments with secrets hidden: values of flags and variables with a telling name, passwords
/// in addresses, bearer tokens and tokens of a known form. A secret without any of these marks
/// cannot be told from other text.
pub fn redact(arguments: &[String]) -> Vec<String> {
    let program = arguments.first().map_or("", |path| path.rsplit('/').next().unwrap_or(path));
    let short = SHORT.iter().find(|row| row.0 == program).map(|row| row.1);
    let joined = JOINED.contains(&program);
    let mut hide_next = false;
    let mut user_next = false;
    let mut redacted = Vec::with_capacity(arguments.len());
    for argument in arguments {
        let is_flag = argument.starts_with('-');
        if hide_next && !is_flag {
            redacted.push(if is_scheme(argument) {
                argument.clone()
            } else {
                hide_next = false;
                HIDDEN.to_owned()
            });
            continue;
        }
        hide_next = (is_flag && !argument.contains('=') && is_secret_name(argument))
            || Some(argument.as_str()) == short
            || argument.eq_ignore_ascii_case("bearer");
        let text = if user_next {
            user(argument)
        } else if joined && argument.len() > 2 && argument.starts_with("-p") {
            format!("-p{HIDDEN}")
        } else {
            words(argument)
        };
        user_next = matches!(argument.as_str(), "-u" | "--user" | "--proxy-user");
        redacted.push(text);
    }
    redacted
}

fn is_scheme(word: &str) -> bool {
    SCHEMES.iter().any(|scheme| word.eq_ignore_ascii_case(scheme))
}

/// `name:password` after `-u`.
fn user(argument: &str) -> String {
    match argument.split_once(':') {
        Some((name, _)) => format!("{name}:{HIDDEN}"),
        None => argument.to_owned(),
    }
}

/// An argument may be a whole script: each of its words is looked at.
fn words(argument: &str) -> String {
    if argument.contains("PRIVATE KEY-----") {
        return HIDDEN.to_owned();
    }
    let around: Vec<String> = quoted::around(argument).into_iter().map(plain_words).collect();
    around.join(HIDDEN)
}

/// Words without a named secret in quotes.
fn plain_words(argument: &str) -> String {
    let mut text = String::with_capacity(argument.len());
    let mut hide_next = false;
    // Of a secret with blanks in it: what ends it.
    let mut quoted = None;
    for piece in argument.split_inclusive(char::is_whitespace) {
        let word = piece.trim_end();
        let space = piece.get(word.len()..).unwrap_or_default();
        if let Some(quote) = quoted {
            if word.contains(quote) {
                quoted = None;
            }
            continue;
        }
        let bare = word.trim_matches(['"', '\'', '{', '}', ',']);
        let scheme = is_scheme(bare);
        let hidden = hide_next && !scheme && !word.is_empty() && !bare.starts_with('-');
        if hidden {
            text.push_str(HIDDEN);
            quoted = open_quote(word);
            hide_next = false;
        } else {
            let shown = word_without_secret(word);
            if shown.ends_with(HIDDEN) {
                quoted =
                    ['"', '\''].into_iter().find(|quote| word.matches(*quote).count() % 2 == 1);
            }
            text.push_str(&shown);
            let names_secret =
                bare.starts_with("--") && !bare.contains('=') && is_secret_name(bare);
            // `Authorization: Bearer x` and `api-key: x` are headers.
            let header = bare.rsplit_once(':').is_some_and(|(name, value)| {
                (value.is_empty() || is_scheme(value)) && is_secret_name(name)
            });
            let bearer = bare.eq_ignore_ascii_case("bearer");
            let goes_on = hide_next && (word.is_empty() || scheme);
            hide_next = bearer || names_secret || header || goes_on;
        }
        text.push_str(space);
    }
    text
}

/// The quote that a word opens and does not close.
fn open_quote(word: &str) -> Option<char> {
    let quote = word.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    (!word.chars().skip(1).any(|c| c == quote)).then_some(quote)
}

fn word_without_secret(word: &str) -> String {
    if let Some((name, value)) = word.split_once('=')
        && !value.is_empty()
        && !name.contains("://")
        && !name.contains([';', ','])
        && is_secret_name(name)
    {
        return format!("{name}={HIDDEN}");
    }
    // A whole address first: a password in it may hold what separates.
    let whole = word.find("://").map(|at| address(word, at));
    let word = whole.as_deref().unwrap_or(word);
    if word.contains([';', ',']) {
        return word.split_inclusive([';', ',']).map(part).collect();
    }
    part(word)
}

/// A word, or one of several between commas or semicolons.
fn part(word: &str) -> String {
    let end = word.trim_end_matches([';', ',']);
    let rest = word.get(end.len()..).unwrap_or_default();
    let shown = if let Some(at) = end.find("://") {
        address(end, at)
    } else if let Some((name, _)) = end.split_once('=').filter(|pair| !pair.1.is_empty())
        && is_secret_name(name)
    {
        format!("{name}={HIDDEN}")
    } else if let Some((name, value)) = end.split_once(':').filter(|pair| !pair.1.is_empty()) {
        pair(name, value)
    } else {
        end.to_owned()
    };
    without_tokens(&shown) + rest
}

/// `"api_key":"x"`, `Authorization:x`, and `user:password@host` without a scheme.
fn pair(name: &str, value: &str) -> String {
    let bare = name.trim_matches(['"', '\'', '{', '[', '(']);
    // `key:` alone says how to sort, or what a table has.
    let word = bare.rsplit('=').next().unwrap_or(bare);
    if is_secret_name(bare) && !word.eq_ignore_ascii_case("key") {
        return format!("{name}:{HIDDEN}");
    }
    match value.rsplit_once('@') {
        Some((password, host))
            if !password.contains('/') && !password.is_empty() && !host.starts_with("sha256:") =>
        {
            format!("{name}:{HIDDEN}@{host}")
        }
        _ => format!("{name}:{value}"),
    }
}

/// Hides tokens of a known form wherever they stand.
fn without_tokens(text: &str) -> String {
    let mut rest = text;
    let mut out = String::with_capacity(text.len());
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    while !rest.is_empty() {
        let length = rest.find(|c| !plain(c)).unwrap_or(rest.len());
        let (run, after) = rest.split_at(length);
        out.push_str(if is_token(run) { HIDDEN } else { run });
        let other = after.find(plain).unwrap_or(after.len());
        let (between, next) = after.split_at(other);
        out.push_str(between);
        rest = next;
    }
    out
}

/// `scheme://user:password@host/path?token=x#access_token=y`.
fn address(word: &str, at: usize) -> String {
    let (scheme, rest) = word.split_at(at + 3);
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (host, path) = rest.split_at(end);
    let host = match host.rsplit_once('@') {
        Some((_, host)) => format!("{HIDDEN}@{host}"),
        None => host.to_owned(),
    };
    if HOOKS.iter().any(|hook| rest.contains(hook)) {
        return format!("{scheme}{host}/{HIDDEN}");
    }
    let mut text = format!("{scheme}{host}");
    for piece in path.split_inclusive(['?', '#', '&']) {
        let word = piece.trim_end_matches(['?', '#', '&']);
        match word.split_once('=') {
            Some((name, _)) if is_secret_name(name) || is_signature(name) => {
                text += &format!("{name}={HIDDEN}");
            }
            _ => text += word,
        }
        text += piece.get(word.len()..).unwrap_or_default();
    }
    text
}

fn is_signature(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name == "sig" || name.ends_with("signature")
}

/// Of characters of tokens only.
fn is_token(run: &str) -> bool {
    TOKENS.iter().any(|(start, length)| run.len() >= *length && run.starts_with(start))
        && run.bytes().any(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase())
}

/// Whether the last word of a name says that its value is a secret. `--max-tokens` and
/// `--tokenizer` do not.
fn is_secret_name(name: &str) -> bool {
    // `--header=Authorization`.
    let name = name.rsplit('=').next().unwrap_or(name);
    let name = name.trim_matches(['-', '"', '\'', '$', '+', '{', '(', '[']);
    let dashed = dashed(name);
    let last = dashed.rsplit('-').next().unwrap_or_default();
    let secret = SECRET_WORDS.contains(&last) || SECRET_ENDS.iter().any(|end| last.ends_with(end));
    secret && !HARMLESS.iter().any(|harmless| dashed.ends_with(harmless))
}

/// `apiKey`, `API_KEY` and `api.key` as `api-key`.
fn dashed(name: &str) -> String {
    let mut text = String::with_capacity(name.len() + 4);
    let mut lower = false;
    for c in name.chars() {
        if c.is_ascii_uppercase() && lower {
            text.push('-');
        }
        lower = c.is_ascii_lowercase();
        text.push(if matches!(c, '_' | '.') { '-' } else { c.to_ascii_lowercase() });
    }
    text
}

#[cfg(test)]
mod tests;
