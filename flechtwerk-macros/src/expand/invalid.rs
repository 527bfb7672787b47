//! `on_invalid = path` and `dead_letters = Topic` of a stage: what it does with records that don't decode.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};

use crate::model::Stage;
use crate::spans::{alias_shown_as, call_shown_as, ends, shown_at};

/// The name that stands for the topic of dead letters, once it is known to be one.
fn alias(span: proc_macro2::Span) -> Ident {
    format_ident!("__DeadLetters", span = span)
}

/// The topic's type, which passes only with the proof that it can take any bytes.
pub(super) fn dead_letters(stage: &Stage, name: &Ident, glue: &TokenStream) -> Option<TokenStream> {
    let topic = stage.dead_letters.as_ref()?;
    let alias = alias(name.span());
    // A topic that does not exist is named once.
    let given = format_ident!("__Given", span = name.span());
    let shown = alias_shown_as(topic, glue, &given);
    let proof = call_shown_as(topic, quote!(#glue::dead_letters), quote!(::<#shown>), quote!(()));
    Some(quote! {
        type #given = #topic;
        type #alias = <#given as #glue::CheckedBy<{ #proof }>>::It;
    })
}

/// Its description.
pub(super) fn dead_letters_info(glue: &TokenStream) -> TokenStream {
    let alias = alias(proc_macro2::Span::call_site());
    quote!(<#alias as #glue::Topic>::INFO)
}

/// The policy of a stage, as a constant.
pub(super) fn policy(stage: &Stage, glue: &TokenStream) -> TokenStream {
    if stage.on_invalid.is_none() {
        return quote!(#glue::Policy::CRASH);
    }
    let dead_letters = match &stage.dead_letters {
        Some(_) => {
            let info = dead_letters_info(glue);
            quote!(::core::option::Option::Some(#info))
        }
        None => quote!(::core::option::Option::None),
    };
    quote!(#glue::Policy { named: true, dead_letters: #dead_letters })
}

/// The call of the function.
pub(super) fn on_invalid(stage: &Stage, glue: &TokenStream) -> Option<TokenStream> {
    let path = stage.on_invalid.as_ref()?;
    let has = match &stage.dead_letters {
        Some(_) => quote!(#glue::WithDeadLetters),
        None => quote!(#glue::NoDeadLetters),
    };
    let generics = shown_at(quote!(::<#has, _>), ends(path).0);
    let answer = call_shown_as(path, quote!(#glue::on_invalid), generics, quote!((#path, record)));
    Some(quote! {
        fn on_invalid(record: &#glue::Invalid<'_>) -> #glue::Answer {
            #answer
        }
    })
}
