//! From the command line to the commands.

use std::io::IsTerminal;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;

use crate::cli::args::{Cli, ColorWhen, Command, DriverArgs, RecordArgs, RunArgs, ServeArgs};
use crate::cli::config::{Resolved, resolve};
use crate::cli::settings::{SETTINGS, Settings, duration_ms, example};
use crate::cli::tools;
use crate::cmd::look::{self, Form};
use crate::cmd::{Exit, doctor, kill, past, record, run as command, serve, top};
use crate::runtime::live::From;
use crate::runtime::options::{Options, nvml};
use crate::runtime::{clock, isolate};
use crate::source::Progress;
use crate::ui::{self, App, theme::Look};
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
    let resolved = resolve(&cli.common, env)?;
    let settings = &resolved.settings;
    let options = options(settings);
    let form = Form { json: cli.common.json, ascii: is_ascii(settings, env) };
    let colours = is_coloured(settings, env) && std::io::stdout().is_terminal();
    match &cli.command {
        None => view(cli, settings, options, form, env),
        Some(Command::Triage(args)) => {
            let need = args.need.as_deref().map(str::parse).transpose()?;
            look::triage(&options, form, need)
        }
        Some(Command::Run(args)) => command::run(&watched(args), &options, form),
        Some(Command::Record(args)) => record::run(&recording(args)?, &options),
        Some(Command::Replay(args))
            if args.once || form.json || !top::can_show(env("TERM").as_deref()) =>
        {
            past::once(&args.file, &options, form)
        }
        Some(Command::Replay(args)) => {
            let from = From::File(args.file.clone(), args.speed);
            show_view(settings, options, form, env, from)
        }
        Some(Command::Config(args)) if args.example => {
            top::print(&example())?;
            Ok(Exit::Fine)
        }
        Some(Command::Config(_)) => show(&resolved),
        Some(Command::Kill(args)) => {
            let kill = kill::Kill {
                pids: args.pids.clone(),
                dry_run: args.dry_run,
                yes: args.yes || !settings.kill_confirm,
                now: args.now,
                protected: args.protected,
            };
            kill::run(&kill, &options, form)
        }
        Some(Command::Explain(args)) => tools::explain(args, &options, form),
        Some(Command::Fit(args)) => tools::fit(args, &options, form, colours),
        Some(Command::Serve(args)) => serve::run(&serving(args, env), &options),
        Some(Command::Doctor(args)) => doctor::run(&options, form, args.wake),
        Some(Command::Fixes(args)) => tools::fixes(args),
        Some(Command::Gen(args)) => crate::cli::generate::run(&args.what),
        // Taken above: it needs no configuration.
        Some(Command::Driver(_)) => Ok(Exit::Usage),
    }
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
    isolate::child::run(args.parent, &progress, nvml(&options, &progress))?;
    Ok(Exit::Fine)
}

fn options(settings: &Settings) -> Options {
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
        request: (settings.request > Bytes::ZERO).then_some(settings.request),
        allocator: settings.allocator,
        servers: settings.servers,
        mouse: settings.mouse,
        let_sleep: settings.let_sleep,
        wake: false,
        isolate: settings.isolate,
        alerts: settings.alerts,
        alert_actions: settings.alert_actions.clone(),
    }
}

/// Where the locale has no UTF-8, nothing outside ASCII can be shown.
fn is_ascii(settings: &Settings, env: Environment<'_>) -> bool {
    let set = |name: &str| env(name).filter(|value| !value.is_empty());
    let locale = set("LC_ALL").or_else(|| set("LC_CTYPE")).or_else(|| set("LANG"));
    let utf8 = locale.is_none_or(|name| {
        let name = name.to_ascii_lowercase();
        name.contains("utf-8") || name.contains("utf8")
    });
    settings.ascii || !utf8
}

/// Whether to use colour.
fn is_coloured(settings: &Settings, env: Environment<'_>) -> bool {
    let set = |name: &str| env(name).is_some_and(|value| !value.is_empty());
    match settings.color {
        ColorWhen::Always => true,
        ColorWhen::Never => false,
        ColorWhen::Auto => !set("NO_COLOR"),
    }
}

fn view(
    cli: &Cli,
    settings: &Settings,
    options: Options,
    form: Form,
    env: Environment<'_>,
) -> anyhow::Result<Exit> {
    if form.json || cli.once || !top::can_show(env("TERM").as_deref()) {
        return look::once(&options, form);
    }
    let from = if cli.demo { From::Demo } else { From::Driver };
    show_view(settings, options, form, env, from)
}

fn show_view(
    settings: &Settings,
    options: Options,
    form: Form,
    env: Environment<'_>,
    from: From,
) -> anyhow::Result<Exit> {
    let mut app = App::new(ui::Settings {
        look: Look::new(is_coloured(settings, env), form.ascii),
        utc_offset_s: clock::utc_offset_seconds(clock::now()),
        interval_ms: settings.interval_ms,
        confirm_kill: settings.kill_confirm,
        ..ui::Settings::default()
    });
    app.recording = from.title();
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
    Ok(record::Record { file: args.file.clone(), duration, max_size, redact: args.redact })
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

fn show(resolved: &Resolved) -> anyhow::Result<Exit> {
    let mut text = String::new();
    let width = SETTINGS.iter().map(|row| row.key.len()).max().unwrap_or(0);
    for row in SETTINGS {
        if let Some((value, origin)) = resolved.origins.get(row.key) {
            let value = if value.is_empty() { "\"\"" } else { value };
            text += &format!("{:<width$}  {value:<8}  {origin}\n", row.key);
        }
    }
    top::print(&text)?;
    Ok(Exit::Fine)
}
