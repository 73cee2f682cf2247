//! The command line as it explains itself: examples and exit codes, one table each. `--help`, the
//! manual and the README's test read them.

use clap::{Command, CommandFactory};

use crate::cli::args::Cli;
use crate::cli::scope::UNLISTED;

/// Both ways to say whom to end.
pub const KILL_USAGE: &str =
    "vramlens kill [OPTIONS] <PID>...\n       vramlens kill [OPTIONS] --zombies";

/// A line to type, and what it does.
pub type Example = (&'static str, &'static str);

/// No help is wider, however wide the terminal is.
const WIDEST: usize = 100;
/// Examples are set for a terminal of this width.
const NARROW: usize = 80;

/// Exit codes and what they mean.
pub const EXITS: &[(u8, &str)] = &[
    (0, "fine"),
    (1, "there are findings, or something does not fit"),
    (2, "wrong usage, or bad input"),
    (3, "no driver, or no GPU"),
    (4, "the driver does not answer, or does not tell what a kill gave back"),
    (130, "interrupted"),
];

/// Examples of the program itself, as `""`, and of every command.
pub const EXAMPLES: &[(&str, &[Example])] = &[
    (
        "",
        &[
            ("vramlens", "the live view"),
            ("vramlens --demo", "a recording of a real GPU"),
            ("vramlens triage", "a report: who holds it, what to do"),
            ("ssh gpubox vramlens triage", "the same of another machine"),
            ("vramlens --host ana@box1 --host box2", "the live view of two machines"),
            ("vramlens kill --zombies --dry-run", "what one key would end"),
            ("python train.py 2>&1 | vramlens explain", "what an error means"),
            ("vramlens fit model.gguf --context 32768", "whether a model fits"),
            ("vramlens --version --verbose", "what a report of a fault needs"),
        ],
    ),
    (
        "triage",
        &[
            ("vramlens triage", "the report"),
            ("vramlens triage --need 12GiB", "would this much fit, and after which fix"),
            ("vramlens triage --json | jq .findings", "the findings, for a script"),
            ("vramlens triage --gpu 0,2", "of two GPUs only"),
        ],
    ),
    (
        "kill",
        &[
            ("vramlens kill --zombies --dry-run", "show what would be ended"),
            ("vramlens kill --zombies", "end leftovers, after a question"),
            ("vramlens kill --zombies --yes", "the same from a script"),
            ("vramlens kill 4242", "end one holder with its whole job"),
        ],
    ),
    (
        "explain",
        &[
            ("vramlens explain error.txt", "read a message or a whole log"),
            ("python train.py 2>&1 | vramlens explain", "read what a program says"),
            ("journalctl -u vllm | vramlens explain", "read a service's journal"),
            ("vramlens explain log --recording day.vrt", "with who held what at that time"),
        ],
    ),
    (
        "fit",
        &[
            ("vramlens fit model.gguf", "what of this file fits here, now"),
            ("vramlens fit 70B --gpu 24GiB", "a size, on a card that is not here"),
            ("vramlens fit ./Llama-3.1-8B -c 32k", "a folder of safetensors, 32k of context"),
            ("vramlens fit", "a table of what fits in what"),
        ],
    ),
    (
        "fixes",
        &[
            ("vramlens fixes", "the nine fixes for CUDA out of memory"),
            ("vramlens fixes 6", "one of them, with its whole text"),
        ],
    ),
    (
        "run",
        &[
            ("vramlens run -- python train.py", "watch a command; explain its end"),
            ("vramlens run --record day.vrt -- ./train.sh", "and keep the session"),
            ("vramlens run -q -- make test", "say nothing when it ends well"),
        ],
    ),
    (
        "record",
        &[
            ("vramlens record day.vrt", "until it is interrupted"),
            ("vramlens record day.vrt --for 10m", "ten minutes"),
            ("vramlens record - --redact | zstd > day.zst", "plain lines, nothing private"),
        ],
    ),
    (
        "replay",
        &[
            ("vramlens replay day.vrt", "look at a session"),
            ("vramlens replay day.vrt --speed 60", "a minute in a second"),
            ("vramlens replay day.vrt --once", "its last frame, as text"),
            ("vramlens replay day.vrt --svg day.svg", "its chart, as a picture"),
            ("ssh gpubox vramlens record - | vramlens replay -", "another machine, live"),
        ],
    ),
    (
        "serve",
        &[
            ("vramlens serve", "metrics on http://127.0.0.1:9835/metrics"),
            ("vramlens serve --listen 127.0.0.1:9900", "on another port"),
            ("vramlens serve --textfile /run/vramlens.prom", "for the node exporter"),
        ],
    ),
    (
        "doctor",
        &[
            ("vramlens doctor", "what works here, and how to mend the rest"),
            ("vramlens doctor --json", "the same for a script"),
            ("vramlens doctor --wake", "ask the driver although a GPU sleeps"),
        ],
    ),
    (
        "config",
        &[
            ("vramlens config", "every setting and where it comes from"),
            ("vramlens config --example > config.toml", "a file to begin with"),
            ("vramlens config --themes", "every theme, and what is wrong with one"),
        ],
    ),
    (
        "gen",
        &[
            ("vramlens gen completions bash", "a completion script"),
            ("vramlens gen man triage", "a page of the manual"),
            ("vramlens gen all assets", "every script and page, into a folder"),
        ],
    ),
];

/// The examples of a command; of the program itself for `""`.
pub fn examples(command: &str) -> &'static [Example] {
    EXAMPLES.iter().find(|(name, _)| *name == command).map_or(&[], |(_, rows)| *rows)
}

/// The command line, with everything that `--help` says.
pub fn command() -> Command {
    let mut command = Cli::command().max_term_width(WIDEST);
    command = command.after_help(format!("{}\n{}", set(examples("")), exits()));
    for (option, commands) in UNLISTED {
        // Declared once more, hidden: what is declared for all is taken over where it is missing.
        let Some(all) = command.get_arguments().find(|arg| arg.get_id() == option) else {
            continue;
        };
        let hidden = all.clone().global(false).hide(true);
        for name in *commands {
            command = command.mut_subcommand(name, |sub| sub.arg(hidden.clone()));
        }
    }
    for (name, rows) in EXAMPLES.iter().filter(|(name, _)| !name.is_empty()) {
        command = command.mut_subcommand(name, |sub| sub.after_help(set(rows)));
    }
    command
}

/// Lines to type in one column, what they do in the next; below it where both do not fit.
fn set(rows: &[Example]) -> String {
    let column = rows.iter().map(|(line, _)| line.chars().count()).max().unwrap_or(0);
    let mut text = String::from("Examples:\n");
    for (line, what) in rows {
        if column + 4 + what.chars().count() <= NARROW {
            text += &format!("  {line:<column$}  {what}\n");
        } else {
            text += &format!("  {line}\n      {what}\n");
        }
    }
    text
}

fn exits() -> String {
    let mut text = String::from("Exit codes:\n");
    for (code, what) in EXITS {
        text += &format!("  {code:<3}  {what}\n");
    }
    text.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    /// Every command with its name, hidden ones left out.
    fn all() -> Vec<Command> {
        let mut root = command();
        root.build();
        let subs: Vec<Command> =
            root.get_subcommands().filter(|sub| !sub.is_hide_set()).cloned().collect();
        std::iter::once(root).chain(subs).filter(|sub| sub.get_name() != "help").collect()
    }

    #[test]
    fn every_command_has_examples_and_no_example_is_of_a_command_that_is_gone() {
        let names: Vec<String> = all().iter().map(|sub| sub.get_name().to_owned()).collect();
        for name in names.iter().skip(1) {
            assert!(!examples(name).is_empty(), "{name} has no example");
        }
        for (name, _) in EXAMPLES.iter().skip(1) {
            assert!(names.iter().any(|other| other == name), "there is no command {name}");
        }
    }

    /// What stands on a line, seen as the terminal shows it.
    fn columns(line: &str) -> usize {
        line.trim_end().chars().count()
    }

    #[test]
    fn help_reads_in_eighty_columns_and_is_never_wider_than_a_hundred() {
        for width in [NARROW, WIDEST] {
            for sub in all() {
                let text = sub.clone().term_width(width).render_long_help().to_string()
                    + &sub.clone().term_width(width).render_help().to_string();
                for line in text.lines() {
                    assert!(columns(line) <= width, "{}: {line}", sub.get_name());
                }
            }
        }
    }

    #[test]
    fn examples_parse() {
        for (name, rows) in EXAMPLES {
            for (line, _) in *rows {
                // The first of a pipe that is ours, without what goes before it (ssh HOST).
                let own = line.split('|').find(|part| part.contains("vramlens")).unwrap();
                let own = own.split(" > ").next().unwrap().split_whitespace();
                let words: Vec<&str> = own.skip_while(|word| *word != "vramlens").collect();
                if let Err(error) = Cli::try_parse_from(&words) {
                    panic!("{name}: {line}: {error}");
                }
            }
        }
    }
}
