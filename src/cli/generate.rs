//! Completions and the manual, made from the tables of the program.

use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use clap::{Args, Command, Subcommand};
use clap_complete::Shell;

use crate::cli::{help, man};
use crate::cmd::{Exit, top};
use crate::sample::text::clean_path;

/// `vramlens gen`.
#[derive(Debug, Args)]
pub struct GenArgs {
    /// What to print.
    #[command(subcommand)]
    pub what: GenWhat,
}

/// What is made from the tables of the program.
#[derive(Debug, Subcommand)]
pub enum GenWhat {
    /// Print the completion script of a shell.
    Completions {
        /// Which.
        #[arg(value_name = "SHELL")]
        shell: Shell,
    },
    /// Print a page of the manual, as troff.
    Man {
        /// The page of this command; that of vramlens itself without one.
        #[arg(value_name = "COMMAND")]
        command: Option<String>,
    },
    /// Write all of them into a folder: FOLDER/completions and FOLDER/man.
    All {
        /// Where to.
        #[arg(value_name = "FOLDER")]
        folder: PathBuf,
    },
}

/// The shells that are known.
pub const SHELLS: [Shell; 5] =
    [Shell::Bash, Shell::Elvish, Shell::Fish, Shell::PowerShell, Shell::Zsh];

/// A file that is made, and its text.
pub struct Made {
    /// Below the folder of all of them.
    pub path: PathBuf,
    /// Its whole text.
    pub text: String,
}

/// `vramlens gen`.
///
/// # Errors
/// Where there is no such page, or the output fails.
pub fn run(what: &GenWhat) -> anyhow::Result<Exit> {
    match what {
        GenWhat::Completions { shell } => top::print(&completions(*shell))?,
        GenWhat::Man { command } => {
            let name = command.as_deref().unwrap_or_default();
            let page = man::page(name).ok_or_else(|| {
                let all = man::names().join(", ");
                anyhow!("there is no page of {name:?}; there are pages of {all}")
            })?;
            top::print(&page)?;
        }
        GenWhat::All { folder } => write(folder)?,
    }
    Ok(Exit::Fine)
}

/// Everything that is made.
pub fn all() -> Vec<Made> {
    let script = |shell: Shell| {
        let name = clap_complete::Generator::file_name(&shell, "vramlens");
        Made { path: Path::new("completions").join(name), text: completions(shell) }
    };
    let page = |name: String| {
        let file = if name.is_empty() { "vramlens.1".into() } else { format!("vramlens-{name}.1") };
        man::page(&name).map(|text| Made { path: Path::new("man").join(file), text })
    };
    let pages = std::iter::once(String::new()).chain(man::names());
    SHELLS.into_iter().map(script).chain(pages.filter_map(page)).collect()
}

fn completions(shell: Shell) -> String {
    let mut bytes = Vec::new();
    clap_complete::generate(shell, &mut shown(), "vramlens", &mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The command line without what is hidden, which scripts would offer all the same.
fn shown() -> Command {
    let whole = help::command();
    // Whatever is not hidden has examples.
    let names = help::EXAMPLES.iter().map(|(name, _)| *name);
    let commands = names.filter_map(|name| Some(visible(name, whole.find_subcommand(name)?)));
    visible("vramlens", &whole).subcommands(commands)
}

/// A command of its own without hidden options.
fn visible(name: &'static str, of: &Command) -> Command {
    let args = of.get_arguments().filter(|arg| !arg.is_hide_set()).cloned();
    let inner = of.get_subcommands().filter(|_| name != "vramlens").cloned();
    let about = of.get_about().cloned().unwrap_or_default();
    Command::new(name).about(about).args(args).subcommands(inner)
}

fn write(folder: &Path) -> anyhow::Result<()> {
    for made in all() {
        let path = folder.join(&made.path);
        let parent = path.parent().unwrap_or(folder);
        std::fs::create_dir_all(parent)
            .and_then(|()| std::fs::write(&path, &made.text))
            .with_context(|| format!("cannot write {}", clean_path(&path)))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_scripts_and_pages_are_those_of_the_tables() {
        let assets = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets");
        let made = all();
        for file in &made {
            let committed = std::fs::read_to_string(assets.join(&file.path)).unwrap_or_default();
            let name = file.path.display();
            assert!(committed == file.text, "{name} is old: cargo run -- gen all assets");
        }
        for folder in ["man", "completions"] {
            for entry in std::fs::read_dir(assets.join(folder)).unwrap() {
                let path = Path::new(folder).join(entry.unwrap().file_name());
                let known = made.iter().any(|file| file.path == path);
                assert!(known, "nothing makes {} any more", path.display());
            }
        }
    }

    #[test]
    fn scripts_offer_every_command_but_hidden_ones() {
        for shell in SHELLS {
            let text = completions(shell);
            assert!(!text.contains("monitor"), "{shell}");
            for sub in help::command().get_subcommands() {
                let flag = format!("{}, {shell}", sub.get_name());
                let offered = text.contains(&sub.get_about().unwrap().to_string())
                    || text.contains(&format!("vramlens,{})", sub.get_name()));
                assert!(sub.is_hide_set() || offered || text.contains(sub.get_name()), "{flag}");
                assert!(!(sub.is_hide_set() && offered), "{flag}");
            }
        }
    }

    #[test]
    fn a_page_that_is_not_there_is_an_error_that_names_those_that_are() {
        let what = GenWhat::Man { command: Some("fly".to_owned()) };
        let error = run(&what).unwrap_err().to_string();
        assert!(error.contains("triage") && error.contains("kill"), "{error}");
    }
}
