//! `tenon.toml` of a repository sets nothing beyond its scope, and each problem has a position in the text.

use camino::Utf8Path;

use crate::config::key::{self, DefaultValue, MergeRule, SettingScope};
use crate::config::{
    ConfigError, ConfigLocation, ConfigSources, Environment, FileKind, SettingOrigin, Settings, SourceText,
};

/// `data` is the text of a configuration file.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let source = SourceText::new("/w/tenon.toml", text);
    for trusted in [false, true] {
        match resolve(None, Some(&source), trusted) {
            Ok(settings) => check_settings(&settings, trusted),
            Err(error) => check_problems(&error, text),
        }
    }
    match resolve(Some(&source), None, false) {
        Ok(settings) => {
            settings.typed();
            assert!(settings.ignored().is_empty(), "the user may set everything");
        }
        Err(error) => check_problems(&error, text),
    }
}

fn resolve(
    user: Option<&SourceText>,
    workspace: Option<&SourceText>,
    trusted: bool,
) -> Result<Settings, ConfigError> {
    Settings::resolve(&ConfigSources {
        root: Utf8Path::new("/w"),
        home: Some(Utf8Path::new("/h")),
        user,
        workspace,
        environment: &Environment::default(),
        flags: &[],
        trusted,
    })
}

fn check_settings(settings: &Settings, trusted: bool) {
    settings.typed();
    let is_repository =
        |origin: &SettingOrigin| matches!(origin, SettingOrigin::File { kind: FileKind::Workspace, .. });
    for (path, setting) in settings.iter().filter(|(_, setting)| setting.origins.iter().any(is_repository)) {
        let key = key::find(path).expect("a setting in force has a key");
        let allowed = match key.scope {
            SettingScope::Anyone => true,
            SettingScope::Trusted => trusted,
            SettingScope::User => false,
        };
        assert!(allowed, "{path} was set by a repository");
        if let (MergeRule::Strictest, DefaultValue::Number(limit)) = (key.merge, key.default) {
            assert!(setting.value.as_u64().is_some_and(|value| value <= limit), "{path} was raised");
        }
    }
}

fn check_problems(error: &ConfigError, text: &str) {
    let ConfigError::Invalid(problems) = error else { panic!("a text can only be invalid: {error}") };
    assert!(!problems.is_empty());
    for problem in problems {
        let ConfigLocation::Text { span, .. } = &problem.location else { panic!("{problem}") };
        assert!(text.get(span.clone()).is_some(), "{problem}: {span:?}");
        assert!(!problem.message.is_empty());
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_input_of_the_corpus_passes() {
        tenon_testkit::corpus::for_each("settings", super::check);
    }
}
