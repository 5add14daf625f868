//! Machines by their hosts and ports: `host[:server[:chrome[:vnc[:vlc]]]]`, as OSWorld writes them.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::time::timeout;

/// For a name.
const LOOKUP: Duration = Duration::from_secs(10);

/// Ports where nothing else is said: OSWorld's server, Chrome's debugging port, the screen over VNC
/// for people, VLC's interface.
const PORTS: [u16; 4] = [5000, 9222, 8006, 8080];

/// A machine as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Spec {
    /// As it stands in the profile, the file or the program's output.
    pub(super) written: String,
    /// A name or an address, without brackets.
    host: String,
    /// In the order of `PORTS`.
    ports: [u16; 4],
}

/// A machine, found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Host {
    pub(super) written: String,
    ip: IpAddr,
    ports: [u16; 4],
}

impl Spec {
    /// Reads one; else what is wrong with it.
    pub(super) fn read(written: &str) -> Result<Self, String> {
        let wrong =
            |what: &str| format!("{written:?} {what}: write host[:5000[:9222[:8006[:8080]]]]");
        let (host, ports) = parts(written).map_err(wrong)?;
        let is_name = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
        let is_host = if written.starts_with('[') {
            host.parse::<std::net::Ipv6Addr>().is_ok()
        } else {
            !host.is_empty() && !host.starts_with('-') && host.chars().all(is_name)
        };
        if !is_host {
            return Err(wrong("names no host"));
        }
        if ports.len() > PORTS.len() {
            return Err(wrong("has more ports than there are"));
        }
        let mut read = PORTS;
        for (port, text) in read.iter_mut().zip(&ports) {
            let number = text.parse::<u16>().ok().filter(|port| *port != 0);
            *port = number.ok_or_else(|| wrong("has a port that is no number from 1 to 65535"))?;
        }
        Ok(Self {
            written: written.to_owned(),
            host: host.to_owned(),
            ports: read,
        })
    }

    /// Looks its name up, once: a name that leads elsewhere later leads nobody there.
    pub(super) async fn find(self) -> Result<Host, String> {
        let found = timeout(LOOKUP, tokio::net::lookup_host((self.host.as_str(), 0))).await;
        let mut found = match found {
            Ok(Ok(found)) => found,
            Ok(Err(error)) => return Err(format!("{} cannot be found: {error}", self.written)),
            Err(_) => {
                let limit_s = LOOKUP.as_secs();
                return Err(format!("{} was not found within {limit_s} s", self.written));
            }
        };
        let first = found.next();
        let first = first.ok_or_else(|| format!("{} has no address", self.written))?;
        Ok(Host {
            written: self.written,
            ip: first.ip().to_canonical(),
            ports: self.ports,
        })
    }
}

/// A host and the ports after it; else what is wrong.
fn parts(written: &str) -> Result<(&str, Vec<&str>), &'static str> {
    let Some(rest) = written.strip_prefix('[') else {
        let mut parts = written.split(':');
        return Ok((parts.next().unwrap_or_default(), parts.collect()));
    };
    // IPv6, whose own colons need brackets.
    let parts = rest.split_once(']');
    let (host, ports) = parts.ok_or("opens a bracket and does not close it")?;
    match ports.strip_prefix(':') {
        Some(ports) => Ok((host, ports.split(':').collect())),
        None if ports.is_empty() => Ok((host, Vec::new())),
        None => Err("goes on after its bracket"),
    }
}

impl Host {
    /// Where its server listens.
    pub(super) fn server(&self) -> SocketAddr {
        SocketAddr::new(self.ip, self.ports[0])
    }

    /// Where a port of the machine is; none where nothing is said of it.
    pub(super) fn outer(&self, inner: u16) -> Option<SocketAddr> {
        let at = PORTS.iter().position(|port| *port == inner)?;
        Some(SocketAddr::new(self.ip, self.ports[at]))
    }

    /// Whether it may lie anywhere in the world.
    pub(super) fn is_public(&self) -> bool {
        !is_private(self.ip)
    }

    /// Its address, for people.
    pub(super) fn ip(&self) -> IpAddr {
        self.ip
    }
}

/// This machine, private networks (RFC 1918, 4193), link-local ones (3927, 4291) and those behind a
/// carrier's translation (6598), which overlay networks take as well.
fn is_private(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => {
            let [a, b, ..] = ip.octets();
            let is_shared = a == 100 && (64..128).contains(&b);
            ip.is_loopback() || ip.is_private() || ip.is_link_local() || is_shared
        }
        IpAddr::V6(ip) => ip.is_loopback() || ip.is_unique_local() || ip.is_unicast_link_local(),
    }
}

/// The machines in a file or in what a program printed, one a line.
pub(super) fn lines(text: &str) -> Vec<String> {
    let bare = text
        .lines()
        .map(|line| line.split('#').next().unwrap_or_default().trim());
    bare.filter(|line| !line.is_empty())
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{Host, Spec, is_private, lines};

    #[test]
    fn hosts_are_read_as_osworld_writes_them() {
        let table = [
            ("10.0.0.5", Ok(("10.0.0.5", [5000, 9222, 8006, 8080]))),
            ("vm2:5001", Ok(("vm2", [5001, 9222, 8006, 8080]))),
            ("a.b-c:1:2:3:65535", Ok(("a.b-c", [1, 2, 3, 65535]))),
            ("[::1]", Ok(("::1", [5000, 9222, 8006, 8080]))),
            ("[fd00::2]:7:8", Ok(("fd00::2", [7, 8, 8006, 8080]))),
            ("", Err("names no host")),
            (":5000", Err("names no host")),
            ("-oProxyCommand=x", Err("names no host")),
            ("user@vm", Err("names no host")),
            ("http://vm", Err("has a port that is no number")),
            ("a b", Err("names no host")),
            ("[vm]", Err("names no host")),
            ("[::1", Err("opens a bracket")),
            ("[::1]5000", Err("goes on after its bracket")),
            ("vm:0", Err("has a port that is no number")),
            ("vm:65536", Err("has a port that is no number")),
            ("vm:", Err("has a port that is no number")),
            ("vm:1:2:3:4:5", Err("has more ports")),
            ("fd00::2", Err("has a port that is no number")),
        ];
        for (written, expected) in table {
            match (Spec::read(written), expected) {
                (Ok(spec), Ok((host, ports))) => {
                    assert_eq!((spec.host.as_str(), spec.ports), (host, ports), "{written}");
                }
                (Err(error), Err(part)) => assert!(error.contains(part), "{written}: {error}"),
                (got, _) => panic!("{written}: {got:?}"),
            }
        }
    }

    #[test]
    fn public_addresses_are_told_from_others() {
        let private = [
            "127.0.0.1",
            "127.9.9.9",
            "10.1.2.3",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "169.254.1.1",
            "100.64.0.1",
            "100.127.0.1",
            "::1",
            "fd00::1",
            "fe80::1",
        ];
        let public = [
            "8.8.8.8",
            "172.15.0.1",
            "172.32.0.1",
            "100.63.0.1",
            "100.128.0.1",
            "0.0.0.0",
            "192.169.0.1",
            "2001:db8::1",
            "::",
        ];
        for ip in private {
            assert!(is_private(ip.parse().unwrap()), "{ip}");
        }
        for ip in public {
            assert!(!is_private(ip.parse().unwrap()), "{ip}");
        }
    }

    #[tokio::test]
    async fn an_address_within_another_is_seen_through() {
        let found = async |written: &str| Spec::read(written).unwrap().find().await.unwrap();
        let within: Host = found("[::ffff:8.8.8.8]").await;
        assert!(within.is_public());
        assert_eq!(within.server().to_string(), "8.8.8.8:5000");
        let local = found("[::ffff:127.0.0.1]:1:2").await;
        assert!(!local.is_public());
        assert_eq!(local.outer(9222).unwrap().to_string(), "127.0.0.1:2");
        assert_eq!(local.outer(22), None);
    }

    #[test]
    fn a_list_has_remarks() {
        let text = "# machines\n\n vm1 \nvm2:5000 # the second\r\n";
        assert_eq!(lines(text), ["vm1", "vm2:5000"]);
    }
}
