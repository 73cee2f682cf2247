//! A command line, taken apart.

use super::table::Signature;

/// Options of Python that take a value of their own.
const PYTHON_VALUES: [&str; 2] = ["-W", "-X"];
/// Programs that start another one named in their arguments.
const WRAPPERS: [&str; 6] = ["accelerate", "torchrun", "deepspeed", "uv", "conda", "env"];

/// What is run, and with which words after it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Command<'a> {
    /// Name of the program without its folder.
    pub program: &'a str,
    /// Its path as it was given.
    path: &'a str,
    /// The script or module, where the program is an interpreter.
    script: Option<&'a str>,
    /// All words after the program.
    words: &'a [String],
}

fn base(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

impl<'a> Command<'a> {
    pub fn of(words: &'a [String]) -> Self {
        let path = words.first().map_or("", String::as_str);
        let rest = words.get(1..).unwrap_or_default();
        let program = base(path);
        let program = program.strip_suffix(".exe").unwrap_or(program);
        let mut command = Self { program, path, script: None, words: rest };
        if command.is_python() {
            command.script = script(rest);
        }
        command
    }

    pub fn is_python(&self) -> bool {
        self.program.starts_with("python") || self.program.starts_with("pypy")
    }

    /// The word that matches a signature.
    pub fn matches(&self, signature: &Signature) -> Option<&'a str> {
        if signature.programs.contains(&self.program) && self.first_is(signature.first) {
            return Some(self.path);
        }
        let script = self.script.or_else(|| self.wrapped());
        if let Some(script) = script {
            let name = base(script);
            let stem = name.strip_suffix(".py").unwrap_or(name);
            let module = |m: &str| {
                script.strip_prefix(m).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            };
            if signature.modules.iter().any(|m| module(m))
                || signature.programs.contains(&stem) && self.first_after(stem, signature.first)
            {
                return Some(script);
            }
            let scripts = signature.scripts.contains(&name);
            let lower = if scripts { script.to_ascii_lowercase() } else { String::new() };
            if scripts && signature.paths.iter().any(|part| lower.contains(part)) {
                return Some(script);
            }
            if scripts && let Some(flag) = self.has(signature.telling) {
                return Some(flag);
            }
        }
        if signature.scripts.is_empty() && (self.is_python() || script.is_some()) {
            return self.has(signature.telling);
        }
        None
    }

    /// The script behind a launcher such as `torchrun`.
    fn wrapped(&self) -> Option<&'a str> {
        let wrapper = WRAPPERS.contains(&self.program);
        let script =
            |word: &&String| base(word).rsplit_once('.').is_some_and(|(_, end)| end == "py");
        if wrapper { self.words.iter().find(script).map(String::as_str) } else { None }
    }

    fn first_is(&self, first: &[&str]) -> bool {
        first.is_empty() || self.words.first().is_some_and(|w| first.contains(&w.as_str()))
    }

    fn first_after(&self, stem: &str, first: &[&str]) -> bool {
        let at = self.words.iter().position(|w| base(w).trim_end_matches(".py") == stem);
        let next = at.and_then(|at| self.words.get(at + 1));
        first.is_empty() || next.is_some_and(|w| first.contains(&w.as_str()))
    }

    /// The first of these flags that is there.
    fn has(&self, flags: &[&str]) -> Option<&'a str> {
        let names = |word: &str| flags.contains(&word.split('=').next().unwrap_or(word));
        self.words.iter().map(String::as_str).find(|word| names(word))
    }

    /// The value of the last of these flags (later ones win), or `on` for a bare one.
    pub fn value(&self, flags: &[&str], bare: bool) -> Option<(String, String)> {
        let mut found = None;
        for (at, word) in self.words.iter().enumerate().filter(|(_, word)| word.starts_with('-')) {
            let (name, inline) = match word.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (word.as_str(), None),
            };
            if !flags.iter().any(|flag| same_flag(flag, name)) {
                continue;
            }
            let next = self.words.get(at + 1).map(String::as_str);
            let next = next.filter(|next| !is_flag(next));
            let value = match (inline, bare) {
                (Some(value), _) => Some(value),
                (None, true) => Some(next.filter(|n| is_switch(n)).unwrap_or("on")),
                (None, false) => next,
            };
            found = value.map(|value| (name.to_owned(), value.to_owned())).or(found);
        }
        found
    }

    /// The first plain word after one of these words; nothing where a flag comes first.
    pub fn word_after(&self, marks: &[&str]) -> Option<(String, String)> {
        let at = self.words.iter().position(|w| marks.contains(&w.as_str()))?;
        let word = self.words.get(at + 1).filter(|w| !is_flag(w))?;
        Some((self.words.get(at)?.clone(), word.clone()))
    }
}

/// Python programs take `--max_len` and `--max-len` for the same. Asked for every flag of every
/// process: it must not allocate.
fn same_flag(a: &str, b: &str) -> bool {
    let plain = |byte: u8| if byte == b'_' { b'-' } else { byte };
    a.len() == b.len() && a.bytes().zip(b.bytes()).all(|(a, b)| plain(a) == plain(b))
}

fn is_flag(word: &str) -> bool {
    word.starts_with('-') && !word.trim_start_matches('-').starts_with(|c: char| c.is_ascii_digit())
}

fn is_switch(word: &str) -> bool {
    ["on", "off", "auto", "1", "0", "true", "false", "True", "False", "enabled", "disabled"]
        .contains(&word)
}

/// The script or module that an interpreter runs.
fn script(words: &[String]) -> Option<&str> {
    let mut words = words.iter().map(String::as_str);
    while let Some(word) = words.next() {
        match word {
            "-m" => return words.next(),
            "-c" => return None,
            _ if PYTHON_VALUES.contains(&word) => {
                words.next();
            }
            _ if word.starts_with('-') => {}
            _ => return Some(word),
        }
    }
    None
}

/// `32768`, `32k`, `1m`, `8_192`.
pub(super) fn number(text: &str) -> Option<u64> {
    let lower = text.trim().to_ascii_lowercase().replace(['_', ','], "");
    let (digits, factor) = match (lower.strip_suffix('k'), lower.strip_suffix('m')) {
        (Some(digits), _) => (digits, 1024),
        (_, Some(digits)) => (digits, 1 << 20),
        _ => (lower.as_str(), 1),
    };
    digits.parse::<u64>().ok()?.checked_mul(factor)
}
