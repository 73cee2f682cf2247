//! Tells systemd that the service is ready (`sd_notify(3)`).

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// Sends a state such as `READY=1` to the socket in `name`, the value of `NOTIFY_SOCKET`; a name
/// that begins with `@` is in the abstract namespace.
///
/// # Errors
/// Where the socket cannot be reached.
pub fn notify(name: &str, state: &str) -> io::Result<()> {
    let address = match name.strip_prefix('@') {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(name)?,
    };
    let socket = UnixDatagram::unbound()?;
    // A manager that reads nothing must not hold up the exporter.
    socket.set_write_timeout(Some(Duration::from_secs(1)))?;
    socket.send_to_addr(state.as_bytes(), &address).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hears(at: &SocketAddr, name: &str) {
        let manager = UnixDatagram::bind_addr(at).unwrap();
        notify(name, "READY=1").unwrap();
        let mut message = [0; 16];
        let length = manager.recv(&mut message).unwrap();
        assert_eq!(&message[..length], b"READY=1");
    }

    #[test]
    fn both_kinds_of_sockets_are_reached() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notify");
        hears(&SocketAddr::from_pathname(&path).unwrap(), path.to_str().unwrap());
        let name = format!("vramlens-test-{}", std::process::id());
        hears(&SocketAddr::from_abstract_name(&name).unwrap(), &format!("@{name}"));
        assert!(notify(dir.path().join("nobody").to_str().unwrap(), "READY=1").is_err());
    }
}
