//! Which process answers on a port or a Unix socket: the kernel lists the socket that listens there,
//! and the sockets that the server's processes have open.

use super::usage::{has_ended, stat};
use crate::execute::descendants;
use crate::plan::Ready;
use std::collections::BTreeSet;
use std::fs::{read_dir, read_link, read_to_string};
use std::path::Path;

/// The state of a listening socket in the kernel's tables.
const LISTENS: &str = "0A";

/// Returns whether a process below the launcher listens on the server's port or socket, if anything does. `None` if
/// that is unknown: the server runs as another user, a network rule forwards the port, or the server names its
/// socket otherwise.
pub fn is_below(launcher: i32, ready: &Ready) -> Option<bool> {
    let text = |table: &str| read_to_string(table).unwrap_or_default();
    let inodes: Vec<String> = match ready {
        Ready::Port(port) => {
            let tables = text("/proc/net/tcp") + &text("/proc/net/tcp6");
            listeners(&tables, *port).map(String::from).collect()
        }
        Ready::Socket(path) => unix_listeners(&text("/proc/net/unix"), path)
            .map(String::from)
            .collect(),
        Ready::Started => return Some(true),
    };
    let wanted: BTreeSet<String> = inodes
        .iter()
        .map(|inode| format!("socket:[{inode}]"))
        .collect();
    if wanted.is_empty() {
        return None;
    }
    let mut silent = Vec::new();
    for pid in descendants(launcher) {
        match has_any(pid, &wanted) {
            Some(true) => return Some(true),
            Some(false) => {}
            None => silent.push(pid),
        }
    }
    // A process that has ended meanwhile cannot be read, or only by root, and does not count.
    let still = descendants(launcher);
    let unknown = silent
        .iter()
        .any(|pid| still.contains(pid) && !has_ended(&stat(*pid)));
    (!unknown).then_some(false)
}

/// Returns the inodes of the sockets that listen on a port, from a table of the kernel.
fn listeners(table: &str, port: u16) -> impl Iterator<Item = &str> {
    let end = format!(":{port:04X}");
    table.lines().filter_map(move |line| {
        let mut fields = line.split_whitespace().skip(1);
        let address = fields.next()?;
        let state = fields.nth(1)?;
        (address.ends_with(&end) && state == LISTENS).then(|| fields.nth(5))?
    })
}

/// Returns the inodes of the Unix sockets that were bound to a path, and listen.
fn unix_listeners<'t>(table: &'t str, path: &Path) -> impl Iterator<Item = &'t str> {
    /// Flags, type and state of a stream that accepts connections.
    const LISTENS: [&str; 3] = ["00010000", "0001", "01"];
    table.lines().filter_map(move |line| {
        let fields: Vec<&str> = line.split_whitespace().skip(3).collect();
        let (state, [inode, bound @ ..]) = fields.split_first_chunk::<3>()? else {
            return None;
        };
        (*state == LISTENS && Path::new(&bound.join(" ")) == path).then_some(*inode)
    })
}

/// Returns whether a process has one of these files open; `None` if the process may not be read.
fn has_any(pid: i32, wanted: &BTreeSet<String>) -> Option<bool> {
    let mut files = read_dir(format!("/proc/{pid}/fd")).ok()?.flatten();
    Some(files.any(|file| {
        read_link(file.path())
            .is_ok_and(|file| file.to_str().is_some_and(|name| wanted.contains(name)))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_port_only_what_listens_there_counts() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
               0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 83 1 0 100 0\n\
               1: 0100007F:1F90 0100007F:C350 01 00000000:00000000 00:00000000 00000000     0        0 84 1 0 100 0\n\
               2: 0100007F:1F91 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 85 1 0 100 0\n\
               3: 00000000000000000000000000000000:1F90 00000000000000000000000000000000:0000 0A 0:0 00:0 0 0 0 86 1 0\n";
        assert_eq!(listeners(table, 8080).collect::<Vec<_>>(), ["83", "86"]);
        assert_eq!(listeners("", 8080).count(), 0);
        let table = "Num       RefCount Protocol Flags    Type St Inode Path\n\
               0: 00000002 00000000 00010000 0001 01 91 /run/a b\n\
               0: 00000003 00000000 00000000 0001 03 92 /run/a b\n\
               0: 00000003 00000000 00000000 0001 03 93\n";
        let of = |path: &str| unix_listeners(table, Path::new(path)).collect::<Vec<_>>();
        assert_eq!((of("/run/a b"), of("/run/a")), (vec!["91"], vec![]));
    }

    #[test]
    fn a_process_that_nobody_has_waited_for_has_ended() {
        let mut child = std::process::Command::new("sleep")
            .arg("600")
            .spawn()
            .unwrap();
        let pid = child.id() as i32;
        assert!(!has_ended(&stat(pid)));
        child.kill().unwrap();
        while !has_ended(&stat(pid)) {
            std::thread::yield_now();
        }
        child.wait().unwrap();
        assert!(has_ended(&stat(pid)));
    }

    #[test]
    fn a_socket_of_this_process_is_not_of_one_below_it() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let pid = std::process::id() as i32;
        let ready = Ready::Port(port);
        assert_eq!(is_below(pid, &ready), Some(false));
        // A child inherits the socket, as a server's workers do.
        let file = std::os::fd::OwnedFd::from(listener.try_clone().unwrap());
        let mut child = std::process::Command::new("sleep")
            .arg("600")
            .stdin(file)
            .spawn()
            .unwrap();
        assert_eq!(is_below(pid, &ready), Some(true));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
