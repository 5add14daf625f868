//! Checkpoints of a training run: weights and optimizer, replay buffer, progress.

use std::time::Instant;

use crate::event::{EventKind, NoticeLevel, Phase};
use crate::session::SessionError;
use crate::session::progress::Progress;
use crate::session::train::TrainSession;
use crate::store::{Checkpoint, Manifest, StoreError};
use crate::types::Iteration;

const REPLAY: &str = "replay.json";
const PROGRESS: &str = "progress.json";
/// Room asked for before writing: weights, two moments and a full replay buffer of the small agent.
const EXPECTED_BYTES: u64 = 64 << 20;

impl TrainSession {
    /// Writes a checkpoint, unless the newest one is of this very iteration.
    pub(super) async fn checkpoint(&mut self) -> Result<(), SessionError> {
        let done = self.progress.iterations_done;
        if self.last_checkpoint == Some(done) {
            self.collector.control.checkpoint_written();
            return Ok(());
        }
        let started = Instant::now();
        self.collector.begin_phase(Phase::Checkpoint, 1);
        self.progress.next_episode = self.collector.next_episode;
        self.progress.clock_ms = self.collector.clock_ms;
        self.progress.settings = self.collector.control.settings();
        let draft = self.run.begin_checkpoint(done, EXPECTED_BYTES)?;
        self.last_weights = self.learner.save(draft.path()).await?;
        draft.write(REPLAY, &to_json(&*self.replay()))?;
        draft.write(PROGRESS, &to_json(&self.progress))?;
        // The pictures that replay needs must be on disk before the checkpoint that pins them.
        let next_seq = self.collector.recorder.flush().await?;
        let checkpoint = draft.publish(Manifest {
            iterations_done: done,
            policy: self.collector.policy.version(),
            next_seq,
            next_episode: self.progress.next_episode,
            weights: self.last_weights.clone(),
            pinned: self
                .replay()
                .iter()
                .map(|stored| stored.episode.id)
                .collect(),
            ..Manifest::default()
        })?;
        self.last_checkpoint = Some(done);
        self.tell_of(&checkpoint);
        self.run
            .retain_checkpoints(self.collector.profile.run.keep_checkpoints)?;
        self.collector.end_phase(Phase::Checkpoint, started);
        self.collector.control.checkpoint_written();
        Ok(())
    }

    fn tell_of(&self, checkpoint: &Checkpoint) {
        let path = checkpoint
            .path
            .strip_prefix(self.run.root())
            .unwrap_or(&checkpoint.path);
        self.collector.recorder.emit(EventKind::CheckpointSaved {
            iterations_done: checkpoint.manifest.iterations_done,
            path: path.display().to_string(),
            weights: checkpoint.manifest.weights.clone(),
        });
    }

    /// Goes back to what a checkpoint holds; what was done after it is done anew.
    pub async fn resume(&mut self, checkpoint: &Checkpoint) -> Result<(), SessionError> {
        let replay = from_json(checkpoint, REPLAY)?;
        *self.replay() = replay;
        self.progress = from_json::<Progress>(checkpoint, PROGRESS)?;
        self.learner.load(&checkpoint.path).await?;
        self.last_weights.clone_from(&checkpoint.manifest.weights);
        self.last_checkpoint = Some(self.progress.iterations_done);
        self.collector.next_episode = self.progress.next_episode;
        self.collector.clock_ms = self.progress.clock_ms;
        self.collector.iteration = Iteration(self.progress.iterations_done);
        self.collector.control.restore(self.progress.settings);
        let text = format!("resumed after {} iterations", self.progress.iterations_done);
        self.collector.notice(NoticeLevel::Info, text);
        Ok(())
    }
}

fn to_json<T: serde::Serialize>(value: &T) -> Vec<u8> {
    serde_json::to_vec(value).expect("plain data has a JSON form")
}

fn from_json<T: serde::de::DeserializeOwned>(
    checkpoint: &Checkpoint,
    name: &str,
) -> Result<T, SessionError> {
    let path = checkpoint.file(name);
    let bytes = std::fs::read(&path).map_err(StoreError::io("read", &path))?;
    serde_json::from_slice(&bytes)
        .map_err(|error| StoreError::damaged(&path, error.to_string()).into())
}
