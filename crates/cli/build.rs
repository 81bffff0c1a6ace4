//! How the binaries are linked.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // A test starts this many times. A debug build has so many addresses that adjusting them at every start takes longer than
    // all else that happens until `main`; one that is always at the same place needs none of it. Releases stay movable.
    if std::env::var("PROFILE").is_ok_and(|profile| profile == "debug") && cfg!(target_os = "linux") {
        println!("cargo::rustc-link-arg=-no-pie");
    }
}
