//! Profiles: merging, origins, messages, and that every knob's range is enforced.

use crate::config::source::ValueKind;
use crate::config::{ConfigError, Origin, Resolved};

fn load(sets: &[&str]) -> Result<Resolved, ConfigError> {
    Resolved::load(&[], sets)
}

/// The error of `--set`, whole.
#[track_caller]
fn check_refused(set: &str, expected: &str) {
    let error = load(&[set]).expect_err("this --set must be refused");
    assert_eq!(error.to_string(), expected);
}

#[test]
fn base_is_complete_and_legal() {
    let base = load(&[]).unwrap();
    assert_eq!(base.profile.grpo.group_size, 8);
    assert!(
        base.leaves()
            .iter()
            .all(|leaf| matches!(leaf.origin, Origin::File { .. }))
    );
}

#[test]
fn every_key_of_the_base_is_explained() {
    let base = include_str!("../../profiles/base.toml");
    // The network's sizes are explained by the section's own comment.
    let section_explains = |line: &str| base.find("[pretrain.model]") < base.find(line);
    let mut previous = "";
    for line in base.lines() {
        let is_key = line.contains(" = ") && !line.starts_with('#');
        let explained = previous.starts_with('#') || section_explains(line);
        assert!(!is_key || explained, "no comment above `{line}`");
        previous = line;
    }
}

#[test]
fn later_sources_win_and_are_remembered() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mine.toml");
    std::fs::write(
        &path,
        "[grpo]\ngroup_size = 4\nclip_dual = 5\n\n[env]\ndesktops = 3\n",
    )
    .unwrap();
    let name = path.display().to_string();
    let resolved =
        Resolved::load(&[name.as_str()], &["grpo.group_size=6", "tasks.pool=other"]).unwrap();
    assert_eq!(resolved.profile.grpo.group_size, 6);
    assert_eq!(resolved.profile.grpo.clip_dual, 5.0);
    assert_eq!(resolved.profile.tasks.pool, "other");
    assert_eq!(resolved.profile.env.desktops, 3);
    assert_eq!(resolved.origin("grpo.group_size"), Some(&Origin::Set));
    let written = Origin::File { name, line: 6 };
    assert_eq!(resolved.origin("env.desktops"), Some(&written));
    assert_eq!(resolved.origin("grpo.nothing"), None);
}

#[test]
fn a_saved_profile_reads_back_and_must_be_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("profile.toml");
    let resolved = load(&["optimizer.lr=1e-3", "run.dir='a \"b\"'"]).unwrap();
    std::fs::write(&path, resolved.to_toml()).unwrap();
    let again = Resolved::load_saved(&path, &["run.seed=7"]).unwrap();
    assert_eq!(again.profile.run.seed, 7);
    assert_eq!(again.profile.run.dir, "a \"b\"");
    assert_eq!(again.profile.optimizer, resolved.profile.optimizer);
    assert!(
        again.to_toml().contains("lr = 1e-3 "),
        "numbers are kept as written"
    );

    let holed: String = resolved
        .to_toml()
        .lines()
        .filter(|line| !line.starts_with("clip_low"))
        .fold(String::new(), |text, line| text + line + "\n");
    std::fs::write(&path, holed).unwrap();
    let error = Resolved::load_saved::<&str>(&path, &[]).unwrap_err();
    let expected = format!("{}: key grpo.clip_low is missing", path.display());
    assert_eq!(error.to_string(), expected);
}

#[test]
fn refusals_name_the_place_and_the_remedy() {
    check_refused(
        "grpo.group_sise=4",
        "--set grpo.group_sise=4: unknown key grpo.group_sise; did you mean grpo.group_size?",
    );
    check_refused(
        "grpo.lr=4",
        "--set grpo.lr=4: unknown key grpo.lr; did you mean optimizer.lr or pretrain.lr?",
    );
    check_refused("zzz=4", "--set zzz=4: unknown key zzz");
    check_refused(
        "grpo=4",
        "--set grpo=4: grpo must be a section, not a value",
    );
    check_refused(
        "grpo.group_size",
        "--set grpo.group_size: write it as section.key=value",
    );
    check_refused(
        "grpo.group_size=2.5",
        "--set grpo.group_size=2.5: grpo.group_size must be a whole number, not a number",
    );
    check_refused(
        "replay.enabled=off",
        "--set replay.enabled=off: string values must be quoted, expected literal string",
    );
    check_refused(
        "grpo.group_size=1",
        "--set: grpo.group_size must be 2 to 256: one member has no peers",
    );
    check_refused(
        "env.kind=vmware",
        "--set: env.kind = \"vmware\": unknown variant `vmware`, expected one of `simulated`, \
         `xvfb`, `qemu`, `docker`, `attached`",
    );
}

#[test]
fn all_problems_are_told_at_once() {
    let error = load(&["grpo.group_size=1", "optimizer.lr=0"]).unwrap_err();
    assert_eq!(error.to_string().lines().count(), 2);
}

#[test]
fn no_number_is_unchecked() {
    let base = load(&[]).unwrap();
    for leaf in base.leaves() {
        let bad: &[&str] = match leaf.kind {
            ValueKind::Float => &["nan", "inf", "-1"],
            ValueKind::Integer => &["-1"],
            _ => continue,
        };
        for value in bad {
            let set = format!("{}={value}", leaf.key);
            assert!(load(&[&set]).is_err(), "{set} was accepted");
        }
    }
}

#[test]
fn keys_are_checked_against_each_other() {
    let cases: &[(&[&str], &str)] = &[
        (&["rollout.max_steps=20"], "rollout.max_history_images"),
        (
            &["policy.reply_format=relative_1000"],
            "policy.coordinate_snap",
        ),
        (
            &["sampling.max_reply_tokens=4000"],
            "sampling.max_reply_tokens",
        ),
        (&["grpo.minibatches=129"], "grpo.minibatches"),
        (
            &["replay.enabled=false", "replay.prefill=x"],
            "replay.prefill",
        ),
        (&["tasks.heldout=\"\""], "tasks.heldout"),
        (&["env.kind=xvfb", "env.desktops=300"], "env.desktops"),
        (&["env.kind=qemu", "env.desktops=300"], "env.desktops"),
        (&["env.kind=docker", "env.desktops=65"], "env.desktops"),
        (&["env.docker.lease_h=0.05"], "env.docker.lease_h"),
        (
            &["env.kind=attached", "env.attached.shared_state=true"],
            "env.attached.hosts",
        ),
        (
            &["env.attached.hosts=[\"a\"]", "env.attached.file=b"],
            "env.attached.hosts",
        ),
        (
            &["env.kind=attached", "env.attached.file=b"],
            "env.attached.revert_command",
        ),
        (
            &["env.attached.revert_command=[\"\"]"],
            "env.attached.revert_command",
        ),
        (
            &[
                "env.attached.revert_command=[\"a\"]",
                "env.attached.shared_state=true",
            ],
            "env.attached.shared_state",
        ),
        (&["pretrain.warmup_steps=4000"], "pretrain.warmup_steps"),
        (
            &["pretrain.model.num_key_value_heads=3"],
            "pretrain.model.num_key_value_heads",
        ),
        (
            &["pretrain.model.mrope_section=[4, 6, 5]"],
            "pretrain.model.mrope_section",
        ),
        (
            &["pretrain.model.vision.num_heads=32"],
            "pretrain.model.vision.num_heads",
        ),
        (
            &["pretrain.model.vision.window_size=50"],
            "pretrain.model.vision.window_size",
        ),
        (
            &["pretrain.model.vision.depth=3"],
            "pretrain.model.vision.fullatt_block_indexes",
        ),
        (
            &["pretrain.model.min_pixels=40000"],
            "pretrain.model.min_pixels",
        ),
    ];
    for (sets, key) in cases {
        match load(sets) {
            Err(ConfigError::Invalid { problems }) => {
                let keys: Vec<&str> = problems
                    .iter()
                    .map(|(problem, _)| problem.key.as_str())
                    .collect();
                assert_eq!(keys, [*key], "for {sets:?}");
            }
            other => panic!("{sets:?} gave {other:?}"),
        }
    }
}
