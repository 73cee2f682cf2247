//! `--host`: which machines, and what can be done with several.

use std::sync::Arc;

use crate::cli::args::{Cli, Command};
use crate::cli::config::Resolved;
use crate::cli::dispatch::{Environment, kill_of, show_view};
use crate::cli::settings::Settings;
use crate::cmd::look::Form;
use crate::cmd::{Exit, hosts, kill_host, top};
use crate::runtime::live::From;
use crate::runtime::options::Options;
use crate::runtime::remote::{Host, Setup};

/// More machines than this are a fleet, which is Prometheus' work.
const MOST: usize = 256;

/// The machines that were named; `None` where none was.
///
/// # Errors
/// Where a name is none, or stands there twice.
pub fn setup(cli: &Cli, settings: &Settings) -> anyhow::Result<Option<Setup>> {
    if cli.common.host.is_empty() {
        return Ok(None);
    }
    let mut hosts: Vec<Host> = Vec::new();
    for word in &cli.common.host {
        let all = word == "all";
        if all && settings.remote_hosts.is_empty() {
            anyhow::bail!(
                "--host all is the list in the configuration, and there is none: set hosts below [remote]"
            );
        }
        let names =
            if all { settings.remote_hosts.iter() } else { std::slice::from_ref(word).iter() };
        for name in names {
            let host: Host = name.parse()?;
            if hosts.contains(&host) && !all {
                anyhow::bail!("--host {} is given twice", host.name());
            }
            if !hosts.contains(&host) {
                hosts.push(host);
            }
        }
    }
    if hosts.len() > MOST {
        anyhow::bail!("{} machines are too many for one screen: {MOST} at the most", hosts.len());
    }
    Ok(Some(Setup {
        hosts,
        ssh: settings.remote_ssh.clone(),
        command: settings.remote_command.clone(),
        config: cli.common.config.clone(),
        interval_ms: settings.interval_ms,
    }))
}

/// Does what was asked for on these machines.
///
/// # Errors
/// Where it cannot be done on several machines, or fails.
pub fn run(
    cli: &Cli,
    resolved: &Resolved,
    options: Options,
    form: Form,
    setup: Setup,
    env: Environment<'_>,
) -> anyhow::Result<Exit> {
    match &cli.command {
        None if cli.demo => anyhow::bail!("--demo is a recording: it has no --host"),
        None if form.json || cli.once || !top::can_show(env("TERM").as_deref()) => {
            hosts::once(&setup, &options, form)
        }
        None => show_view(resolved, options, env, From::Hosts(Arc::new(setup))),
        Some(Command::Triage(args)) => {
            let need = args.need.as_deref().map(str::parse).transpose()?;
            hosts::triage(&setup, &options, form, need)
        }
        Some(Command::Kill(args)) => {
            kill_host::run(&kill_of(args, &resolved.settings), &setup, &options, form)
        }
        Some(_) => anyhow::bail!(
            "--host is for the live view, --once, --json, triage and kill; for the rest: ssh {} vramlens …",
            setup.hosts.first().map_or("HOST", Host::name)
        ),
    }
}
