//! Options that would change an answer, given to a command that does not heed them: refused, for the
//! answer would read as if they had been. What only changes how something looks (colour, theme,
//! characters) or how it is done may be given anywhere.

use anyhow::bail;

use crate::cli::args::{Cli, Command, ConfigArgs, ReplayArgs};

/// Commands whose help does not list an option of all, by the option's long name.
pub const UNLISTED: &[(&str, &[&str])] =
    &[("json", &["record", "serve", "gen"]), ("gpu", &["record", "fixes", "gen"])];

/// Refuses what the command does not heed.
///
/// # Errors
/// Where there is such an option; with what to do instead.
pub fn check(cli: &Cli) -> anyhow::Result<()> {
    let Some(command) = &cli.command else {
        if cli.need.is_some() && (cli.once || cli.common.json) {
            bail!("--need is for the live view and for triage: vramlens triage --need SIZE");
        }
        return Ok(());
    };
    if cli.demo {
        bail!("--demo is a recording that the view shows: it takes no command");
    }
    if cli.once && !matches!(command, Command::Replay(_)) {
        bail!("--once is for the view: a command prints and ends by itself");
    }
    if cli.need.is_some() && !matches!(command, Command::Triage(_)) {
        bail!("--need is for the view and for triage: vramlens triage --need SIZE");
    }
    if cli.common.json {
        json(command)?;
    }
    if cli.common.gpu.is_some() {
        gpu(command)?;
    }
    if let Command::Replay(args) = command {
        replay(args, args.once || cli.common.json)?;
    }
    Ok(())
}

fn json(command: &Command) -> anyhow::Result<()> {
    match command {
        Command::Record(_) => {
            bail!("record has no --json: `vramlens record -` writes lines of JSON")
        }
        Command::Serve(_) => {
            bail!(
                "serve has no --json: it answers in Prometheus' format; vramlens --json is a snapshot"
            )
        }
        Command::Gen(_) => bail!("gen has no --json: it prints scripts and pages"),
        Command::Config(ConfigArgs { example: true, .. }) => {
            bail!("--example is a file in TOML: vramlens config --json shows every setting")
        }
        Command::Config(ConfigArgs { themes: Some(_), .. }) => {
            bail!("--themes has no --json: vramlens config --json shows every setting")
        }
        Command::Replay(args) if args.svg.is_some() || args.png.is_some() => {
            bail!("a picture is no JSON: leave out --json, or --svg and --png")
        }
        _ => Ok(()),
    }
}

/// What is for a chart only, for the view only, or for what is printed.
fn replay(args: &ReplayArgs, prints: bool) -> anyhow::Result<()> {
    let draws = args.svg.is_some() || args.png.is_some();
    if args.size.is_some() && !draws {
        bail!("--size is for a chart: add --svg OUT or --png OUT");
    }
    if args.from.is_some() && !draws {
        bail!(
            "--from is where a chart begins: add --svg OUT or --png OUT; --to TIME with --once or \
             --json prints one moment"
        );
    }
    if args.to.is_some() && !draws && !prints {
        bail!("--to is for --svg, --png, --once and --json: in the view @ goes to a time");
    }
    if args.speed.is_some() && (draws || prints) {
        bail!("--speed is for the view: leave it out");
    }
    Ok(())
}

fn gpu(command: &Command) -> anyhow::Result<()> {
    match command {
        // Who has a device open may hold memory on any: without the others' lists it would look like
        // somebody who hides.
        Command::Record(_) => bail!(
            "a recording always has every GPU: leave out --gpu, and narrow its replay: \
             vramlens replay FILE --gpu LIST"
        ),
        Command::Fixes(_) | Command::Gen(_) => bail!("--gpu changes nothing here: leave it out"),
        _ => Ok(()),
    }
}
