use super::*;
use rstest::rstest;

fn with(flags: Flags, environment: &[(&str, &str)], file: Option<&str>) -> Result<Config, Failure> {
    let environment = environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    build(&flags, environment, &|_| file.map(str::to_owned).ok_or_else(|| std::io::ErrorKind::NotFound.into()))
}

#[test]
fn every_default_is_acceptable() {
    assert!(with(Flags::default(), &[], None).is_ok());
}

#[test]
fn a_flag_wins_over_the_environment_which_wins_over_the_file() {
    let file = "[git]\nmax_push = \"1GiB\"\nlease_ttl = \"9s\"\n[server]\ndatabase = \"postgres://file/x\"\n";
    let environment = [("ABIDE_GIT__LEASE_TTL", "8s"), ("ABIDE_SERVER__DATABASE", "postgres://env/x")];
    let flags = Flags { database: Some("postgres://flag/x".into()), ..Flags::default() };
    let config = with(flags, &environment, Some(file)).unwrap();
    assert_eq!(config.bytes("git.max_push"), 1 << 30);
    assert_eq!(config.duration("git.lease_ttl"), Duration::from_secs(8));
    assert_eq!(config.text("server.database"), "postgres://flag/x");
    assert!(config.is_default("git.binary"));
}

#[rstest]
#[case::unknown_key("[git]\nmax_pusch = 1\n", "unknown setting git.max_pusch")]
#[case::no_section("listen = 1\n", "outside a [section]")]
#[case::bad_duration("[git]\nlease_ttl = \"9\"\n", "a duration must be a number with a unit")]
#[case::zero("[git]\nlease_ttl = \"0s\"\n", "must not be zero")]
#[case::bad_size("[git]\nmax_push = \"many\"\n", "a size must be a number of bytes")]
#[case::bad_address("[server]\nlisten = \"localhost\"\n", "an IP address and a port")]
#[case::bad_url("[server]\npublic_url = \"https://x/\"\n", "no slash at the end")]
#[case::mysql("[server]\ndatabase = \"mysql://x\"\n", "start with postgres://")]
#[case::bad_mode("[signup]\nmode = \"maybe\"\n", "\\\"maybe\\\" is not one of open, closed, invite")]
#[case::bad_sender("[mail]\nfrom = \"nobody\"\n", "it must be a mailbox")]
#[case::bad_mail_server("[mail]\nsmtp_url = \"mail.example.org\"\n", "a URL such as smtps://")]
#[case::long_window("[login]\nwindow = \"2d\"\n", "at most 1d")]
#[case::not_toml("[git\n", "not valid TOML")]
#[case::table("[git.max_push]\nx = 1\n", "a setting must be a string")]
fn bad_files_are_refused_by_name_and_rule(#[case] file: &str, #[case] said: &str) {
    let failure = with(Flags::default(), &[], Some(file)).unwrap_err();
    assert!(format!("{failure:?}").contains(said), "{failure:?}");
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
    let config = with(flags, &environment, None).unwrap();
    let shown = |wanted| config.all().find(|(name, ..)| *name == wanted).map(|(_, value, ..)| value);
    assert_eq!(shown("server.database").as_deref(), Some("postgres://me:***@host:5432/db"));
    assert_eq!(shown("mail.smtp_url").as_deref(), Some("smtps://me:***@mail.example.org"));

    let refused = with(Flags::default(), &[("ABIDE_MAIL__SMTP_URL", "imap://me:secret@host")], None).unwrap_err();
    assert!(!format!("{refused:?}").contains("secret"), "{refused:?}");
}

#[rstest]
#[case("500ms", 500)]
#[case("30s", 30_000)]
#[case("5m", 300_000)]
#[case("12h", 43_200_000)]
#[case("7d", 604_800_000)]
fn durations_are_read_as_people_write_them(#[case] text: &str, #[case] millis: u64) {
    assert_eq!(value::duration(text), Ok(Duration::from_millis(millis)));
}

const SAMPLE: &str = include_str!("../../../../deploy/abide.toml");

#[test]
fn the_sample_configuration_is_read() {
    let config = with(Flags::default(), &[], Some(SAMPLE)).unwrap();
    assert!(config.text("server.public_url").starts_with("https://"));
    assert!(!config.is_default("mail.from"));
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
    let given = with(Flags::default(), &[], Some(&sections_and_left_out.join("\n"))).unwrap();
    let defaults = with(Flags::default(), &[], None).unwrap();
    let named = KEYS.iter().filter(|key| !given.is_default(key.name));
    let settings =
        named.inspect(|key| assert_eq!(given.text(key.name), defaults.text(key.name), "{}", key.name)).count();
    assert_eq!(settings, sections_and_left_out.iter().filter(|line| is_setting(line)).count());
    assert!(settings > 10);
}

#[test]
fn the_service_manager_waits_until_running_work_is_finished() {
    let unit = include_str!("../../../../deploy/abide.service");
    let stop = unit.lines().find_map(|line| line.strip_prefix("TimeoutStopSec=")).unwrap();
    // Connections are finished first, jobs after them.
    let drain = with(Flags::default(), &[], None).unwrap().duration("server.drain");
    assert!(value::duration(stop).unwrap() > drain * 2);
}
