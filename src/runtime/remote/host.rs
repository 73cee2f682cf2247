//! Names of machines, and the command that reaches one.

use std::ffi::OsString;
use std::process::Command;

use crate::runtime::remote::Setup;

/// This machine, among others.
pub const LOCAL: &str = "local";
/// Longer names are no names.
const LONGEST: usize = 255;
/// Besides letters and digits: what `user@host`, an address and `ssh://user@host:port` need. None of
/// them means anything to a shell, which a `ProxyCommand` of the user's may ask.
const ALLOWED: &str = "._-@:/[]%+=,";

/// A machine as the user names it: what `ssh` takes as its destination, or `local`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Host(String);

/// Why a name is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} names no machine: write user@host, or a name of your ssh configuration (letters, digits \
     and ._-@:/[]%+=, and no - at its start)"
)]
pub struct BadHost(String);

impl std::str::FromStr for Host {
    type Err = BadHost;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let fits = |c: char| c.is_alphanumeric() || ALLOWED.contains(c);
        // With a - at the start ssh would take it, or the name behind the @, for an option.
        let option = text.starts_with('-') || text.contains("@-") || text.contains("/-");
        if text.is_empty() || text.len() > LONGEST || option || !text.chars().all(fits) {
            return Err(BadHost(text.chars().take(64).collect()));
        }
        Ok(Self(text.to_owned()))
    }
}

impl Host {
    /// As it was written.
    pub fn name(&self) -> &str {
        &self.0
    }

    /// Whether it is this machine.
    pub fn is_local(&self) -> bool {
        self.0 == LOCAL
    }

    /// What to start for its stream. `answers` asks for a far end that takes requests.
    pub fn command(&self, setup: &Setup, answers: bool) -> Command {
        let mut words = vec!["record".to_owned(), "-".to_owned()];
        if answers {
            words.push("--answer".to_owned());
        }
        words.extend(["--interval".to_owned(), format!("{}ms", setup.interval_ms)]);
        if self.is_local() {
            // Also where the file has been replaced or removed since.
            let mut command = Command::new("/proc/self/exe");
            command.args(words);
            if let Some(config) = &setup.config {
                command.arg("--config").arg(config);
            }
            return command;
        }
        let ssh = setup.ssh.first().map_or("ssh", String::as_str);
        let mut command = Command::new(ssh);
        command.args(setup.ssh.iter().skip(1)).args(OPTIONS).arg("--").arg(&self.0);
        let line: Vec<String> =
            setup.command.iter().chain(&words).map(|word| quoted(word)).collect();
        command.arg(OsString::from(line.join(" ")));
        command
    }
}

/// No terminal, no question, no forwarding; a link that is dead is found out within 15 s. A shared
/// connection that is there is used, and none is made: others' sessions would end with this program.
const OPTIONS: [&str; 19] = [
    "-T",
    "-a",
    "-x",
    "-o",
    "BatchMode=yes",
    "-o",
    "ConnectTimeout=15",
    "-o",
    "ServerAliveInterval=5",
    "-o",
    "ServerAliveCountMax=3",
    "-o",
    "ClearAllForwardings=yes",
    "-o",
    "ControlMaster=no",
    "-o",
    "RemoteCommand=none",
    "-o",
    "PermitLocalCommand=no",
];

/// A word as every shell reads it back. A home directory at its start stays one.
fn quoted(word: &str) -> String {
    let plain = |text: &str| {
        !text.is_empty()
            && text.chars().all(|c| c.is_ascii_alphanumeric() || "._-/:=,+@%".contains(c))
    };
    if plain(word) {
        return word.to_owned();
    }
    match word.strip_prefix("~/") {
        Some(rest) if plain(rest) => word.to_owned(),
        Some(rest) => format!("~/'{}'", rest.replace('\'', r"'\''")),
        None => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_ssh_or_a_shell_would_misread_are_refused() {
        for good in ["gpubox", "ana@gpubox", "ssh://ana@box:2222", "fe80::1%eth0", "[::1]", "local"]
        {
            assert!(good.parse::<Host>().is_ok(), "{good}");
        }
        let long = "x".repeat(256);
        for bad in [
            "",
            "-oProxyCommand=x",
            "ana@-oProxyCommand=x",
            "ssh://-x",
            "a b",
            "a;b",
            "$(x)",
            "`x`",
            "a'b",
            "a\"b",
            "a\\b",
            "a\nb",
            "a\u{1b}[2J",
            "a*",
            "~a",
            "a|b",
            "a&b",
            "{a}",
            &long,
        ] {
            let error = bad.parse::<Host>().unwrap_err().to_string();
            assert!(!error.chars().any(char::is_control), "{bad:?}");
        }
    }

    #[test]
    fn what_the_far_shell_gets_is_quoted() {
        let setup = Setup {
            hosts: Vec::new(),
            ssh: ["ssh", "-F", "my file"].map(ToOwned::to_owned).to_vec(),
            command: ["~/my bin/vramlens", "it's; $(x)"].map(ToOwned::to_owned).to_vec(),
            config: None,
            interval_ms: 500,
        };
        let host: Host = "ana@box".parse().unwrap();
        let command = host.command(&setup, true);
        let words: Vec<_> = command.get_args().map(|word| word.to_str().unwrap()).collect();
        assert_eq!(command.get_program(), "ssh");
        assert_eq!(words[..2], ["-F", "my file"]);
        assert_eq!(words[words.len() - 3..words.len() - 1], ["--", "ana@box"]);
        let line = r"~/'my bin/vramlens' 'it'\''s; $(x)' record - --answer --interval 500ms";
        assert_eq!(words.last(), Some(&line));
        let older = host.command(&setup, false);
        assert!(!older.get_args().any(|word| word.to_str().unwrap().contains("--answer")));
        let local: Host = LOCAL.parse().unwrap();
        assert_eq!(local.command(&setup, true).get_program(), "/proc/self/exe");
    }
}
