//! The form an evaluation is asked for with: fields, their checks, what it will cost. Pure.

use crossterm::event::KeyCode;

use crate::event::{Command, EvalRequest, EvalWeights, EvalWhen, RunState};
use crate::tui::keys::Key;
use crate::tui::prompt::edit;
use crate::types::Protocol;

/// A field of the form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// The weights: nothing is those in use.
    Weights,
    /// The headline.
    Protocol,
    /// The task set.
    Tasks,
    /// Episodes a task.
    Trials,
    /// Sampling temperature.
    Temperature,
    /// The seed.
    Seed,
    /// When.
    When,
    /// Desktops leased, where it runs now.
    Desktops,
}

/// All fields, in their order.
pub const FIELDS: [Field; 8] = [
    Field::Weights,
    Field::Protocol,
    Field::Tasks,
    Field::Trials,
    Field::Temperature,
    Field::Seed,
    Field::When,
    Field::Desktops,
];

impl Field {
    /// Its label.
    pub fn label(self) -> &'static str {
        match self {
            Field::Weights => "weights",
            Field::Protocol => "protocol",
            Field::Tasks => "tasks",
            Field::Trials => "trials a task",
            Field::Temperature => "temperature",
            Field::Seed => "seed",
            Field::When => "when",
            Field::Desktops => "desktops",
        }
    }
}

/// What is filled in.
#[derive(Clone, Debug, PartialEq)]
pub struct LaunchForm {
    /// The field in focus.
    pub at: usize,
    /// A checkpoint's folder or name; empty for the weights in use.
    pub weights: String,
    /// The headline.
    pub protocol: Protocol,
    /// The task set.
    pub tasks: String,
    /// Episodes a task, as typed.
    pub trials: String,
    /// Temperature, as typed.
    pub temperature: String,
    /// Seed, as typed.
    pub seed: String,
    /// Whether it begins now on leased desktops.
    pub is_now: bool,
    /// Desktops leased, as typed.
    pub desktops: String,
    /// Why it could not be launched.
    pub error: Option<String>,
}

/// What a key did to the form.
#[derive(Clone, Debug, PartialEq)]
pub enum LaunchReply {
    /// It goes on.
    Open(LaunchForm),
    /// It was given up.
    Closed,
    /// This is asked for.
    Launch(Command),
}

impl LaunchForm {
    /// A form filled in for a run: like its last evaluation, on a quarter of the desktops.
    pub fn new(run: &RunState, tasks: &str) -> Self {
        let mut asked = run.evaluations.iter().rev();
        let last = asked
            .find_map(|one| one.request.clone())
            .unwrap_or_default();
        let mut known = run.evaluations.iter().rev();
        let known = known.find_map(|one| one.manifest.as_ref().map(|it| it.tasks.clone()));
        let seed = run.header.as_ref().map_or(0, |header| header.seed);
        let set = if tasks.is_empty() {
            known.unwrap_or(last.tasks)
        } else {
            tasks.to_owned()
        };
        Self {
            at: 0,
            weights: String::new(),
            protocol: last.protocol,
            tasks: set,
            trials: last.trials.to_string(),
            temperature: last.temperature.to_string(),
            seed: seed.to_string(),
            is_now: true,
            desktops: (run.settings.desktops / 4).max(1).to_string(),
            error: None,
        }
    }

    /// The field in focus.
    pub fn field(&self) -> Field {
        FIELDS[self.at.min(FIELDS.len() - 1)]
    }

    /// A field as it is shown.
    pub fn shown(&self, field: Field) -> String {
        match field {
            Field::Weights if self.weights.is_empty() => "those in use".to_owned(),
            Field::Weights => self.weights.clone(),
            Field::Protocol => self.protocol.name().to_owned(),
            Field::Tasks => self.tasks.clone(),
            Field::Trials => self.trials.clone(),
            Field::Temperature => self.temperature.clone(),
            Field::Seed => self.seed.clone(),
            Field::When if self.is_now => "now, on leased desktops".to_owned(),
            Field::When => "at the next safe point".to_owned(),
            Field::Desktops if self.is_now => self.desktops.clone(),
            Field::Desktops => "all of them".to_owned(),
        }
    }

    /// Takes a key in; `run` is what the request is checked against.
    pub fn press(mut self, key: Key, run: &RunState) -> LaunchReply {
        let last = FIELDS.len() - 1;
        match key.code {
            KeyCode::Esc => return LaunchReply::Closed,
            KeyCode::Char('c') if key.ctrl => return LaunchReply::Closed,
            KeyCode::Enter => match self.request(run) {
                Ok(request) => return LaunchReply::Launch(Command::Evaluate(request)),
                Err(error) => self.error = Some(error),
            },
            KeyCode::Up | KeyCode::BackTab => self.at = self.at.checked_sub(1).unwrap_or(last),
            KeyCode::Down | KeyCode::Tab => self.at = (self.at + 1) % FIELDS.len(),
            _ => {
                self.error = None;
                self.change(key);
            }
        }
        LaunchReply::Open(self)
    }

    fn change(&mut self, key: Key) {
        let turns = matches!(
            key.code,
            KeyCode::Left | KeyCode::Right | KeyCode::Char(' ')
        );
        match self.field() {
            Field::Protocol if turns => {
                let place = Protocol::ALL.iter().position(|one| *one == self.protocol);
                let by = if key.code == KeyCode::Left { 2 } else { 1 };
                self.protocol = Protocol::ALL[(place.unwrap_or(0) + by) % 3];
            }
            Field::When if turns => self.is_now = !self.is_now,
            Field::Weights => edit(&mut self.weights, key),
            Field::Tasks => edit(&mut self.tasks, key),
            Field::Trials => edit(&mut self.trials, key),
            Field::Temperature => edit(&mut self.temperature, key),
            Field::Seed => edit(&mut self.seed, key),
            Field::Desktops if self.is_now => edit(&mut self.desktops, key),
            Field::Protocol | Field::When | Field::Desktops => {}
        }
    }

    /// What is asked for, or what is wrong with it.
    pub fn request(&self, run: &RunState) -> Result<EvalRequest, String> {
        let number = |field: Field, text: &str| {
            let parsed = text.trim().parse::<u32>();
            parsed.map_err(|_| format!("{}: write a whole number, not {text:?}", field.label()))
        };
        let when = if self.is_now {
            let desktops = number(Field::Desktops, &self.desktops)?;
            let all = run.settings.desktops;
            if all > 0 && desktops >= all {
                return Err(format!(
                    "desktops: the run has {all}; lease fewer, or wait for a safe point"
                ));
            }
            EvalWhen::Now { desktops }
        } else {
            EvalWhen::SafePoint
        };
        let weights = match self.weights.trim() {
            "" => EvalWeights::Current,
            path => EvalWeights::Checkpoint {
                path: path.to_owned(),
            },
        };
        let temperature = self.temperature.trim().parse();
        let seed = self.seed.trim().parse();
        let request = EvalRequest {
            weights,
            tasks: self.tasks.trim().to_owned(),
            trials: number(Field::Trials, &self.trials)?,
            temperature: temperature
                .map_err(|_| format!("temperature: write a number, not {:?}", self.temperature))?,
            seed: seed.map_err(|_| format!("seed: write a whole number, not {:?}", self.seed))?,
            protocol: self.protocol,
            when,
            resume: None,
        };
        request.check()?;
        Ok(request)
    }

    /// What it takes and what it holds up, in one sentence.
    pub fn cost(&self, run: &RunState) -> String {
        let all = run.settings.desktops;
        let leased = self.desktops.trim().parse().unwrap_or(0);
        let used = if self.is_now { leased } else { all };
        let length = match self.estimate_ms(run, used) {
            Some(ms) => format!("about {}", crate::tui::figures::duration(ms)),
            None => "for how long is not known: this set was not evaluated here yet".to_owned(),
        };
        if self.is_now {
            let left = all.saturating_sub(leased);
            format!("takes {leased} of {all} desktops {length}; training goes on with {left}")
        } else {
            format!("takes all {all} desktops {length}; training waits for it")
        }
    }

    /// How long it will take on so many desktops, from the lengths of episodes known.
    fn estimate_ms(&self, run: &RunState, desktops: u32) -> Option<u64> {
        let mut known = run.evaluations.iter().rev();
        let tasks = known.find_map(|one| {
            let manifest = one.manifest.as_ref()?;
            (manifest.tasks == self.tasks.trim()).then_some(manifest.num_tasks)
        })?;
        let trials: u64 = self.trials.trim().parse().ok()?;
        let ended = run.episodes.values();
        let lengths: Vec<u64> = ended
            .filter_map(|one| Some(one.ended_ms?.saturating_sub(one.started_ms)))
            .collect();
        let mean = lengths.iter().sum::<u64>() / (lengths.len() as u64).max(1);
        if mean == 0 || desktops == 0 {
            return None;
        }
        let rounds = (u64::from(tasks) * trials).div_ceil(u64::from(desktops));
        Some(rounds * mean)
    }
}

/// What a protocol counts, in one sentence.
pub fn rule(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Standard => "an episode at its step limit counts as having declared FAIL",
        Protocol::Hard => "an episode at its step limit scores 0, whatever the screen shows",
        Protocol::Plain => "an episode at its step limit is scored by what the screen shows",
    }
}

#[cfg(test)]
mod tests {
    use super::{Field, LaunchForm, LaunchReply};
    use crate::event::{Command, EvalManifest, EvalWhen, EvaluationState, RunState};
    use crate::types::Protocol;

    fn run() -> RunState {
        let mut run = RunState::default();
        run.settings.desktops = 16;
        run.evaluations.push_back(EvaluationState {
            manifest: Some(EvalManifest {
                tasks: "heldout".to_owned(),
                num_tasks: 20,
                ..EvalManifest::default()
            }),
            ..EvaluationState::default()
        });
        run
    }

    fn press(keys: &str) -> LaunchReply {
        let run = run();
        let mut form = LaunchForm::new(&run, "");
        for name in keys.split_whitespace() {
            match form.press(name.parse().unwrap(), &run) {
                LaunchReply::Open(next) => form = next,
                done => return done,
            }
        }
        LaunchReply::Open(form)
    }

    #[test]
    fn a_form_is_filled_in_and_launched_with_few_keys() {
        let LaunchReply::Launch(Command::Evaluate(request)) = press("down space enter") else {
            panic!("not launched");
        };
        assert_eq!(request.protocol, Protocol::Hard);
        assert_eq!(request.tasks, "heldout");
        assert_eq!(request.when, EvalWhen::Now { desktops: 4 });
        let reply = press("down down down down down down space enter");
        let LaunchReply::Launch(Command::Evaluate(request)) = reply else {
            panic!("not launched");
        };
        assert_eq!(request.when, EvalWhen::SafePoint);
        assert_eq!(press("esc"), LaunchReply::Closed);
    }

    #[test]
    fn what_is_wrong_is_said_by_field() {
        for (keys, expected) in [
            ("up backspace 6 4 enter", "desktops: the run has 16"),
            ("up backspace enter", "desktops: write a whole number"),
            ("tab tab tab x enter", "trials a task: write a whole number"),
            ("tab tab tab tab 9 enter", "temperature lies between"),
            ("tab tab tab tab tab x enter", "seed: write a whole number"),
        ] {
            let LaunchReply::Open(form) = press(keys) else {
                panic!("{keys} launched");
            };
            let error = form.error.unwrap_or_default();
            assert!(error.contains(expected), "{keys}: {error}");
        }
    }

    #[test]
    fn costs_name_what_is_lost() {
        let LaunchReply::Open(form) = press("down") else {
            panic!("closed");
        };
        assert_eq!(form.field(), Field::Protocol);
        let cost = form.cost(&run());
        assert!(
            cost.starts_with("takes 4 of 16 desktops") && cost.ends_with("goes on with 12"),
            "{cost}"
        );
    }
}
