//! `vramlens serve`: metrics for Prometheus.

use std::io::Write;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use crate::cmd::Exit;
use crate::runtime::options::Options;
use crate::runtime::serve::http::{self, Site};
use crate::runtime::serve::notify::notify;
use crate::runtime::serve::textfile::{self, Textfile};
use crate::runtime::serve::{Counters, Exporter, News};
use crate::runtime::{journal, reload, rights};
use crate::sample::text::{clean, clean_path};

/// The address without another word: registered by nobody, and only reached from this machine.
pub const LISTEN: &str = "127.0.0.1:9835";
/// The longest token, in bytes.
const LONGEST_TOKEN: u64 = 4096;

/// What to serve.
#[derive(Debug, Clone)]
pub struct Serve {
    /// Where; without a word [`LISTEN`], or nowhere where a file is written.
    pub listen: Option<String>,
    /// Whether other machines may be let in.
    pub allow_remote: bool,
    /// A file with the token that readers have to show.
    pub token_file: Option<PathBuf>,
    /// Holders of one GPU that have series of their own.
    pub holders: usize,
    /// Also the traffic on the bus, which is slow to read.
    pub pcie: bool,
    /// A file for the textfile collector.
    pub textfile: Option<PathBuf>,
    /// Where systemd wants to hear that the service is ready.
    pub notify_socket: Option<String>,
}

/// Serves until it is told to end.
///
/// # Errors
/// Where the address, the token or the file cannot be used.
pub fn run(serve: &Serve, options: &Options) -> anyhow::Result<Exit> {
    let addresses = addresses(serve)?;
    let token = serve.token_file.as_deref().map(token).transpose()?;
    let listener = listener(serve, &addresses)?;
    give_up_rights(serve.textfile.as_deref());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let exit = runtime.block_on(work(serve, options, listener, token));
    // A driver that hangs is not waited for.
    runtime.shutdown_background();
    exit
}

async fn work(
    serve: &Serve,
    options: &Options,
    listener: Option<TcpListener>,
    token: Option<Arc<str>>,
) -> anyhow::Result<Exit> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    let counters = Arc::<Counters>::default();
    let (exporter, pages) =
        Exporter::open(options, serve.holders, serve.pcie, Arc::clone(&counters))?;
    if let Some(listener) = listener {
        let bound = http::spawn(listener, Site { pages: pages.clone(), token, counters })?;
        log(&format!("listening on http://{bound}/metrics"));
    }
    // Last: no start that fails has written it.
    let textfile = match &serve.textfile {
        None => None,
        Some(file) => {
            let name = clean_path(file);
            let complain = move |error: &_| log(&format!("cannot write {name}: {error}"));
            let kept = Textfile::spawn(file, pages, complain)
                .with_context(|| format!("cannot write {}", clean_path(file)))?;
            Some(kept)
        }
    };
    tell_systemd(serve, "READY=1");
    let control = exporter.control();
    let exported = exporter.run(|news| match news {
        News::Answers => log("the driver answers"),
        // It may come: a card that was reset, a driver that was loaded anew.
        News::NoSuchGpu(nowhere) => log(&format!("{nowhere}: it is exported once it is there")),
        News::Refuses(error) => log(&format!("{error}; it is asked again{}", no_devices())),
    });
    tokio::pin!(exported);
    let (read, mut outcomes) = mpsc::channel(4);
    let exit = loop {
        tokio::select! {
            _ = interrupt.recv() => break Exit::Interrupted,
            _ = terminate.recv() => break Exit::Fine,
            () = &mut exported => break Exit::NoDriver,
            _ = hang_up.recv() => {
                let read = read.clone();
                options.reload.begin(move |outcome| drop(read.blocking_send(outcome)));
            }
            Some(outcome) = outcomes.recv() => reloaded(outcome, &control),
        }
    };
    tell_systemd(serve, "STOPPING=1");
    if let Some(textfile) = textfile {
        textfile.end();
    }
    Ok(exit)
}

fn listener(serve: &Serve, addresses: &[SocketAddr]) -> anyhow::Result<Option<TcpListener>> {
    if addresses.is_empty() {
        return Ok(None);
    }
    let bound = http::bind(addresses).with_context(|| {
        let listen = serve.listen.as_deref().unwrap_or(LISTEN);
        format!("cannot listen on {listen}; another address: --listen 127.0.0.1:PORT")
    });
    bound.map(Some)
}

/// What strangers talk to needs the rights to look, and for the file those to write it. The port is
/// open and the token read by now, and no thread runs but the log's.
fn give_up_rights(file: Option<&Path>) {
    journal::shed();
    match rights::shed(|| file.map_or(Ok(()), textfile::try_out)) {
        Ok(shed) if shed.had_more => log(&shed.to_string()),
        Ok(_) => {}
        Err(error) => log(&format!("rights (capabilities) could not be given up: {error}")),
    }
}

/// Goes on with settings that were read again; one with a mistake changes nothing.
fn reloaded(outcome: reload::Outcome, control: &mpsc::Sender<Options>) {
    match outcome {
        Ok(new) => {
            log(&reload::said(&new.later));
            let _ = control.try_send(new.options);
        }
        Err(wrong) => log(&format!("the configuration was not read, the old one stays: {wrong}")),
    }
}

/// The driver's library makes missing device files with the help of a program that gains rights.
fn no_devices() -> &'static str {
    if ["/dev/nvidiactl", "/dev/dxg"].iter().any(|file| Path::new(file).exists()) {
        return "";
    }
    ". There is no /dev/nvidiactl, and serve makes none: sudo nvidia-modprobe -u -c 0, or let \
     nvidia-persistenced run"
}

fn tell_systemd(serve: &Serve, state: &str) {
    if let Some(socket) = serve.notify_socket.as_deref().filter(|name| !name.is_empty())
        && let Err(error) = notify(socket, state)
    {
        log(&format!("cannot tell {state} to {socket}: {error}"));
    }
}

/// A line for the journal.
fn log(line: &str) {
    log::info!("{line}");
    let _ = writeln!(std::io::stderr(), "vramlens: {}", clean(line));
}

/// Where to listen, only on this machine unless more is allowed.
fn addresses(serve: &Serve) -> anyhow::Result<Vec<SocketAddr>> {
    let listen = match (&serve.listen, &serve.textfile) {
        (Some(listen), _) => listen.as_str(),
        (None, None) => LISTEN,
        (None, Some(_)) => return Ok(Vec::new()),
    };
    let found: Vec<SocketAddr> = listen
        .to_socket_addrs()
        .with_context(|| format!("{listen:?} is no address: write 127.0.0.1:9835 or [::1]:9835"))?
        .collect();
    if let Some(open) = found.iter().find(|address| !address.ip().is_loopback())
        && !serve.allow_remote
    {
        bail!(
            "{open} can be reached from other machines, which would read who runs what here: add \
             --allow-remote if that is wanted, and --token-file FILE to let only some of them in"
        );
    }
    if found.is_empty() {
        bail!("{listen} has no address");
    }
    Ok(found)
}

fn token(file: &Path) -> anyhow::Result<Arc<str>> {
    let name = clean_path(file);
    let meta = std::fs::metadata(file).with_context(|| format!("cannot read the token {name}"))?;
    if meta.len() > LONGEST_TOKEN {
        bail!("{name} is too long for a token: {LONGEST_TOKEN} bytes at the most");
    }
    let text =
        std::fs::read_to_string(file).with_context(|| format!("cannot read the token {name}"))?;
    let token = text.trim();
    if token.is_empty() || !token.chars().all(|c| c.is_ascii_graphic()) {
        bail!("{name} holds no token: one line of printable ASCII characters without spaces");
    }
    if meta.mode() & 0o004 != 0 {
        log(&format!("every user of this machine can read {name}: chmod 600 {name}"));
    }
    Ok(token.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn serve(listen: &str, allow_remote: bool) -> anyhow::Result<Vec<SocketAddr>> {
        addresses(&Serve {
            listen: Some(listen.to_owned()),
            allow_remote,
            token_file: None,
            holders: 20,
            pcie: false,
            textfile: None,
            notify_socket: None,
        })
    }

    #[test]
    fn only_this_machine_is_let_in_without_a_word() {
        for local in [LISTEN, "[::1]:0", "127.8.9.1:1"] {
            assert_eq!(serve(local, false).unwrap().len(), 1);
        }
        for open in ["0.0.0.0:9835", "[::]:9835", "192.0.2.1:9835"] {
            let error = serve(open, false).unwrap_err().to_string();
            assert!(error.contains("--allow-remote") && error.contains("--token-file"), "{error}");
            assert_eq!(serve(open, true).unwrap().len(), 1);
        }
        let error = format!("{:#}", serve("9835", false).unwrap_err());
        assert!(error.contains("is no address"), "{error}");
    }

    #[test]
    fn a_token_is_one_word() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("token");
        let of = |text: &str| {
            std::fs::write(&file, text).unwrap();
            token(&file)
        };
        assert_eq!(&*of("s3cret\n").unwrap(), "s3cret");
        for bad in ["", "\n", "two words", "tab\there", "für", &"x".repeat(5000)] {
            assert!(of(bad).is_err(), "{bad}");
        }
        assert!(token(Path::new("/nowhere/token")).is_err());
    }
}
