//! Resources: what stages share that is not in Kafka, such as the clients of other systems.

mod misfit;
mod mistakes;
#[cfg(feature = "kafka")]
mod pool;
#[cfg(feature = "kafka")]
mod problems;
mod secret;
mod settings;
#[cfg(test)]
mod settings_tests;
mod tree;

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use crate::glue::{Env, Need, Share};
use crate::shared::SharedPart;

pub use misfit::Misfit;
pub(crate) use mistakes::read;
#[cfg(feature = "kafka")]
pub(crate) use pool::{Pool, check, choose};
pub use secret::Secret;
#[cfg(feature = "kafka")]
pub(crate) use tree::Said;
pub(crate) use tree::Tree;

/// What a [`#[resource]`](macro@crate::resource) function makes. The macro implements this; a type that another crate
/// defines is wrapped in one of your own: `pub struct Http(reqwest::Client);`.
#[diagnostic::on_unimplemented(
    message = "no `#[resource]` function makes a `{Self}`",
    label = "not a resource",
    note = "write one beside the type, `#[resource] pub async fn name() -> flechtwerk::Result<{Self}>`, and list it in the \
            pipeline: `resources = [name]`; a type of another crate needs a struct of your own around it"
)]
pub trait Resource: Send + Sync + 'static {
    #[doc(hidden)]
    const NEED: Need;
}

/// A parameter of a stage: a resource, one and the same for all stages and records of the process.
///
/// It is what a `&R` is, and can be cloned where a `&` does not live long enough. A test makes one of anything that
/// stands in for the real one:
///
/// ```
/// use flechtwerk::prelude::*;
///
/// pub struct Greeting(String);
///
/// #[resource]
/// pub async fn greeting() -> flechtwerk::Result<Greeting> {
///     Ok(Greeting("hello".into()))
/// }
///
/// assert_eq!(Res::new(Greeting("hi".into())).0, "hi");
/// ```
pub struct Res<R>(Arc<R>);

impl<R> Res<R> {
    /// Makes one, for a test that calls a stage's function.
    pub fn new(resource: R) -> Self {
        Res(Arc::new(resource))
    }
}

impl<R> Deref for Res<R> {
    type Target = R;

    fn deref(&self) -> &R {
        &self.0
    }
}

impl<R> Clone for Res<R> {
    fn clone(&self) -> Self {
        Res(self.0.clone())
    }
}

/// Shows the type alone: what a resource holds may be secret.
impl<R> fmt::Debug for Res<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Res<{}>", std::any::type_name::<R>())
    }
}

impl<R: Resource> SharedPart for Res<R> {
    const SHARE: Share = Share::Resource(R::NEED);

    fn open(env: &Env) -> Option<Self> {
        env.find().map(Res)
    }
}
