//! A command of an SSH client is one of two verbs on one repository, or is refused.
#![no_main]

use abide_forge::repos::open::Door;
use abide_ssh::Command;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(command) = Command::parse(bytes) else { return };
    let parts = match command.door {
        Door::Slug { owner, name } => vec![owner, name],
        Door::Id(id) => vec![id],
        // Any text, which is looked up and never a path.
        Door::Nostr { .. } => return,
    };
    for part in parts {
        assert!(!part.contains('/') && part != ".." && !part.chars().any(char::is_control), "{part:?}");
    }
});
