//! Tests of the engine: what it computes piecewise, cached, batched, evicted or forked equals
//! one plain forward pass.

use std::collections::HashMap;
use std::sync::Arc;

use arpo::config::{CostTable, DeviceChoice, EngineConfig};
use arpo::policy::{
    Extension, FinishReason, Generation, Policy, PolicyError, SamplingParams, SessionId,
    SessionSpec,
};
use arpo::screen::{ProcessorConfig, preprocess};
use arpo::types::{EpisodeId, PolicyVersion, ScreenSize, Screenshot, Task};
use tch::{Kind, Tensor};

use super::lane::{Completion, Lane, LaneSpec, LaneWork};
use super::policy::{Embedded, EmbeddedSpec};
use super::sampler::{Distribution, Distributions, Sampler};
use crate::model::Weights;
use crate::model::qwen2_5_vl::text::{self, Attention};
use crate::model::qwen2_5_vl::{embed, lm_head, rope, suppress_placeholder, vision};
use crate::model::tests::tiny_weights;

/// Log-probabilities computed in different orders differ by rounding only.
const TOLERANCE: f32 = 1e-4;

/// Every token ends no turn, so that replies have the asked length.
const NO_STOP: u32 = u32::MAX;

const SAMPLED: SamplingParams = SamplingParams {
    temperature: 1.0,
    top_p: 1.0,
    max_tokens: 6,
};

fn spec() -> LaneSpec {
    LaneSpec {
        context_tokens: 1400,
        max_batch: 16,
        kv_budget_bytes: 256 << 20,
        stop_ids: vec![NO_STOP],
        processor: ProcessorConfig {
            max_pixels: 224 * 168,
            ..ProcessorConfig::default()
        },
    }
}

fn episode(number: u64) -> EpisodeId {
    EpisodeId {
        incarnation: 0,
        number,
    }
}

/// A screenshot unlike those of other seeds, 48 merged patches.
fn screenshot(seed: u32) -> Screenshot {
    let pixel = |i: u32| (i.wrapping_mul(2_654_435_761).wrapping_add(seed * 977) >> 13) as u8;
    let rgb = (0..224 * 168 * 3).map(|i| pixel(i / 21)).collect();
    Screenshot::new(
        ScreenSize {
            width: 224,
            height: 168,
        },
        rgb,
    )
}

/// One step's prompt: some text and one image between its start and end tokens.
fn step(seed: u32) -> Extension {
    let text = (0..5 + seed % 3).map(|i| 20 + (seed * 31 + i * 7) % 800);
    let ids = text.chain([3]).chain([6; 48]).chain([4, 9]).collect();
    Extension {
        ids,
        images: vec![screenshot(seed)],
        replies: Vec::new(),
    }
}

/// Ticks until the session's answer is there.
fn wait(lane: &mut Lane, id: SessionId) -> Completion {
    wait_all(lane, &[id]).remove(&id).unwrap()
}

/// Ticks until the sessions' answers are there.
fn wait_all(lane: &mut Lane, ids: &[SessionId]) -> HashMap<SessionId, Completion> {
    let mut completions = HashMap::new();
    while !ids.iter().all(|id| completions.contains_key(id)) {
        completions.extend(lane.tick().expect("a session waits").completions);
    }
    completions
}

fn reply(lane: &mut Lane, id: u64, extension: Extension, params: SamplingParams) -> Generation {
    lane.generate(SessionId(id), extension, params).unwrap();
    match wait(lane, SessionId(id)) {
        Completion::Generated(generation) => generation,
        other => panic!("{other:?}"),
    }
}

fn score(lane: &mut Lane, id: u64, ids: &[u32]) -> Vec<f32> {
    lane.score(SessionId(id), ids.to_vec()).unwrap();
    match wait(lane, SessionId(id)) {
        Completion::Scored(scores) => scores,
        other => panic!("{other:?}"),
    }
}

/// Log-probability of each token after the first, by one forward pass over everything.
fn full_forward(weights: &Weights, ids: &[u32], screenshots: &[Screenshot]) -> Vec<f32> {
    let processor = spec().processor;
    let pixels: Vec<_> = screenshots
        .iter()
        .map(|shot| preprocess(shot, &processor).unwrap())
        .collect();
    let grids: Vec<[i64; 3]> = pixels.iter().map(|values| values.grid_thw).collect();
    let values: Vec<f32> = pixels
        .iter()
        .flat_map(|values| values.values.clone())
        .collect();
    let features = vision::encode(
        weights,
        &Tensor::from_slice(&values).reshape([-1, 1176]),
        &grids,
    );
    let position_ids = rope::rope_index(&weights.config, &[(ids, &grids)]).unwrap();
    let ids: Vec<i64> = ids.iter().map(|id| i64::from(*id)).collect();
    let ids = Tensor::from_slice(&ids).unsqueeze(0);
    let embeds = embed(weights, &ids, &features);
    let hidden = text::forward(weights, &embeds, &position_ids, Attention::Causal).get(0);
    let logits = suppress_placeholder(&weights.config, &lm_head(weights, &hidden));
    let targets = ids.get(0).narrow(0, 1, ids.size()[1] - 1).unsqueeze(-1);
    let logprobs = logits
        .narrow(0, 0, ids.size()[1] - 1)
        .log_softmax(-1, Kind::Float);
    Vec::try_from(logprobs.gather(-1, &targets, false).reshape([-1])).unwrap()
}

#[track_caller]
fn assert_close(actual: &[f32], expected: &[f32]) {
    assert_eq!(actual.len(), expected.len());
    for (actual, expected) in actual.iter().zip(expected) {
        assert!(
            (actual - expected).abs() < TOLERANCE,
            "{actual} is not {expected}"
        );
    }
}

/// Content of a session after prompts and replies, and where the replies are.
#[derive(Default)]
struct Transcript {
    ids: Vec<u32>,
    images: Vec<Screenshot>,
    logprobs: Vec<(usize, f32)>,
}

impl Transcript {
    fn prompt(&mut self, extension: &Extension) {
        self.ids.extend(&extension.ids);
        self.images.extend(extension.images.clone());
    }

    fn reply(&mut self, generation: &Generation) {
        let start = self.ids.len();
        self.logprobs.extend(
            generation
                .logprobs
                .iter()
                .enumerate()
                .map(|(i, lp)| (start + i, *lp)),
        );
        self.ids.extend(&generation.ids);
    }

    #[track_caller]
    fn check(&self, weights: &Weights) {
        let expected = full_forward(weights, &self.ids, &self.images);
        let expected: Vec<f32> = self
            .logprobs
            .iter()
            .map(|(at, _)| expected[at - 1])
            .collect();
        let actual: Vec<f32> = self.logprobs.iter().map(|(_, logprob)| *logprob).collect();
        assert_close(&actual, &expected);
    }
}

/// Runs `steps` steps of a session.
fn run_steps(lane: &mut Lane, id: u64, steps: std::ops::Range<u32>, record: &mut Transcript) {
    for seed in steps {
        record.prompt(&step(seed));
        record.reply(&reply(lane, id, step(seed), SAMPLED));
    }
}

#[test]
fn cached_decoding_equals_a_full_forward() {
    let weights = tiny_weights(11);
    let mut lane = Lane::new(weights.shallow_clone(), spec());
    lane.open(SessionId(0), episode(0), 5);
    let mut record = Transcript::default();
    run_steps(&mut lane, 0, 0..4, &mut record);
    assert_eq!(record.logprobs.len(), 24);
    record.check(&weights);
}

#[test]
fn fifteen_steps_encode_fifteen_images_and_prefill_only_what_is_new() {
    let mut lane = Lane::new(tiny_weights(11), spec());
    lane.open(SessionId(0), episode(0), 5);
    let mut record = Transcript::default();
    run_steps(&mut lane, 0, 0..15, &mut record);
    let stats = lane.stats();
    assert_eq!((stats.images_encoded, stats.images_seen), (15, 15));
    assert_eq!(stats.tokens_prefilled, stats.tokens_new);
    assert_eq!(
        stats.tokens_new,
        (0..15).map(|seed| step(seed).ids.len() as u64).sum::<u64>()
    );
    assert_eq!((stats.tokens_sampled, stats.sessions_refilled), (15 * 6, 0));
    record.check(&tiny_weights(11));
}

/// Replies of sessions that take all their steps at the same time in one lane.
fn together(weights: &Weights, spec: LaneSpec, sessions: u64) -> (Lane, Vec<Transcript>) {
    let mut lane = Lane::new(weights.shallow_clone(), spec);
    let mut records: Vec<Transcript> = (0..sessions).map(|_| Transcript::default()).collect();
    for id in 0..sessions {
        // Opened in another order than their episodes have.
        lane.open(SessionId(id), episode((id * 7) % sessions), 100 + id);
    }
    for turn in 0..3 {
        let mut waiting = 0;
        for id in 0..sessions {
            // Sessions of unequal length, some of which sit a turn out.
            if turn == 1 && id % 3 == 1 {
                continue;
            }
            let prompt = step(turn * 40 + id as u32);
            records[id as usize].prompt(&prompt);
            let params = SamplingParams {
                max_tokens: 3 + id as usize % 4,
                ..SAMPLED
            };
            lane.generate(SessionId(id), prompt, params).unwrap();
            waiting += 1;
        }
        while 0 < waiting {
            for (id, completion) in lane.tick().unwrap().completions {
                let Completion::Generated(generation) = completion else {
                    panic!("{id:?}")
                };
                records[id.0 as usize].reply(&generation);
                waiting -= 1;
            }
        }
    }
    (lane, records)
}

#[test]
fn a_batch_equals_its_sessions_one_by_one() {
    let weights = tiny_weights(11);
    let (lane, records) = together(&weights, spec(), 5);
    assert_eq!(lane.stats().sessions_refilled, 0);
    for record in &records {
        record.check(&weights);
    }
    let mut alone = Lane::new(weights, spec());
    alone.open(SessionId(9), episode(2), 102);
    for (turn, length) in [(0, 5), (1, 5), (2, 5)] {
        let params = SamplingParams {
            max_tokens: length,
            ..SAMPLED
        };
        let generation = reply(&mut alone, 9, step(turn * 40 + 2), params);
        let at = &records[2].logprobs[turn as usize * 5..][..5];
        let ids: Vec<u32> = at.iter().map(|(at, _)| records[2].ids[*at]).collect();
        assert_eq!(generation.ids, ids);
    }
}

#[test]
fn the_same_requests_give_the_same_bits() {
    let weights = tiny_weights(11);
    let [(_, first), (_, second)] = [(), ()].map(|()| together(&weights, spec(), 4));
    for (first, second) in first.iter().zip(&second) {
        assert_eq!(
            (&first.ids, &first.logprobs),
            (&second.ids, &second.logprobs)
        );
    }
}

#[test]
fn an_evicted_session_is_computed_again_to_the_same_result() {
    let weights = tiny_weights(11);
    let two_slots = 2 * 4 * 4 * 1400 * 32 * 4;
    let tight = LaneSpec {
        kv_budget_bytes: two_slots,
        ..spec()
    };
    let (lane, records) = together(&weights, tight, 5);
    let stats = lane.stats();
    assert!(0 < stats.sessions_refilled);
    assert!(stats.tokens_new < stats.tokens_prefilled);
    assert_eq!(
        stats.images_encoded, stats.images_seen,
        "features survive an eviction"
    );
    assert!(stats.kv_bytes <= two_slots as u64);
    for record in &records {
        record.check(&weights);
    }
}

#[test]
fn a_fork_has_the_same_content_and_its_own_future() {
    let weights = tiny_weights(11);
    let mut lane = Lane::new(weights.shallow_clone(), spec());
    lane.open(SessionId(0), episode(0), 5);
    let mut record = Transcript::default();
    run_steps(&mut lane, 0, 0..2, &mut record);
    let before = lane.stats();
    for (id, seed) in [(1, 6), (2, 7)] {
        lane.fork(SessionId(0), SessionId(id), episode(id), seed)
            .unwrap();
    }
    let replies: Vec<Generation> = (0..3)
        .map(|id| {
            let mut record = Transcript {
                ids: record.ids.clone(),
                ..Transcript::default()
            };
            record
                .images
                .clone_from(&Vec::from([screenshot(0), screenshot(1)]));
            record.prompt(&step(2));
            let generation = reply(&mut lane, id, step(2), SAMPLED);
            record.reply(&generation);
            record.check(&weights);
            generation
        })
        .collect();
    assert_ne!(replies[1].ids, replies[2].ids);
    let stats = lane.stats();
    assert_eq!(
        stats.images_encoded,
        before.images_encoded + 1,
        "the shared picture once"
    );
    assert_eq!(stats.sessions_refilled, 0);
    let greedy = SamplingParams {
        temperature: 0.0,
        ..SAMPLED
    };
    lane.fork(SessionId(1), SessionId(3), episode(3), 1)
        .unwrap();
    let copies = [1, 3].map(|id| reply(&mut lane, id, step(3), greedy));
    assert_eq!(copies[0].ids, copies[1].ids);
}

#[test]
fn scores_are_the_full_forwards_and_leave_the_session_as_it_was() {
    let weights = tiny_weights(11);
    let candidates = [10, 400, 77, 2];
    let [plain, scored] = [false, true].map(|with_scores| {
        let mut lane = Lane::new(weights.shallow_clone(), spec());
        lane.open(SessionId(0), episode(0), 5);
        let mut record = Transcript::default();
        run_steps(&mut lane, 0, 0..1, &mut record);
        if with_scores {
            for _ in 0..2 {
                let scores = score(&mut lane, 0, &candidates);
                let all = [&record.ids[..], &candidates].concat();
                let expected = full_forward(&weights, &all, &record.images);
                assert_close(&scores, &expected[expected.len() - 4..]);
            }
            assert_eq!(lane.stats().sessions_refilled, 0);
        }
        run_steps(&mut lane, 0, 1..3, &mut record);
        record.check(&weights);
        record.ids
    });
    assert_eq!(plain, scored);
}

#[test]
fn published_weights_answer_from_the_next_reply_on() {
    let (old, new) = (tiny_weights(11), tiny_weights(12));
    let new = new.snapshot(PolicyVersion(3), |_| true);
    let mut lane = Lane::new(old.shallow_clone(), spec());
    for id in 0..2 {
        lane.open(SessionId(id), episode(id), 5);
    }
    lane.generate(SessionId(0), step(0), SAMPLED).unwrap();
    assert!(lane.tick().is_some());
    lane.publish(new.shallow_clone());
    lane.generate(SessionId(1), step(0), SAMPLED).unwrap();
    let mut replies = wait_all(&mut lane, &[SessionId(0), SessionId(1)]);
    let [running, fresh] = [0, 1].map(|id| match replies.remove(&SessionId(id)) {
        Some(Completion::Generated(generation)) => generation,
        other => panic!("{other:?}"),
    });
    assert_eq!(fresh.version, PolicyVersion(3));
    assert_eq!(
        running.version,
        PolicyVersion(0),
        "a reply under way keeps its weights"
    );
    for (weights, generation) in [(&old, &running), (&new, &fresh)] {
        let mut record = Transcript::default();
        record.prompt(&step(0));
        record.reply(generation);
        record.check(weights);
    }
    assert_eq!(lane.stats().sessions_refilled, 0);
    assert_eq!(
        reply(&mut lane, 0, step(1), SAMPLED).version,
        PolicyVersion(3)
    );
    assert_eq!(lane.stats().sessions_refilled, 1);
}

#[test]
fn replies_end_at_stop_tokens_limits_and_the_context() {
    let greedy = SamplingParams {
        temperature: 0.0,
        top_p: 1.0,
        max_tokens: 8,
    };
    let finish = |spec: LaneSpec| {
        let mut lane = Lane::new(tiny_weights(11), spec);
        lane.open(SessionId(0), episode(0), 5);
        reply(&mut lane, 0, step(0), greedy)
    };
    let free = finish(spec());
    assert_eq!((free.finish, free.ids.len()), (FinishReason::Length, 8));
    let stopped = finish(LaneSpec {
        stop_ids: vec![free.ids[0]],
        ..spec()
    });
    assert_eq!(
        (stopped.finish, stopped.ids),
        (FinishReason::Stop, vec![free.ids[0]])
    );
    let context_tokens = step(0).ids.len() + 5;
    let full = finish(LaneSpec {
        context_tokens,
        ..spec()
    });
    assert_eq!(
        (full.finish, full.ids),
        (FinishReason::Context, free.ids[..5].to_vec())
    );
}

#[test]
fn misuse_is_an_error_and_harms_nobody() {
    let mut lane = Lane::new(
        tiny_weights(11),
        LaneSpec {
            context_tokens: 200,
            ..spec()
        },
    );
    lane.open(SessionId(0), episode(0), 5);
    let failure = |result: Result<(), PolicyError>| result.unwrap_err().to_string();
    let unknown = lane.generate(SessionId(8), step(0), SAMPLED);
    assert_eq!(failure(unknown), "session 8 is not open");
    let empty = lane.generate(SessionId(0), Extension::default(), SAMPLED);
    assert!(failure(empty).contains("is empty"));
    let long = Extension {
        ids: vec![9; 200],
        images: vec![],
        replies: Vec::new(),
    };
    let too_long = lane.generate(SessionId(0), long, SAMPLED);
    assert!(failure(too_long).contains("200 tokens exceeds the context of 200"));
    let missing = Extension {
        images: vec![],
        ..step(0)
    };
    assert!(failure(lane.generate(SessionId(0), missing, SAMPLED)).contains("0 images"));
    let foreign = Extension {
        ids: vec![840],
        images: vec![],
        replies: Vec::new(),
    };
    assert!(failure(lane.generate(SessionId(0), foreign, SAMPLED)).contains("840"));
    assert!(failure(lane.score(SessionId(0), vec![6])).contains("must be text"));
    lane.generate(SessionId(0), step(0), SAMPLED).unwrap();
    let busy = lane.generate(SessionId(0), step(1), SAMPLED);
    assert!(failure(busy).contains("under way"));
    assert!(lane.cancel(SessionId(0)));
    assert!(!lane.cancel(SessionId(0)));
    assert!(lane.tick().is_none());
    let more = Extension {
        ids: vec![12],
        images: vec![],
        replies: Vec::new(),
    };
    let mut record = Transcript::default();
    record.prompt(&step(0));
    record.prompt(&more);
    record.reply(&reply(&mut lane, 0, more, SAMPLED));
    record.check(&tiny_weights(11));
    assert!(!lane.close(SessionId(0)));
    assert_eq!(lane.stats().kv_bytes, 0);
}

#[test]
fn a_tick_reports_what_it_ran() {
    let mut lane = Lane::new(tiny_weights(11), spec());
    for id in 0..2 {
        lane.open(SessionId(id), episode(id), id);
        lane.generate(SessionId(id), step(0), SAMPLED).unwrap();
    }
    let tokens = 2 * step(0).ids.len();
    let first = LaneWork {
        images: 1,
        prefilled_tokens: tokens,
        decoded_rows: 0,
    };
    assert_eq!(lane.tick().unwrap().work, first);
    let second = LaneWork {
        decoded_rows: 2,
        ..LaneWork::default()
    };
    assert_eq!(lane.tick().unwrap().work, second);
}

const COST: CostTable = CostTable {
    vision_call_us: 1000,
    vision_image_us: 100,
    prefill_call_us: 500,
    prefill_token_us: 1,
    decode_call_us: 300,
    decode_row_us: 10,
};

fn embedded(weights: &Weights, processor: ProcessorConfig) -> Embedded {
    let config = EngineConfig {
        device: DeviceChoice::Cpu,
        lanes: 2,
        kv_budget_mb: 256,
        max_batch: 16,
        cost: COST,
    };
    let spec = EmbeddedSpec {
        context_tokens: 1400,
        stop_ids: vec![NO_STOP],
        processor,
    };
    Embedded::start(weights, &config, &spec).unwrap()
}

fn session_spec(number: u64, seed: u64) -> SessionSpec {
    let task = r#"{"id": "t", "instruction": "i", "evaluator": {"func": "infeasible"}}"#;
    let task: Arc<Task> = Arc::new(serde_json::from_str(task).unwrap());
    SessionSpec {
        episode: episode(number),
        sample: 0,
        seed,
        task,
        weights: None,
    }
}

/// Ticks until every reply is there; what they were and how long the ticks took.
async fn drive(
    policy: &Embedded,
    sessions: &[SessionId],
) -> (HashMap<SessionId, Result<Generation, String>>, u64) {
    let replies = futures::future::join_all(sessions.iter().map(|id| async move {
        let generation = policy.generate(*id, step(id.0 as u32), SAMPLED).await;
        (*id, generation.map_err(|e| e.to_string()))
    }));
    let ticks = async {
        let mut took_us = 0;
        // The first poll of `replies` has sent every request before the first tick.
        while let Some(took) = policy.tick().await {
            took_us += took.as_micros() as u64;
        }
        took_us
    };
    let (replies, took_us) = futures::join!(replies, ticks);
    (replies.into_iter().collect(), took_us)
}

#[tokio::test]
async fn lanes_answer_as_one_policy_in_virtual_time() {
    let weights = tiny_weights(11);
    let mut runs = Vec::new();
    for _ in 0..2 {
        let policy = embedded(&weights, spec().processor);
        let mut sessions = Vec::new();
        for number in 0..3 {
            sessions.push(policy.open(session_spec(number, number)).await.unwrap());
        }
        let (replies, took_us) = drive(&policy, &sessions).await;
        // The lane of episodes 0 and 2 sets the pace: one prefill, then five decodes.
        let tokens: u64 = [0, 2].iter().map(|seed| step(*seed).ids.len() as u64).sum();
        assert_eq!(took_us, 1000 + 2 * 100 + 500 + tokens + 5 * (300 + 2 * 10));
        let stats = policy.stats();
        assert_eq!((stats.images_encoded, stats.tokens_sampled), (3, 18));
        assert_eq!(stats.tokens_new, stats.tokens_prefilled);
        for id in &sessions {
            policy.close(*id).await;
        }
        assert!(
            policy
                .generate(sessions[0], step(1), SAMPLED)
                .await
                .is_err()
        );
        runs.push(replies);
    }
    assert_eq!(runs[0], runs[1]);
}

#[tokio::test]
async fn closing_fails_who_waits() {
    let policy = embedded(&tiny_weights(11), spec().processor);
    let id = policy.open(session_spec(0, 0)).await.unwrap();
    let generation = policy.generate(id, step(0), SAMPLED);
    let (generation, ()) = futures::join!(generation, policy.close(id));
    assert!(matches!(generation, Err(PolicyError::Cancelled)));
}

#[tokio::test]
async fn a_panic_on_a_lane_is_an_error_for_its_sessions_only() {
    // Patches of one frame do not fit a network of two: torch refuses them in mid-batch.
    let broken = ProcessorConfig {
        temporal_patch_size: 1,
        ..spec().processor
    };
    let policy = embedded(&tiny_weights(11), broken);
    let first = policy.open(session_spec(0, 0)).await.unwrap();
    let (replies, _) = drive(&policy, &[first]).await;
    let error = replies[&first].as_ref().unwrap_err();
    assert!(error.contains("lane-0 panicked"), "{error}");
    let again = policy.open(session_spec(2, 0)).await.unwrap();
    assert!(policy.generate(again, step(0), SAMPLED).await.is_err());
    let text = Extension {
        ids: vec![10, 11, 12],
        images: vec![],
        replies: Vec::new(),
    };
    let other = policy.open(session_spec(1, 0)).await.unwrap();
    let (generation, ()) = futures::join!(policy.generate(other, text, SAMPLED), async {
        while policy.tick().await.is_some() {}
    });
    assert_eq!(generation.unwrap().ids.len(), 6);
}

/// One row's distribution.
fn next_of(logits: &[f32], temperature: f32) -> Distributions {
    Distributions::new(&Tensor::from_slice(logits).unsqueeze(0), &[temperature])
}

fn first_of(next: &Distributions) -> Distribution<'_> {
    next.rows().next().expect("one row")
}

#[test]
fn rows_have_temperatures_of_their_own() {
    let logits = Tensor::from_slice(&[0.0_f32, 1.0, 2.0, 0.0, 1.0, 2.0]).reshape([2, 3]);
    let next = Distributions::new(&logits, &[0.5, 2.0]);
    // (torch.tensor([0., 1., 2.]) / t).log_softmax(0)
    let expected = [
        [-4.142_931_628, -2.142_931_628, -0.142_931_628],
        [-1.680_269_671, -1.180_269_671, -0.680_269_671],
    ];
    for (row, expected) in next.rows().zip(expected) {
        for ((logprob, prob), expected) in row.logprobs.iter().zip(row.probs).zip(expected) {
            assert!((logprob - expected).abs() < 1e-6, "{row:?}");
            assert!((prob - expected.exp()).abs() < 1e-6, "{row:?}");
        }
    }
}

#[test]
fn greedy_takes_the_first_of_the_largest() {
    let params = SamplingParams {
        temperature: 0.0,
        ..SAMPLED
    };
    let next = next_of(&[0.0, 3.0, 3.0, -1.0], 0.0);
    let sampled = Sampler::new(1).sample(first_of(&next), &params);
    assert_eq!(sampled.id, 1);
    // torch.tensor([0., 3., 3., -1.]).log_softmax(0)[1]
    assert!(
        (sampled.logprob - -0.726_631_6).abs() < 1e-6,
        "{}",
        sampled.logprob
    );
}

#[test]
fn draws_follow_the_tempered_distribution() {
    // (torch.tensor([0., 1., 2., float("-inf")]) / 0.7).softmax(0)
    let expected = [0.044_278_3, 0.184_761_4, 0.770_960_3, 0.0];
    let logits = [0.0, 1.0, 2.0, f32::NEG_INFINITY];
    let params = SamplingParams {
        temperature: 0.7,
        ..SAMPLED
    };
    let next = next_of(&logits, params.temperature);
    let mut sampler = Sampler::new(3);
    let mut counts = [0.0; 4];
    for _ in 0..20_000 {
        let sampled = sampler.sample(first_of(&next), &params);
        counts[sampled.id as usize] += 1.0 / 20_000.0;
        let prob = f64::from(sampled.logprob).exp();
        assert!((prob - expected[sampled.id as usize]).abs() < 1e-5);
    }
    for (count, expected) in counts.iter().zip(expected) {
        // Four standard deviations of 20,000 draws.
        assert!((count - expected).abs() < 0.012, "{counts:?}");
    }
}

#[test]
fn the_nucleus_cuts_the_tail_and_keeps_one() {
    let next = next_of(&[2.0, 1.0, 0.0, -1.0], SAMPLED.temperature);
    let drawn = |top_p: f32| {
        let params = SamplingParams { top_p, ..SAMPLED };
        let mut sampler = Sampler::new(3);
        let mut ids: Vec<u32> = (0..500)
            .map(|_| sampler.sample(first_of(&next), &params).id)
            .collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    };
    // Probabilities 0.644, 0.237, 0.087, 0.032.
    assert_eq!(drawn(0.1), [0]);
    assert_eq!(drawn(0.7), [0, 1]);
    assert_eq!(drawn(0.95), [0, 1, 2]);
    assert_eq!(drawn(1.0), [0, 1, 2, 3]);
}
