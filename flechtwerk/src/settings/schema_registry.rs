//! Where schemas are kept, and as whom they are asked for.

use std::path::PathBuf;

use super::load::Reader;
use super::{Secret, Source, keys};
use crate::startup::Problem;

/// Where schemas are kept.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum SchemaRegistry {
    /// Nowhere.
    #[default]
    None,
    /// This process numbers them itself: on a development broker, where nothing outlives it.
    #[cfg_attr(not(feature = "dev-broker"), allow(dead_code, reason = "only a development broker needs it"))]
    InProcess,
    At(Access),
}

/// How a registry is reached.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(not(feature = "schema-registry"), allow(dead_code, reason = "only its client reads it"))]
pub(crate) struct Access {
    /// Its addresses: where one does not answer, the next is asked.
    pub(crate) urls: Vec<String>,
    pub(crate) username: Option<String>,
    pub(crate) password: Option<Secret>,
    pub(crate) token: Option<Secret>,
    /// Whom we trust; default: the system's list.
    pub(crate) ca: Option<PathBuf>,
}

#[cfg(feature = "schema-registry")]
impl Access {
    pub(crate) fn credentials(&self) -> crate::registry::Credentials {
        use crate::registry::Credentials;

        let hidden = |secret: &Secret| crate::resource::Secret::new(secret.expose().to_owned());
        match (&self.username, &self.password, &self.token) {
            (_, _, Some(token)) => Credentials::Token(hidden(token)),
            (Some(username), password, None) => Credentials::Basic {
                username: username.clone(),
                password: password
                    .as_ref()
                    .map_or_else(|| crate::resource::Secret::new(String::new()), hidden),
            },
            (None, ..) => Credentials::Nobody,
        }
    }
}

const KEYS: [&str; 6] = [
    "schema_registry_username",
    "schema_registry_password",
    "schema_registry_password_file",
    "schema_registry_token",
    "schema_registry_token_file",
    "schema_registry_ca",
];

impl Reader {
    pub(super) fn schema_registry(&mut self) -> SchemaRegistry {
        let urls = self.find::<Vec<String>>("schema_registry");
        let access = Access {
            username: self.find("schema_registry_username"),
            password: self.secret("schema_registry_password"),
            token: self.secret("schema_registry_token"),
            ca: self.file("schema_registry_ca"),
            urls: urls.clone().unwrap_or_default(),
        };
        let Some(urls) = urls else {
            if let Some(key) = KEYS.into_iter().find(|key| self.source(key) != Source::Default) {
                self.problem(
                    &[key],
                    format!("`{key}` is set, but `schema_registry` is not"),
                    "there is nobody to show it to",
                    "use --schema-registry URL, or remove it".into(),
                );
            }
            return SchemaRegistry::None;
        };
        let before = self.problems.len();
        if !cfg!(feature = "schema-registry") {
            self.problem(
                &["schema_registry"],
                "this binary was built without a schema registry".into(),
                "the feature `schema-registry` of flechtwerk is switched off in it",
                "build it with the feature `schema-registry` of flechtwerk".into(),
            );
        }
        for url in &urls {
            self.address(url);
        }
        let together = "user and password are needed together, and a token alone";
        if access.token.is_some() && (access.username.is_some() || access.password.is_some()) {
            self.problem(
                &KEYS[..5],
                "a user and a token are set".into(),
                together,
                "remove one of them".into(),
            );
        } else if access.username.is_none() && access.password.is_some() {
            let mend = "use --schema-registry-username NAME".into();
            self.problem(&KEYS[..3], "`schema_registry_username` is not set".into(), together, mend);
        } else if access.username.is_some() && access.password.is_none() {
            let mend = format!(
                "use --schema-registry-password-file FILE, or set {}",
                keys::variable("schema_registry_password")
            );
            self.problem(&KEYS[..3], "`schema_registry_password` is not set".into(), together, mend);
        }
        match self.problems.len() == before {
            true => SchemaRegistry::At(access),
            false => SchemaRegistry::None,
        }
    }

    fn address(&mut self, url: &str) {
        let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
        let host = rest.map(|rest| rest.split('/').next().unwrap_or_default());
        // What may hold a password is not shown.
        let (what, why, mend) = match host {
            Some(host) if host.contains('@') => (
                "an address of `schema_registry` holds a user".to_owned(),
                "addresses are shown in messages and logs",
                "use --schema-registry-username NAME with --schema-registry-password-file FILE".to_owned(),
            ),
            Some("") | None => (
                "`schema_registry` holds what is no address".to_owned(),
                "",
                "write http://HOST:8081 or https://HOST, several with commas between".to_owned(),
            ),
            Some(_) if url.starts_with("https://") && !cfg!(feature = "tls") => (
                "this binary was built without TLS".to_owned(),
                "the feature `tls` of flechtwerk is switched off in it, and the address of `schema_registry` is https",
                "build it with the feature `tls` of flechtwerk".to_owned(),
            ),
            Some(_) => return,
        };
        self.problem(&["schema_registry"], what, why, mend);
    }

    fn problem(&mut self, keys: &[&str], what: String, why: &str, mend: String) {
        let place = self.given().of(keys);
        self.problems.push(Problem { what, place, why: why.into(), mend });
    }
}

#[cfg(test)]
mod tests;
