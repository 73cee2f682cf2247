//! TCP ports on which a process listens: a model server without work at present is no leftover.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::sync::Arc;

use crate::host::root::Root;
use crate::ids::Pid;

/// Listening sockets come first in the kernel's table, so this much is plenty.
const LIMIT: u64 = 512 << 10;
const FRESH_MS: u64 = 15_000;
const MOST_NAMESPACES: usize = 256;

type Ports = HashMap<u64, u16>;

/// Listening sockets by network namespace.
#[derive(Debug, Default)]
pub(super) struct Listeners {
    namespaces: HashMap<String, (u64, Arc<Ports>)>,
}

impl Listeners {
    /// Ports of those `sockets` (inodes) of `pid` that listen, in order.
    pub fn ports(&mut self, root: &Root, pid: Pid, sockets: &[u64], now_ms: u64) -> Vec<u16> {
        if sockets.is_empty() {
            return Vec::new();
        }
        let table = self.table(root, pid, now_ms);
        let mut ports: Vec<u16> =
            sockets.iter().filter_map(|inode| table.get(inode)).copied().collect();
        ports.sort_unstable();
        ports.dedup();
        ports
    }

    fn table(&mut self, root: &Root, pid: Pid, now_ms: u64) -> Arc<Ports> {
        let name = std::fs::read_link(root.of(pid, "ns/net"))
            .ok()
            .and_then(|link| link.into_os_string().into_string().ok());
        let fresh = |at: u64| now_ms.saturating_sub(at) < FRESH_MS;
        if let Some((at, ports)) = name.as_ref().and_then(|name| self.namespaces.get(name))
            && fresh(*at)
        {
            return Arc::clone(ports);
        }
        let mut ports = Ports::new();
        for file in ["net/tcp", "net/tcp6"] {
            if let Ok(file) = File::open(root.of(pid, file)) {
                read_listening(BufReader::new(file.take(LIMIT)), &mut ports);
            }
        }
        let ports = Arc::new(ports);
        if let Some(name) = name {
            self.namespaces.retain(|_, (at, _)| fresh(*at));
            if self.namespaces.len() < MOST_NAMESPACES {
                self.namespaces.insert(name, (now_ms, Arc::clone(&ports)));
            }
        }
        ports
    }
}

/// Reads as far as the first socket that does not listen.
fn read_listening(table: impl BufRead, ports: &mut Ports) {
    const LISTEN: &str = "0A";
    for line in table.lines().skip(1) {
        let Ok(line) = line else { return };
        let mut words = line.split_ascii_whitespace();
        let local = words.nth(1);
        let state = words.nth(1);
        let inode = words.nth(5);
        if state.is_some_and(|state| state != LISTEN) {
            return;
        }
        let port = local
            .and_then(|local| local.rsplit_once(':'))
            .and_then(|(_, port)| u16::from_str_radix(port, 16).ok());
        if let (Some(port), Some(Ok(inode))) = (port, inode.map(str::parse)) {
            ports.insert(inode, port);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::os::fd::AsFd;

    #[test]
    fn the_table_is_read_as_far_as_it_listens() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
             0: 00000000:1F40 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 111 1\n\
             1: garbage\n\
             2: 0100007F:2CAA 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 222 1\n\
             3: 0100007F:0016 0100007F:0017 01 00000000:00000000 00:00000000 00000000     0        0 333 1\n\
             4: 0100007F:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 444 1\n";
        let mut ports = Ports::new();
        read_listening(table.as_bytes(), &mut ports);
        assert_eq!(ports, Ports::from([(111, 8000), (222, 11434)]));
    }

    #[test]
    fn a_real_listener_is_found() {
        let root = Root::machine();
        let own = Pid(std::process::id());
        let mut expected = Vec::new();
        let mut sockets = Vec::new();
        let mut open = Vec::new();
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(address) else { continue };
            expected.push(listener.local_addr().unwrap().port());
            sockets.push(rustix::fs::fstat(listener.as_fd()).unwrap().st_ino);
            open.push(listener);
        }
        expected.sort_unstable();
        assert_eq!(Listeners::default().ports(&root, own, &sockets, 1), expected);
    }
}
