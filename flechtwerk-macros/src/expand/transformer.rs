//! `#[transformer(inputs = [..], ..)]`.
//!
//! The function itself is emitted first and as it was written. Beside it stands a struct of the same name (functions and
//! types have names of their own), which `pipeline!` finds under the function's path. What it implements lies in an
//! unnamed constant, so that nothing else becomes visible.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::{Index, Type};

use crate::errors::Errors;
use crate::item::{self, Function};
use crate::model::{self, Stage};
use crate::spans::{alias_shown_as, call_shown_as, ends, passed_shown_as, shown_at, written};

pub(crate) fn transformer(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let mut errors = Errors::default();
    let args = model::arguments(arguments, &mut errors);
    let function = match item::function(&item, "transformer") {
        Ok(function) => function,
        Err(error) => {
            errors.push(error);
            let errors = errors.to_tokens();
            return quote!(#item #errors);
        }
    };
    let stage = model::stage(&args, &function, &mut errors);
    let krate = &args.krate;
    let generated = match stage {
        Some(stage) => expand(&stage, &function, &quote!(#krate::glue)),
        // Inside an `impl`, where a method stands, nothing else may.
        None if function.signature.receiver().is_some() => return with_errors(&item, &errors),
        None => stand_in(&function, &quote!(#krate::glue)),
    };
    let errors = errors.to_tokens();
    let name = &function.signature.ident;
    let visibility = &function.visibility;
    let cfgs = item::cfgs(&function.attributes);
    quote! {
        #item
        #errors
        #(#cfgs)*
        #[doc(hidden)]
        #[allow(non_camel_case_types, missing_docs, unreachable_pub, dead_code)]
        #visibility struct #name {}
        #(#cfgs)*
        #[allow(clippy::all, private_interfaces, unused_variables)]
        const _: () = {
            #generated
        };
    }
}

fn with_errors(item: &TokenStream, errors: &Errors) -> TokenStream {
    let errors = errors.to_tokens();
    quote!(#item #errors)
}

/// A stage that does nothing, in the place of one with mistakes: a pipeline that lists it is no error as well.
fn stand_in(function: &Function, glue: &TokenStream) -> TokenStream {
    let name = &function.signature.ident;
    let text = name.unraw().to_string();
    let info = info(
        &text,
        glue,
        quote! {
            application_id: ::core::option::Option::None,
            inputs: &[],
            parts: &[],
            start: #glue::Start::Earliest,
            order: #glue::Order::Inputs,
            custom_key: false,
            stub: true,
        },
        &text,
    );
    quote! {
        impl #glue::Stage for #name {
            const INFO: &'static #glue::StageInfo = #info;
            type Slots = ();
            fn open(_: &mut #glue::Opening<'_>) -> #glue::Tried<()> {
                #glue::Ok(())
            }
            fn visit(_: &mut (), _: &mut #glue::Visit<'_, '_>) -> #glue::Tried<()> {
                #glue::Ok(())
            }
            async fn call(_: &#glue::RawRecord, _: &mut ()) -> #glue::Tried<()> {
                #glue::Ok(())
            }
        }
    }
}

fn info(name: &str, glue: &TokenStream, rest: TokenStream, function: &str) -> TokenStream {
    quote! {
        &#glue::StageInfo {
            name: #name,
            id: concat!(module_path!(), "::", #function),
            #rest
        }
    }
}

/// A parameter after the input: its type, and what was generated for it.
struct Slot<'a> {
    ty: &'a Type,
    alias: Ident,
    /// Its place in the tuple of tables.
    index: Index,
    field: Ident,
}

fn expand(stage: &Stage, function: &Function, glue: &TokenStream) -> TokenStream {
    let name = &function.signature.ident;
    // These are named at the function's name: what rustc suggests about an unknown type in the signature it then
    // suggests about them as well, takes all for one error, and shows it once.
    let alias = |n: usize| format_ident!("__P{n}", span = name.span());
    let slots: Vec<Slot<'_>> = stage
        .slots
        .iter()
        .enumerate()
        .map(|(n, ty)| Slot { ty, alias: alias(n + 1), index: n.into(), field: format_ident!("p{}", n + 1) })
        .collect();
    let inputs = inputs(stage, &alias(0), glue);
    let parameters = parameters(stage, &slots, glue);
    let checks = checks(stage, &slots, glue);
    let info = stage_info(stage, &name.unraw().to_string(), glue);
    let key = key(stage, &alias(0), glue);
    let (returns, call) = call(stage, name, &slots, glue);
    let (fields, indices): (Vec<_>, Vec<_>) = slots.iter().map(|slot| (&slot.field, &slot.index)).unzip();
    let types = slots.iter().map(|slot| alias_shown_as(slot.ty, glue, &slot.alias));
    quote! {
        #inputs
        #parameters
        #returns
        const _: () = {
            #checks
        };
        pub struct __Slots {
            #(#fields: #types,)*
        }
        impl #glue::Stage for #name {
            const INFO: &'static #glue::StageInfo = #info;
            type Slots = __Slots;
            #key
            fn open(opening: &mut #glue::Opening<'_>) -> #glue::Tried<__Slots> {
                #glue::Ok(__Slots {
                    #(#fields: (__SLOTS.#indices.open)(opening)?,)*
                })
            }
            fn visit(slots: &mut __Slots, visit: &mut #glue::Visit<'_, '_>) -> #glue::Tried<()> {
                #((__SLOTS.#indices.visit)(&mut slots.#fields, visit)?;)*
                #glue::Ok(())
            }
            #call
        }
    }
}

/// The type of the input, and a table for each topic in `inputs`.
fn inputs(stage: &Stage, alias: &Ident, glue: &TokenStream) -> TokenStream {
    let ty = &stage.input;
    let proof = call_shown_as(ty, quote!(#glue::input_type), quote!(::<#ty>), quote!(()));
    let input = alias_shown_as(ty, glue, alias);
    // State belongs to the bytes of a key, so they must mean the same in all inputs.
    let record_keys = stage.state.is_some() && stage.key.is_none();
    let tables = stage.inputs.iter().enumerate().map(|(n, topic)| {
        let like = match &stage.inputs[0] {
            first if n > 0 && record_keys => quote!(#glue::KeyOf<#first>),
            _ => quote!(#glue::AnyKey),
        };
        let topic_type = passed_shown_as(topic, quote!(#topic as #glue::With<#alias>), "It");
        call_shown_as(topic, quote!(#glue::input), quote!(::<#input, #topic_type, #like>), quote!(()))
    });
    let count = stage.inputs.len();
    quote! {
        type #alias = <#ty as #glue::CheckedBy<{ #proof }>>::It;
        const __INPUTS: [#glue::InputVt<#alias>; #count] = [#(#tables),*];
    }
}

/// A parameter is made of so many parts at most.
const MOST_PARTS: usize = 6;

/// The types of the other parameters, and a table for each.
fn parameters(stage: &Stage, slots: &[Slot<'_>], glue: &TokenStream) -> TokenStream {
    let declared = match &stage.state {
        Some(state) => quote!(#glue::Says<#state>),
        None => quote!(#glue::NoState),
    };
    let aliases: Vec<_> = slots.iter().map(|slot| &slot.alias).collect();
    let (types, indices) = (slots.iter().map(|slot| slot.ty), slots.iter().map(|slot| &slot.index));
    let tables = slots.iter().map(|slot| {
        let shown = alias_shown_as(slot.ty, glue, &slot.alias);
        call_shown_as(slot.ty, quote!(#glue::slot), quote!(::<#shown, #declared>), quote!(()))
    });
    let most = slots.len() * MOST_PARTS;
    quote! {
        #(type #aliases = #types;)*
        const __SLOTS: (#(#glue::SlotVt<#aliases>,)*) = (#(#tables,)*);
        const __PARTS: #glue::AllParts<#most> = #glue::AllParts::new(&[#(__SLOTS.#indices.parts),*]);
    }
}

/// What only constants can tell; the first that fails is reported.
fn checks(stage: &Stage, slots: &[Slot<'_>], glue: &TokenStream) -> TokenStream {
    let mut calls = vec![];
    let mut check = |subject: &Type, function: TokenStream, arguments: TokenStream| {
        calls.push(call_shown_as(subject, quote!(#glue::#function), quote!(), arguments));
    };
    let text = written(&stage.input);
    check(&stage.input, quote!(inputs_complete), quote!((#text, &__INPUTS)));
    for (n, topic) in stage.inputs.iter().enumerate().skip(1) {
        check(topic, quote!(input_once), quote!((&__INPUTS, #n)));
    }
    if let Some(state) = &stage.state {
        let text = written(state);
        check(state, quote!(state_taken), quote!((#text, __PARTS.as_slice())));
        if stage.key.is_none() {
            for (n, topic) in stage.inputs.iter().enumerate() {
                check(topic, quote!(key_not_null), quote!((__INPUTS[#n].info)));
            }
        }
    }
    for (n, slot) in slots.iter().enumerate() {
        check(slot.ty, quote!(parameter), quote!((&__PARTS, #n)));
    }
    quote!(#(#calls;)*)
}

fn stage_info(stage: &Stage, function: &str, glue: &TokenStream) -> TokenStream {
    let application_id = match &stage.application_id {
        Some(id) => quote!(::core::option::Option::Some(#id)),
        None => quote!(::core::option::Option::None),
    };
    let (start, order) = (format_ident!("{}", stage.start), format_ident!("{}", stage.order));
    let custom_key = stage.key.is_some();
    info(
        &stage.name,
        glue,
        quote! {
            application_id: #application_id,
            inputs: &#glue::infos(&__INPUTS),
            parts: __PARTS.as_slice(),
            start: #glue::Start::#start,
            order: #glue::Order::#order,
            custom_key: #custom_key,
            stub: false,
        },
        function,
    )
}

fn key(stage: &Stage, input: &Ident, glue: &TokenStream) -> Option<TokenStream> {
    let path = stage.key.as_ref()?;
    let generics = shown_at(quote!(::<#input, _>), ends(path).0);
    let compute = call_shown_as(path, quote!(#glue::key), generics, quote!((#path, &input)));
    Some(quote! {
        fn key(raw: &#glue::RawRecord) -> #glue::Tried<#glue::Bytes> {
            let input = #glue::decode(&__INPUTS, raw)?;
            #compute
        }
    })
}

/// What the function returns, and its call. A future that is not `Send` is reported at the function's name.
fn call(stage: &Stage, name: &Ident, slots: &[Slot<'_>], glue: &TokenStream) -> (TokenStream, TokenStream) {
    let span = name.span();
    let fields = slots.iter().map(|slot| &slot.field);
    let returns = &stage.returns;
    let proof = call_shown_as(returns, quote!(#glue::returns), quote!(::<#returns>), quote!(()));
    let alias = format_ident!("__Returns", span = span);
    let called = quote_spanned!(span=> #name(input #(, &mut slots.#fields)*));
    let future = shown_at(quote!(impl #glue::Future<Output = #alias> + #glue::Send), span);
    let returns = quote!(type #alias = <#returns as #glue::CheckedBy<{ #proof }>>::It;);
    let call = quote! {
        fn call(raw: &#glue::RawRecord, slots: &mut __Slots) -> #glue::Tried<#future> {
            let input = #glue::decode(&__INPUTS, raw)?;
            #glue::Ok(#called)
        }
    };
    (returns, call)
}
