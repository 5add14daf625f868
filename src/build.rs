//! Sets the rpath of `arpo-engine` to libtorch, so that it starts without `LD_LIBRARY_PATH`.
//! `arpo` itself must not link libtorch, hence the per-binary flags.

fn main() {
    println!("cargo::rerun-if-changed=src/build.rs");
    println!("cargo::rerun-if-env-changed=LIBTORCH");
    if std::env::var_os("CARGO_FEATURE_TORCH").is_none() {
        return;
    }
    let Some(lib) = libtorch_lib() else { return };
    println!("cargo::rustc-link-arg-bin=arpo-engine=-Wl,-rpath,{lib}");
}

/// Where libtorch's shared objects lie: what `torch-sys` found, else below `LIBTORCH`.
fn libtorch_lib() -> Option<String> {
    if let Ok(found) = std::env::var("DEP_TCH_LIBTORCH_LIB") {
        return Some(found);
    }
    let root = std::path::PathBuf::from(std::env::var_os("LIBTORCH")?);
    let lib = std::fs::canonicalize(root.join("lib")).ok()?;
    Some(lib.display().to_string())
}
