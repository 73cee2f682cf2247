//! The filter language: `user:ana state:zombie vram>2G !python`. Terms are joined by *and*.

use crate::analyze::Holder;
use crate::fields::{self, FieldId, Unit};
use crate::ids::GpuIndex;
use crate::units::Bytes;

/// What is left of the table. The empty one lets everything through.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Filter {
    source: String,
    terms: Vec<Term>,
    /// Terms that are no filter, in words; they are looked for as text.
    pub complaints: Vec<String>,
}

#[derive(Debug, Clone, PartialEq)]
struct Term {
    negated: bool,
    test: Test,
}

#[derive(Debug, Clone, PartialEq)]
enum Test {
    /// Somewhere in command, user, state or pid.
    Word(String),
    /// In this column.
    Text(FieldId, String),
    /// This column, compared.
    Number(FieldId, Relation, f64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Relation {
    Less,
    AtMost,
    Equal,
    AtLeast,
    More,
}

impl Relation {
    const ALL: [(&'static str, Self); 5] = [
        ("<=", Self::AtMost),
        (">=", Self::AtLeast),
        ("<", Self::Less),
        (">", Self::More),
        ("=", Self::Equal),
    ];

    fn holds(self, left: f64, right: f64) -> bool {
        match self {
            Self::Less => left < right,
            Self::AtMost => left <= right,
            Self::Equal => (left - right).abs() < 0.5,
            Self::AtLeast => left >= right,
            Self::More => left > right,
        }
    }
}

impl Filter {
    /// Reads a filter. What is not understood is looked for as text, and complained about.
    pub fn parse(source: &str) -> Self {
        let mut filter = Self { source: source.to_owned(), ..Self::default() };
        for word in words(source) {
            let (negated, rest) = match word.strip_prefix('!') {
                Some(rest) if !rest.is_empty() => (true, rest),
                _ => (false, word.as_str()),
            };
            let test = read_term(rest).unwrap_or_else(|complaint| {
                filter.complaints.push(complaint);
                Test::Word(rest.to_lowercase())
            });
            filter.terms.push(Term { negated, test });
        }
        filter
    }

    /// As it was typed.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Whether it lets everything through.
    pub const fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Whether a holder passes.
    pub fn matches(&self, holder: &Holder) -> bool {
        self.terms.iter().all(|term| term.test.matches(holder) != term.negated)
    }

    /// Whether the row of a GPU's unaccounted memory passes.
    pub fn matches_unaccounted(&self, gpu: GpuIndex, bytes: Bytes) -> bool {
        let passes = |test: &Test| match test {
            Test::Word(word) | Test::Text(FieldId::State, word) => {
                "unaccounted unacct".contains(word.as_str())
            }
            Test::Text(FieldId::Gpu, word) => *word == gpu.to_string(),
            Test::Number(FieldId::Vram, relation, n) => relation.holds(bytes.0 as f64, *n),
            Test::Text(..) | Test::Number(..) => false,
        };
        self.terms.iter().all(|term| passes(&term.test) != term.negated)
    }
}

impl Test {
    fn matches(&self, holder: &Holder) -> bool {
        let has = |id, word: &str| fields::cell(id, holder).to_lowercase().contains(word);
        match self {
            Self::Word(word) => [FieldId::Command, FieldId::User, FieldId::State, FieldId::Pid]
                .into_iter()
                .any(|id| has(id, word)),
            Self::Text(id @ (FieldId::Gpu | FieldId::Pid), word) => {
                fields::cell(*id, holder) == *word
            }
            Self::Text(id, word) => has(*id, word),
            Self::Number(id, relation, n) => {
                fields::number(*id, holder).is_some_and(|value| relation.holds(value, *n))
            }
        }
    }
}

/// Splits at white space outside double quotes.
fn words(source: &str) -> Vec<String> {
    let (mut words, mut word, mut quoted) = (Vec::new(), String::new(), false);
    for c in source.chars() {
        match c {
            '"' => quoted = !quoted,
            c if c.is_whitespace() && !quoted => words.push(std::mem::take(&mut word)),
            c => word.push(c),
        }
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words
}

fn read_term(text: &str) -> Result<Test, String> {
    let Some(at) = text.find([':', '<', '>', '=']) else {
        return Ok(Test::Word(text.to_lowercase()));
    };
    let (name, rest) = text.split_at(at);
    // `VLLM::Worker` and `--model=x` are words.
    let plain = |c: char| c.is_ascii_alphabetic();
    if name.is_empty() || !name.chars().all(plain) || rest.starts_with("::") {
        return Ok(Test::Word(text.to_lowercase()));
    }
    let id = FieldId::by_name(if name == "cmd" { "command" } else { name })
        .ok_or_else(|| format!("no column {name}"))?;
    if let Some(value) = rest.strip_prefix(':') {
        let relation = Relation::ALL.iter().any(|(sign, _)| value.starts_with(sign));
        if id.field().unit == Unit::Text {
            return Ok(Test::Text(id, value.to_lowercase()));
        }
        return if relation {
            number_term(id, value)
        } else {
            number_term(id, &format!("={value}"))
        };
    }
    number_term(id, rest)
}

fn number_term(id: FieldId, text: &str) -> Result<Test, String> {
    let name = id.field().name;
    let (sign, relation) = Relation::ALL
        .iter()
        .find(|(sign, _)| text.starts_with(sign))
        .ok_or_else(|| format!("{name}: write > or < and a value"))?;
    let value = text.strip_prefix(sign).unwrap_or(text);
    let number = match id.field().unit {
        Unit::Bytes | Unit::BytesPerMinute => value.parse().ok().map(|Bytes(n)| n as f64),
        Unit::Milliseconds => read_age(value),
        _ => value.trim_end_matches('%').parse().ok(),
    };
    match number {
        Some(n) => Ok(Test::Number(id, *relation, n)),
        None => Err(format!("{value:.20} is no value for {name}")),
    }
}

/// `90s`, `5m`, `2h`, `3d` in milliseconds.
fn read_age(text: &str) -> Option<f64> {
    let units = [("s", 1e3), ("m", 6e4), ("h", 36e5), ("d", 864e5)];
    let (suffix, factor) = units.iter().find(|(suffix, _)| text.ends_with(suffix))?;
    text.strip_suffix(suffix)?.parse::<f64>().ok().map(|n| n * factor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn terms(text: &str) -> Vec<Test> {
        Filter::parse(text).terms.into_iter().map(|term| term.test).collect()
    }

    #[test]
    fn terms_are_read() {
        assert_eq!(
            terms(r#"user:Ana vram>2G sm<=5% age>1h "a b" VLLM::Engine"#),
            [
                Test::Text(FieldId::User, "ana".into()),
                Test::Number(FieldId::Vram, Relation::More, 2_147_483_648.0),
                Test::Number(FieldId::Sm, Relation::AtMost, 5.0),
                Test::Number(FieldId::Age, Relation::More, 3_600_000.0),
                Test::Word("a b".into()),
                Test::Word("vllm::engine".into()),
            ]
        );
        assert!(Filter::parse("!python").terms[0].negated);
        assert_eq!(Filter::parse("colour:red").complaints, ["no column colour"]);
        assert_eq!(Filter::parse("vram>much").complaints, ["much is no value for vram"]);
        assert!(Filter::parse("   ").is_empty());
    }

    #[test]
    fn unaccounted_memory_passes_by_gpu_size_and_state() {
        let passes = |text| Filter::parse(text).matches_unaccounted(GpuIndex(1), Bytes::gib(3));
        for text in ["", "gpu:1", "vram>2G", "state:unacct", "unacc", "!user:ana"] {
            assert!(passes(text), "{text}");
        }
        for text in ["gpu:0", "user:ana", "!unaccounted", "vram>4G"] {
            assert!(!passes(text), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in any::<String>()) {
            let _ = Filter::parse(&text);
        }

        #[test]
        fn nor_does_anything_that_looks_like_a_filter(
            text in "(!?(user|vram|sm|age|gpu|x)?[:<>=]{0,3}\"?[0-9a-zG%.é]{0,4} ?){0,5}"
        ) {
            let _ = Filter::parse(&text);
        }
    }
}
