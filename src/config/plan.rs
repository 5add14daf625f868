//! Every check of a profile's values: legal ranges, and keys against each other. All of them are
//! here; each says what to change.
//!
//! Does not touch the file system: what a path leads to is checked by whoever opens it.

mod machines;

use std::ops::RangeBounds;

use crate::config::simulated::SimulatedConfig;
use crate::config::{
    EngineConfig, EnvConfig, EnvKind, FleetConfig, PolicyKind, PretrainConfig, Profile,
};
use crate::types::ReplyFormat;

/// A value that cannot be, or not beside the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The key with its sections.
    pub key: String,
    /// What is wrong and what to change, continuing the key: `must be ...`.
    pub says: &'static str,
}

/// Problems of a profile, in the order of its keys; empty if it can be run.
pub fn check(profile: &Profile) -> Vec<Problem> {
    let mut checks = Checks(Vec::new());
    check_run_and_policy(profile, &mut checks);
    check_engine(&profile.engine, &mut checks);
    check_fleet(&profile.env.fleet, &mut checks);
    check_simulated(&profile.env.simulated, &mut checks);
    check_xvfb(&profile.env, &mut checks);
    check_qemu(&profile.env, &mut checks);
    machines::check_docker(&profile.env, &mut checks);
    machines::check_attached(&profile.env, &mut checks);
    check_episodes(profile, &mut checks);
    check_learning(profile, &mut checks);
    check_eval(profile, &mut checks);
    check_pretrain(&profile.pretrain, &mut checks);
    checks.0
}

struct Checks(Vec<Problem>);

impl Checks {
    fn require(&mut self, key: &str, holds: bool, says: &'static str) {
        if !holds {
            let key = key.to_owned();
            self.0.push(Problem { key, says });
        }
    }

    fn range<T: PartialOrd>(
        &mut self,
        key: &str,
        value: &T,
        legal: impl RangeBounds<T>,
        says: &'static str,
    ) {
        self.require(key, legal.contains(value), says);
    }
}

fn above_0_to(value: f64, most: f64) -> bool {
    value > 0.0 && value <= most
}

fn check_engine(engine: &EngineConfig, c: &mut Checks) {
    c.range(
        "engine.lanes",
        &engine.lanes,
        ..=256,
        "must be 0 (one a core) to 256",
    );
    c.range(
        "engine.kv_budget_mb",
        &engine.kv_budget_mb,
        16..,
        "must be 16 or more",
    );
    c.range(
        "engine.max_batch",
        &engine.max_batch,
        1..=1024,
        "must be 1 to 1024",
    );
}

fn check_run_and_policy(profile: &Profile, c: &mut Checks) {
    let run = &profile.run;
    c.range("run.iterations", &run.iterations, 1.., "must be 1 or more");
    c.require(
        "run.dir",
        !run.dir.is_empty(),
        "must name a folder, such as \"runs\"",
    );
    let every = run.checkpoint_every_iterations;
    c.range(
        "run.checkpoint_every_iterations",
        &every,
        1..,
        "must be 1 or more",
    );
    c.range(
        "run.keep_checkpoints",
        &run.keep_checkpoints,
        1..,
        "must be 1 or more",
    );

    let policy = &profile.policy;
    let named = policy.kind != PolicyKind::Embedded || !policy.checkpoint.is_empty();
    c.require(
        "policy.checkpoint",
        named,
        "must name the embedded policy's folder",
    );
    c.range(
        "policy.coordinate_snap",
        &policy.coordinate_snap,
        1..=28,
        "must be 1 to 28",
    );
    c.require(
        "policy.coordinate_snap",
        policy.coordinate_snap == 1 || policy.reply_format != ReplyFormat::Relative1000,
        "counts pixels, which policy.reply_format = \"relative_1000\" does not write: set it to 1",
    );
    c.range(
        "policy.context_tokens",
        &policy.context_tokens,
        64..,
        "must be 64 or more",
    );
    let named = policy.kind != PolicyKind::Scripted || !policy.script.is_empty();
    c.require(
        "policy.script",
        named,
        "must be \"expert\" or a file of replies",
    );

    let sampling = &profile.sampling;
    c.range(
        "sampling.temperature",
        &sampling.temperature,
        0.0..=2.0,
        "must be 0 to 2",
    );
    c.require(
        "sampling.top_p",
        above_0_to(sampling.top_p, 1.0),
        "must be above 0, at most 1",
    );
    c.range(
        "sampling.max_reply_tokens",
        &sampling.max_reply_tokens,
        4..,
        "must be 4 or more",
    );
    c.require(
        "sampling.max_reply_tokens",
        sampling.max_reply_tokens < policy.context_tokens,
        "leaves no room for a prompt: lower it or raise policy.context_tokens",
    );
}

fn check_fleet(fleet: &FleetConfig, c: &mut Checks) {
    c.range(
        "env.fleet.memory_reserve_mb",
        &fleet.memory_reserve_mb,
        ..=1 << 30,
        "must be 0 to 1073741824",
    );
    c.range(
        "env.fleet.parallel_starts",
        &fleet.parallel_starts,
        ..=256,
        "must be 0 (one a core) to 256",
    );
    c.range(
        "env.fleet.max_start_failures",
        &fleet.max_start_failures,
        ..=100,
        "must be 0 (never) to 100",
    );
    let ratio = fleet.recycle_latency_ratio;
    c.require(
        "env.fleet.recycle_latency_ratio",
        ratio == 0.0 || (1.1..=1000.0).contains(&ratio),
        "must be 0 (never), or 1.1 to 1000: two episodes are never equally fast",
    );
    for (key, episodes) in [
        (
            "env.fleet.recycle_baseline_episodes",
            fleet.recycle_baseline_episodes,
        ),
        (
            "env.fleet.recycle_window_episodes",
            fleet.recycle_window_episodes,
        ),
    ] {
        c.range(key, &episodes, 1..=100, "must be 1 to 100");
    }
    c.range(
        "env.fleet.recycle_after_episodes",
        &fleet.recycle_after_episodes,
        ..=1_000_000,
        "must be 0 (never) to 1000000",
    );
}

fn check_simulated(simulated: &SimulatedConfig, c: &mut Checks) {
    let scale = &simulated.ui_scale;
    c.range(
        "env.simulated.ui_scale",
        scale,
        0..=8,
        "must be 0 (the task's own) to 8",
    );
    let above = simulated.deadline_s > 0.0;
    c.require("env.simulated.deadline_s", above, "must be above 0");
    let laws = [
        ("reset_latency", simulated.reset_latency),
        ("step_latency", simulated.step_latency),
        ("evaluate_latency", simulated.evaluate_latency),
    ];
    for (name, law) in laws {
        let key = |leaf: &str| format!("env.simulated.{name}.{leaf}");
        c.range(&key("median_s"), &law.median_s, 0.0.., "must be 0 or more");
        c.range(&key("sigma"), &law.sigma, 0.0.., "must be 0 or more");
        let share = &law.tail_probability;
        c.range(&key("tail_probability"), share, 0.0..=1.0, "must be 0 to 1");
        c.range(
            &key("tail_factor"),
            &law.tail_factor,
            1.0..,
            "must be 1 or more",
        );
    }
    let faults = &simulated.faults;
    let probabilities = [
        ("hang", faults.hang),
        ("crash", faults.crash),
        ("black_screen", faults.black_screen),
        ("slow_evaluator", faults.slow_evaluator),
    ];
    for (name, probability) in probabilities {
        let key = format!("env.simulated.faults.{name}");
        c.range(&key, &probability, 0.0..=1.0, "must be 0 to 1");
    }
    let key = "env.simulated.faults.slow_factor";
    c.range(key, &faults.slow_factor, 1.0.., "must be 1 or more");
}

fn check_xvfb(env: &EnvConfig, c: &mut Checks) {
    let xvfb = &env.xvfb;
    for (key, pixels) in [
        ("env.xvfb.screen_width", xvfb.screen_width),
        ("env.xvfb.screen_height", xvfb.screen_height),
    ] {
        c.range(key, &pixels, 320..=8192, "must be 320 to 8192 pixels");
    }
    let above = xvfb.start_deadline_s > 0.0;
    c.require("env.xvfb.start_deadline_s", above, "must be above 0");
    for (key, megabytes) in [
        ("env.xvfb.home_mb", xvfb.home_mb),
        ("env.xvfb.tmp_mb", xvfb.tmp_mb),
        ("env.xvfb.max_file_mb", xvfb.max_file_mb),
    ] {
        c.range(key, &megabytes, 16..=65536, "must be 16 to 65536");
    }
    c.range(
        "env.xvfb.memory_mb",
        &xvfb.memory_mb,
        512..,
        "must be 512 or more: an office program asks for that much",
    );
    c.range(
        "env.xvfb.max_processes",
        &xvfb.max_processes,
        64..=32768,
        "must be 64 to 32768: a desktop with a browser has about 200 threads",
    );
    let few = env.kind != EnvKind::Xvfb || env.desktops <= 256;
    c.require(
        "env.desktops",
        few,
        "must be at most 256 with env.kind = \"xvfb\": each is an X server with its programs",
    );
}

fn check_qemu(env: &EnvConfig, c: &mut Checks) {
    let qemu = &env.qemu;
    for (key, pixels) in [
        ("env.qemu.screen_width", qemu.screen_width),
        ("env.qemu.screen_height", qemu.screen_height),
    ] {
        c.range(key, &pixels, 320..=8192, "must be 320 to 8192 pixels");
    }
    c.range(
        "env.qemu.memory_mb",
        &qemu.memory_mb,
        512..=65536,
        "must be 512 to 65536: the guest's system and its applications share it",
    );
    c.range(
        "env.qemu.disk_mb",
        &qemu.disk_mb,
        64..=1 << 20,
        "must be 64 to 1048576",
    );
    for (key, seconds) in [
        ("env.qemu.boot_deadline_s", qemu.boot_deadline_s),
        ("env.qemu.restore_deadline_s", qemu.restore_deadline_s),
    ] {
        c.range(key, &seconds, 1.0..=86400.0, "must be 1 to 86400");
    }
    let few = env.kind != EnvKind::Qemu || env.desktops <= 256;
    c.require(
        "env.desktops",
        few,
        "must be at most 256 with env.kind = \"qemu\": each is a virtual machine",
    );
}

fn check_episodes(profile: &Profile, c: &mut Checks) {
    c.range(
        "env.desktops",
        &profile.env.desktops,
        1..=4096,
        "must be 1 to 4096",
    );

    let named = !profile.tasks.pool.is_empty();
    c.require(
        "tasks.pool",
        named,
        "must be a set's name, a list file or a folder of tasks",
    );
    let named = !profile.tasks.heldout.is_empty() || profile.eval.heldout_instances == 0;
    c.require(
        "tasks.heldout",
        named,
        "must name a set, or set eval.heldout_instances to 0",
    );

    let rollout = &profile.rollout;
    c.range(
        "rollout.max_steps",
        &rollout.max_steps,
        1..=100,
        "must be 1 to 100",
    );
    let deadline = &rollout.straggler_deadline_s;
    c.range(
        "rollout.straggler_deadline_s",
        deadline,
        0.0..,
        "must be 0 (never) or more",
    );
    c.range(
        "rollout.max_rerolls",
        &rollout.max_rerolls,
        0..=10,
        "must be 0 to 10",
    );
    c.require(
        "rollout.max_history_images",
        rollout.max_history_images >= rollout.max_steps,
        "must cover every step's screenshot: raise it or lower rollout.max_steps",
    );
}

fn check_learning(profile: &Profile, c: &mut Checks) {
    let weight = &profile.reward.format_weight;
    c.range("reward.format_weight", weight, 0.0..=2.0, "must be 0 to 2");

    let grpo = &profile.grpo;
    c.range(
        "grpo.tasks_per_iteration",
        &grpo.tasks_per_iteration,
        1..,
        "must be 1 or more",
    );
    let size = &grpo.group_size;
    c.range(
        "grpo.group_size",
        size,
        2..=256,
        "must be 2 to 256: one member has no peers",
    );
    let eps = above_0_to(grpo.advantage_eps, 0.1);
    c.require("grpo.advantage_eps", eps, "must be above 0, at most 0.1");
    let clip_low = grpo.clip_low > 0.0 && grpo.clip_low < 1.0;
    c.require("grpo.clip_low", clip_low, "must be above 0 and below 1");
    c.require(
        "grpo.clip_high",
        above_0_to(grpo.clip_high, 10.0),
        "must be above 0, at most 10",
    );
    c.require("grpo.clip_dual", grpo.clip_dual > 1.0, "must be above 1");
    c.range(
        "grpo.minibatches",
        &grpo.minibatches,
        1..,
        "must be 1 or more",
    );
    c.require(
        "grpo.minibatches",
        grpo.minibatches <= grpo.tasks_per_iteration.saturating_mul(grpo.group_size),
        "exceeds an iteration's trajectories: lower it or raise grpo.tasks_per_iteration",
    );
    c.range("grpo.epochs", &grpo.epochs, 1..=16, "must be 1 to 16");

    let replay = &profile.replay;
    c.range(
        "replay.capacity",
        &replay.capacity,
        1..=1024,
        "must be 1 to 1024",
    );
    let std_below = above_0_to(replay.std_below, 1.0);
    c.require("replay.std_below", std_below, "must be above 0, at most 1");
    let mean_below = above_0_to(replay.mean_below, 1.0);
    c.require(
        "replay.mean_below",
        mean_below,
        "must be above 0, at most 1",
    );
    c.range(
        "replay.insert_above",
        &replay.insert_above,
        0.0..1.0,
        "must be 0 to below 1",
    );
    let used = replay.enabled || replay.prefill.is_empty();
    c.require(
        "replay.prefill",
        used,
        "fills a buffer that is off: set it to \"\" or replay.enabled to true",
    );

    let optimizer = &profile.optimizer;
    c.require(
        "optimizer.lr",
        above_0_to(optimizer.lr, 0.1),
        "must be above 0, at most 0.1",
    );
    let (first, second) = optimizer.betas;
    let betas = (0.0..1.0).contains(&first) && (0.0..1.0).contains(&second);
    c.require("optimizer.betas", betas, "must both be 0 to below 1");
    c.require("optimizer.eps", optimizer.eps > 0.0, "must be above 0");
    c.range(
        "optimizer.weight_decay",
        &optimizer.weight_decay,
        0.0..=1.0,
        "must be 0 to 1",
    );
    c.require(
        "optimizer.grad_clip_norm",
        optimizer.grad_clip_norm > 0.0,
        "must be above 0",
    );
}

fn check_eval(profile: &Profile, c: &mut Checks) {
    let eval = &profile.eval;
    c.range(
        "eval.temperature",
        &eval.temperature,
        0.0..=2.0,
        "must be 0 to 2",
    );
    c.range("eval.trials", &eval.trials, 1.., "must be 1 or more");
    let named = !eval.tasks.is_empty();
    c.require(
        "eval.tasks",
        named,
        "must be a set's name, a list file or a folder of tasks",
    );
}

fn check_pretrain(pretrain: &PretrainConfig, c: &mut Checks) {
    c.range("pretrain.steps", &pretrain.steps, 1.., "must be 1 or more");
    let screenshots = &pretrain.screenshots_per_step;
    c.range(
        "pretrain.screenshots_per_step",
        screenshots,
        1..,
        "must be 1 or more",
    );
    let share = &pretrain.grounding_share;
    c.range(
        "pretrain.grounding_share",
        share,
        0.0..=1.0,
        "must be 0 to 1",
    );
    c.require(
        "pretrain.lr",
        above_0_to(pretrain.lr, 0.1),
        "must be above 0, at most 0.1",
    );
    let warm = pretrain.warmup_steps < pretrain.steps;
    c.require(
        "pretrain.warmup_steps",
        warm,
        "must be below pretrain.steps",
    );
    c.range(
        "pretrain.decay_share",
        &pretrain.decay_share,
        0.0..=1.0,
        "must be 0 to 1",
    );
    c.range(
        "pretrain.momentum",
        &pretrain.momentum,
        0.0..1.0,
        "must be 0 to below 1",
    );
    c.range(
        "pretrain.weight_decay",
        &pretrain.weight_decay,
        0.0..=1.0,
        "must be 0 to 1",
    );
    c.require(
        "pretrain.out",
        !pretrain.out.is_empty(),
        "must name a folder",
    );
    check_text_model(pretrain, c);
    check_vision_model(pretrain, c);
}

fn check_text_model(pretrain: &PretrainConfig, c: &mut Checks) {
    let model = &pretrain.model;
    let sizes = [
        ("pretrain.model.hidden_size", model.hidden_size),
        ("pretrain.model.intermediate_size", model.intermediate_size),
        ("pretrain.model.num_hidden_layers", model.num_hidden_layers),
        (
            "pretrain.model.num_attention_heads",
            model.num_attention_heads,
        ),
        (
            "pretrain.model.num_key_value_heads",
            model.num_key_value_heads,
        ),
        (
            "pretrain.model.max_position_embeddings",
            model.max_position_embeddings,
        ),
    ];
    for (key, size) in sizes {
        c.range(key, &size, 1.., "must be 1 or more");
    }
    // Divisions below need heads; a missing one is reported above.
    let heads = model.num_attention_heads.max(1);
    let divides = model.hidden_size.is_multiple_of(heads);
    c.require(
        "pretrain.model.num_attention_heads",
        divides,
        "must divide pretrain.model.hidden_size",
    );
    let divides = heads.is_multiple_of(model.num_key_value_heads.max(1));
    c.require(
        "pretrain.model.num_key_value_heads",
        divides,
        "must divide pretrain.model.num_attention_heads",
    );
    c.require(
        "pretrain.model.rope_theta",
        model.rope_theta > 1.0,
        "must be above 1",
    );
    let frequencies: usize = model.mrope_section.iter().sum();
    c.require(
        "pretrain.model.mrope_section",
        frequencies * 2 * heads == model.hidden_size,
        "must add up to half of hidden_size / num_attention_heads",
    );
    c.require(
        "pretrain.model.rms_norm_eps",
        model.rms_norm_eps > 0.0,
        "must be above 0",
    );
    let range = above_0_to(model.initializer_range, 1.0);
    c.require(
        "pretrain.model.initializer_range",
        range,
        "must be above 0, at most 1",
    );
}

fn check_vision_model(pretrain: &PretrainConfig, c: &mut Checks) {
    let vision = &pretrain.model.vision;
    let sizes = [
        ("pretrain.model.vision.depth", vision.depth),
        ("pretrain.model.vision.hidden_size", vision.hidden_size),
        ("pretrain.model.vision.num_heads", vision.num_heads),
        (
            "pretrain.model.vision.intermediate_size",
            vision.intermediate_size,
        ),
        ("pretrain.model.vision.patch_size", vision.patch_size),
        (
            "pretrain.model.vision.temporal_patch_size",
            vision.temporal_patch_size,
        ),
        (
            "pretrain.model.vision.spatial_merge_size",
            vision.spatial_merge_size,
        ),
        ("pretrain.model.vision.window_size", vision.window_size),
    ];
    for (key, size) in sizes {
        c.range(key, &size, 1.., "must be 1 or more");
    }
    c.require(
        "pretrain.model.vision.num_heads",
        vision
            .hidden_size
            .is_multiple_of(4 * vision.num_heads.max(1)),
        "must split pretrain.model.vision.hidden_size into heads of a multiple of 4",
    );
    let merged_px = (vision.patch_size * vision.spatial_merge_size).max(1);
    c.require(
        "pretrain.model.vision.window_size",
        vision.window_size.is_multiple_of(merged_px),
        "must be a multiple of patch_size * spatial_merge_size",
    );
    let inside = vision
        .fullatt_block_indexes
        .iter()
        .all(|index| *index < vision.depth);
    let key = "pretrain.model.vision.fullatt_block_indexes";
    c.require(key, inside, "must be below pretrain.model.vision.depth");

    let (least, most) = (pretrain.model.min_pixels, pretrain.model.max_pixels);
    let key = "pretrain.model.min_pixels";
    c.require(
        key,
        least >= 1 && least <= most,
        "must be 1 to pretrain.model.max_pixels",
    );
    let area = merged_px * merged_px;
    c.require(
        "pretrain.model.max_pixels",
        most as usize >= area,
        "must hold one merged patch: (patch_size * spatial_merge_size) squared or more",
    );
}
