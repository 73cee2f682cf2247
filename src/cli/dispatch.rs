//! From the command line to the commands.

use std::io::IsTerminal;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;

use crate::cli::args::{
    Cli, Command, ConfigArgs, DriverArgs, KillArgs, RecordArgs, ReplayArgs, RunArgs, ServeArgs,
};
use crate::cli::config::{Resolved, resolve};
use crate::cli::settings::{Settings, duration_ms};
use crate::cli::{hosts, reload, scope, show, terminal, themes, tools};
use crate::cmd::look::{self, Form};
use crate::cmd::{Exit, doctor, kill, past, record, replay, run as command, serve, top};
use crate::runtime::isolate;
use crate::runtime::live::From;
use crate::runtime::options::{Options, nvml};
use crate::runtime::reload::Reload;
use crate::source::Progress;
use crate::ui::App;
use crate::ui::theme::Depth;
use crate::units::Bytes;

/// The environment, as far as it is asked for.
pub type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Does what was asked for.
///
/// # Errors
/// What the user should read on standard error; it exits with 2.
pub fn run(cli: &Cli, env: Environment<'_>) -> anyhow::Result<Exit> {
    if let Some(Command::Run(RunArgs { monitor: Some(control), command, .. })) = &cli.command {
        return command::monitor(*control, command);
    }
    if let Some(Command::Driver(args)) = &cli.command {
        return answer(args);
    }
    scope::check(cli)?;
    let resolved = resolve(&cli.common, env)?;
    themes::check_typed(&resolved, &env)?;
    let settings = &resolved.settings;
    let mut options = options(settings);
    options.need = needed(cli)?;
    options.reload = reload::again(&cli.common, &resolved, env);
    let form = Form {
        json: cli.common.json,
        ascii: terminal::is_ascii(settings, env),
        columns: env("COLUMNS").and_then(|text| text.trim().parse().ok()).filter(|n| *n > 0),
    };
    let depth = terminal::depth(settings, env, std::io::stdout().is_terminal());
    let colours = depth != Depth::None;
    if let Some(setup) = hosts::setup(cli, settings)? {
        return hosts::run(cli, &resolved, options, form, setup, env);
    }
    match &cli.command {
        None => view(cli, &resolved, options, form, env),
        Some(Command::Triage(_)) => look::triage(&options, form, options.need),
        Some(Command::Run(args)) => command::run(&watched(args), &options, form),
        Some(Command::Record(args)) => record::run(&recording(args)?, &options),
        Some(Command::Replay(args)) if args.svg.is_some() || args.png.is_some() => {
            replay::run(&picture(args, &options))
        }
        Some(Command::Replay(args))
            if args.once || form.json || !top::can_show(env("TERM").as_deref()) =>
        {
            past::once(&args.file, args.to.as_deref(), &options, form)
        }
        Some(Command::Replay(args)) => {
            replay::check(&args.file)?;
            let from = From::File(args.file.clone(), args.speed.unwrap_or(1.0));
            show_view(&resolved, options, env, from)
        }
        Some(Command::Config(args)) => config(args, &resolved, (form, depth), env),
        Some(Command::Kill(args)) => kill::run(&kill_of(args, settings), &options, form),
        Some(Command::Explain(args)) => tools::explain(args, &options, form),
        Some(Command::Fit(args)) => tools::fit(args, &options, form, colours),
        Some(Command::Serve(args)) => serve::run(&serving(args, env), &options),
        Some(Command::Doctor(args)) => doctor::run(&options, form, args.wake),
        Some(Command::Fixes(args)) => tools::fixes(args, form),
        Some(Command::Gen(args)) => crate::cli::generate::run(&args.what),
        // Taken above: it needs no configuration.
        Some(Command::Driver(_)) => Ok(Exit::Usage),
    }
}

/// What is wanted, by the command's own option or by that of the view.
fn needed(cli: &Cli) -> anyhow::Result<Option<Bytes>> {
    let of_command = match &cli.command {
        Some(Command::Triage(args)) => args.need.as_deref(),
        _ => None,
    };
    Ok(of_command.or(cli.need.as_deref()).map(str::parse).transpose()?)
}

/// The process that asks the driver for another one.
fn answer(args: &DriverArgs) -> anyhow::Result<Exit> {
    let progress = Arc::new(Progress::default());
    let settings = Settings {
        nvml_library: args.library.clone(),
        let_sleep: args.let_sleep,
        ..Settings::default()
    };
    let options = Options { wake: args.wake, ..options(&settings) };
    isolate::child::run(args.parent, &progress, nvml(&options, &progress, args.events))?;
    Ok(Exit::Fine)
}

/// What a session is told.
pub(super) fn options(settings: &Settings) -> Options {
    Options {
        interval_ms: settings.interval_ms,
        library: settings.nvml_library.clone(),
        gpus: settings
            .gpus
            .split(',')
            .map(str::trim)
            .filter(|name| !name.is_empty())
            .map(ToOwned::to_owned)
            .collect(),
        idle_after_ms: settings.idle_after_ms,
        need: None,
        request: (settings.request > Bytes::ZERO).then_some(settings.request),
        allocator: settings.allocator,
        servers: settings.servers,
        mouse: settings.mouse,
        let_sleep: settings.let_sleep,
        wake: false,
        isolate: settings.isolate,
        alerts: settings.alerts,
        alert_actions: settings.alert_actions.clone(),
        reload: Reload::default(),
    }
}

fn view(
    cli: &Cli,
    resolved: &Resolved,
    options: Options,
    form: Form,
    env: Environment<'_>,
) -> anyhow::Result<Exit> {
    let prints = form.json || cli.once || !top::can_show(env("TERM").as_deref());
    if prints && cli.demo {
        return past::demo(&options, form);
    }
    if prints {
        return look::once(&options, form);
    }
    let from = if cli.demo { From::Demo } else { From::Driver };
    show_view(resolved, options, env, from)
}

pub(super) fn show_view(
    resolved: &Resolved,
    options: Options,
    env: Environment<'_>,
    from: From,
) -> anyhow::Result<Exit> {
    let mut app = App::new(reload::screen(resolved, env)?);
    app.recording = from.title();
    app.wanted_size = options.need.map(crate::rules::Wanted::anywhere);
    top::run(app, options, from)
}

fn recording(args: &RecordArgs) -> anyhow::Result<record::Record> {
    let duration = match &args.duration {
        None => None,
        Some(text) => Some(Duration::from_millis(
            duration_ms(text)
                .with_context(|| format!("{text:?} is no time: write 30s, 10m or 2h"))?,
        )),
    };
    let max_size = args.max_size.as_deref().map(str::parse).transpose()?;
    let answer = args.answer;
    if answer && args.file != std::path::Path::new("-") {
        anyhow::bail!("--answer is for a stream: write `vramlens record - --answer`");
    }
    Ok(record::Record { file: args.file.clone(), duration, max_size, redact: args.redact, answer })
}

pub(super) fn kill_of(args: &KillArgs, settings: &Settings) -> kill::Kill {
    kill::Kill {
        pids: args.pids.clone(),
        dry_run: args.dry_run,
        yes: args.yes || !settings.kill_confirm,
        now: args.now,
        protected: args.protected,
    }
}

fn picture(args: &ReplayArgs, options: &Options) -> replay::Picture {
    replay::Picture {
        file: args.file.clone(),
        svg: args.svg.clone(),
        png: args.png.clone(),
        from: args.from.clone(),
        to: args.to.clone(),
        size: args.size.clone(),
        gpus: options.gpus.clone(),
    }
}

fn serving(args: &ServeArgs, env: Environment<'_>) -> serve::Serve {
    serve::Serve {
        listen: args.listen.clone(),
        allow_remote: args.allow_remote,
        token_file: args.token_file.clone(),
        holders: args.holders,
        pcie: args.pcie,
        textfile: args.textfile.clone(),
        notify_socket: env("NOTIFY_SOCKET"),
    }
}

fn watched(args: &RunArgs) -> command::Run {
    command::Run { command: args.command.clone(), record: args.record.clone(), quiet: args.quiet }
}

fn config(
    args: &ConfigArgs,
    resolved: &Resolved,
    (form, depth): (Form, Depth),
    env: Environment<'_>,
) -> anyhow::Result<Exit> {
    // The example helps also somebody whose settings are wrong.
    let chosen = match themes::choose(resolved, depth, &env) {
        Err(wrong) if !args.example => Some(wrong),
        _ => None,
    };
    let text = match args.themes.as_deref() {
        Some("") => {
            let swatch = show::Swatch { depth, dot: if form.ascii { " #" } else { " ●" } };
            show::themes(&themes::all(&env), &resolved.settings.theme, &swatch, &env)
        }
        Some(name) => themes::file(name, &env)?,
        None if args.example => show::example(),
        None if form.json => show::settings_json(resolved)?,
        None => show::settings(resolved),
    };
    top::print(&text)?;
    chosen.map_or(Ok(Exit::Fine), |wrong| Err(wrong.into()))
}
