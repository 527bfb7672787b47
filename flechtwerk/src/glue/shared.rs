//! The parameters by `&`: what a stage needs of tables and resources, and where its rounds find them.

use std::any::{Any, TypeId};
use std::marker::PhantomData;
use std::sync::Arc;

use super::{Right, TableInfo};
use crate::out::Out;
use crate::record::Record;
use crate::resource::Res;
use crate::shared::{Shared, SharedPart, SharedParts};
use crate::state::{State, StateValue};
use crate::table::Table;
use crate::timers::Timers;
use crate::topic::Topic;

/// What a parameter by `&` stands for.
#[derive(Clone, Copy, Debug)]
pub enum Share {
    /// `&Res<R>`
    Resource(Need),
    /// `&Table<T>`
    Table(&'static TableInfo),
}

/// A resource that is needed.
#[derive(Clone, Copy, Debug)]
pub struct Need {
    /// The path of the function that makes it.
    pub id: &'static str,
    /// The name of its type, as that function has it.
    pub type_name: &'static str,
}

/// The shares of the parameters from one on.
pub struct ShareList {
    /// Those of the first.
    pub shares: &'static [Share],
    /// Those of the others.
    pub next: Option<&'static ShareList>,
}

/// The shares of all parameters, at most `MOST`.
pub struct AllShares<P, const MOST: usize>(PhantomData<P>);

impl<P: SharedParams, const MOST: usize> AllShares<P, MOST> {
    const ALL: ([Share; MOST], usize) = flatten(&P::SHARES);

    /// The shares, in order.
    pub const LIST: &'static [Share] = Self::ALL.0.split_at(Self::ALL.1).0;
}

const fn flatten<const MOST: usize>(list: &ShareList) -> ([Share; MOST], usize) {
    // An array needs something to begin with.
    let mut all = [Share::Resource(Need { id: "", type_name: "" }); MOST];
    let mut count = 0;
    let mut rest = Some(list);
    while let Some(list) = rest {
        let mut n = 0;
        while n < list.shares.len() {
            all[count] = list.shares[n];
            count += 1;
            n += 1;
        }
        rest = list.next;
    }
    (all, count)
}

/// The shared things that a round may look at: resources, and one version of each table. Cloning it is cheap.
#[derive(Clone, Default)]
pub struct Env {
    /// The inputs' names in the cluster, after any mapping; empty where nothing is mapped.
    pub inputs: Vec<Arc<str>>,
    /// Few: a search is quicker than a hash. Keyed by the type of what is behind the pointer.
    things: Vec<(TypeId, Arc<dyn Any + Send + Sync>)>,
}

impl Env {
    /// The same things for a stage whose inputs have these names.
    pub fn for_inputs(mut self, inputs: Vec<Arc<str>>) -> Self {
        self.inputs = inputs;
        self
    }

    /// Adds a thing, or puts it in the place of an earlier one of its type.
    pub(crate) fn put(&mut self, thing: Arc<dyn Any + Send + Sync>) {
        let id = (*thing).type_id();
        match self.things.iter_mut().find(|(other, _)| *other == id) {
            Some((_, place)) => *place = thing,
            None => self.things.push((id, thing)),
        }
    }

    /// Takes out what was put last.
    #[cfg(feature = "kafka")]
    pub(crate) fn take_last(&mut self) -> Option<Arc<dyn Any + Send + Sync>> {
        self.things.pop().map(|(_, thing)| thing)
    }

    pub(crate) fn find<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        let id = TypeId::of::<T>();
        let (_, thing) = self.things.iter().find(|(other, _)| *other == id)?;
        thing.clone().downcast().ok()
    }
}

/// The parameters by `&`, as nested pairs.
pub trait SharedParams: Sized + Send + Sync + 'static {
    /// What they stand for.
    const SHARES: ShareList;
    /// Takes them out of what is there; `None` if something is missing, which the checks at the start rule out.
    fn open(env: &Env) -> Option<Self>;
}

impl SharedParams for () {
    const SHARES: ShareList = ShareList { shares: &[], next: None };

    fn open(_: &Env) -> Option<Self> {
        Some(())
    }
}

impl<P: SharedParam<Role: SharedRole<P>> + Send + Sync, Rest: SharedParams> SharedParams for (P, Rest) {
    const SHARES: ShareList =
        ShareList { shares: <P::Role as SharedRole<P>>::SHARES, next: Some(&Rest::SHARES) };

    fn open(env: &Env) -> Option<Self> {
        Some((P::Role::open(env)?, Rest::open(env)?))
    }
}

/// Asked of the role of a parameter by `&`; for the errors' sake, as [`FitsByMut`](super::FitsByMut).
pub trait FitsByRef<P> {
    const SHARES: &'static [Share];
}

impl<P, R: SharedRole<P>> FitsByRef<P> for R {
    const SHARES: &'static [Share] = R::SHARES;
}

/// A parameter by `&`, right or wrong; what is known to be wrong has a role of its own, for its own message.
#[diagnostic::on_unimplemented(
    message = "a stage can't be given a `&{Self}`",
    label = "not a parameter of a stage",
    note = "by `&` come `&Table<T>`, `&Res<R>`, and `&` of a type of your own that implements `Shared`; what the function \
            writes to comes by `&mut`"
)]
pub trait SharedParam: Sized + 'static {
    type Role;
}

#[diagnostic::do_not_recommend]
impl<P: Shared> SharedParam for P {
    type Role = Right;
}

#[diagnostic::do_not_recommend]
impl<R: 'static> SharedParam for Res<R> {
    type Role = Single;
}

#[diagnostic::do_not_recommend]
impl<T: 'static> SharedParam for Table<T> {
    type Role = Single;
}

#[diagnostic::do_not_recommend]
impl<S: StateValue> SharedParam for State<S> {
    type Role = ByMut<Self>;
}

#[diagnostic::do_not_recommend]
impl<T: Topic> SharedParam for Out<T> {
    type Role = ByMut<Self>;
}

#[diagnostic::do_not_recommend]
impl SharedParam for Timers {
    type Role = ByMut<Self>;
}

#[diagnostic::do_not_recommend]
impl<T: Topic> SharedParam for Record<T> {
    type Role = AsInput<Self>;
}

/// The role of a table or a resource; whether it can be one is the role's to find out, so that this is what is told.
pub struct Single;
/// The role of a state or an output that is taken by `&`.
pub struct ByMut<P>(PhantomData<P>);
/// The role of an input that is taken by `&`.
pub struct AsInput<P>(PhantomData<P>);
/// The role of a table or a resource that is taken by `&mut`.
pub struct ByRef<P>(PhantomData<P>);

/// Roles that are right.
pub trait SharedRole<P> {
    const SHARES: &'static [Share];
    fn open(env: &Env) -> Option<P>;
}

impl<P: Shared> SharedRole<P> for Right {
    const SHARES: &'static [Share] = P::Parts::SHARES;

    fn open(env: &Env) -> Option<P> {
        P::Parts::open(env).map(P::from_parts)
    }
}

impl<P: SharedPart> SharedRole<P> for Single {
    const SHARES: &'static [Share] = &[P::SHARE];

    fn open(env: &Env) -> Option<P> {
        P::open(env)
    }
}

impl<P: TakenByMut> SharedRole<P> for ByMut<P> {
    const SHARES: &'static [Share] = &[];

    fn open(_: &Env) -> Option<P> {
        None
    }
}

impl<P: super::TakenByValue> SharedRole<P> for AsInput<P> {
    const SHARES: &'static [Share] = &[];

    fn open(_: &Env) -> Option<P> {
        None
    }
}

impl<P: TakenByRef> super::RoleOk for ByRef<P> {}

/// Never implemented: carries a message.
#[diagnostic::on_unimplemented(
    message = "a stage writes to a `{Self}`, so it is taken by `&mut`",
    label = "should be `&mut {Self}`",
    note = "each state key has its own; what all keys share, a `Table<T>` or a `Res<R>`, is taken by `&`"
)]
pub trait TakenByMut {}

/// Never implemented: carries a message.
#[diagnostic::on_unimplemented(
    message = "all records share one `{Self}`, so it is taken by `&`",
    label = "should be `&{Self}`",
    note = "what belongs to one state key, a `State<S>` or an `Out<T>`, is taken by `&mut`"
)]
pub trait TakenByRef {}
