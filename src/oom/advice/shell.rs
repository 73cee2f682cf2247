//! Lines for the shell of the machine that a log is from.

use crate::oom::clues::Mark;
use crate::oom::judge::Case;

/// The line as the shell there takes it.
pub(super) fn of(case: &Case, line: String) -> String {
    if !case.has(Mark::Windows) || case.has(Mark::Wsl) {
        return line;
    }
    // `C:\dir>` without `PS` before it is the older one.
    let prompt = |line: &str| {
        let mut bytes = line.trim_start().bytes();
        bytes.next().is_some_and(|drive| drive.is_ascii_alphabetic())
            && bytes.next() == Some(b':')
            && bytes.next() == Some(b'\\')
            && line.contains('>')
    };
    let old = case.digest.lines.iter().any(|line| prompt(&line.full));
    on_windows(&line, old)
}

/// Variables are set before the command, not in front of it.
fn on_windows(line: &str, old: bool) -> String {
    if let Some(name) = line.strip_prefix("unset ") {
        return if old { format!("set {name}=") } else { format!("Remove-Item Env:{name}") };
    }
    let mut out = Vec::new();
    let mut rest = line;
    loop {
        let (word, after) = rest.split_once(' ').unwrap_or((rest, ""));
        let Some((name, value)) = word.split_once('=').filter(|(name, _)| is_variable(name)) else {
            break;
        };
        out.push(if old {
            format!("set \"{name}={value}\"")
        } else {
            format!("$env:{name}=\"{value}\"")
        });
        rest = after;
    }
    if !rest.is_empty() {
        out.push(rest.to_owned());
    }
    out.join(if old { " && " } else { "; " })
}

fn is_variable(name: &str) -> bool {
    !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_set_as_each_shell_does_it() {
        let line = "OLLAMA_CONTEXT_LENGTH=4096 OLLAMA_FLASH_ATTENTION=1 ollama serve";
        assert_eq!(
            on_windows(line, false),
            "$env:OLLAMA_CONTEXT_LENGTH=\"4096\"; $env:OLLAMA_FLASH_ATTENTION=\"1\"; ollama serve"
        );
        assert_eq!(
            on_windows(line, true),
            "set \"OLLAMA_CONTEXT_LENGTH=4096\" && set \"OLLAMA_FLASH_ATTENTION=1\" && ollama serve"
        );
        assert_eq!(on_windows("unset X", false), "Remove-Item Env:X");
        assert_eq!(on_windows("unset X", true), "set X=");
        assert_eq!(on_windows("batch_size=8", false), "batch_size=8");
    }
}
