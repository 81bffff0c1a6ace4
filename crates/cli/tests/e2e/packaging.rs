//! Parts of a package beside the binary: completions for shells, and man pages.

use rstest::rstest;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// Output of `abide ARGS`. A wrong setting is present, which would stop every other command: these read no settings.
#[track_caller]
fn abide(args: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_abide"));
    let output = command.args(args).env("ABIDE_LOG__FORMAT", "wrong").output().expect("the binary was just built");
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("the command speaks UTF-8")
}

/// Every command there is, as its help lists them: `["user"]`, `["user", "add"]`, …
fn all_commands(of: &[String]) -> Vec<Vec<String>> {
    let args: Vec<&str> = of.iter().map(String::as_str).chain(["--help"]).collect();
    let help = abide(&args);
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    // Longer explanations go on in lines that are further in.
    let names = listed.filter_map(|line| line.strip_prefix("  ").filter(|line| !line.starts_with(' ')));
    let names = names.filter_map(|line| line.split(' ').next()).filter(|name| *name != "help");
    let inner = names.map(|name| [of, &[name.to_owned()]].concat());
    inner.flat_map(|command| [vec![command.clone()], all_commands(&command)].concat()).collect()
}

#[test]
fn bash_completes_commands_and_flags() {
    let dir = tempfile::tempdir().expect("a temporary directory can be made");
    let script = dir.path().join("abide.bash");
    fs::write(&script, abide(&["completions", "bash"])).expect("ours");
    let checked = Command::new("bash").arg("-n").arg(&script).status().expect("bash is there");
    assert!(checked.success());

    // Bash's own completion when Tab is pressed after these words.
    let complete = |words: &[&str]| {
        const PRESS_TAB: &str = "source \"$1\" && shift && COMP_WORDS=(\"$@\") && COMP_CWORD=$(($# - 1)) &&\n\
            complete -p abide >&2 && { _abide abide \"${!#}\" \"${COMP_WORDS[COMP_CWORD - 1]}\" || true; } &&\n\
            printf '%s\\n' \"${COMPREPLY[@]}\"";
        let mut bash = Command::new("bash");
        bash.args(["--norc", "-c", PRESS_TAB, "bash"]).arg(&script).args(words);
        let output = bash.output().expect("bash is there");
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).expect("names are UTF-8");
        text.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(complete(&["abide", "us"]), ["user"]);
    assert_eq!(complete(&["abide", "user", "inv"]), ["invite"]);
    assert_eq!(complete(&["abide", "serve", "--ssh"]), ["--ssh-listen"]);
    assert_eq!(complete(&["abide", "jobs", "list", "--state", "f"]), ["failed"]);
}

#[rstest]
#[case("zsh", "#compdef abide")]
#[case("fish", "complete -c abide")]
#[case("elvish", "set edit:completion:arg-completer[abide]")]
#[case("powershell", "Register-ArgumentCompleter -Native -CommandName 'abide'")]
fn other_shells_have_completions_too(#[case] shell: &str, #[case] registers: &str) {
    let script = abide(&["completions", shell]);
    for part in [registers, "user", "invite", "ssh-listen"] {
        assert!(script.contains(part), "{part:?} is missing");
    }
}

#[test]
fn every_command_has_a_man_page() {
    let dir = tempfile::tempdir().expect("a temporary directory can be made");
    let out = dir.path().join("made/man1");
    assert_eq!(abide(&["man", "--out", out.to_str().expect("temporary paths are UTF-8")]), "");

    let mut wanted: Vec<_> = all_commands(&[]).iter().map(|words| format!("abide-{}.1", words.join("-"))).collect();
    assert!(wanted.contains(&"abide-user-add.1".to_owned()), "{wanted:?}");
    wanted.push("abide.1".to_owned());
    wanted.sort_unstable();
    let mut written: Vec<_> = fs::read_dir(&out)
        .expect("the command made it")
        .map(|entry| entry.expect("ours").file_name().into_string().expect("names are UTF-8"))
        .collect();
    written.sort_unstable();
    assert_eq!(written, wanted);
    for name in &written {
        assert_readable(&out.join(name), name.trim_end_matches(".1"));
    }

    let main = fs::read_to_string(out.join("abide.1")).expect("it was just written");
    assert_eq!(abide(&["man"]), main, "the main page is the same on standard output");
    for part in ["abide\\-doctor(1)", "Exit codes"] {
        assert!(main.contains(part), "{part:?} is missing: {main}");
    }
}

/// A page is titled with its command, and formatted without a complaint where there is something that formats.
fn assert_readable(page: &Path, command: &str) {
    let text = fs::read_to_string(page).expect("it was just written");
    let title = format!(".TH {command} 1");
    assert!(text.lines().any(|line| line.starts_with(&title)), "{title:?} is missing: {text}");

    let mut groff = Command::new("groff");
    groff.args(["-man", "-Tutf8", "-ww", "-z"]).arg(page).stdout(Stdio::null());
    if let Ok(formatted) = groff.output() {
        assert!(formatted.status.success(), "{command}");
        assert_eq!(String::from_utf8_lossy(&formatted.stderr), "", "{command}");
    }
}
