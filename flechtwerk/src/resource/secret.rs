//! A setting that is never shown.

use std::fmt;

use serde::{Deserialize, Deserializer};

/// By this name the settings' deserializer knows a secret.
pub(super) const NAME: &str = "flechtwerk::Secret";

/// A setting that never prints: a password, a token. It has neither `Display` nor `Serialize`, and `Debug` hides it.
///
/// ```
/// use flechtwerk::Secret;
///
/// #[derive(Debug, serde::Deserialize)]
/// struct HttpSettings {
///     url: String,
///     token: Secret<String>,
/// }
///
/// let settings = HttpSettings { url: "http://localhost".into(), token: Secret::new("hunter2".into()) };
/// assert_eq!(format!("{settings:?}"), r#"HttpSettings { url: "http://localhost", token: <secret> }"#);
/// assert_eq!(settings.token.expose(), "hunter2");
/// ```
///
/// As a setting of a resource it comes from the environment, or from a file of its own that the settings file or the
/// environment names: `token = { file = "/run/secrets/token" }`. The settings file itself can't hold it, since such files are
/// copied, shown and checked in.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret<T>(T);

impl<T> Secret<T> {
    /// Hides a value.
    pub fn new(value: T) -> Self {
        Secret(value)
    }

    /// The value itself, for the client that needs it.
    pub fn expose(&self) -> &T {
        &self.0
    }
}

impl<T> fmt::Debug for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<secret>")
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Secret<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor<T>(std::marker::PhantomData<T>);

        impl<'de, T: Deserialize<'de>> serde::de::Visitor<'de> for Visitor<T> {
            type Value = T;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a secret")
            }

            fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<T, D::Error> {
                // The error of an inner type may repeat what it was given.
                T::deserialize(deserializer).map_err(|_| {
                    serde::de::Error::custom(format_args!(
                        "the secret is no {} (it is not shown)",
                        std::any::type_name::<T>()
                    ))
                })
            }
        }

        deserializer.deserialize_newtype_struct(NAME, Visitor(std::marker::PhantomData)).map(Secret)
    }
}
