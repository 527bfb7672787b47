//! `on_timer = path` of a stage: the function that is called for its timers, with the parameters of the stage's own, but for
//! the timer in the place of the record.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};

use super::transformer::arguments;
use crate::model::Stage;
use crate::spans::{call_shown_as, ends, shown_at, written};

/// The check that there is something to set timers with.
pub(super) fn taken(stage: &Stage, glue: &TokenStream) -> Option<TokenStream> {
    let path = stage.on_timer.as_ref()?;
    let text = written(path);
    Some(call_shown_as(path, quote!(#glue::timers_taken), quote!(), quote!((#text, &slots))))
}

/// The call of the function. What does not fit, in its parameters or in what it returns, is reported at its path.
pub(super) fn on_timer(stage: &Stage, glue: &TokenStream) -> Option<TokenStream> {
    let path = stage.on_timer.as_ref()?;
    let (first, last) = ends(path);
    // State keys that the stage does not compute are written as the keys of its inputs.
    let codec = match &stage.key {
        Some(_) => quote!(_),
        None => quote!(<<Self::Topics as #glue::Pair>::First as #glue::Topic>::KeyCodec),
    };
    let arguments = arguments(stage);
    let arguments = shown_at(quote!(#(, #arguments)*), last);
    let parameters = quote_spanned!(last=> (timer #arguments));
    let called = quote_spanned!(last=> .await);
    let returned = shown_at(quote!(#glue::fired), first);
    let body = quote_spanned!(last=> (#path #parameters #called));
    let future = shown_at(quote!(impl #glue::Future<Output = #glue::Tried<()>> + #glue::Send), last);
    Some(quote! {
        fn on_timer(fired: #glue::FiredTimer, slots: &mut Self::Slots, shared: &Self::Shared) -> #future {
            async move {
                let timer = #glue::timer::<#codec>(fired)?;
                #returned #body
            }
        }
    })
}
