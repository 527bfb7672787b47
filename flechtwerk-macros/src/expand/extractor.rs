//! `#[extractor(config = .., ..)]`. What is generated has the shape of a transformer's, and is checked by the same checks.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::ext::IdentExt;

use super::transformer::{
    arguments, around, checks, key, nested, stage_info, stand_in, topic_alias, with_errors,
};
use crate::errors::Errors;
use crate::extractor as model;
use crate::item::{self, Function};
use crate::model::Stage;
use crate::spans::{call_shown_as, ends, shown_at};

pub(crate) fn extractor(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let mut errors = Errors::default();
    let args = model::arguments(arguments, &mut errors);
    let function = match item::function(&item, "extractor") {
        Ok(function) => function,
        Err(error) => {
            errors.push(error);
            return with_errors(&item, &errors);
        }
    };
    let stage = model::stage(&args, &function, &mut errors);
    let krate = &args.krate;
    let glue = quote!(#krate::glue);
    let generated = match stage {
        Some(stage) => expand(&stage, &function, &glue),
        // Inside an `impl`, where a method stands, nothing else may.
        None if function.signature.receiver().is_some() => return with_errors(&item, &errors),
        None => stand_in(&function, &glue),
    };
    around(&item, &function, &errors, &generated)
}

fn expand(stage: &Stage, function: &Function, glue: &TokenStream) -> TokenStream {
    let name = &function.signature.ident;
    let config = format_ident!("__Config", span = name.span());
    let checked = name;
    let ty = &stage.input;
    let has_config = !stage.inputs.is_empty();
    let config_type = match has_config {
        true => {
            let proof = call_shown_as(ty, quote!(#glue::input_type), quote!(::<#ty>), quote!(()));
            quote!(<#ty as #glue::CheckedBy<{ #proof }>>::It)
        }
        false => quote!(()),
    };
    let topic_aliases: Vec<_> = (0..stage.inputs.len()).map(topic_alias).collect();
    let topic_types = &stage.inputs;
    let topics = nested(topic_aliases.iter().map(|topic| quote!(#topic)));
    let slots = nested(stage.slots.iter().map(|slot| quote!(#slot)));
    let shared = nested(stage.shared.iter().map(|shared| quote!(#shared)));
    let returns = &stage.returns;
    let checks = checks(stage, &config, glue);
    let info = stage_info(stage, &name.unraw().to_string(), glue);
    let key = key(stage, glue, &quote!(#glue::Extractor), &quote!(Config));
    let suspended = suspended(stage, glue);
    // Nothing lies in Kafka that the one implicit config could be decoded from.
    let decode = (!has_config).then(|| {
        quote! {
            fn decode(_: &#glue::RawRecord) -> #glue::Tried<()> {
                #glue::Ok(())
            }
        }
    });
    let call = call(stage, name, glue, has_config);
    quote! {
        struct __Stage;
        impl #glue::Listable for #name {
            const LISTED: #glue::Listed = #glue::listed_extractor::<__Stage>();
        }
        const _: () = {
            #(type #topic_aliases = #topic_types;)*
            type #config = #config_type;
            // As for a transformer: all that may be wrong with the types is found in this one constant.
            type #checked = <(#config, #topics, #slots, #shared, #returns) as #glue::CheckedBy<{ #checks }>>::It;
            impl #glue::Extractor for __Stage {
                const INFO: &'static #glue::StageInfo = #info;
                type Config = <#checked as #glue::Checked>::Input;
                type Topics = <#checked as #glue::Checked>::Topics;
                type Slots = <#checked as #glue::Checked>::Slots;
                type Shared = <#checked as #glue::Checked>::Shared;
                #decode
                #key
                #suspended
                #call
            }
        };
    }
}

fn suspended(stage: &Stage, glue: &TokenStream) -> Option<TokenStream> {
    let path = stage.polling.as_ref()?.suspended.as_ref()?;
    let generics = shown_at(quote!(::<<Self as #glue::Extractor>::Config, _>), ends(path).0);
    let compute = call_shown_as(path, quote!(#glue::suspended), generics, quote!((#path, &config)));
    Some(quote! {
        fn suspended(raw: &#glue::RawRecord) -> #glue::Tried<bool> {
            let config = <Self as #glue::Extractor>::decode(raw)?;
            #compute
        }
    })
}

/// The call of the function. A future that is not `Send` is reported at the function's name.
fn call(stage: &Stage, name: &Ident, glue: &TokenStream, has_config: bool) -> TokenStream {
    let span = name.span();
    let arguments = arguments(stage);
    let config = has_config.then(|| quote_spanned!(span=> config,));
    let called = quote_spanned!(span=> #name(#config #(#arguments),*));
    let output = quote!(<#name as #glue::Checked>::Returns);
    let future = shown_at(quote!(impl #glue::Future<Output = #output> + #glue::Send), span);
    let parameter = if has_config { quote!(config) } else { quote!(_) };
    quote! {
        fn call(#parameter: &Self::Config, slots: &mut Self::Slots, shared: &Self::Shared) -> #future {
            #called
        }
    }
}
