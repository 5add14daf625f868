//! Checks of `[env.docker]` and `[env.attached]`.

use super::{Checks, above_0_to};
use crate::config::{AttachedConfig, DockerConfig, EnvConfig, EnvKind};

/// More virtual machines than that on one host are a slip of the finger.
const MAX_CONTAINERS: usize = 64;

const PIXELS: &str = "must be 320 to 8192 pixels";
const PAUSE: &str = "must be 0 to 600";
const PROBES: &str = "must be 1 to 20";

pub(super) fn check_docker(env: &EnvConfig, c: &mut Checks) {
    let DockerConfig {
        image,
        disk,
        screen_width,
        screen_height,
        ram_gb,
        cpu_cores,
        disk_gb,
        kvm: _,
        boot_deadline_s,
        execute_probes,
        lease_h,
        password: _,
        action_pause_s,
        reset_pause_s,
    } = &env.docker;
    let is_named = |text: &str| !text.is_empty() && !text.contains(char::is_whitespace);
    let says = "must name a container image, such as \"happysixd/osworld-docker\"";
    c.require("env.docker.image", is_named(image), says);
    let says = "must name the disk image that machines begin from";
    c.require("env.docker.disk", !disk.is_empty(), says);
    c.range("env.docker.screen_width", screen_width, 320..=8192, PIXELS);
    c.range(
        "env.docker.screen_height",
        screen_height,
        320..=8192,
        PIXELS,
    );
    c.range("env.docker.ram_gb", ram_gb, 1..=256, "must be 1 to 256");
    c.range(
        "env.docker.cpu_cores",
        cpu_cores,
        1..=128,
        "must be 1 to 128",
    );
    c.range("env.docker.disk_gb", disk_gb, 1..=1024, "must be 1 to 1024");
    let says = "must be above 0, at most 7200";
    let legal = above_0_to(*boot_deadline_s, 7200.0);
    c.require("env.docker.boot_deadline_s", legal, says);
    c.range("env.docker.execute_probes", execute_probes, 1..=20, PROBES);
    let legal = above_0_to(*lease_h, 168.0);
    c.require("env.docker.lease_h", legal, "must be above 0, at most 168");
    c.require(
        "env.docker.lease_h",
        lease_h * 3600.0 > *boot_deadline_s,
        "is over before a machine is up: raise it or lower env.docker.boot_deadline_s",
    );
    c.range(
        "env.docker.action_pause_s",
        action_pause_s,
        0.0..=600.0,
        PAUSE,
    );
    c.range(
        "env.docker.reset_pause_s",
        reset_pause_s,
        0.0..=600.0,
        PAUSE,
    );
    let few = env.kind != EnvKind::Docker || env.desktops <= MAX_CONTAINERS;
    c.require(
        "env.desktops",
        few,
        "must be at most 64 with env.kind = \"docker\": each is a virtual machine of some GB",
    );
}

pub(super) fn check_attached(env: &EnvConfig, c: &mut Checks) {
    let AttachedConfig {
        hosts,
        file,
        command,
        command_deadline_s,
        token_file: _,
        revert_command,
        revert_deadline_s,
        shared_state,
        allow_public: _,
        screen_width,
        screen_height,
        execute_probes,
        password: _,
        action_pause_s,
        reset_pause_s,
    } = &env.attached;
    let is_used = env.kind == EnvKind::Attached;
    let sources = [!hosts.is_empty(), !file.is_empty(), !command.is_empty()];
    let sources = sources.into_iter().filter(|given| *given).count();
    c.require(
        "env.attached.hosts",
        !is_used || sources > 0,
        "is empty, and so are env.attached.file and env.attached.command: say where machines are",
    );
    c.require(
        "env.attached.hosts",
        sources <= 1,
        "is one way to say where machines are, env.attached.file and env.attached.command are \
         others: keep one of them",
    );
    let is_named = |argv: &[String]| argv.first().is_none_or(|program| !program.is_empty());
    let says = "must begin with a program";
    c.require("env.attached.command", is_named(command), says);
    c.require(
        "env.attached.revert_command",
        is_named(revert_command),
        says,
    );
    c.require(
        "env.attached.command_deadline_s",
        above_0_to(*command_deadline_s, 3600.0),
        "must be above 0, at most 3600",
    );
    c.require(
        "env.attached.revert_deadline_s",
        above_0_to(*revert_deadline_s, 7200.0),
        "must be above 0, at most 7200",
    );
    c.require(
        "env.attached.revert_command",
        !is_used || *shared_state || !revert_command.is_empty(),
        "is empty, so that each episode would begin with what the one before left: name a program \
         that reverts a machine, or accept that by env.attached.shared_state = true",
    );
    c.require(
        "env.attached.shared_state",
        !*shared_state || revert_command.is_empty(),
        "is true, though env.attached.revert_command reverts machines: set it to false",
    );
    c.range(
        "env.attached.screen_width",
        screen_width,
        320..=8192,
        PIXELS,
    );
    c.range(
        "env.attached.screen_height",
        screen_height,
        320..=8192,
        PIXELS,
    );
    c.range(
        "env.attached.execute_probes",
        execute_probes,
        1..=20,
        PROBES,
    );
    c.range(
        "env.attached.action_pause_s",
        action_pause_s,
        0.0..=600.0,
        PAUSE,
    );
    c.range(
        "env.attached.reset_pause_s",
        reset_pause_s,
        0.0..=600.0,
        PAUSE,
    );
}
