//! What `#[resource]` generates: a function that makes a resource, behind an object.

use std::any::Any;
use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;

use serde::de::DeserializeOwned;

use super::{BoxFuture, Env, Need};
use crate::error::BoxError;
use crate::resource::{self, Res, Resource, Tree};
use crate::shared::SharedPart;

pub use crate::resource::Misfit;

/// A resource, as a constant.
#[derive(Clone, Copy, Debug)]
pub struct ResourceInfo {
    /// Names its settings; unique in its pipeline.
    pub name: &'static str,
    /// The path of its function: `my_crate::http`.
    pub id: &'static str,
    /// Other resources that it is made from.
    pub needs: &'static [Need],
    /// Whether it has settings.
    pub settings: bool,
    /// Stands in for one with errors.
    pub stub: bool,
}

/// What a resource is made from.
pub struct Given<'a> {
    pub(crate) settings: &'a Tree,
    /// The resources that exist already.
    pub(crate) env: &'a Env,
}

/// Why there is no resource.
#[derive(Debug)]
pub enum Unmade {
    /// Its settings are not of their type: all that is wrong with them.
    Settings(Vec<Misfit>),
    /// Its function failed.
    Failed(BoxError),
}

/// A resource as its generated code describes it.
pub trait Makes: Sized + 'static {
    /// Its description.
    const INFO: &'static ResourceInfo;
    /// What is made.
    type It;
    /// Whether the settings are of their type.
    fn fits(given: &Given<'_>) -> Result<(), Unmade>;
    /// Calls the function.
    fn making(given: &Given<'_>) -> impl Future<Output = Result<Self::It, Unmade>> + Send;
    /// Ends its use.
    fn closing(resource: &Res<Self::It>) -> impl Future<Output = Result<(), BoxError>> + Send;
}

/// What the runtime knows of a resource.
pub trait AnyResource: Sync {
    /// Its description.
    fn info(&self) -> &'static ResourceInfo;
    /// Whether the settings are of their type.
    fn fits(&self, given: &Given<'_>) -> Result<(), Unmade>;
    /// Makes it.
    fn make<'a>(&'a self, given: &'a Given<'a>) -> BoxFuture<'a, Result<Arc<dyn Any + Send + Sync>, Unmade>>;
    /// Ends its use.
    fn close(&self, env: &Env) -> BoxFuture<'static, Result<(), BoxError>>;
}

/// A [`Makes`] as an object.
pub struct ErasedResource<M>(pub PhantomData<fn() -> M>);

impl<M: Makes<It: Resource>> AnyResource for ErasedResource<M> {
    fn info(&self) -> &'static ResourceInfo {
        M::INFO
    }

    fn fits(&self, given: &Given<'_>) -> Result<(), Unmade> {
        M::fits(given)
    }

    fn make<'a>(&'a self, given: &'a Given<'a>) -> BoxFuture<'a, Result<Arc<dyn Any + Send + Sync>, Unmade>> {
        Box::pin(async move {
            let made: Arc<dyn Any + Send + Sync> = Arc::new(M::making(given).await?);
            Ok(made)
        })
    }

    fn close(&self, env: &Env) -> BoxFuture<'static, Result<(), BoxError>> {
        let resource = Res::<M::It>::open(env);
        Box::pin(async move {
            match resource {
                Some(resource) => M::closing(&resource).await,
                None => Ok(()),
            }
        })
    }
}

/// What `pipeline!` finds under the path of a resource.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a resource",
    label = "no `#[resource]` function of this name",
    note = "`resources = [..]` lists functions with `#[resource]`, by their paths"
)]
pub trait ListableResource {
    const LISTED: ListedResource;
}

/// A resource that stands in a pipeline.
#[derive(Clone, Copy)]
pub struct ListedResource {
    /// What the checks look at.
    pub info: &'static ResourceInfo,
    /// What the pipeline makes.
    pub resource: &'static dyn AnyResource,
}

/// Makes the entry of a resource.
pub const fn listed_resource<M: Makes<It: Resource>>() -> ListedResource {
    ListedResource { info: M::INFO, resource: const { &ErasedResource::<M>(PhantomData) } }
}

/// What stands in for a resource with mistakes.
pub struct StubResource;

impl AnyResource for StubResource {
    fn info(&self) -> &'static ResourceInfo {
        &ResourceInfo { name: "", id: "", needs: &[], settings: false, stub: true }
    }

    fn fits(&self, _: &Given<'_>) -> Result<(), Unmade> {
        unreachable!("a program with mistakes is not compiled")
    }

    fn make<'a>(&'a self, _: &'a Given<'a>) -> BoxFuture<'a, Result<Arc<dyn Any + Send + Sync>, Unmade>> {
        unreachable!("a program with mistakes is not compiled")
    }

    fn close(&self, _: &Env) -> BoxFuture<'static, Result<(), BoxError>> {
        unreachable!("a program with mistakes is not compiled")
    }
}

/// Proof that a type can be settings.
pub const fn settings_type<S: SettingsType>() -> usize {
    0
}

/// Proof that a parameter by `&` is another resource.
pub const fn need_type<P: NeedParam>() -> usize {
    0
}

/// Settings of a resource.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be read from the settings",
    label = "not settings",
    note = "the settings of a resource are a type with `#[derive(Deserialize)]` that owns what it holds"
)]
pub trait SettingsType: Sized + Send {
    fn read(given: &Given<'_>) -> Result<Self, Unmade>;
}

#[diagnostic::do_not_recommend]
impl<S: DeserializeOwned + Send> SettingsType for S {
    fn read(given: &Given<'_>) -> Result<Self, Unmade> {
        resource::read(given.settings).map_err(Unmade::Settings)
    }
}

/// Reads the settings.
pub fn settings<S: SettingsType>(given: &Given<'_>) -> Result<S, Unmade> {
    S::read(given)
}

/// A parameter by `&` of a resource's function.
#[diagnostic::on_unimplemented(
    message = "a resource can't be made from a `&{Self}`",
    label = "not a parameter of a resource",
    note = "a `#[resource]` function takes its settings, by value, and other resources, each as a `&Res<R>`"
)]
pub trait NeedParam: Sized {
    const NEED: Need;
    fn find(env: &Env) -> Option<Self>;
}

impl<R: Resource> NeedParam for Res<R> {
    const NEED: Need = R::NEED;

    fn find(env: &Env) -> Option<Self> {
        Res::open(env)
    }
}

/// Finds another resource.
pub fn need<P: NeedParam>(given: &Given<'_>) -> Result<P, Unmade> {
    P::find(given.env).ok_or_else(|| {
        Unmade::Failed(format!("its `Res<{}>` was not made before it", P::NEED.type_name).into())
    })
}

/// What a resource's function returns.
#[diagnostic::on_unimplemented(
    message = "a resource is made by a function that returns `flechtwerk::Result<R>`, not `{Self}`",
    label = "should be `flechtwerk::Result<R>`",
    note = "`Result<R, E>` will do with every `E` that goes into a `Box<dyn Error + Send + Sync>`"
)]
pub trait Made<R> {
    fn made(self) -> Result<R, Unmade>;
}

#[diagnostic::do_not_recommend]
impl<R, E: Into<BoxError>> Made<R> for Result<R, E> {
    fn made(self) -> Result<R, Unmade> {
        self.map_err(|error| Unmade::Failed(error.into()))
    }
}

/// What a resource's function returned.
pub fn made<R, T: Made<R>>(returned: T) -> Result<R, Unmade> {
    returned.made()
}

/// What a function that closes a resource returned.
pub fn closed<T: super::Outcome>(returned: T) -> Result<(), BoxError> {
    returned.outcome()
}
