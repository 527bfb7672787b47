//! What is read of the registry, and what does not go together.

use super::*;
use crate::settings::{Given, Settings, read};

fn load(environment: &[(&str, &str)]) -> (Settings, Vec<Problem>) {
    let environment = environment.iter().map(|(name, value)| (name.into(), value.into())).collect();
    let (loaded, problems) = read(&Given { environment, ..Given::default() });
    (loaded.settings, problems)
}

const URL: (&str, &str) = ("FLECHTWERK_SCHEMA_REGISTRY", "http://a:8081, http://b:8081/api");
#[cfg(feature = "schema-registry")]
const USER: (&str, &str) = ("FLECHTWERK_SCHEMA_REGISTRY_USERNAME", "ann");
#[cfg(feature = "schema-registry")]
const PASSWORD: (&str, &str) = ("FLECHTWERK_SCHEMA_REGISTRY_PASSWORD", "hunter2");
#[cfg(feature = "schema-registry")]
const TOKEN: (&str, &str) = ("FLECHTWERK_SCHEMA_REGISTRY_TOKEN", "hunter2");

fn what(environment: &[(&str, &str)]) -> Vec<String> {
    let (_, problems) = load(environment);
    assert!(!format!("{problems:?}").contains("hunter2"));
    problems.into_iter().map(|problem| problem.what).collect()
}

#[cfg(not(feature = "schema-registry"))]
#[test]
fn without_the_feature_it_is_refused() {
    assert_eq!(what(&[URL]), ["this binary was built without a schema registry"]);
}

#[test]
fn without_an_address_there_is_none() {
    assert_eq!(load(&[]).0.schema_registry, SchemaRegistry::None);
}

#[cfg(feature = "schema-registry")]
#[test]
fn addresses_and_credentials_are_read() {
    let (settings, problems) = load(&[URL, USER, PASSWORD, ("FLECHTWERK_REGISTER_SCHEMAS", "true")]);
    assert!(problems.is_empty(), "{problems:?}");
    assert!(settings.register_schemas);
    assert!(!format!("{settings:?}").contains("hunter2"));
    let SchemaRegistry::At(access) = settings.schema_registry else { panic!("no registry") };
    assert_eq!(access.urls, ["http://a:8081", "http://b:8081/api"]);
    assert_eq!((access.username.as_deref(), access.password), (Some("ann"), Some(Secret::new("hunter2"))));
}

#[cfg(feature = "schema-registry")]
#[test]
fn what_does_not_go_together_is_told() {
    assert_eq!(what(&[URL, USER]), ["`schema_registry_password` is not set"]);
    assert_eq!(what(&[URL, PASSWORD]), ["`schema_registry_username` is not set"]);
    assert_eq!(what(&[URL, USER, PASSWORD, TOKEN]), ["a user and a token are set"]);
    assert_eq!(what(&[TOKEN]), ["`schema_registry_token` is set, but `schema_registry` is not"]);
}

#[cfg(feature = "schema-registry")]
#[test]
fn an_address_is_one_and_holds_no_user() {
    let url = |url| [("FLECHTWERK_SCHEMA_REGISTRY", url)];
    for wrong in ["registry:8081", "ftp://registry", "http://", "http:///subjects"] {
        assert_eq!(what(&url(wrong)), ["`schema_registry` holds what is no address"], "{wrong}");
    }
    assert_eq!(what(&url("http://ann:hunter2@registry")), ["an address of `schema_registry` holds a user"]);
    let expected: &[&str] = if cfg!(feature = "tls") { &[] } else { &["this binary was built without TLS"] };
    assert_eq!(what(&url("https://registry")), expected);
}
