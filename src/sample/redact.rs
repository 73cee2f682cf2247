//! Secrets in command lines. They stay as they are in a [`ProcSample`](super::ProcSample), which
//! never leaves the machine by itself, and are hidden in everything that does: reports and
//! recordings. Pure.

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

/// How well-known tokens begin, and how long they are at least.
const TOKENS: [(&str, usize); 14] = [
    ("hf_", 20),
    ("sk-", 20),
    ("ghp_", 20),
    ("gho_", 20),
    ("ghs_", 20),
    ("github_pat_", 30),
    ("glpat-", 20),
    ("nvapi-", 20),
    ("xoxb-", 20),
    ("xoxp-", 20),
    ("AKIA", 20),
    ("AIza", 30),
    ("eyJ", 40),
    ("pypi-", 30),
];

/// The arguments with secrets hidden: values of flags and variables with a telling name, passwords
/// in addresses, bearer tokens and tokens of a known form. A secret without any of these marks
/// cannot be told from other text.
pub fn redact(arguments: &[String]) -> Vec<String> {
    let mut hide_next = false;
    let mut user_next = false;
    let mut redacted = Vec::with_capacity(arguments.len());
    for argument in arguments {
        let is_flag = argument.starts_with('-');
        if hide_next && !is_flag {
            redacted.push(if argument.eq_ignore_ascii_case("bearer") {
                argument.clone()
            } else {
                hide_next = false;
                HIDDEN.to_owned()
            });
            continue;
        }
        hide_next = (is_flag && !argument.contains('=') && is_secret_name(argument))
            || argument.eq_ignore_ascii_case("bearer");
        let text = if user_next { user(argument) } else { words(argument) };
        user_next = matches!(argument.as_str(), "-u" | "--user" | "--proxy-user");
        redacted.push(text);
    }
    redacted
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
    let mut text = String::with_capacity(argument.len());
    let mut hide_next = false;
    for piece in argument.split_inclusive(char::is_whitespace) {
        let word = piece.trim_end();
        let space = piece.get(word.len()..).unwrap_or_default();
        let bare = word.trim_matches(['"', '\'']);
        let bearer = bare.eq_ignore_ascii_case("bearer");
        if hide_next && !bearer && !word.is_empty() && !bare.starts_with('-') {
            text.push_str(HIDDEN);
            hide_next = false;
        } else {
            text.push_str(&word_without_secret(word));
            let names_secret =
                bare.starts_with("--") && !bare.contains('=') && is_secret_name(bare);
            // `Authorization: Bearer x` and `api-key: x` are headers.
            let header = bare.strip_suffix(':').is_some_and(is_secret_name);
            hide_next = bearer || names_secret || header || (hide_next && word.is_empty());
        }
        text.push_str(space);
    }
    text
}

fn word_without_secret(word: &str) -> String {
    if let Some((name, value)) = word.split_once('=')
        && !value.is_empty()
        && !name.contains("://")
        && is_secret_name(name)
    {
        return format!("{name}={HIDDEN}");
    }
    if let Some(at) = word.find("://") {
        return address(word, at);
    }
    if let Some((name, value)) = word.split_once('=')
        && is_token(value)
    {
        return format!("{name}={HIDDEN}");
    }
    if is_token(word) { HIDDEN.to_owned() } else { word.to_owned() }
}

/// `scheme://user:password@host/path?token=x`.
fn address(word: &str, at: usize) -> String {
    let (scheme, rest) = word.split_at(at + 3);
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (host, path) = rest.split_at(end);
    let host = match host.rsplit_once('@') {
        Some((_, host)) => format!("{HIDDEN}@{host}"),
        None => host.to_owned(),
    };
    let Some((path, query)) = path.split_once('?') else {
        return format!("{scheme}{host}{path}");
    };
    let query: Vec<String> = query
        .split('&')
        .map(|pair| match pair.split_once('=') {
            Some((name, _)) if is_secret_name(name) || is_signature(name) => {
                format!("{name}={HIDDEN}")
            }
            _ => pair.to_owned(),
        })
        .collect();
    format!("{scheme}{host}{path}?{}", query.join("&"))
}

fn is_signature(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name == "sig" || name.ends_with("signature")
}

fn is_token(word: &str) -> bool {
    let word = word.trim_matches(['"', '\'', ',', ';']);
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    TOKENS.iter().any(|(start, length)| word.len() >= *length && word.starts_with(start))
        && word.chars().all(plain)
        && word.bytes().any(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase())
}

/// Whether the last word of a name says that its value is a secret. `--max-tokens` and
/// `--tokenizer` do not.
fn is_secret_name(name: &str) -> bool {
    let name = name.trim_start_matches(['-', '"', '\'', '$']);
    let dashed = dashed(name);
    let last = dashed.rsplit('-').next().unwrap_or_default();
    SECRET_WORDS.contains(&last) && !HARMLESS.iter().any(|harmless| dashed.ends_with(harmless))
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
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECRET: &str = "hunter2hunter2";

    fn line(arguments: &[&str]) -> String {
        let arguments: Vec<String> = arguments.iter().map(|text| (*text).to_owned()).collect();
        redact(&arguments).join(" ")
    }

    #[test]
    fn secrets_are_hidden() {
        let cases: &[(&[&str], &str)] = &[
            (&["vllm", "--api-key", SECRET, "--port", "8000"], "vllm --api-key *** --port 8000"),
            (&["--token=hunter2", "x"], "--token=*** x"),
            (&["--wandbKey", SECRET], "--wandbKey ***"),
            (&["--db.password", SECRET], "--db.password ***"),
            (&["env", "HF_TOKEN=hunter2", "python"], "env HF_TOKEN=*** python"),
            (
                &["bash", "-c", "export AWS_SECRET_ACCESS_KEY=hunter2; run --token hunter2 -v"],
                "bash -c export AWS_SECRET_ACCESS_KEY=*** run --token *** -v",
            ),
            (&["redis://u:hunter2@h:6379/0"], "redis://***@h:6379/0"),
            (&["--url=https://u:hunter2@h/p"], "--url=https://***@h/p"),
            (&["https://h/p?a=1&token=hunter2&sig=hunter2"], "https://h/p?a=1&token=***&sig=***"),
            (&["curl", "-H", "Authorization: Bearer hunter2"], "curl -H Authorization: Bearer ***"),
            (&["curl", "-H", "api-key: hunter2"], "curl -H api-key: ***"),
            (&["curl", "-u", "anna:hunter2"], "curl -u anna:***"),
            (&["Bearer", "hunter2"], "Bearer ***"),
            (&["x", "hf_abcdefghijKLMNOP0123"], "x ***"),
            (&["--hub=hf_abcdefghijKLMNOP0123"], "--hub=***"),
        ];
        for (arguments, expected) in cases {
            assert_eq!(line(arguments), *expected);
        }
    }

    #[test]
    fn what_only_looks_like_one_is_kept() {
        for arguments in [
            &["--max-tokens", "4096"][..],
            &["--tokenizer", "/m/llama"],
            &["--pad-token", "<pad>"],
            &["--pad-token-id", "0"],
            &["--max-num-batched-tokens=8192"],
            &["--cache-type-k", "q8_0"],
            &["python", "monkey.py", "--keys", "3"],
            &["https://h/p?a=1#x"],
            &["--api-key", "--port", "1"],
            &["hf_transfer"],
            &["sk-learn-training-run-of-monday"],
            &["a=b=c", "=", "", "--", "-u"],
        ] {
            assert_eq!(line(arguments), arguments.join(" "));
        }
    }

    proptest! {
        #[test]
        fn no_input_panics_and_no_argument_is_lost(arguments: Vec<String>) {
            prop_assert_eq!(redact(&arguments).len(), arguments.len());
        }

        #[test]
        fn a_named_secret_never_shows(
            flag in prop::sample::select(vec!["--api-key", "--token", "--password", "--client_secret"]),
            secret in "[A-Za-z0-9]{8,20}Q7",
        ) {
            let two = redact(&[flag.to_owned(), secret.clone()]);
            let one = redact(&[format!("{flag}={secret}")]);
            let script = redact(&[format!("run {flag} {secret} && x {flag}={secret}")]);
            for text in two.iter().chain(&one).chain(&script) {
                prop_assert!(!text.contains(&secret), "{text}");
            }
        }
    }
}
