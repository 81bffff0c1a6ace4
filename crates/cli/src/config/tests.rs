use super::*;
use rstest::rstest;
use std::collections::BTreeSet;

fn with(flags: Flags, environment: &[(&str, &str)], file: Option<&str>) -> Result<Config, Failure> {
    let environment = environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    build(&flags, environment, &|_| file.map(str::to_owned).ok_or_else(|| std::io::ErrorKind::NotFound.into()))
}

/// The configuration of a file alone.
#[track_caller]
fn of_file(file: &str) -> Config {
    with(Flags::default(), &[], Some(file)).unwrap_or_else(|failure| panic!("{failure:?}"))
}

/// The message of a file that is refused.
#[track_caller]
fn refusal(file: &str) -> String {
    let flags = Flags { config: Some("F".into()), ..Flags::default() };
    let failure = with(flags, &[], Some(file)).err().expect("the file is refused");
    // The debug form has the hints too, and escapes quotes.
    format!("{failure:?}").replace("\\\"", "\"")
}

/// Samples in a directory: their names and texts.
fn samples(kind: &str) -> Vec<(String, String)> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/config/samples").join(kind);
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| (path.display().to_string(), std::fs::read_to_string(path).unwrap())).collect()
}

#[test]
fn every_default_is_valid_and_means_the_same_when_it_is_written_down() {
    let mut file = String::new();
    let mut section = "";
    for setting in declared() {
        if setting.section() != section {
            section = setting.section();
            file.push_str(&format!("[{section}]\n"));
        }
        let key = setting.name.split_once('.').unwrap().1;
        file.push_str(&format!("{key} = {:?}\n", setting.default));
    }
    let (defaults, written) = (with(Flags::default(), &[], None).ok().unwrap(), of_file(&file));
    let values = |config: &Config| config.all().map(|setting| (setting.name, setting.value)).collect::<Vec<_>>();
    assert_eq!(values(&written), values(&defaults));
    assert!(written.all().all(|setting| *setting.source != Source::Default));
    let typed = |config: &Config| format!("{:?}", config.settings.forge);
    assert_eq!(typed(&written), typed(&defaults));
}

#[test]
fn every_setting_is_declared_once_and_shown() {
    let names: Vec<_> = declared().iter().map(|setting| setting.name).collect();
    let unique: BTreeSet<_> = names.iter().collect();
    assert_eq!(unique.len(), names.len());
    let config = with(Flags::default(), &[], None).ok().unwrap();
    assert_eq!(config.all().map(|setting| setting.name).collect::<Vec<_>>(), names);
    let sections = names.chunk_by(|one, other| one.split('.').next() == other.split('.').next()).count();
    let different: BTreeSet<_> = declared().iter().map(|setting| setting.section()).collect();
    assert_eq!(sections, different.len(), "the settings of a section stand together");
}

#[test]
fn the_common_settings_are_a_short_list() {
    let config = of_file("[jobs]\nworkers = 3\n");
    let common: Vec<_> = config.all().filter(|setting| setting.common).map(|setting| setting.name).collect();
    assert!((38..=45).contains(&common.len()), "{}: {common:?}", common.len());
    assert!(common.contains(&"jobs.workers"), "a setting that is set is shown too");
    assert!(!common.contains(&"relay.outgoing"));
}

#[test]
fn help_is_one_short_text_in_plain_words() {
    for setting in declared() {
        let (name, help) = (setting.name, setting.help());
        assert!(help.split_whitespace().count() <= 25, "{name}: {help}");
        assert!(help.ends_with('.') && help.starts_with(char::is_uppercase), "{name}: {help}");
        assert!(!["What ", "Whoever ", "Those "].iter().any(|word| help.starts_with(word)), "{name}: {help}");
        assert!(!removed::REMOVED.iter().any(|removed| help.contains(removed)), "{name}: {help}");
    }
}

#[test]
fn a_flag_wins_over_the_environment_which_wins_over_the_file() {
    let file = "[git]\nmax_push = \"1GiB\"\nlease_ttl = \"9s\"\n[server]\ndatabase = \"postgres://file/x\"\n";
    let environment = [("ABIDE_GIT__LEASE_TTL", "8s"), ("ABIDE_SERVER__DATABASE", "postgres://env/x")];
    let flags = Flags { database: Some("postgres://flag/x".into()), ..Flags::default() };
    let config = with(flags, &environment, Some(file)).ok().unwrap();
    assert_eq!(config.settings.forge.git.max_push, 1 << 30);
    assert_eq!(config.settings.forge.git.lease_ttl.as_secs(), 8);
    assert_eq!(config.settings.server.database.as_deref(), Some("postgres://flag/x"));
    assert!(config.is_given(DATABASE) && !config.is_given(PUBLIC_URL));
}

#[test]
fn valid_samples_are_read() {
    for (name, text) in samples("valid") {
        let read = with(Flags::default(), &[], Some(&text));
        let config = read.unwrap_or_else(|failure| panic!("{name}: {failure:?}"));
        assert_eq!(config.notices().is_empty(), !name.ends_with("upgraded.toml"), "{name}");
    }
}

#[test]
fn invalid_samples_are_refused_with_the_setting_its_value_and_the_rule() {
    for (name, text) in samples("invalid") {
        let wanted = text.lines().next().and_then(|line| line.strip_prefix("# error: ")).unwrap();
        let said = refusal(&text);
        assert!(said.contains(wanted), "{name}: {said}");
    }
}

#[test]
fn values_are_read_as_the_sample_writes_them() {
    let (_, text) = samples("valid").into_iter().find(|(name, _)| name.ends_with("every_kind.toml")).unwrap();
    let settings = of_file(&text).settings;
    assert_eq!(settings.server.data, Path::new("/srv/abide"));
    assert_eq!(settings.http.trusted_proxies.len(), 2);
    assert_eq!((settings.forge.git.max_push, settings.git.memory), (1024, 500_000_000));
    assert_eq!(settings.forge.git.idle_timeout.as_millis(), 500);
    assert!(settings.forge.git.lease_wait.is_zero() && !settings.forge.grasp.enabled);
    assert_eq!(settings.log.format, LogFormat::Json);
}

#[rstest]
fn a_former_setting_gets_a_notice_and_no_error(#[values(true, false)] in_file: bool) {
    for name in removed::REMOVED {
        assert!(declared().iter().all(|setting| setting.name != *name), "{name} is a setting");
        let (section, key) = name.split_once('.').unwrap();
        let variable = format!("ABIDE_{}__{}", section.to_uppercase(), key.to_uppercase());
        // Its value is not even looked at.
        let config = match in_file {
            true => of_file(&format!("[{section}]\n{key} = {{ x = 1 }}\n")),
            false => with(Flags::default(), &[(&variable, "nonsense")], None).ok().unwrap(),
        };
        let [notice] = config.notices() else { panic!("{name}: {:?}", config.notices()) };
        let source = if in_file { "abide.toml" } else { &variable };
        for part in [name, source, "is fixed in this version; its value is ignored"] {
            assert!(notice.contains(part), "{notice}");
        }
    }
}

#[test]
fn an_unknown_setting_is_refused_with_the_settings_of_its_section() {
    let said = refusal("[log]\nformatt = \"json\"\n");
    assert!(said.contains("unknown setting log.formatt (file F)") && said.contains("log.format, log.filter"), "{said}");
    assert!(refusal("[logs]\nformat = \"json\"\n").contains("abide config --all"));
}

#[test]
fn a_misspelt_variable_is_refused_and_others_are_left_alone() {
    assert!(with(Flags::default(), &[("ABIDE_GIT__LEASE", "8s")], None).is_err());
    assert!(with(Flags::default(), &[("ABIDE_FAILPOINT", "x"), ("ABIDE_TEST_POSTGRES", "x")], None).is_ok());
}

#[test]
fn a_password_in_an_address_is_not_shown() {
    let flags = Flags { database: Some("postgres://me:secret@host:5432/db".into()), ..Flags::default() };
    let environment = [("ABIDE_MAIL__SMTP_URL", "smtps://me:secret@mail.example.org")];
    let config = with(flags, &environment, None).ok().unwrap();
    let shown = |wanted| config.all().find(|setting| setting.name == wanted).map(|setting| setting.value);
    assert_eq!(shown("server.database").as_deref(), Some("postgres://me:***@host:5432/db"));
    assert_eq!(shown("mail.smtp_url").as_deref(), Some("smtps://me:***@mail.example.org"));

    let said = refusal("[mail]\nsmtp_url = \"imap://me:secret@host\"\n");
    assert!(said.contains("imap://me:***@host") && !said.contains("secret"), "{said}");
}

const SAMPLE: &str = include_str!("../../../../deploy/abide.toml");

#[test]
fn the_sample_configuration_is_read() {
    let config = of_file(SAMPLE);
    assert!(config.settings.server.public_url.starts_with("https://"));
    assert_eq!(config.settings.forge.mail.from, "Abide <abide@example.org>");
    assert_eq!(config.notices(), [""; 0]);
}

#[test]
fn what_the_sample_leaves_out_is_the_default() {
    let is_setting = |line: &str| line.contains(" = ");
    let left_out = |line: &str| {
        line.strip_prefix('#').filter(|rest| !rest.starts_with(' ') && is_setting(rest)).map(str::to_owned)
    };
    let sections_and_left_out: Vec<_> = SAMPLE
        .lines()
        .filter_map(|line| if line.starts_with('[') { Some(line.to_owned()) } else { left_out(line) })
        .collect();
    let given = of_file(&sections_and_left_out.join("\n"));
    let named = declared().iter().filter(|setting| given.is_given(setting));
    let settings =
        named.inspect(|setting| assert_eq!(given.given.of(setting), setting.default, "{}", setting.name)).count();
    assert_eq!(settings, sections_and_left_out.iter().filter(|line| is_setting(line)).count());
    assert!(settings > 10);
}

#[test]
fn the_service_manager_waits_until_running_work_is_finished() {
    let unit = include_str!("../../../../deploy/abide.service");
    let stop = unit.lines().find_map(|line| line.strip_prefix("TimeoutStopSec=")).unwrap();
    // Connections are finished first, jobs after them.
    let drain = of_file("").settings.server.drain;
    assert!(abide_core::settings::duration(..)(stop).unwrap() > drain * 2);
}
