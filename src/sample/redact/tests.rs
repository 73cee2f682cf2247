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
        (&["--hub", "(hf_abcdefghijKLMNOP0123)"], "--hub (***)"),
        (&["curl", "-H", "Authorization: Basic hunter2=="], "curl -H Authorization: Basic ***"),
        (
            &["curl", "--header=Authorization: Basic hunter2"],
            "curl --header=Authorization: Basic ***",
        ),
        (&["PGPASSWORD=hunter2", "psql"], "PGPASSWORD=*** psql"),
        (&["sshpass", "-p", "hunter2", "ssh"], "sshpass -p *** ssh"),
        (&["/usr/bin/mysql", "-phunter2", "-uroot"], "/usr/bin/mysql -p*** -uroot"),
        (&["redis-cli", "-a", "hunter2"], "redis-cli -a ***"),
        (&[r#"{"api_key":"hunter2","n":1}"#], r#"{"api_key":***,"n":1}"#),
        (&[r#"{"api_key": "hunter2", "n": 1}"#], r#"{"api_key": ***, "n": 1}"#),
        (&["AccountName=a;AccountKey=hunter2==;X=1"], "AccountName=a;AccountKey=***;X=1"),
        (&["https://h/p#access_token=hunter2"], "https://h/p#access_token=***"),
        (&["https://hooks.slack.com/services/T/B/hunter2"], "https://hooks.slack.com/***"),
        (&["pg", "ana:hunter2@box:5432"], "pg ana:***@box:5432"),
        (&["sh", "-c", "x --token \"hunter2 hunter2\" -v"], "sh -c x --token *** -v"),
        (&["sh", "-c", "X_TOKEN='hunter2 hunter2' run"], "sh -c X_TOKEN=*** run"),
        (&["-----BEGIN PRIVATE KEY-----\nhunter2"], "***"),
        (&["ASIAABCDEFGHIJKLMNOP"], "***"),
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
        &["docker", "run", "-p", "8000:8000", "image:tag@sha256:0123abc"],
        &["scp", "ana@box:/tmp/x", "."],
        &["--sort=key:asc", "a,b;c=d", "C:/x@y", "12:30", "[::1]:80"],
    ] {
        assert_eq!(line(arguments), arguments.join(" "));
    }
}

#[test]
fn what_separates_within_a_secret_does_not_show_its_rest() {
    for (argument, shown) in [
        ("redis://u:hun,ter2@h/0", "redis://***@h/0"),
        ("redis://u:hun;ter2@h/0", "redis://***@h/0"),
        ("Authorization:Bearer hunter2", "Authorization:*** ***"),
    ] {
        assert_eq!(redact(&[argument.to_owned()]), [shown], "{argument}");
    }
    for argument in ["{\"password\":\"two hunter2\"}", "--header=X-Token:\"a hunter2\""] {
        let shown = redact(&[argument.to_owned()]).concat();
        assert!(shown.contains("***") && !shown.contains("hunter2"), "{argument}: {shown}");
    }
}

#[test]
fn what_is_in_quotes_is_the_secret() {
    for (argument, shown) in [
        (r#"{"api_key":"hun,ter2"}"#, r#"{"api_key":***}"#),
        (r#"{"n":1, "token" : "a\"b,c\\", "m":2}"#, r#"{"n":1, "token" : ***, "m":2}"#),
        (r#"{"token":["a,b", "c]d"],"m":2}"#, r#"{"token":***],"m":2}"#),
        ("{'password': 'a, b'}", "{'password': ***}"),
        (r#"curl -d "{\"token\":\"a,\\\"b\"}" host"#, r#"curl -d "{\"token\":***}" host"#),
        (r#"curl -d '{"a": 1, "token":"x y"}' host"#, r#"curl -d '{"a": 1, "token":***}' host"#),
        ("X_TOKEN=\"a\"'b c'", "X_TOKEN=***"),
        ("a=1;X_TOKEN='a,b'c\"d e\"; run", "a=1;X_TOKEN=***; run"),
        (r#"os.environ["HF_TOKEN"] = "a,b"; run()"#, r#"os.environ["HF_TOKEN"] = ***; run()"#),
        (r#"{"token":"it never ends, says"#, r#"{"token":***"#),
    ] {
        assert_eq!(redact(&[argument.to_owned()]), [shown], "{argument}");
    }
    for kept in
        [r#"{"sort":"a,b","key":"c","pad_token":"<p>"}"#, r#"if key == "a": x"#, "token:", "="]
    {
        assert_eq!(redact(&[kept.to_owned()]), [kept]);
    }
}

#[test]
fn a_header_is_hidden_to_its_end() {
    for (argument, shown) in [
        ("curl -H 'X-Api-Key: a b' host", "curl -H 'X-Api-Key: ***' host"),
        ("curl -H \"X-Api-Key: a b; c\" host", "curl -H \"X-Api-Key: ***\" host"),
        ("curl --header='X-Api-Key:a, b' host -v", "curl --header='X-Api-Key:***' host -v"),
        ("X-Api-Key: a b", "X-Api-Key: ***"),
        ("--header=X-Api-Key: a b", "--header=X-Api-Key: ***"),
        ("Authorization: Digest username=\"a\", response=\"b c\"", "Authorization: Digest ***"),
        (
            "curl -H 'Authorization: Digest username=\"a\", token=\"b\", nc=1' host",
            "curl -H 'Authorization: Digest ***' host",
        ),
        (
            r#"sh -c "curl -H \"X-Api-Key: a 'b' c\" host" -v"#,
            r#"sh -c "curl -H \"X-Api-Key: ***\" host" -v"#,
        ),
        (
            r#"curl -H "Authorization: Digest u=\"a\", r=\"b\"" host"#,
            r#"curl -H "Authorization: Digest ***" host"#,
        ),
        ("cat <<X\nHost: h\n  password: a b\nn: 1", "cat <<X\nHost: h\n  password: ***\nn: 1"),
        ("curl -H 'X-Api-Key: it never ends", "curl -H 'X-Api-Key: ***"),
    ] {
        assert_eq!(redact(&[argument.to_owned()]), [shown], "{argument}");
    }
    for kept in ["'https://token/x: y z'", "'pad-token: a b'"] {
        assert_eq!(redact(&[kept.to_owned()]), [kept]);
    }
}

/// A process can make its arguments what it likes: none takes longer than its length asks for.
#[test]
fn no_argument_is_read_over_and_over() {
    for pattern in [
        "\"'=",
        "token=\\",
        "\\",
        "\":",
        "=",
        "token=[\"",
        "\\'\\\\'",
        "\\\\\\'",
        "' ",
        "a:\"",
        "token:'\\",
        "'token: ",
        "\ntoken:",
        "'token: bearer ",
    ] {
        for head in ["", "token=\"a\"", "token:[\"", "token=\"a\"\\'"] {
            let text = format!("{head}{}", pattern.repeat(100_000 / pattern.len()));
            let shown = redact(&[text]).concat();
            assert!(shown.len() <= 100_020, "{head} {pattern}");
        }
    }
}

/// A text with a secret in JSON, on its own and within a text of JSON, and in a script.
fn in_json(name: &str, secret: &str) -> Vec<String> {
    let quoted = |text: &str| serde_json::to_string(text).unwrap();
    let value = quoted(secret);
    let tight = format!("{{\"{name}\":{value}}}");
    let among = format!("{{\"n\": 1, \"{name}\" : {value}, \"m\": [\"x\"]}}");
    let list = format!("{{\"{name}\":[{value}, {value}],\"m\":2}}");
    let script = format!("curl -d '{tight}' -H 'A: b' host");
    let twice = quoted(&among);
    let deep = quoted(&twice);
    vec![tight, among, list, script, twice, deep, format!("{name}={value} run --now")]
}

proptest! {
    #[test]
    fn no_piece_of_a_secret_in_quotes_shows(
        name in prop::sample::select(vec!["api_key", "token", "password", "clientSecret"]),
        secret in r#"[ -~¡-ÿ→❤🔑"'\\\\,;:={}\[\]]{1,40}"#,
    ) {
        // Whatever it is, the same is shown.
        for (argument, plain) in in_json(name, &secret).into_iter().zip(in_json(name, "x")) {
            let shown = redact(&[argument]).concat();
            prop_assert_eq!(&shown, &redact(&[plain]).concat());
            let letters: Vec<char> = secret.chars().collect();
            for piece in letters.windows(4).map(|piece| piece.iter().collect::<String>()) {
                let of_the_text = in_json(name, "").iter().any(|text| text.contains(&piece));
                prop_assert!(of_the_text || !shown.contains(&piece), "{}: {}", piece, shown);
            }
        }
    }

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
