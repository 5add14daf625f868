//! `arpo doctor`: what works here, what does not, and what to do about it.
//!
//! Needs no libtorch and changes nothing, but that a trial of KVM is remembered. Each check is a function that looks at one thing and
//! says what it found.

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use serde::Serialize;
use serde_json::Value;

use crate::cli::args::ProfileArgs;
use crate::cli::{async_runtime, engine, say};
use crate::config::{EnvConfig, EnvKind, PolicyKind, Profile, QemuConfig, assets};
use crate::env::xvfb::needs;
use crate::env::{Admission, Admitted, Provider, attached, docker, qemu};
use crate::session::{self, attached_options, docker_options};

/// Say what works here and what to do about what does not.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    profile: ProfileArgs,
    /// One JSON object on stdout
    #[arg(long)]
    json: bool,
}

/// How a check came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Status {
    /// Works.
    Ok,
    /// Works with less.
    Limited,
    /// The profile cannot be run without it.
    Missing,
}

/// One line of the report.
#[derive(Debug, Serialize)]
struct Check {
    name: &'static str,
    status: Status,
    found: String,
    /// What to do; empty where nothing is wrong.
    remedy: String,
}

impl Check {
    fn ok(name: &'static str, found: impl Into<String>) -> Self {
        Self {
            name,
            status: Status::Ok,
            found: found.into(),
            remedy: String::new(),
        }
    }

    fn limited(name: &'static str, found: impl Into<String>, remedy: &str) -> Self {
        Self {
            name,
            status: Status::Limited,
            found: found.into(),
            remedy: remedy.into(),
        }
    }

    /// What the embedded policy cannot do without, and others can.
    fn missing(
        name: &'static str,
        found: impl Into<String>,
        remedy: &str,
        kind: PolicyKind,
    ) -> Self {
        let status = match kind {
            PolicyKind::Embedded => Status::Missing,
            PolicyKind::Scripted => Status::Limited,
        };
        Self {
            name,
            status,
            found: found.into(),
            remedy: remedy.into(),
        }
    }
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let resolved = args.profile.resolve()?;
    let profile = &resolved.profile;
    let kind = profile.policy.kind;
    let mut checks = vec![
        check_engine(kind),
        check_libtorch(kind),
        check_checkpoint(profile),
        check_terminal(),
        check_locale(),
        check_cores(),
        check_memory(),
        check_disk(&profile.run.dir),
        check_tmux(),
    ];
    match profile.env.kind {
        EnvKind::Simulated => {}
        EnvKind::Xvfb => checks.extend([check_sandbox(), check_applications()]),
        EnvKind::Qemu => checks.extend(check_qemu(&profile.env)),
        EnvKind::Docker => checks.extend(check_docker(profile)),
        EnvKind::Attached => checks.push(check_attached(profile)),
    }
    let ready = checks.iter().all(|check| check.status != Status::Missing);
    if args.json {
        say(serde_json::json!({ "ready": ready, "checks": checks }));
    } else {
        checks.iter().for_each(print_check);
        say(if ready {
            "this profile can be run here"
        } else {
            "this profile cannot be run here yet"
        });
    }
    Ok(if ready {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn print_check(check: &Check) {
    let mark = match check.status {
        Status::Ok => "ok",
        Status::Limited => "limited",
        Status::Missing => "missing",
    };
    say(format_args!("{mark:8} {:11} {}", check.name, check.found));
    if !check.remedy.is_empty() {
        say(format_args!("{:20} -> {}", "", check.remedy));
    }
}

fn check_engine(kind: PolicyKind) -> Check {
    const NAME: &str = "arpo-engine";
    const REMEDY: &str = "just setup && cargo build --release";
    let path = match engine::find_engine() {
        Ok(path) => path,
        Err(error) => {
            let found = format!("{error:#}");
            let found = found.split(": run `").next().unwrap_or(&found).to_owned();
            return Check::missing(NAME, found, REMEDY, kind);
        }
    };
    let answer = Command::new(&path).arg("version").output();
    let text = match answer {
        Ok(output) if output.status.success() => output.stdout,
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            let found = format!(
                "does not start: {}",
                said.lines().last().unwrap_or("no reason given")
            );
            return Check::missing(NAME, found, REMEDY, kind);
        }
        Err(error) => {
            return Check::missing(NAME, format!("does not start: {error}"), REMEDY, kind);
        }
    };
    let version: Value = serde_json::from_slice(&text).unwrap_or_default();
    let field = |name: &str| match &version[name] {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let found = format!(
        "{}, torch {}, {}",
        field("arpo"),
        field("torch"),
        device_of(&version)
    );
    if field("arpo") == env!("CARGO_PKG_VERSION") {
        return Check::ok(NAME, found);
    }
    let found = format!("{found}; arpo is {}", env!("CARGO_PKG_VERSION"));
    Check::missing(NAME, found, "build both: cargo build --release", kind)
}

/// What computes, and where that is not a GPU, why not.
fn device_of(version: &Value) -> String {
    let text = |name: &str| version[name].as_str().unwrap_or_default();
    match text("no_cuda") {
        "" => text("device").to_owned(),
        reason => format!("{} ({reason})", text("device")),
    }
}

/// The libtorch builds link: `LIBTORCH`, else what `just setup` linked.
fn check_libtorch(kind: PolicyKind) -> Check {
    const NAME: &str = "libtorch";
    let own = std::env::var("LIBTORCH").ok();
    let folder = own
        .as_deref()
        .map_or_else(|| assets::locate(".libtorch"), Into::into);
    let shown = folder.display();
    match torch_version(&folder) {
        Some(version) => Check::ok(NAME, format!("{version} in {shown}")),
        None => Check::missing(NAME, format!("none in {shown}"), "just setup", kind),
    }
}

/// Reads the version a libtorch folder states: pip's `version.py` or the archive's `build-version`.
fn torch_version(folder: &Path) -> Option<String> {
    if let Ok(text) = fs::read_to_string(folder.join("build-version")) {
        return Some(text.trim().to_owned());
    }
    let text = fs::read_to_string(folder.join("version.py")).ok()?;
    let line = text.lines().find(|line| line.starts_with("__version__"))?;
    Some(line.split('\'').nth(1)?.to_owned())
}

fn check_checkpoint(profile: &Profile) -> Check {
    const NAME: &str = "checkpoint";
    const REMEDY: &str = "start arpo in its checkout, set ARPO_ASSETS to its assets folder, or \
                          name a folder with --set policy.checkpoint=...";
    if profile.policy.kind == PolicyKind::Scripted {
        return Check::ok(NAME, "none needed: the policy is scripted");
    }
    let folder = assets::locate(&profile.policy.checkpoint);
    let shown = folder.display();
    let has = |name: &str| folder.join(name).is_file();
    let needed = ["config.json", "tokenizer.json", "preprocessor_config.json"];
    let kind = profile.policy.kind;
    if let Some(name) = needed.into_iter().find(|name| !has(name)) {
        return Check::missing(NAME, format!("no {name} in {shown}"), REMEDY, kind);
    }
    let weights_bytes: u64 = fs::read_dir(&folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| {
            entry
                .path()
                .extension()
                .is_some_and(|ext| ext == "safetensors")
        })
        .filter_map(|entry| entry.metadata().ok())
        .map(|metadata| metadata.len())
        .sum();
    if weights_bytes == 0 {
        return Check::missing(NAME, format!("no *.safetensors in {shown}"), REMEDY, kind);
    }
    Check::ok(
        NAME,
        format!("{shown}, {:.1} MB of weights", weights_bytes as f64 / 1e6),
    )
}

fn check_terminal() -> Check {
    const NAME: &str = "terminal";
    let variable = |name| std::env::var(name).unwrap_or_default();
    let (term, color) = (variable("TERM"), variable("COLORTERM"));
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok();
    let Some(size) = size.filter(|size| size.ws_col > 0) else {
        let remedy = "nothing for --headless; the console needs a terminal";
        return Check::limited(NAME, "stdout is not a terminal", remedy);
    };
    let found = format!("{term}, {} x {} cells", size.ws_col, size.ws_row);
    if term.is_empty() || term == "dumb" {
        return Check::limited(
            NAME,
            found,
            "the console needs a terminal that moves its cursor: set TERM",
        );
    }
    if size.ws_col < 80 || size.ws_row < 24 {
        return Check::limited(
            NAME,
            found,
            "the console shows all of itself from 80 x 24 on",
        );
    }
    if color != "truecolor" && color != "24bit" {
        let remedy = "pictures want 24-bit color: set COLORTERM=truecolor if your terminal has it";
        return Check::limited(NAME, format!("{found}, COLORTERM not truecolor"), remedy);
    }
    Check::ok(NAME, format!("{found}, 24-bit color"))
}

fn check_locale() -> Check {
    const NAME: &str = "locale";
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
        .into_iter()
        .filter_map(|name| std::env::var(name).ok())
        .find(|value| !value.is_empty())
        .unwrap_or_else(|| "none".to_owned());
    let folded = locale.to_lowercase().replace('-', "");
    if folded.contains("utf8") {
        return Check::ok(NAME, locale);
    }
    Check::limited(
        NAME,
        format!("{locale} is not UTF-8"),
        "thoughts and charts want UTF-8: export LANG=C.UTF-8",
    )
}

fn check_cores() -> Check {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    match cores {
        1 => Check::limited("cores", "1", "the demo takes about twice as long as on two"),
        cores => Check::ok("cores", cores.to_string()),
    }
}

fn check_memory() -> Check {
    const NAME: &str = "memory";
    /// What building (linking, the C++ shim) and the demo were seen to need together.
    const COMFORTABLE_GB: f64 = 3.0;
    let Some(free_gb) = available_memory_gb() else {
        return Check::limited(NAME, "/proc/meminfo cannot be read", "");
    };
    let found = format!("{free_gb:.1} GB available");
    if free_gb < COMFORTABLE_GB {
        return Check::limited(
            NAME,
            found,
            "building wants 3 GB: cargo build --release -j 1 takes less",
        );
    }
    Check::ok(NAME, found)
}

fn available_memory_gb() -> Option<f64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text
        .lines()
        .find(|line| line.starts_with("MemAvailable:"))?;
    let kib: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024.0 / 1e9)
}

/// Free space where runs are written; the folder itself need not exist yet.
fn check_disk(dir: &str) -> Check {
    const NAME: &str = "disk";
    let existing = Path::new(dir).ancestors().find(|path| path.exists());
    let folder = existing.unwrap_or(Path::new("."));
    let Ok(stat) = rustix::fs::statvfs(folder) else {
        return Check::limited(
            NAME,
            format!("{dir} cannot be looked at"),
            "set run.dir to a folder of yours",
        );
    };
    let free_gb = stat.f_bavail as f64 * stat.f_frsize as f64 / 1e9;
    let found = format!("{free_gb:.1} GB free for {dir}");
    if free_gb < 1.0 {
        return Check::limited(
            NAME,
            found,
            "a run of the demo wants 1 GB: make room or set run.dir",
        );
    }
    Check::ok(NAME, found)
}

fn check_tmux() -> Check {
    const NAME: &str = "tmux";
    let version = Command::new("tmux").arg("-V").output().ok();
    let version = version.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    match (version, std::env::var_os("TMUX").is_some()) {
        (Some(version), true) => Check::ok(NAME, format!("{version}, and this terminal is in it")),
        (Some(version), false) => Check::ok(NAME, version),
        (None, _) => Check::ok(NAME, "not installed; runs outlive the terminal without it"),
    }
}

/// Whether real desktops can be made here.
fn check_sandbox() -> Check {
    const NAME: &str = "sandbox";
    match needs::check() {
        Ok(()) => Check::ok(
            NAME,
            "bubblewrap makes sandboxes; Xvfb and openbox are there",
        ),
        Err(needs::Unmet { found, remedy }) => Check {
            name: NAME,
            status: Status::Missing,
            found,
            remedy,
        },
    }
}

/// What there is to work with on a real desktop.
fn check_applications() -> Check {
    const NAME: &str = "programs";
    let mut missing = needs::missing();
    missing.retain(|need| !need.is_required);
    if missing.is_empty() {
        return Check::ok(NAME, "all that the tasks' desktops have");
    }
    let lacking: Vec<String> = missing
        .iter()
        .map(|need| format!("{} ({})", need.program, need.purpose))
        .collect();
    let remedy = needs::remedy(&missing);
    Check::limited(NAME, format!("no {}", lacking.join(", ")), &remedy)
}

/// Whether virtual machines can be made here, and how.
fn check_qemu(env: &EnvConfig) -> Vec<Check> {
    const PROGRAMS: &str = "qemu";
    const IMAGE: &str = "image";
    let config = &env.qemu;
    let missing = |name, found, remedy: &str| Check {
        name,
        status: Status::Missing,
        found,
        remedy: remedy.to_owned(),
    };
    let programs = match qemu::needs::check() {
        Ok(()) => match qemu::needs::qemu_version() {
            Ok(version) => Check::ok(PROGRAMS, format!("{version}, in sandboxes of bubblewrap")),
            Err(found) => missing(PROGRAMS, found, "install QEMU anew"),
        },
        Err(qemu::needs::Unmet { found, remedy }) => missing(PROGRAMS, found, &remedy),
    };
    let image = match qemu::needs::check_image(config) {
        Ok(found) => Check::ok(IMAGE, found),
        Err(found) => missing(IMAGE, found, "just vm-image"),
    };
    let can_run = [&programs, &image]
        .iter()
        .all(|check| check.status == Status::Ok);
    let mut checks = vec![programs, image, check_room(config)];
    if can_run {
        checks.extend([check_vm_memory(env), check_accelerator(config)]);
    }
    checks
}

/// Whether a run would be let open its desktops now.
fn check_vm_memory(env: &EnvConfig) -> Check {
    const NAME: &str = "vm memory";
    let asked = session::qemu(&env.qemu)
        .map(|provider| Admission::of(provider.need(), &env.fleet).ask(0, env.desktops as u32));
    let (status, found) = match asked {
        Ok(Admitted::Fits) => {
            return Check::ok(NAME, format!("there is room for {} desktops", env.desktops));
        }
        Ok(Admitted::Warned(says)) => (Status::Limited, says),
        Ok(Admitted::Refused(says)) => (Status::Missing, says),
        Err(error) => (Status::Missing, error.to_string()),
    };
    Check {
        name: NAME,
        status,
        found,
        remedy: "fewer desktops, env.qemu.spare = false, or a smaller env.qemu.memory_mb"
            .to_owned(),
    }
}

/// What runs the guests' instructions, by a trial of at most 20 s where none still holds since the
/// boot.
fn check_accelerator(config: &QemuConfig) -> Check {
    const NAME: &str = "accelerator";
    let tried = async_runtime().and_then(|runtime| {
        let provider = session::qemu(config)?;
        Ok(runtime.block_on(provider.runs())?)
    });
    match tried {
        Ok(qemu::Runs { accelerator, why }) if accelerator == "kvm" => {
            Check::ok(NAME, format!("{accelerator}: {why}"))
        }
        Ok(qemu::Runs { accelerator, why }) => Check::limited(
            NAME,
            format!("{accelerator}: {why}"),
            "machines take several times longer than with KVM: a host that has it, or fewer \
             desktops",
        ),
        Err(error) => Check {
            name: NAME,
            status: Status::Missing,
            found: format!("{error:#}"),
            remedy: "--set env.qemu.accelerator=auto".to_owned(),
        },
    }
}

/// Free space where the disks of machines grow, and where their snapshot is kept.
fn check_room(config: &QemuConfig) -> Check {
    const NAME: &str = "vm disks";
    /// A snapshot with a gigabyte of memory and a day's work of a few episodes.
    const COMFORTABLE_GB: f64 = 3.0;
    let folders = [session::beside_sockets(), config.image_folder()];
    let free = folders.iter().map(|folder| qemu::needs::free_bytes(folder));
    let free = free.min().flatten().unwrap_or_default() as f64 / 1e9;
    let [state, image] = folders.map(|folder| folder.display().to_string());
    let found = format!("{free:.1} GB free for {state} and {image}");
    if free < COMFORTABLE_GB {
        let remedy =
            "make room, or set ARPO_RUNTIME_DIR and env.qemu.image to folders that have it";
        return Check::limited(NAME, found, remedy);
    }
    Check::ok(NAME, found)
}

/// What OSWorld's virtual machines need of this host and its daemon.
fn check_docker(profile: &Profile) -> Vec<Check> {
    let needs = docker::examine(&docker_options(&profile.env));
    let checks = needs.into_iter().map(|need| Check {
        name: need.name,
        status: match need.grade {
            docker::needs::Grade::Met => Status::Ok,
            docker::needs::Grade::Limited => Status::Limited,
            docker::needs::Grade::Unmet => Status::Missing,
        },
        found: need.found,
        remedy: need.remedy,
    });
    checks.collect()
}

/// Whether the machines that the profile attaches to answer.
fn check_attached(profile: &Profile) -> Check {
    const NAME: &str = "machines";
    let wanted = profile.env.desktops;
    let missing = |found: String, remedy: &str| Check {
        name: NAME,
        status: Status::Missing,
        found,
        remedy: remedy.to_owned(),
    };
    let answers = match attached::examine(&attached_options(&profile.env)) {
        Ok(answers) => answers,
        Err(reason) => return missing(reason, "see assets/docs/vms.md"),
    };
    let there = answers.len();
    let broken = answers.iter().filter_map(|answer| {
        let broken = answer.broken.as_ref()?;
        Some(format!("{}: {broken}", answer.host))
    });
    let broken: Vec<String> = broken.collect();
    if !broken.is_empty() {
        let remedy = "start its server, and see that its port is reached from here";
        return missing(broken.join("; "), remedy);
    }
    if there < wanted {
        let found = format!("{there} answer, env.desktops asks for {wanted}");
        return missing(found, "name more, or lower env.desktops");
    }
    Check::ok(NAME, format!("all {there} answer, layer by layer"))
}
