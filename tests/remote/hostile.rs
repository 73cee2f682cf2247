//! Far ends that do their worst, and names that are none.

use crate::farm::{Farm, lives, peak_bytes, until};
use crate::{line, output, show, used};

/// What a far end can do at its worst: what it is called, and a script.
fn attacks() -> [(&'static str, String); 10] {
    let header = "head -c 400 /dev/null; printf '{\"header\":{\"schema\":\"1.1\",\"tool\":\"x\",\
                  \"boot_id\":{\"absent\":\"not_asked\"},\"hostname\":\"\\033[2Jx\",\"driver\":\
                  {\"absent\":\"not_asked\"},\"interval_ms\":1,\"started\":{\"boot_ms\":1,\
                  \"wall_ms\":1}}}\\n'";
    [
        ("an endless line", "exec tr '\\0' x < /dev/zero".to_owned()),
        ("an endless line after a header", format!("{header}; exec tr '\\0' '{{' < /dev/zero")),
        ("random bytes", "exec cat /dev/urandom".to_owned()),
        ("nonsense lines", format!("{header}; yes '{{\"gpus\":{{\"at\":' | head -c 50000000")),
        (
            "frames",
            "printf '\\050\\265\\057\\375\\377\\377\\377\\377\\377'; exec cat /dev/zero".to_owned(),
        ),
        (
            "a giant length",
            format!(
                "{header}; printf '\\132\\052\\115\\030\\377\\377\\377\\377'; exec cat /dev/zero"
            ),
        ),
        (
            "escape sequences",
            "printf '\\033[2J\\033]0;owned\\007\\033[31mhello\\n' >&2; exit 255".to_owned(),
        ),
        (
            "answers that nobody asked for",
            format!(
                "{header}; yes '{{\"answer\":{{\"id\":1,\"what\":{{\"refused\":\"owned\"}}}}}}'"
            ),
        ),
        (
            "moments at the end of time",
            format!(
                "{header}; yes '{{\"pulse\":{{\"at\":{{\"boot_ms\":18446744073709551615,\
                 \"wall_ms\":18446744073709551615}},\"dropped\":18446744073709551615}}}}'"
            ),
        ),
        ("nothing at all", "exec sleep 1000".to_owned()),
    ]
}

#[test]
fn a_hostile_far_end_harms_nothing() {
    let Some(farm) = Farm::new(&[("good", &used(35)), ("bad", &used(1))]) else { return };
    for (name, script) in attacks() {
        farm.runs("bad", &script);
        let mut term = show(&farm, &["bad", "good"], &["--interval", "200ms"], (24, 100));
        term.wait(name, |text| line(text, "good").contains("live"));
        // It goes on while the other one does its worst, and keys are heard.
        for gib in [70, 105] {
            farm.fake("good").change(&used(gib));
            let percent = format!("{}%", gib * 100 / 140);
            term.wait(name, |text| line(text, "good").contains(&percent));
        }
        term.send("h");
        let text = term.wait(name, |text| line(text, "good").starts_with('▸'));
        assert!(!text.contains("owned") || text.contains('␛'), "{name}: {text}");
        let peak = peak_bytes(term.pid());
        assert!(peak < 200 << 20, "{name}: {} MiB", peak >> 20);
        farm.fake("good").change(&used(35));
        term.send("q");
        assert_eq!(term.exit_code(), 0, "{name}");
    }
    let pids = farm.far_pids("good");
    until("no far end is left", || !pids.iter().any(|pid| lives(*pid)));
}

#[test]
fn a_bad_name_is_refused_before_anything_is_started() {
    let Some(farm) = Farm::new(&[]) else { return };
    for bad in ["-oProxyCommand=touch /tmp/owned", "a b", "$(id)", "x@-F", ""] {
        let word = format!("--host={bad}");
        let (code, text) = output(&farm, &[&word, "--once"]);
        assert_eq!(code, 2, "{text}");
        assert!(text.contains("names no machine"), "{text}");
    }
    let (code, text) = output(&farm, &["--host", "a", "--host", "a", "--once"]);
    assert!(code == 2 && text.contains("given twice"), "{text}");
    let (code, text) = output(&farm, &["--host", "all", "--once"]);
    assert!(code == 2 && text.contains("[remote]"), "{text}");
    let (code, text) = output(&farm, &["fit", "70B", "--host", "a"]);
    assert!(code == 2 && text.contains("--host is for"), "{text}");
}
