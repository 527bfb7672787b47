//! What a stage's parameters by `&` may be: things that all records share.

use crate::glue::{Env, Share};

/// A parameter that a stage takes by `&`: [`Table<T>`](crate::Table), [`Res<R>`](crate::Res), or a type of your own that is
/// made of them.
///
/// All records see the same one; it is read, not written. A type of your own can put several together, or add methods:
///
/// ```
/// use flechtwerk::prelude::*;
///
/// #[topic("articles", key = Utf8, value = Json<f64>)]
/// pub struct Articles;
/// #[topic("discounts", key = Utf8, value = Json<f64>)]
/// pub struct Discounts;
/// #[topic("orders", key = Utf8, value = Utf8)]
/// pub struct Orders;
/// #[topic("invoices", key = Utf8, value = Json<f64>)]
/// pub struct Invoices;
///
/// pub struct Prices {
///     parts: (Table<Articles>, Table<Discounts>),
/// }
///
/// impl Prices {
///     fn of(&self, article: &str, customer: &str) -> Option<f64> {
///         let (articles, discounts) = &self.parts;
///         Some(articles.get(article)? * (1.0 - discounts.get(customer).unwrap_or(&0.0)))
///     }
/// }
///
/// impl Shared for Prices {
///     type Parts = (Table<Articles>, Table<Discounts>);
///
///     fn from_parts(parts: Self::Parts) -> Self {
///         Prices { parts }
///     }
/// }
///
/// #[transformer(inputs = [Orders])]
/// pub async fn invoice(order: Record<Orders>, prices: &Prices, out: &mut Out<Invoices>) -> flechtwerk::Result {
///     if let Some(price) = prices.of(&order.value, &order.key) {
///         out.send(order.key, price);
///     }
///     Ok(())
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "a stage can't be given a `&{Self}`",
    label = "not a parameter of a stage",
    note = "by `&` come `&Table<T>`, `&Res<R>`, and `&` of a type of your own that implements `Shared`; what the function \
            writes to comes by `&mut`"
)]
pub trait Shared: Sized + Send + Sync + 'static {
    /// What it is made of: a `Table<T>`, a `Res<R>`, or a tuple of two to six of these.
    type Parts: SharedParts;

    /// Makes it. This happens often, before each round of records, so it only puts the parts where they belong.
    fn from_parts(parts: Self::Parts) -> Self;
}

/// What a [`Shared`] can be made of. Not to be implemented elsewhere.
#[diagnostic::on_unimplemented(
    message = "a shared parameter can't be made of `{Self}`",
    label = "not what a shared parameter can be made of",
    note = "a `Shared` is made of a `Table<T>`, a `Res<R>`, or a tuple of two to six of these"
)]
pub trait SharedParts: Sized + Send + Sync + 'static {
    #[doc(hidden)]
    const SHARES: &'static [Share];
    #[doc(hidden)]
    fn open(env: &Env) -> Option<Self>;
}

/// One part: a table or a resource.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "a shared parameter can't be made of `{Self}`",
    label = "not what a shared parameter can be made of",
    note = "a `Shared` is made of a `Table<T>`, a `Res<R>`, or a tuple of two to six of these"
)]
pub trait SharedPart: Sized + Send + Sync + 'static {
    const SHARE: Share;
    fn open(env: &Env) -> Option<Self>;
}

impl<P: SharedPart> SharedParts for P {
    const SHARES: &'static [Share] = &[P::SHARE];

    fn open(env: &Env) -> Option<Self> {
        P::open(env)
    }
}

macro_rules! tuples {
    ($($($part:ident)*;)*) => { $(
        impl<$($part: SharedPart),*> SharedParts for ($($part,)*) {
            const SHARES: &'static [Share] = &[$($part::SHARE),*];

            fn open(env: &Env) -> Option<Self> {
                Some(($($part::open(env)?,)*))
            }
        }
    )* };
}

tuples! {
    A B;
    A B C;
    A B C D;
    A B C D E;
    A B C D E F;
}
