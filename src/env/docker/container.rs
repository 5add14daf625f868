//! One container: what it is made of, and the ports that the daemon chose for it.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use bollard::models::{
    ContainerCreateBody, ContainerInspectResponse, DeviceMapping, HostConfig, Mount, MountType,
    PortBinding,
};

use super::Host;
use super::owner::Owner;
use crate::config::DockerConfig;

/// OSWorld's server, Chrome's debugging port, the screen over VNC for people, and VLC's interface.
pub(super) const PORTS: [u16; 4] = [5000, 9222, 8006, 8080];

/// Where what is published is reached: from this host alone, since nobody there asks for a password.
const LOOPBACK: &str = "127.0.0.1";

/// What the container is made of. `kvm` is where the host has it, if machines are to have it.
pub(super) fn body(
    config: &DockerConfig,
    disk: &Path,
    kvm: Option<&Host>,
    owner: &Owner,
) -> ContainerCreateBody {
    let mut env = vec![
        format!("DISK_SIZE={}G", config.disk_gb),
        format!("RAM_SIZE={}G", config.ram_gb),
        format!("CPU_CORES={}", config.cpu_cores),
    ];
    if kvm.is_none() {
        env.push("KVM=N".to_owned());
    }
    let device = |host: &Host| DeviceMapping {
        path_on_host: Some(host.kvm.to_string_lossy().into_owned()),
        path_in_container: Some("/dev/kvm".to_owned()),
        cgroup_permissions: Some("rwm".to_owned()),
    };
    // No port: the daemon takes one that is free, which nobody else can take meanwhile.
    let anywhere = PortBinding {
        host_ip: Some(LOOPBACK.to_owned()),
        host_port: Some(String::new()),
    };
    let ports = PORTS.map(key);
    let bound = ports
        .clone()
        .map(|port| (port, Some(vec![anywhere.clone()])));
    // Unlike a volume by its path, it is refused where there is no such file.
    let disk = Mount {
        typ: Some(MountType::BIND),
        source: Some(disk.to_string_lossy().into_owned()),
        target: Some("/System.qcow2".to_owned()),
        read_only: Some(true),
        ..Mount::default()
    };
    let host_config = HostConfig {
        mounts: Some(vec![disk]),
        devices: kvm.map(|host| vec![device(host)]),
        cap_add: Some(vec!["NET_ADMIN".to_owned()]),
        port_bindings: Some(HashMap::from(bound)),
        ..HostConfig::default()
    };
    ContainerCreateBody {
        image: Some(config.image.clone()),
        env: Some(env),
        exposed_ports: Some(ports.into()),
        labels: Some(owner.labels()),
        host_config: Some(host_config),
        ..ContainerCreateBody::default()
    }
}

fn key(port: u16) -> String {
    format!("{port}/tcp")
}

/// Whether it was running when it was looked at.
pub(super) fn is_running(found: &ContainerInspectResponse) -> bool {
    found.state.as_ref().and_then(|state| state.running) == Some(true)
}

/// Where the container's ports are on this host, by the port within.
pub(super) fn published(found: &ContainerInspectResponse) -> Result<BTreeMap<u16, u16>, String> {
    let settings = found.network_settings.as_ref();
    let ports = settings.and_then(|settings| settings.ports.as_ref());
    let mut published = BTreeMap::new();
    for inner in PORTS {
        let bindings = ports.and_then(|ports| ports.get(&key(inner))?.as_ref());
        let binding = bindings.and_then(|bindings| bindings.first());
        let Some(binding) = binding else {
            return Err(format!("the daemon does not say where port {inner} is"));
        };
        let ip = binding.host_ip.as_deref().unwrap_or_default();
        if ip != LOOPBACK {
            let ip = crate::env::lines::plain(ip.as_bytes());
            return Err(format!(
                "the daemon publishes port {inner} at {ip:?}, where others reach it, though it was \
                 told {LOOPBACK}"
            ));
        }
        let outer = binding.host_port.as_deref().unwrap_or_default();
        let outer = outer.parse().ok().filter(|port| *port != 0);
        let outer = outer.ok_or_else(|| format!("the daemon gives port {inner} no number"))?;
        published.insert(inner, outer);
    }
    Ok(published)
}
