//! Desktops of an operator whose umask keeps all files to themselves.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use arpo::env::{Provider, Reporter};

use super::{config, provider_in, told, wanted};

/// Set in the process of that operator: where its desktops are.
const STATE: &str = "ARPO_TEST_UMASK_STATE";

/// Does nothing as a test: it is what the other one starts.
#[tokio::test]
async fn operator() {
    let Some(state) = std::env::var_os(STATE) else {
        return;
    };
    let provider = provider_in(Path::new(&state), config(&["env.xvfb.spare=false"]));
    let mut machine = provider.machine(0, Reporter::silent()).unwrap();
    machine.revert().await.unwrap();
    // What it is made of, as far as it is ours, and what its programs make.
    let script = "find /etc /opt/arpo -not -type l -not -readable; umask; touch x; stat -c %a x";
    assert_eq!(told(machine.as_ref(), script).await, "0022\n644");
    machine.close().await.unwrap();
}

#[test]
fn desktops_are_alike_whatever_the_operators_umask() {
    if !wanted("desktops_are_alike_whatever_the_operators_umask") {
        return;
    }
    // A place of its own, so that what desktops start from is made there, too.
    let state = tempfile::tempdir().unwrap();
    std::fs::set_permissions(state.path(), PermissionsExt::from_mode(0o711)).unwrap();
    let ended = Command::new("/bin/bash")
        .args(["-c", r#"umask 077; exec "$0" "$@""#])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "xvfb::umask::operator", "--nocapture"])
        .env(STATE, state.path().join("desktops"))
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&ended.stdout);
    let complaints = String::from_utf8_lossy(&ended.stderr);
    let is_well = ended.status.success() && told.contains("1 passed");
    assert!(is_well, "{told}{complaints}");
}
