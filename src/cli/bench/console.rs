//! `arpo bench console`: what the console costs and how soon it answers, on a fleet of 256
//! desktops that another process's socket tells of.
//!
//! The console is the real one: this program, attached on a pseudo-terminal that answers as
//! kitty does. Load `osworld` is the pace of real desktops, load `stress` ten events a second and
//! desktop. Each is measured on a line that costs nothing and on one of 200 kB/s, 40 ms one way,
//! that holds 2 MB. Figures are of the machine and of how busy it is.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::bus::{EventSink, Server};
use crate::cli::bench::fleet::{Fleet, desktops_seen};
use crate::cli::bench::folder::Folder;
use crate::cli::bench::line::{Attached, LineSpec, Room};
use crate::cli::bench::memory;
use crate::cli::{async_runtime, note, say};
use crate::screen::encode_png;
use crate::store::RunDir;

/// Desktops of the fleet.
const DESKTOPS: u32 = 256;
/// Steps of an episode.
const STEPS: u32 = 15;
/// Screenshots that the fleet shows in turn.
const SCREENSHOTS: u32 = 24;
/// A console that has not drawn by then never will.
const PATIENCE: Duration = Duration::from_secs(60);
/// A key that was not answered by then counts as so long.
const KEY_PATIENCE: Duration = Duration::from_secs(5);
/// Before measuring: pictures are fetched, the line's rate is learned.
const SETTLE: Duration = Duration::from_secs(3);

/// The console's terminal.
const ROOM: Room = Room {
    columns: 120,
    rows: 40,
};
const SLOW: LineSpec = LineSpec {
    rate: Some(200_000.0),
    latency: Duration::from_millis(40),
};

/// `arpo bench console`.
#[derive(Debug, clap::Args)]
pub struct ConsoleArgs {
    /// Seconds of each measurement
    #[arg(long, value_name = "N", default_value_t = 10)]
    seconds: u64,
    /// Episodes that the run has had when the console attaches
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    episodes: u64,
    /// Keys typed on each line
    #[arg(long, value_name = "N", default_value_t = 60)]
    keys: usize,
    /// The figures as one JSON object on stdout
    #[arg(long)]
    json: bool,
}

/// A pace of the fleet.
struct Load {
    name: &'static str,
    /// Events a second, of all desktops together.
    events_per_s: f64,
    /// Targets: part of a core, bytes of text a second.
    cpu_share: f64,
    text_bytes_per_s: f64,
}

const LOADS: [Load; 2] = [
    Load {
        name: "osworld",
        // 3.4 steps a second of three events each.
        events_per_s: 3.4 * 3.0,
        cpu_share: 0.10,
        text_bytes_per_s: 4_000.0,
    },
    Load {
        name: "stress",
        events_per_s: 10.0 * DESKTOPS as f64,
        cpu_share: 0.35,
        text_bytes_per_s: 60_000.0,
    },
];

pub(super) fn run(args: &ConsoleArgs) -> anyhow::Result<ExitCode> {
    let folder = Folder::new()?;
    let runtime = async_runtime()?;
    let run = RunDir::create(&folder.path().join("runs/bench-console"), "")?;
    let mut images = Vec::new();
    for shot in desktops_seen(SCREENSHOTS) {
        run.put_png(shot.hash(), &encode_png(&shot)?)?;
        images.push(shot.hash().clone());
    }
    let mut fleet = Fleet::new(DESKTOPS, 1, images);
    let sink = EventSink::start(&run, fleet.header())?;
    note(format!("{} episodes of {DESKTOPS} desktops", args.episodes));
    while fleet.episodes() < args.episodes {
        for kind in fleet.next_events() {
            sink.emit(kind);
        }
    }
    fleet.set_steps(STEPS);
    sink.flush_blocking()?;
    let socket = folder.path().join("bench-console.sock");
    let server = runtime.block_on(Server::bind(&socket, run.root(), sink.clone(), None))?;
    let idle_bytes = idle_bytes(run.root(), args.seconds)?;
    let mut loads = serde_json::Map::new();
    let mut whole = Whole::default();
    for load in &LOADS {
        let pacer = Pacer::start(fleet, sink.clone(), load.events_per_s);
        let figures = measure(&socket, load, args, &mut whole);
        fleet = pacer.stop()?;
        loads.insert(load.name.to_owned(), figures?);
    }
    runtime.block_on(server.close());
    sink.close()?;
    tell("attach", whole.attach_ms, "ms", 1_000.0);
    tell("memory", whole.rss_mb, "MB", 60.0);
    tell("idle", idle_bytes, "bytes/s", 0.0);
    if args.json {
        say(json!({
            "desktops": DESKTOPS,
            "episodes": args.episodes,
            "loads": loads,
            "attach_ms": whole.attach_ms,
            "rss_mb": whole.rss_mb,
            "idle_bytes_per_s": idle_bytes,
        }));
    }
    Ok(ExitCode::SUCCESS)
}

/// Figures over all loads: the worst.
#[derive(Default)]
struct Whole {
    attach_ms: f64,
    rss_mb: f64,
}

fn measure(
    socket: &Path,
    load: &Load,
    args: &ConsoleArgs,
    whole: &mut Whole,
) -> anyhow::Result<Value> {
    let arguments = [Path::new("attach"), socket];
    let mut console = Attached::start(&arguments, ROOM, LineSpec::LOCAL)?;
    let attached = console.first_frame(PATIENCE)?;
    whole.attach_ms = whole.attach_ms.max(ms(attached));
    thread::sleep(SETTLE);
    let (before, cpu_before) = (console.arrived(), memory::cpu_seconds(console.pid())?);
    let started = Instant::now();
    thread::sleep(Duration::from_secs(args.seconds));
    let (after, cpu_after) = (console.arrived(), memory::cpu_seconds(console.pid())?);
    let took_s = started.elapsed().as_secs_f64();
    let a_second = |before: u64, after: u64| (after - before) as f64 / took_s;
    let cpu_share = (cpu_after - cpu_before) / took_s;
    let text = a_second(before.text, after.text);
    let pictures = a_second(before.pictures, after.pictures);
    let frames = a_second(before.frames, after.frames);
    let keys = key_to_frame(&mut console, args.keys)?;
    let rss_mb = memory::peak_of(console.pid())? as f64 / 1e6;
    whole.rss_mb = whole.rss_mb.max(rss_mb);
    drop(console);
    let mut distant = Attached::start(&arguments, ROOM, SLOW)?;
    distant.first_frame(PATIENCE)?;
    thread::sleep(SETTLE);
    let distant_before = distant.arrived();
    let distant_started = Instant::now();
    let distant_keys = key_to_frame(&mut distant, args.keys)?;
    let distant_after = distant.arrived();
    let distant_pictures = (distant_after.pictures - distant_before.pictures) as f64
        / distant_started.elapsed().as_secs_f64();
    note(format!(
        "load {}: {:.0} events/s",
        load.name, load.events_per_s
    ));
    tell("cpu", cpu_share, "of a core", load.cpu_share);
    tell("key to frame, p95", keys, "ms", 50.0);
    tell("the same at 200 kB/s, 40 ms", distant_keys, "ms", 250.0);
    tell("text", text, "bytes/s", load.text_bytes_per_s);
    tell("pictures", pictures, "bytes/s", 200_000.0);
    tell(
        "pictures at 200 kB/s",
        distant_pictures,
        "bytes/s",
        120_000.0,
    );
    Ok(json!({
        "events_per_s": load.events_per_s,
        "cpu_share": cpu_share,
        "key_to_frame_p95_ms": keys,
        "link_key_to_frame_p95_ms": distant_keys,
        "text_bytes_per_s": text,
        "picture_bytes_per_s": pictures,
        "link_picture_bytes_per_s": distant_pictures,
        "frames_per_s": frames,
    }))
}

/// 95th percentile, ms, of the time from a key to its effect at the far end.
fn key_to_frame(console: &mut Attached, keys: usize) -> anyhow::Result<f64> {
    // In the palette, behind letters that no command has: only the line changes.
    console.press(":zz")?;
    thread::sleep(Duration::from_secs(1));
    let mut took = Vec::with_capacity(keys);
    for number in 0..keys {
        // Out of step with the console's own ticks.
        thread::sleep(Duration::from_millis(90 + (number as u64 * 37) % 130));
        took.push(ms(console.echo(KEY_PATIENCE)?));
    }
    console.press("\x15\x1b")?;
    took.sort_by(f64::total_cmp);
    let place = (took.len() * 95).div_ceil(100).saturating_sub(1);
    Ok(took.get(place).copied().unwrap_or(f64::NAN))
}

/// Bytes a second that a console writes on a run that stands still.
fn idle_bytes(run: &Path, seconds: u64) -> anyhow::Result<f64> {
    let console = Attached::start(&[Path::new("show"), run], ROOM, LineSpec::LOCAL)?;
    console.first_frame(PATIENCE)?;
    thread::sleep(SETTLE);
    let before = console.arrived();
    thread::sleep(Duration::from_secs(seconds));
    let after = console.arrived();
    let bytes = (after.text + after.pictures) - (before.text + before.pictures);
    Ok(bytes as f64 / seconds.max(1) as f64)
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}

fn tell(what: &str, value: f64, unit: &str, target: f64) {
    let digits = usize::from(value < 10.0) * 3;
    note(format!(
        "  {what}: {value:.digits$} {unit} (target: at most {target})"
    ));
}

/// The thread that lets the fleet go on.
struct Pacer {
    thread: JoinHandle<Fleet>,
    ends: Arc<AtomicBool>,
}

impl Pacer {
    fn start(mut fleet: Fleet, sink: EventSink, events_per_s: f64) -> Self {
        let ends = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&ends);
        let thread = thread::spawn(move || {
            let started = Instant::now();
            let mut emitted = 0.0;
            while !asked.load(Ordering::Relaxed) {
                let due = started.elapsed().as_secs_f64() * events_per_s;
                while emitted < due {
                    for kind in fleet.next_events() {
                        sink.emit(kind);
                    }
                    emitted += 1.0;
                }
                thread::sleep(Duration::from_millis(10));
            }
            fleet
        });
        Self { thread, ends }
    }

    fn stop(self) -> anyhow::Result<Fleet> {
        self.ends.store(true, Ordering::Relaxed);
        let fleet = self.thread.join();
        fleet.map_err(|_| anyhow::anyhow!("the fleet's thread failed"))
    }
}
