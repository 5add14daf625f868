//! Evaluations of the recorded run: two that compare, one under other conditions that still runs.

use arpo::event::score::score_trials;
use arpo::event::{EvalManifest, EvalReport, EvalRequest, EvalWhen, EventKind, F, TrialRow};
use arpo::types::{EpisodeEnd, EpisodeId, PolicyVersion, Protocol, TaskId};

/// Tasks of each domain of the set.
const DOMAINS: [(&str, u32); 4] = [("writer", 12), ("settings", 10), ("files", 8), ("form", 6)];

fn manifest(policy: u64, temperature: f64) -> EvalManifest {
    EvalManifest {
        prompt: "5b1e".to_owned(),
        template: "a09c".to_owned(),
        history_images: 3,
        context_tokens: 4096,
        temperature: F(temperature),
        top_p: F(1.0),
        max_reply_tokens: 128,
        max_steps: 15,
        tasks: "heldout".to_owned(),
        tasks_hash: "77d2".to_owned(),
        num_tasks: 36,
        trials: 1,
        seed: 1,
        weights: format!("{policy:04x}"),
        policy: PolicyVersion(policy),
        environment: "simulated".to_owned(),
        environment_hash: "c3c3".to_owned(),
        version: "0.1.0".to_owned(),
    }
}

fn request(temperature: f64, when: EvalWhen) -> EvalRequest {
    EvalRequest {
        tasks: "heldout".to_owned(),
        temperature,
        seed: 1,
        protocol: Protocol::Hard,
        when,
        ..EvalRequest::default()
    }
}

/// The `place`-th trial; the higher `skill`, the more of them succeed.
fn trial(domain: &str, place: u32, skill: u32) -> TrialRow {
    let chance = (place * 7 + domain.len() as u32 * 3) % 12;
    let infeasible = place % 6 == 5;
    let end = match chance {
        0 => EpisodeEnd::StepLimit,
        1 => EpisodeEnd::DeclaredInfeasible,
        _ if infeasible && chance < skill => EpisodeEnd::DeclaredInfeasible,
        _ if infeasible => EpisodeEnd::StepLimit,
        _ => EpisodeEnd::Finished,
    };
    TrialRow {
        task: TaskId(format!("{domain}/{place:02}")),
        domain: domain.to_owned(),
        trial: 0,
        episode: EpisodeId {
            incarnation: 0,
            number: u64::from(9000 + place),
        },
        end: Some(end),
        state_score: if chance < skill { 1.0 } else { 0.0 },
        infeasible,
        steps: 4 + chance,
        error: None,
    }
}

/// Events of evaluation `number`: of all its trials, or of as many as it has so far.
pub(super) fn evaluation(
    number: u32,
    policy: u64,
    temperature: f64,
    skill: u32,
    so_far: Option<usize>,
) -> Vec<EventKind> {
    let trials: Vec<TrialRow> = DOMAINS
        .iter()
        .flat_map(|(domain, count)| (0..*count).map(|place| trial(domain, place, skill)))
        .collect();
    let manifest = manifest(policy, temperature);
    let mut kinds = vec![EventKind::EvaluationStarted {
        evaluation: number,
        name: "operator".to_owned(),
        request: request(temperature, EvalWhen::Now { desktops: 4 }),
        manifest: Box::new(manifest.clone()),
        total: trials.len() as u32,
    }];
    let told = so_far.unwrap_or(trials.len());
    kinds.extend(
        trials
            .iter()
            .take(told)
            .map(|trial| EventKind::TrialFinished {
                evaluation: number,
                trial: trial.clone(),
            }),
    );
    if so_far.is_none() {
        kinds.push(EventKind::EvalFinished(Box::new(EvalReport {
            name: "operator".to_owned(),
            tasks: "heldout".to_owned(),
            policy: PolicyVersion(policy),
            temperature: F(temperature),
            standard: score_trials(&trials, Protocol::Standard),
            hard: score_trials(&trials, Protocol::Hard),
            plain: score_trials(&trials, Protocol::Plain),
            errors: 0,
            wall_ms: 21_000,
            evaluation: Some(number),
            manifest: Some(Box::new(manifest)),
        })));
    }
    kinds
}
