use super::*;
use crate::cli::args::ColorWhen;
use crate::cli::show::{AT_ONCE, example};

fn from(text: &str, env: &[(&str, &str)], common: &Common) -> Result<Resolved, SettingsError> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.toml");
    std::fs::write(&file, text).unwrap();
    let common = Common { config: Some(file), ..common.clone() };
    let get = |name: &str| env.iter().find(|row| row.0 == name).map(|row| row.1.to_owned());
    resolve(&common, get)
}

fn wrong(text: &str) -> String {
    from(text, &[], &Common::default()).unwrap_err().to_string()
}

#[test]
fn each_source_overrides_the_one_before() {
    let file = "[view]\ninterval = \"2s\"\nascii = true\n[kill]\nconfirm = false\n";
    let env = [("VRAMLENS_INTERVAL", "3s")];
    let flag = Common { interval: Some("4s".into()), ..Common::default() };
    assert_eq!(from(file, &[], &Common::default()).unwrap().settings.interval_ms, 2000);
    assert_eq!(from(file, &env, &Common::default()).unwrap().settings.interval_ms, 3000);
    let all = from(file, &env, &flag).unwrap();
    assert_eq!(all.settings.interval_ms, 4000);
    assert!(all.settings.ascii);
    assert!(!all.settings.kill_confirm);
    assert_eq!(all.origins["view.interval"].1, Origin::Flag);
    assert_eq!(all.origins["kill.confirm"].1.to_string().rsplit(':').next(), Some("5"));
    assert_eq!(all.origins["view.mouse"].1, Origin::Default);
}

/// Three values that a setting may have, besides its default.
fn three(row: &Setting) -> [String; 3] {
    let own = |values: [&str; 3]| values.map(ToOwned::to_owned);
    let usual = match row.kind() {
        Kind::Bool => {
            let default = row.default == "true";
            return [!default, default, !default].map(|on| on.to_string());
        }
        Kind::List => own(["[\"user\"]", "[\"pid\"]", "[\"vram\"]"]),
        Kind::Text => own(["2s", "3s", "4s"]),
    };
    let candidates = [
        usual,
        own(["always", "never", "auto"]),
        own(["block", "braille", "block"]),
        own(["1G", "2G", "3G"]),
        own(["1M", "2M", "4M"]),
        own(["warn", "debug", "error"]),
        own(["1", "2", "4"]),
        own(["91%", "92%", "93%"]),
        own(["a", "b", "c"]),
    ];
    let fits = |values: &&[String; 3]| {
        values.iter().all(|value| (row.apply)(&mut Settings::default(), value).is_ok())
    };
    let found = candidates.iter().find(fits);
    found.unwrap_or_else(|| panic!("the test knows no values for {}", row.key)).clone()
}

#[test]
fn every_setting_can_come_from_everywhere() {
    for row in SETTINGS {
        let [in_file, in_env, in_flag] = three(row);
        let (section, name) = row.key.split_once('.').unwrap();
        let quoted = match row.kind() {
            Kind::Text => format!("\"{in_file}\""),
            _ => in_file.clone(),
        };
        let file = format!("[{section}]\n{name} = {quoted}\n");
        let env = [(row.env, in_env.as_str())];
        let flag = Common { set: vec![format!("{}={in_flag}", row.key)], ..Common::default() };
        let none = Common::default();
        let value = |resolved: Result<Resolved, SettingsError>| {
            let resolved = resolved.unwrap_or_else(|error| panic!("{error}"));
            resolved.origins[row.key].clone()
        };
        assert_eq!(value(from("", &[], &none)).1, Origin::Default, "{}", row.key);
        let (found, origin) = value(from(&file, &[], &none));
        assert!(found == in_file && matches!(origin, Origin::File(_, 2)), "{}: {found}", row.key);
        let environment = Origin::Environment(row.env.to_owned());
        assert_eq!(value(from(&file, &env, &none)), (in_env.clone(), environment));
        assert_eq!(value(from(&file, &env, &flag)), (in_flag.clone(), Origin::Flag));
    }
}

#[test]
fn keys_can_come_from_everywhere() {
    let file = "[keys]\nkill-zombies = [\"f2\"]\n";
    let env = [("VRAMLENS_KEYS_KILL_ZOMBIES", "f3 ctrl-k")];
    let flag = Common { set: vec!["keys.kill-zombies=f4".into()], ..Common::default() };
    let none = Common::default();
    let value = |resolved: Result<Resolved, SettingsError>| {
        let resolved = resolved.unwrap();
        assert_eq!(resolved.settings.keys.len(), usize::from(!resolved.settings.keys.is_empty()));
        resolved.origins["keys.kill-zombies"].0.clone()
    };
    assert_eq!(value(from("", &[], &none)), "[\"z\"]");
    assert_eq!(value(from(file, &[], &none)), "[\"f2\"]");
    assert_eq!(value(from(file, &env, &none)), "[\"f3\", \"ctrl-k\"]");
    assert_eq!(value(from(file, &env, &flag)), "[\"f4\"]");
    assert_eq!(value(from("[keys]\nkill-zombies = []\n", &[], &none)), "[]");
    assert_eq!(value(from("[keys]\nkill-zombies = 'f2'\n", &[], &none)), "[\"f2\"]");
}

#[test]
fn the_flags_of_their_own_name_the_same_settings() {
    let flags = Common {
        color: Some(ColorWhen::Indexed),
        theme: Some("linen".into()),
        gpu: Some("1".into()),
        ascii: true,
        ..Common::default()
    };
    let all = from("[view]\ntheme = 'moss'\n", &[("VRAMLENS_THEME", "ember")], &flags).unwrap();
    let settings = &all.settings;
    assert_eq!((settings.theme.as_str(), settings.color), ("linen", ColorWhen::Indexed));
    assert!(settings.gpus == "1" && settings.ascii);
    let bad = |set: &str| {
        let flags = Common { set: vec![set.into()], ..Common::default() };
        from("", &[], &flags).unwrap_err().to_string()
    };
    assert!(bad("view.interval").contains("write --set view.interval=2s"));
    assert!(bad("view.intervall=2s").contains("did you mean view.interval?"));
    assert!(bad("view.interval=2parsecs").starts_with("command line: view.interval"));
}

#[test]
fn a_mistake_is_named_with_its_place() {
    let text = wrong("[view]\n\nintervall = \"2s\"\n");
    assert!(text.contains("config.toml:3"), "{text}");
    assert!(text.contains("did you mean view.interval?"), "{text}");
    let text = wrong("[view]\nascii = \"perhaps\"\n");
    assert!(text.ends_with("view.ascii is a text, and must be true or false"), "{text}");
    let syntax = from("[view\n", &[], &Common::default()).unwrap_err();
    assert!(matches!(syntax, SettingsError::Syntax { line: 1, .. }), "{syntax:?}");
    let env = from("", &[("VRAMLENS_ASCII", "perhaps")], &Common::default()).unwrap_err();
    let text = env.to_string();
    assert!(text.contains("VRAMLENS_ASCII: view.ascii is \"perhaps\", and must be"), "{text}");
    // Without its table, under another one, or a table that does not exist.
    assert!(wrong("interval = '2s'\n").contains("did you mean view.interval?"));
    assert!(wrong("[kill]\ninterval = '2s'\n").contains("did you mean view.interval?"));
    assert!(wrong("[kys]\n").contains("did you mean keys?"));
    assert!(wrong("[view]\nascii = true\nascii = true\n").contains("config.toml:3: "));
}

#[test]
fn a_value_of_another_type_is_named_with_what_is_allowed() {
    for (text, says) in [
        ("[view]\ninterval = true\n", "view.interval is true or false, and must be a time such as"),
        ("[view]\ninterval = 5\n", "view.interval is \"5\", and must be a time"),
        ("[view]\nmouse = 1\n", "view.mouse is a number, and must be true or false"),
        ("[view]\nmouse = {}\n", "view.mouse is a table"),
        ("[table]\ncolumns = 5\n", "table.columns is a number, and must be a list"),
        ("[table]\ncolumns = ['vramm']\n", "did you mean vram?"),
        ("[alert]\ncommand = [1]\n", "must be a list of words"),
        ("[keys]\nkill = 5\n", "keys.kill is a number, and must be a list"),
        ("[keys]\nkill = [5]\n", "must be a list of keys"),
    ] {
        let found = wrong(text);
        assert!(found.contains("config.toml:2: ") && found.contains(says), "{found}");
    }
    // A number of a GPU needs no quotes.
    assert_eq!(from("[view]\ngpus = 1\n", &[], &Common::default()).unwrap().settings.gpus, "1");
}

#[test]
fn keys_that_cannot_be_are_refused_with_line_and_both_names() {
    let text = wrong("[keys]\n\nsort = ['x']\n");
    assert!(text.contains("config.toml:3: the key x is given to both kill and sort"), "{text}");
    let text = wrong("[keys]\nkil = ['x']\n");
    assert!(text.contains("config.toml:2: ") && text.contains("did you mean keys.kill?"), "{text}");
    let text = wrong("[keys]\nkill = ['spce']\n");
    assert!(text.contains("config.toml:2: ") && text.contains("did you mean space?"), "{text}");
    let text = wrong("[keys]\nquit = []\n");
    assert!(text.contains("config.toml:2: quit needs a key"), "{text}");
    assert!(wrong("[keys]\nsort = ['ctrl-c']\n").contains("ctrl-c always leaves"));
    // Two that change places.
    assert!(from("[keys]\nsort = ['x']\nkill = ['s']\n", &[], &Common::default()).is_ok());
}

#[test]
fn a_usual_file_may_be_missing_and_a_named_one_may_not() {
    let home = |name: &str| (name == "HOME").then(|| "/nonexistent".to_owned());
    assert!(resolve(&Common::default(), home).is_ok());
    let named = Common { config: Some("/nonexistent/x.toml".into()), ..Common::default() };
    assert!(matches!(resolve(&named, home), Err(SettingsError::Unreadable { .. })));
    let endless = Common { config: Some("/dev/zero".into()), ..Common::default() };
    assert!(resolve(&endless, home).unwrap_err().to_string().contains("no configuration"));
    let env = |name: &str| (name == "VRAMLENS_CONFIG").then(|| "/nonexistent/x".to_owned());
    assert!(matches!(resolve(&Common::default(), env), Err(SettingsError::Unreadable { .. })));
    let of = |rows: &'static [(&str, &str)]| {
        folder(&|name: &str| rows.iter().find(|row| row.0 == name).map(|row| row.1.to_owned()))
    };
    assert_eq!(of(&[("HOME", "/h")]), Some("/h/.config/vramlens".into()));
    assert_eq!(of(&[("HOME", "/h"), ("XDG_CONFIG_HOME", "/x")]), Some("/x/vramlens".into()));
    assert_eq!(of(&[("HOME", "/h"), ("XDG_CONFIG_HOME", "x")]), Some("/h/.config/vramlens".into()));
    assert_eq!(of(&[]), None);
}

#[test]
fn the_example_says_the_defaults() {
    let live: String = example()
        .lines()
        .map(|line| line.strip_prefix("# ").filter(|l| l.contains(" = ")).unwrap_or(line))
        .collect::<Vec<_>>()
        .join("\n");
    let read = from(&live, &[], &Common::default()).unwrap();
    let mut defaults = Resolved::defaults().settings;
    let map = |settings: &Settings| KeyMap::with(&settings.keys).unwrap();
    assert_eq!(read.settings.keys.len(), ACTIONS.len(), "every action stands in it");
    let sorted = |map: KeyMap| {
        ACTIONS.iter().map(|row| map.keys(row.action).collect::<Vec<_>>()).collect::<Vec<_>>()
    };
    assert_eq!(sorted(map(&read.settings)), sorted(map(&defaults)));
    defaults.keys.clone_from(&read.settings.keys);
    assert_eq!(read.settings, defaults);
    let committed = concat!(env!("CARGO_MANIFEST_DIR"), "/config.example.toml");
    assert_eq!(std::fs::read_to_string(committed).unwrap(), example());
}

#[test]
fn the_list_of_what_changes_at_once_names_settings() {
    for key in AT_ONCE {
        assert!(SETTINGS.iter().any(|row| row.key == key), "{key}");
    }
}
